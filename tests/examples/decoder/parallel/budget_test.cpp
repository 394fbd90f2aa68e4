// The peak that a dry run computes is the peak of the steps that follow, whatever ranks share.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

namespace {

using decoder::settings;

settings some_model() {
  settings s = small_settings("bf16");
  s.model.hidden = 96, s.model.heads = s.model.kv_heads = 6, s.model.inner = 256;
  s.model.layers = s.data.accumulation = 8;
  s.data.sequence = 128, s.data.batch = 2;
  s.schedule.steps = 2;
  s.run.threads = 1;
  s.run.transport = "local";
  return s;
}

struct peaks {
  std::int64_t predicted = 0, measured = 0;  // of the rank that needs most
  std::vector<float> losses;
};

// Two steps; if it is wanted, in pools that are limited to the predicted peak and the room for
// holes that the main job adds.
peaks train(const settings& s, bool is_limited) {
  using namespace decoder;
  const corpus text = split_text(some_text(60000), 1 << 20);
  peaks result;
  on_all_ranks(s, {}, [&](member& rank) {
    split(rank, s);
    trainer one(rank, s, text);
    std::int64_t predicted = 0;
    if (is_limited) {
      predicted = one.peak_bytes(s.memory);
      rank.memory().set_limit(predicted + predicted / 100 + (1 << 19));
    }
    one.start();
    for (std::int64_t i = 0; i < s.schedule.steps; ++i) one.step();
    if (s.parallel.post_validation) one.settle();
    const auto measured = rank.max(static_cast<std::int64_t>(rank.memory().stats().bytes_peak));
    if (rank.leads()) result = {predicted, measured, one.losses()};
    return 0;
  });
  return result;
}

void require_peak(const char* name, const std::function<void(settings&)>& set) {
  INFO(name);
  settings s = some_model();
  set(s);
  if (s.parallel.pp == 1) s.data.accumulation = 2;  // only a pipeline needs more
  s.run.ranks = std::max(s.run.ranks, s.parallel.ranks_of_copy());
  const peaks found = train(s, true);
  INFO("predicted " << found.predicted << ", measured " << found.measured);
  CHECK(static_cast<double>(found.measured) >= 0.93 * static_cast<double>(found.predicted));
  CHECK(found.losses == train(s, false).losses);
}

// Between the peaks without recompute and with all layers recomputed.
std::int64_t half_a_budget(decoder::trainer& one, const settings& s) {
  decoder::memory_settings none = s.memory, full = s.memory;
  none.recompute = "none", full.recompute = "full";
  return (one.peak_bytes(none) + one.peak_bytes(full)) / 2;
}

}  // namespace

TEST_CASE("the peak of ranks that share matrices or windows is known before they train") {
  const auto in = [](settings & s) -> auto& {
    return s.parallel;
  };
  require_peak("tp 2", [&](settings& s) { in(s).tp = 2; });
  require_peak("tp 3, rows cut, uneven", [&](settings& s) {
    in(s).tp = 3, in(s).sequence_parallel = true;
    s.model.inner = 250;
  });
  require_peak("tp 2, saved rows cut", [&](settings& s) {
    in(s).tp = 2;
    s.memory.recompute = "full", s.memory.distribute_saved = true;
  });
  require_peak("tp 2, attention's sum saved", [&](settings& s) {
    in(s).tp = 2;
    s.memory.recompute = "full", s.memory.recompute_level = 2;
  });
  require_peak("tp 2, saved rows cut, which wait elsewhere", [&](settings& s) {
    in(s).tp = 2;
    s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
    s.memory.distribute_saved = true, s.memory.swap_activations = "host";
  });
  for (const char* algorithm : {"ring", "ulysses", "all_gather", "adaptive"})
    require_peak(algorithm, [&](settings& s) { in(s).cp = 2, in(s).cp_algorithm = algorithm; });
  require_peak("ring that keeps keys", [&](settings& s) {
    in(s).cp = 2, in(s).cp_kv_cache = "full";
    s.memory.recompute = "selective";
  });
  require_peak("ulysses that keeps its own keys", [&](settings& s) {
    in(s).cp = 2, in(s).cp_algorithm = "ulysses", in(s).cp_kv_cache = "full";
    s.model.kv_heads = 1;
  });
  require_peak("ulysses that gathers all heads of keys", [&](settings& s) {
    in(s).cp = 2, in(s).cp_algorithm = "ulysses", in(s).cp_kv_gather = true;
  });
  for (const char* recompute : {"none", "selective", "full"})
    for (const char* algorithm : {"ring", "ulysses"})
      require_peak("shared keys between windows", [&](settings& s) {
        s.model.kv_share = 2, s.model.layers = 4;
        in(s).cp = 2, in(s).cp_algorithm = algorithm;
        s.memory.recompute = recompute;
      });
  require_peak("shared keys in a cache", [&](settings& s) {
    s.model.kv_share = 2, s.model.layers = 4;
    in(s).cp = 4, in(s).cp_kv_cache = "full";
  });
  require_peak("matrices cut both ways", [&](settings& s) { in(s).tp = 4, in(s).tp_x = 2; });
  require_peak("matrices cut both ways, stages", [&](settings& s) {
    in(s).tp = 2, in(s).tp_x = 1;
    in(s).cp = in(s).pp = 2;
  });
  require_peak("copies, sharded optimizer", [&](settings& s) {
    in(s).tp = 2, s.run.ranks = 4;
    s.run.zero = true;
  });
}

TEST_CASE("the peak of ranks with stages is known before they train") {
  const auto in = [](settings & s) -> auto& {
    return s.parallel;
  };
  for (const std::string& kind : decoder::pipelines())
    require_peak(kind.c_str(), [&](settings& s) {
      in(s).pp = 2, in(s).pipeline = kind;
      in(s).sequence_splits = kind == "seq1f1b" ? 5 : 1;
    });
  for (const char* layers : {"0,8,0,0", "2,0,0,6"})
    require_peak("stages without a layer", [&](settings& s) {
      s.model.layers = 8;
      in(s).pp = 4, in(s).pipeline = "zbh1", in(s).stage_layers = layers;
    });
  require_peak("splits, pp 4, tp 2 with rows cut, shared keys", [&](settings& s) {
    in(s).pp = 4, in(s).tp = 2, in(s).sequence_parallel = true;
    in(s).pipeline = "seq1f1b", in(s).sequence_splits = 3;
    s.model.kv_share = 2;
    s.memory.recompute = "full";
  });
  for (const char* algorithm : {"all_gather", "ulysses"})
    require_peak((std::string("splits, cp 2 by ") + algorithm).c_str(), [&](settings& s) {
      in(s).pp = in(s).cp = 2, in(s).cp_algorithm = algorithm;
      in(s).pipeline = "seq1f1b", in(s).sequence_splits = 5;
      s.model.kv_heads = 2;
    });
  require_peak("splits in bf16", [&](settings& s) {
    in(s).pp = 2, in(s).pipeline = "seq1f1b", in(s).sequence_splits = 5;
    s.model.dtype = "bf16";
  });
  require_peak("splits, matrices cut both ways, shared keys", [&](settings& s) {
    in(s).pp = 2, in(s).tp = 4, in(s).tp_x = 2, in(s).cp_algorithm = "all_gather";
    in(s).pipeline = "seq1f1b", in(s).sequence_splits = 3;
    s.model.kv_share = 2;
    s.memory.recompute = "full";
  });
  require_peak("tp 2, pp 2, cp 2", [&](settings& s) {
    in(s).tp = in(s).pp = in(s).cp = 2;
    in(s).sequence_parallel = true;
    in(s).pipeline = "zbv";
  });
  require_peak("pp 4, a recomputed group", [&](settings& s) {
    in(s).pp = 4;
    s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
  });
  require_peak("swapped activations", [&](settings& s) {
    in(s).pp = 2;
    s.memory.swap_activations = "host";
  });
  require_peak("late weight gradients whose inputs wait elsewhere", [&](settings& s) {
    in(s).pp = 2, in(s).pipeline = "nanopipe", in(s).nanopipe_swap = true;
  });
  require_peak("steps validated late",
               [&](settings& s) { in(s).pp = 2, in(s).post_validation = true; });
  require_peak("shared keys", [&](settings& s) { in(s).pp = 2, s.model.kv_share = 2; });
}

TEST_CASE("with 1f1b the first of two stages recomputes more within the same budget") {
  using namespace decoder;
  settings s = some_model();
  s.parallel.pp = s.run.ranks = 2;
  s.memory.recompute = "adaptive";
  const corpus text = split_text(some_text(60000), 1 << 20);
  std::vector<std::int64_t> recomputed(2);  // layers with any kind, by rank
  bool fits = false;
  on_all_ranks(s, {}, [&](member& rank) {
    split(rank, s);
    trainer one(rank, s, text);
    const std::int64_t budget = half_a_budget(one, s);
    const std::optional<std::int64_t> peak = one.adapt(budget);
    if (rank.leads()) fits = peak.has_value() && *peak <= budget;
    const std::vector<layer_recompute>& layers = one.recomputed();
    recomputed[static_cast<std::size_t>(rank.rank())] = std::count_if(
        layers.begin(), layers.end(), [](const layer_recompute& each) { return each.kinds != 0; });
    return 0;
  });
  CHECK(fits);
  INFO(recomputed[0] << " and " << recomputed[1] << " of 4 layers");
  CHECK(recomputed[0] > recomputed[1]);
  CHECK(recomputed[0] > 0);
}

TEST_CASE("ranks that share layers choose the same recompute, layer by layer") {
  using namespace decoder;
  const struct {
    const char* name;
    std::int64_t tp, cp, pp, ranks;
  } cuts[] = {
      {"tp 2", 2, 1, 1, 2}, {"cp 2", 1, 2, 1, 2}, {"copies", 1, 1, 1, 2}, {"all", 2, 2, 2, 8}};
  const corpus text = split_text(some_text(60000), 1 << 20);
  for (const auto& cut : cuts) {
    INFO(cut.name);
    settings s = some_model();
    s.parallel.tp = cut.tp, s.parallel.cp = cut.cp, s.parallel.pp = cut.pp;
    s.run.ranks = cut.ranks;
    s.memory.recompute = "adaptive";
    std::vector<std::vector<layer_recompute>> chosen(static_cast<std::size_t>(cut.ranks));
    on_all_ranks(s, {}, [&](member& rank) {
      split(rank, s);
      trainer one(rank, s, text);
      one.adapt(half_a_budget(one, s));
      chosen[static_cast<std::size_t>(rank.rank())] = one.recomputed();
      return 0;
    });
    const std::int64_t of_stage = cut.ranks / cut.pp;
    for (std::int64_t rank = 0; rank < cut.ranks; ++rank) {
      const auto& mine = chosen[static_cast<std::size_t>(rank)];
      const auto& first = chosen[static_cast<std::size_t>(rank / of_stage * of_stage)];
      const auto alike = [](const layer_recompute& a, const layer_recompute& b) {
        return a.kinds == b.kinds && a.first == b.first;
      };
      CHECK(std::equal(mine.begin(), mine.end(), first.begin(), first.end(), alike));
      CHECK(mine.size() == static_cast<std::size_t>(s.model.layers / cut.pp));
    }
    const auto some = [](const layer_recompute& each) { return each.kinds != 0; };
    CHECK(std::any_of(chosen[0].begin(), chosen[0].end(), some));
  }
}
