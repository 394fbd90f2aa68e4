// A model in stages trains as a whole one does, in every order of its ranks' work.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

namespace {

// Windows have 48 rows, which 5 does not divide.
void set_kind(decoder::settings& s, const std::string& kind) {
  s.parallel.pipeline = kind;
  s.parallel.sequence_splits = kind == "seq1f1b" ? 5 : 1;
}

// Eight layers and as many micro-batches, in f32.
decoder::settings eight_of_each() {
  decoder::settings s = small_settings("f32");
  s.model.layers = s.data.accumulation = 8;
  s.data.batch = 2;
  s.run.threads = 1;
  s.run.transport = "local";
  return s;
}

// Results of rank 0.
struct last_step {
  double norm = 0;  // of the last step's gradients
  velo_executor_stats updates = VELO_EXECUTOR_STATS_INIT;
  double activations = 0;  // most bytes at a time
  double stored = 0;       // bytes that all ranks swapped out
};

// Losses of a run whose ranks are threads of this process.
std::vector<float> losses_of(const decoder::settings& s, std::int64_t steps,
                             last_step* more = nullptr) {
  using namespace decoder;
  const corpus text = split_text(some_text(60000), 1 << 20);
  std::vector<float> losses;
  std::atomic<double> stored{0};
  on_all_ranks(s, {}, [&](member& rank) {
    split(rank, s);
    trainer one(rank, s, text);
    one.start();
    std::optional<trainer::result> last;
    for (std::int64_t i = 0; i < steps; ++i) last = one.step();
    if (s.parallel.post_validation) last = one.settle();
    if (one.stages() != nullptr)
      for (const swapper* each : {one.swapped_activations(), one.stages()->late_inputs()})
        if (each != nullptr) stored = stored + each->total().out;
    if (!rank.leads()) return 0;
    losses = one.losses();
    if (more == nullptr) return 0;
    *more = {last->grad_norm, one.stages()->updates()};
    more->activations =
        static_cast<double>(rank.memory().stats().purpose_peak[VELO_PURPOSE_ACTIVATION]);
    return 0;
  });
  if (more != nullptr) more->stored = stored;
  return losses;
}

void train_alike(std::int64_t steps, const std::vector<std::int64_t>& cuts,
                 const std::vector<std::int64_t>& copies_of,
                 const std::vector<std::string>& orders = decoder::pipelines(),
                 std::int64_t kv_share = 0) {
  decoder::settings s = eight_of_each();
  s.model.kv_share = kv_share;
  s.schedule.steps = steps;
  const std::vector<float> whole = losses_of(s, steps);
  REQUIRE(whole.size() == static_cast<std::size_t>(steps));
  for (const std::string& kind : orders)
    for (const std::int64_t pp : cuts)
      for (const std::int64_t copies : copies_of) {
        INFO(kind << " over " << pp << " ranks, copies: " << copies);
        set_kind(s, kind);
        s.parallel.pp = pp;
        s.run.ranks = pp * copies;
        s.run.zero = copies == 2;
        const std::vector<float> cut = losses_of(s, steps);
        REQUIRE(cut.size() == whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i)
          CHECK(static_cast<double>(cut[i]) ==
                Approx(static_cast<double>(whole[i])).epsilon(1e-5).margin(0));
      }
}

}  // namespace

// VELO_PRETRAIN_LONG: 50 steps, and copies over four ranks, too.
TEST_CASE("a model in stages has the losses of a whole one whatever its order") {
  if (std::getenv("VELO_PRETRAIN_LONG") != nullptr)
    train_alike(50, {2, 4}, {1, 2});
  else
    train_alike(2, {2}, {1});
}

TEST_CASE("copies of a model in stages have the losses of a whole one, both ways through it, too") {
  train_alike(2, {2}, {2}, {"zbh1", "dualpipe", "seq1f1b"});
}

TEST_CASE("stages whose layers share keys have the losses of a whole model") {
  train_alike(2, {2}, {1}, {"1f1b", "zbh1", "zbv", "dualpipe", "nanopipe", "seq1f1b"}, 2);
}

TEST_CASE("stages whose layers share keys have the same bits whatever they keep") {
  decoder::settings s = eight_of_each();
  s.model.kv_share = 2;
  s.schedule.steps = 3;
  s.parallel.pp = 2;
  const auto same_with = [&](const char* what, const std::vector<float>& usual, const auto& set) {
    INFO(what);
    decoder::settings other = s;
    set(other);
    CHECK(losses_of(other, 3) == usual);
  };
  s.parallel.pipeline = "interleaved";
  std::vector<float> usual = losses_of(s, 3);
  for (const bool in_advance : {false, true})
    for (const char* recompute : {"none", "full"})
      same_with("made again", usual, [&](auto& o) {
        o.parallel.pipeline = "ripipe", o.parallel.in_advance = in_advance;
        o.memory.recompute = recompute;
      });
  s.parallel.pipeline = "nanopipe";
  usual = losses_of(s, 3);
  for (const char* recompute : {"none", "full", "uniform"})
    for (const char* swapped : {"off", "host"})
      same_with("late gradients", usual, [&](auto& o) {
        o.parallel.nanopipe_swap = true;
        o.memory.swap_activations = swapped;
        o.memory.recompute = recompute;
        o.memory.recompute_layers = recompute == std::string("uniform") ? 3 : 0;
      });
  s.parallel.pipeline = "dualpipev";
  usual = losses_of(s, 3);
  same_with("detached", usual, [](auto& o) { o.memory.recompute = "block"; });
  s.parallel.pipeline = "1f1b";
  usual = losses_of(s, 3);
  same_with("stepped late", usual, [](auto& o) { o.parallel.post_validation = true; });
}

TEST_CASE("what a schedule makes again has the bits of what it keeps") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 3;
  s.parallel.pp = 2;
  s.parallel.pipeline = "interleaved";
  const std::vector<float> kept = losses_of(s, 3);
  s.parallel.pipeline = "ripipe";
  for (const bool in_advance : {false, true}) {
    INFO("in advance: " << in_advance);
    s.parallel.in_advance = in_advance;
    CHECK(losses_of(s, 3) == kept);
    s.memory.recompute = "selective";  // is made again twice
    CHECK(losses_of(s, 3) == kept);
    s.memory.recompute = "none";
  }
}

TEST_CASE("gradients of weights apart from those of inputs have the bits of both at once") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 2;
  s.parallel.pp = 2;
  for (const char* kind : {"dualpipe", "dualpipev"}) {
    INFO(kind);
    s.parallel.pipeline = kind;
    s.parallel.dw_detach = true;
    const std::vector<float> apart = losses_of(s, 2);
    const auto weight_gradients = [&] {
      const decoder::stage_plan plan(s);
      std::vector<velo_action> row(static_cast<std::size_t>(plan.order().length(0)));
      plan.order().actions(0, 0, static_cast<std::int64_t>(row.size()), row.data());
      return std::count_if(row.begin(), row.end(),
                           [](const velo_action& a) { return a.kind == VELO_ACTION_W; });
    };
    const auto detached = weight_gradients();
    s.parallel.dw_detach = false;
    CHECK(weight_gradients() < detached);
    const std::vector<float> at_once = losses_of(s, 2);
    CHECK(at_once[0] == apart[0]);
    CHECK(static_cast<double>(at_once[1]) ==
          Approx(static_cast<double>(apart[1])).epsilon(1e-5).margin(0));
  }
}

TEST_CASE("stages that swap have the bits of those that keep, and less memory") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 3;
  s.data.sequence = 64;
  s.parallel.pp = 4;
  const auto same_with = [&](const char* what, const auto& set) {
    INFO(what);
    decoder::settings other = s;
    set(other);
    last_step kept, swapped;
    const std::vector<float> usual = losses_of(s, 3, &kept);
    CHECK(losses_of(other, 3, &swapped) == usual);
    CHECK(swapped.stored > 0);
    CHECK(swapped.activations < 0.9 * kept.activations);
  };
  for (const char* kind : {"gpipe", "1f1b", "zbh1", "interleaved", "seq1f1b"}) {
    INFO(kind);
    set_kind(s, kind);
    same_with("activations", [](auto& o) { o.memory.swap_activations = "host"; });
  }
}

// The first of P ranks holds P micro-batches in 1f1b, and P - 1 + S splits, each an S-th of one, in
// seq1f1b. Beside them sequence_keys adds at most a fifth of that here.
TEST_CASE("splits of windows hold fewer activations than whole ones, as few as their order has") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 2;
  s.data.sequence = 120;
  s.parallel.pp = 4;
  last_step whole;
  losses_of(s, 2, &whole);
  s.parallel.pipeline = "seq1f1b";
  for (const std::int64_t splits : {2, 4, 8}) {
    INFO(splits << " splits");
    s.parallel.sequence_splits = splits;
    last_step cut;
    losses_of(s, 2, &cut);
    const auto ranks = static_cast<double>(s.parallel.pp), parts = static_cast<double>(splits);
    const double units = (ranks - 1 + parts) / parts;
    CHECK(cut.activations <= 1.2 * units / ranks * whole.activations);
  }
}

TEST_CASE("late weight gradients of nanopipe may wait elsewhere for their inputs") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 3;
  s.parallel.pp = 4;
  s.parallel.pipeline = "nanopipe";
  last_step kept, swapped;
  const std::vector<float> usual = losses_of(s, 3, &kept);
  s.parallel.nanopipe_swap = true;
  CHECK(losses_of(s, 3, &swapped) == usual);
  CHECK(kept.stored == 0);
  CHECK(swapped.stored > 0);
  s.memory.swap_activations = "host";
  CHECK(losses_of(s, 3) == usual);
  for (const char* recompute : {"full", "selective", "norm"}) {
    INFO(recompute);
    s.memory.recompute = recompute;
    CHECK(losses_of(s, 3) == usual);
  }
}

TEST_CASE("steps that are validated late have the bits of those that wait, clipped or not") {
  constexpr std::int64_t steps = 3;
  for (const char* kind : {"1f1b", "zbv", "dualpipe", "seq1f1b"}) {
    decoder::settings s = eight_of_each();
    set_kind(s, kind);
    s.schedule.steps = steps;
    s.data.accumulation = 4;
    s.parallel.pp = 2;
    s.optimizer.clip = 0;
    last_step first;
    losses_of(s, 1, &first);
    // Clips nothing, both ranks' norm alone, and rank 0's norm alone.
    for (const double part : {2.0, 0.999, 0.01}) {
      INFO(kind << ", clipped at " << part << " of the first norm");
      s.optimizer.clip = part * first.norm;
      s.parallel.post_validation = false;
      const std::vector<float> waited = losses_of(s, steps);
      s.parallel.post_validation = true;
      last_step late;
      CHECK(losses_of(s, steps, &late) == waited);
      CHECK(late.updates.steps == steps);
      CHECK((late.updates.rolled_back > 0) == (part == 0.999));
      CHECK((late.updates.deferred == steps) == (part == 0.01));
    }
  }
}

TEST_CASE(
    "steps that are validated late have the bits of those that wait where copies share the state") {
  constexpr std::int64_t steps = 3;
  for (const char* type : {"f32", "bf16"}) {
    decoder::settings s = eight_of_each();
    s.model.dtype = type;
    s.model.layers = s.data.accumulation = 4;
    s.schedule.steps = steps;
    s.parallel.pipeline = "zbh1";
    s.parallel.pp = 2;
    s.run.ranks = 4;
    s.optimizer.clip = 0;
    last_step first;
    losses_of(s, 1, &first);
    for (const double part : {0.999, 0.01}) {
      INFO(type << ", clipped at " << part << " of the first norm");
      s.optimizer.clip = part * first.norm;
      s.parallel.post_validation = s.run.zero = false;
      const std::vector<float> waited = losses_of(s, steps);
      s.parallel.post_validation = s.run.zero = true;
      last_step late;
      CHECK(losses_of(s, steps, &late) == waited);
      CHECK(late.updates.steps == steps);
      CHECK((late.updates.rolled_back > 0) == (part == 0.999));
      CHECK((late.updates.deferred == steps) == (part == 0.01));
    }
  }
}
