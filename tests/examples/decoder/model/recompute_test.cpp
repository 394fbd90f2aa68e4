// Recompute: every kind gives the same bits, and saves memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <stdexcept>

#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

TEST_CASE("losses and weights have the same bits whatever is made again, and less is kept") {
  struct row {
    const char* kind;
    std::int64_t layers;
    double most;            // of what is kept without
    std::uint64_t regions;  // of a micro-batch
  };
  // A layer has 11 regions, and a group adds the outputs of all its layers but the last.
  const row rows[] = {
      {"full", 0, 0.5, 55},       {"block", 0, 0.5, 55},      {"block", 2, 0.8, 22},
      {"uniform", 0, 0.5, 55},    {"uniform", 2, 0.7, 57},    {"uniform", 5, 1.01, 59},
      {"selective", 0, 0.99, 15}, {"activation", 0, 0.95, 5}, {"activation", 3, 0.98, 3},
      {"norm", 0, 0.95, 10},      {"norm", 1, 0.99, 2},       {"mlp", 0, 0.75, 15},
      {"mlp", 2, 0.9, 6}};
  for (const char* dtype : {"bf16", "f32"}) {
    settings s = small_settings(dtype);
    const trained usual = train(s);
    REQUIRE(usual.losses.size() == 3);
    CHECK(usual.peak == Approx(usual.predicted).epsilon(0.02));
    CHECK(usual.recomputed.bytes_peak == 0);
    for (const row& each : rows) {
      INFO(each.kind << " of " << each.layers << " layers in " << dtype);
      s.memory.recompute = each.kind;
      s.memory.recompute_layers = each.layers;
      const trained other = train(s);
      CHECK(other.losses == usual.losses);
      CHECK((other.state == usual.state));
      CHECK(other.peak == Approx(other.predicted).epsilon(0.02));
      CHECK(static_cast<double>(other.activations) <
            each.most * static_cast<double>(usual.activations));
      const std::uint64_t steps = 3, micro_batches = 2;
      CHECK(other.recomputed.releases == steps * micro_batches * each.regions);
      CHECK(other.recomputed.restores == other.recomputed.releases);
      CHECK(other.recomputed.regions == 0);
      CHECK(other.recomputed.bytes == 0);
    }
  }
}

TEST_CASE(
    "what experts compute, and their rows, are recomputed with the same bits and less is kept") {
  for (const char* dtype : {"bf16", "f32"}) {
    settings s = small_settings(dtype);
    s.model.experts = 8, s.model.expert_inner = 128;
    const trained usual = train(s);
    const auto with = [&](const char* kind, std::int64_t layers, double load) {
      INFO(kind << " of " << layers << " layers in " << dtype);
      settings other = s;
      other.memory.recompute = kind;
      other.memory.recompute_layers = layers;
      other.memory.recompute_load = load;
      trained made = train(other);
      CHECK(made.losses == usual.losses);
      CHECK((made.state == usual.state));
      // The prediction with a load is that of a rank that keeps all.
      const double kept = load == 0 ? made.peak : usual.peak;
      CHECK(kept == Approx(made.predicted).epsilon(0.02));
      CHECK(made.recomputed.restores == made.recomputed.releases);
      CHECK(made.recomputed.regions == 0);
      return made;
    };
    const std::uint64_t passes = 3 * 2;  // steps, micro-batches
    const trained whole = with("mlp", 0, 0), computed = with("experts", 0, 0),
                  dispatched = with("dispatch", 0, 0), some = with("dispatch", 2, 0);
    CHECK(whole.recomputed.restores == passes * 5 * 5);
    CHECK(computed.recomputed.restores == passes * 5 * 3);
    CHECK(dispatched.recomputed.restores == passes * 5 * 4);
    CHECK(some.recomputed.restores == passes * 2 * 4);
    const auto saved = [&](const trained& by) {
      return static_cast<double>(usual.activations) - static_cast<double>(by.activations);
    };
    CHECK(saved(computed) >= 0.7 * saved(whole));
    CHECK(saved(dispatched) >= 0.9 * saved(whole));
    CHECK(saved(some) < 0.5 * saved(whole));
    CHECK(computed.stored == 0);
    // Inputs of all layers but the last wait elsewhere; those of layers that keep theirs do not.
    const double input = 48 * 3 * 64 * (*dtype == 'b' ? 2 : 4);
    CHECK(dispatched.stored == passes * 4 * input);
    CHECK(some.stored == passes * 2 * input);
    CHECK(with("experts", 0, 100).recomputed.restores == 0);
    CHECK(with("experts", 0, 1e-3).recomputed.restores == passes * 5 * 3);
  }
}

TEST_CASE("a rank recomputes above a multiple of the mean load") {
  CHECK(recompute_limit(4096, 8 * 2, 2, 64, 2) == 4096);
  CHECK(recompute_limit(100, 1, 2, 8, 1.5) == 37.5);
}

TEST_CASE("a feed-forward block is recomputed beside what is swapped, and less stays") {
  settings s = small_settings("bf16");
  const trained usual = train(s);
  s.memory.swap_activations = "host";
  s.memory.swap_modules = "input_norm,self_attention,post_attention_norm";
  const trained swapped = train(s);
  s.memory.recompute = "mlp";
  const trained both = train(s);
  CHECK(both.losses == usual.losses);
  CHECK((both.state == usual.state));
  CHECK(both.peak == Approx(both.predicted).epsilon(0.02));
  CHECK(both.activations * 5 < swapped.activations * 4);
}

TEST_CASE("layers of a rank are dealt out over its stages by turns") {
  using counts = std::vector<std::int64_t>;
  CHECK(decoder::dealt_by_turns(0, {2, 2}) == counts{0, 0});
  CHECK(decoder::dealt_by_turns(3, {2, 2}) == counts{2, 1});
  CHECK(decoder::dealt_by_turns(4, {0, 1, 5}) == counts{0, 1, 3});
  CHECK(decoder::dealt_by_turns(9, {2, 0, 1}) == counts{2, 0, 1});
  CHECK(decoder::dealt_by_turns(1, {}).empty());
}

TEST_CASE("a buffer that is recomputed gives its memory back and is filled again") {
  run_memory memory;
  int fills = 0;
  const auto fill = [&](buffer& which) {
    memory.make(which, 1 << 20, [&] { std::memset(which.data(), ++fills, 1 << 20); });
  };
  buffer usual, again;
  again.recompute();
  fill(usual);
  fill(again);
  usual.release();
  again.release();
  CHECK(usual);
  CHECK(!again);
  CHECK(memory.stats().bytes_live < 2 << 20);
  CHECK(memory.recomputed().regions == 1);
  buffer moved = std::move(again);
  fill(moved);
  CHECK(fills == 3);
  CHECK(moved.data()[(1 << 20) - 1] == std::byte{3});
  moved = {};
  CHECK(memory.recomputed().regions == 0);
  CHECK(memory.recomputed().restores == 1);
}

TEST_CASE("a buffer that cannot be recomputed says why") {
  run_memory memory;
  buffer which;
  which.recompute();
  memory.make(which, 1 << 20);
  which.release();
  auto fails = [] { throw std::domain_error("no operator"); };
  CHECK_THROWS_AS(memory.make(which, 1 << 20, fails), std::domain_error);
  CHECK(!which);
  buffer other = memory.take(1 << 20, VELO_PURPOSE_OTHER);
  memory.set_limit(1 << 19);
  const auto refused = [&](buffer& one) -> velo_status {
    try {
      memory.make(one, 1 << 20);
      return VELO_OK;
    } catch (const velo::error& e) {
      return e.status();
    }
  };
  CHECK(refused(which) == VELO_ERR_MEMORY);
  buffer first;
  first.recompute();
  CHECK(refused(first) == VELO_ERR_MEMORY);
  other = {};
  memory.make(which, 1 << 20);
  CHECK(which);
}

namespace {

// Three layers whose parts can be made again, tried until nothing else can be released.
class search {
 public:
  using layers = std::vector<layer_recompute>;
  std::optional<recompute_choice> within(std::int64_t most, const recompute_trial& peak_of) {
    settings s;
    s.memory.recompute = "adaptive";
    const std::vector<recompute_cost> costs = {{VELO_RECOMPUTE_FULL, 100, 1},
                                               {VELO_RECOMPUTE_ACTIVATION, 50, 0.2},
                                               {VELO_RECOMPUTE_NORM, 20, 0.1}};
    return choose_recompute(s.memory, 3, costs, most, [&](const layers& with) {
      peaks_.push_back(peak_of(with));
      return peaks_.back();
    });
  }
  const std::vector<std::optional<std::int64_t>>& peaks() const { return peaks_; }

 private:
  std::vector<std::optional<std::int64_t>> peaks_;
};

// Layers that are recomputed whole need 90 bytes at a time beside what they keep.
std::int64_t peak_of_layers(const std::vector<layer_recompute>& with) {
  std::int64_t kept = 0, again = 0;
  for (const layer_recompute& each : with) {
    const bool full = each.has(VELO_RECOMPUTE_FULL);
    kept += full ? 10
                 : 110 - (each.has(VELO_RECOMPUTE_ACTIVATION) ? 50 : 0) -
                       (each.has(VELO_RECOMPUTE_NORM) ? 20 : 0);
    again += full ? 90 : 0;
  }
  return kept + again;
}

}  // namespace

TEST_CASE("where no choice fits, the one with the least peak is returned, and not the whole") {
  search one;
  const auto found = one.within(1, &peak_of_layers);
  REQUIRE(found);
  CHECK(found->peak == *std::min_element(one.peaks().begin(), one.peaks().end()));
  CHECK(found->peak == peak_of_layers(found->layers));
  CHECK(found->peak < peak_of_layers(std::vector<layer_recompute>(3, {VELO_RECOMPUTE_FULL, 0})));
  // With that budget the same choice fits.
  search again;
  const auto fits = again.within(found->peak, &peak_of_layers);
  REQUIRE(fits);
  CHECK(fits->peak <= found->peak);
}

TEST_CASE("a trial that returns nothing ends the search") {
  search one;
  const auto second = [&](const search::layers& with) -> std::optional<std::int64_t> {
    if (one.peaks().empty()) return peak_of_layers(with);
    return std::nullopt;
  };
  CHECK(!one.within(1, second));
  CHECK(one.peaks().size() == 2);
  search last;  // also the trial of whole layers, behind those of the rule
  const auto at_the_end = [&](const search::layers& with) -> std::optional<std::int64_t> {
    const bool all = std::all_of(with.begin(), with.end(), [](const layer_recompute& each) {
      return each.kinds == VELO_RECOMPUTE_FULL;
    });
    if (all) return std::nullopt;
    return peak_of_layers(with);
  };
  CHECK(!last.within(1, at_the_end));
}
