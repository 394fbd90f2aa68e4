// A model that ranks share, by tensors, rows of windows, stages and copies, trains as a whole one
// does: losses, gradient norms, and each tensor of the first step's gradient.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

namespace {

using decoder::settings;

// Four layers and heads that neither 2 nor 4 tensor ranks divide, in f32; threads as ranks.
settings small_model() {
  settings s = small_settings("f32");
  s.model.hidden = 96, s.model.heads = 6, s.model.kv_heads = 3, s.model.inner = 110;
  s.model.layers = 4, s.model.vocab = 261;
  s.data.sequence = 50, s.data.batch = 4, s.data.accumulation = 4;
  s.run.threads = 1;
  s.run.transport = "local";
  return s;
}

struct outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
  bool operator==(const outcome& other) const {
    return losses == other.losses && norms == other.norms && gradients == other.gradients;
  }
};

std::map<std::string, std::vector<float>> gradients_in(const std::string& path, const settings& s) {
  std::map<std::string, std::vector<float>> all;
  const decoder::safetensors_reader file(path);
  for (const decoder::weight_slice& each : decoder::weight_layout(s.model).slices) {
    std::vector<float>& values = all[each.name];
    values.resize(static_cast<std::size_t>(each.elements()));
    file.read({each.name, decoder::element::f32, each.shape,
               reinterpret_cast<std::byte*>(values.data())});
  }
  return all;
}

// Runs `job` with the trainer of each rank.
void on_trainers(const settings& s,
                 const std::function<void(decoder::member&, decoder::trainer&)>& job) {
  const std::string whole = some_text(60000);
  const decoder::corpus text =
      s.data.has_documents()
          ? decoder::split_documents(whole, decoder::line_ends(whole, {whole.size()}), 1 << 20)
          : decoder::split_text(whole, 1 << 20);
  decoder::on_all_ranks(s, {}, [&](decoder::member& rank) {
    split(rank, s);
    decoder::trainer one(rank, s, text);
    job(rank, one);
    return 0;
  });
}

void take_steps(decoder::member& rank, decoder::trainer& one, std::int64_t steps, outcome& to) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto done = one.step();
    if (!rank.leads()) continue;
    to.losses.push_back(done->loss);
    to.norms.push_back(done->grad_norm);
  }
}

outcome train_for(std::int64_t steps, settings s) {
  const temporary folder;
  s.schedule.steps = steps;
  s.run.gradients = folder / "gradients.safetensors";
  outcome made;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    take_steps(rank, one, steps, made);
  });
  made.gradients = gradients_in(s.run.gradients, s);
  return made;
}

double norm_of(const std::vector<float>& x, const std::vector<float>& less) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double each = static_cast<double>(x[i]) - static_cast<double>(less[i]);
    sum += each * each;
  }
  return std::sqrt(sum);
}

void compare(const outcome& whole, const outcome& cut) {
  REQUIRE(cut.losses.size() == whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    CHECK(cut.losses[i] == Approx(whole.losses[i]).epsilon(1e-5).margin(0));
    CHECK(cut.norms[i] == Approx(whole.norms[i]).epsilon(1e-5).margin(0));
  }
  for (const auto& [name, expected] : whole.gradients) {
    INFO(name);
    const std::vector<float> zero(expected.size());
    const double norm = norm_of(expected, zero);
    CHECK(norm > 0);
    CHECK(norm_of(cut.gradients.at(name), expected) <= 1e-5 * norm);
  }
}

// A layout by its settings.
struct layout {
  const char* name;
  std::int64_t ranks;
  std::function<void(settings&)> set;
};

const std::vector<layout>& layouts() {
  static const std::vector<layout> all = {
      {"tp 2, pp 2, cp 2", 8,
       [](settings& s) { s.parallel.tp = s.parallel.pp = s.parallel.cp = 2; }},
      {"tp 2 with rows cut, heads and inner uneven", 2,
       [](settings& s) { s.parallel.tp = 2, s.parallel.sequence_parallel = true; }},
      {"tp 3, two copies", 6, [](settings& s) { s.parallel.tp = 3; }},
      {"tp 3 with rows cut, uneven rows", 3,
       [](settings& s) { s.parallel.tp = 3, s.parallel.sequence_parallel = true; }},
      {"hybrid of 4, ulysses 2, in two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.cp = 4, s.parallel.cp_ulysses = 2, s.parallel.cp_algorithm = "hybrid";
         s.run.zero = true;
       }},
      {"tp 2 with rows cut, cp 2 by ulysses, two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.sequence_parallel = true;
         s.model.heads = s.model.kv_heads = 6;
         s.run.zero = true;
       }},
      {"tp 4, two ranks to a head of keys, rows cut", 4,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.sequence_parallel = true;
       }},
      {"tp 4, one head of keys, two copies that share the optimizer", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 1;
         s.parallel.tp = 4;
         s.run.zero = true;
       }},
      {"tp 4, two ranks to a head of keys, two stages by zbh1", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
       }},
      {"tp 4, two ranks to a head of keys, cp 2 by ulysses, all recomputed", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2;
         s.parallel.tp = 4, s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.memory.recompute = "full";
       }},
      {"shared keys, tp 4 by 2, two ranks to a head of keys", 8,
       [](settings& s) {
         s.model.heads = 8, s.model.kv_heads = 2, s.model.kv_share = 2;
         s.parallel.tp = 8, s.parallel.tp_x = 4;
       }},
      {"tp 2 by 1", 2, [](settings& s) { s.parallel.tp = s.parallel.tp_x = 2; }},
      {"tp 1 by 5, hidden and rows uneven", 5,
       [](settings& s) { s.parallel.tp = 5, s.parallel.tp_x = 1; }},
      {"tp 2 by 2, heads and inner uneven, two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = 2;
         s.run.zero = true;
       }},
      {"tp 2 by 2, pp 2", 8,
       [](settings& s) { s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2; }},
      {"tp 2 by 1, cp 2", 4,
       [](settings& s) { s.parallel.tp = s.parallel.tp_x = s.parallel.cp = 2; }},
      {"tp 2 by 2, cp 2 by hybrid that keeps keys and values", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.cp = 2;
         s.parallel.cp_algorithm = "hybrid", s.parallel.cp_ulysses = 2;
         s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 1;
         s.model.heads = s.model.kv_heads = 6;
       }},
      {"tied, tp 3 by 2, all recomputed", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 6, s.parallel.tp_x = 3;
         s.memory.recompute = "full";
       }},
      {"tied over 2 stages, tp 2 by 2", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2;
       }},
      {"shared keys, tp 2 by 2, cp 2, all recomputed", 8,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.cp = 2;
         s.memory.recompute = "full";
       }},
      {"documents, tp 2 by 2, two stages by dualpipev", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2;
         s.parallel.pipeline = "dualpipev";
       }},
      {"tied, tp 2 with rows cut, cp 3", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 2, s.parallel.cp = 3, s.parallel.sequence_parallel = true;
       }},
      {"dualpipev of 2, tp 2 with rows cut, two copies", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "dualpipev";
       }},
      {"dualpipe of 2, tp 2, cp 2 by all_gather", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2;
         s.parallel.pipeline = "dualpipe", s.parallel.cp_algorithm = "all_gather";
       }},
      {"tied over 2 stages by 1f1b, cp 2, two copies that share the optimizer", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = s.parallel.cp = 2;
         s.run.zero = true;
       }},
      {"tied over 4 stages on 2 ranks by zbv, tp 3 with rows cut", 6,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.tp = 3, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "zbv";
       }},
      {"tied over 2 stages by dualpipe", 2,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.pipeline = "dualpipe";
       }},
      {"stages of 1 and 3 layers by 1f1b, tp 2", 4,
       [](settings& s) { s.parallel.pp = s.parallel.tp = 2, s.parallel.noop_layers = "0,2"; }},
      {"double ring of 4 that keeps keys and values, pp 2 by zbh1", 8,
       [](settings& s) {
         s.parallel.cp = 4, s.parallel.cp_window = 2, s.parallel.cp_kv_cache = "full";
         s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
       }},
      {"tp 3 that share saved inputs, uneven rows, cp 2", 6,
       [](settings& s) {
         s.parallel.tp = 3, s.parallel.cp = 2;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
         s.memory.distribute_saved = true;
       }},
      {"ring of 3 that keeps keys and values of every third layer", 3,
       [](settings& s) {
         s.parallel.cp = 3, s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 2;
       }},
      {"seq1f1b of 2, windows in 3 uneven splits, tp 3", 6,
       [](settings& s) {
         s.parallel.pp = 2, s.parallel.tp = 3;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"seq1f1b of 4, 2 splits, tp 2 with rows cut", 8,
       [](settings& s) {
         s.parallel.pp = 4, s.parallel.tp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 2;
       }},
      {"tied over stages of 1 and 3 layers by seq1f1b, two copies that share the optimizer", 4,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 2, s.parallel.noop_layers = "0,2";
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 7;
         s.run.zero = true;
       }},
      {"documents, tp 2, pp 2, cp 2", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.pp = s.parallel.cp = 2;
       }},
      {"documents, seq1f1b of 2, 7 splits, tp 2 with rows cut", 4,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.pp = s.parallel.tp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 7;
       }},
      {"shared keys, documents, seq1f1b of 2, 3 splits, two copies", 4,
       [](settings& s) {
         s.model.kv_share = 3, s.parallel.noop_layers = "4,5";
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.pp = 2;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
       }},
      {"documents, cp 3 by all_gather, two copies that share the optimizer", 6,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.cp = 3, s.parallel.cp_algorithm = "all_gather";
         s.run.zero = true;
       }},
      {"documents, tp 2 with rows cut, cp 2 that keeps keys, two stages by dualpipe", 8,
       [](settings& s) {
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.cp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.cp_kv_cache = "half", s.parallel.pipeline = "dualpipe";
         s.parallel.cp_kv_interval = 1;
       }},
      {"shared keys, tp 3 with rows cut, cp 2 by ring", 6,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = 3, s.parallel.cp = 2, s.parallel.sequence_parallel = true;
       }},
      {"shared keys, cp 2 by ulysses, two stages by dualpipev, two copies that share the optimizer",
       8,
       [](settings& s) {
         s.model.kv_share = 2, s.model.layers = 8;
         s.parallel.cp = s.parallel.pp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.pipeline = "dualpipev";
         s.run.zero = true;
       }},
      {"shared keys, hybrid of 4, ulysses 2, that recomputes groups of 3", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_ulysses = 2, s.parallel.cp_algorithm = "hybrid";
         s.memory.recompute = "uniform", s.memory.recompute_layers = 3;
       }},
      {"shared keys, cp 3 by all_gather, tp 2 that share saved inputs", 6,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 3, s.parallel.cp_algorithm = "all_gather";
         s.parallel.tp = 2, s.memory.distribute_saved = true;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 3;
       }},
      {"shared keys, adaptive of 4, two stages by zbh1", 8,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_algorithm = "adaptive";
         s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
         s.memory.recompute = "full";
       }},
      {"shared keys, two stages by seq1f1b that recompute groups of 2, tp 2 with rows cut", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 4;
         s.memory.recompute = "uniform", s.memory.recompute_layers = 2;
       }},
      {"shared keys, documents, cp 2 that keeps keys, two copies", 4,
       [](settings& s) {
         s.model.kv_share = 3;
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.cp = 2, s.parallel.cp_kv_cache = "full", s.parallel.cp_kv_interval = 1;
       }},
      {"shared keys, documents, tp 2, two stages of 3 and 1 layers by dualpipe", 4,
       [](settings& s) {
         s.model.kv_share = 3;
         s.data.documents = "lines", s.data.sequence = 90;
         s.parallel.tp = s.parallel.pp = 2, s.parallel.noop_layers = "4,5";
         s.parallel.pipeline = "dualpipe";
       }},
  };
  return all;
}

// ---- a covering of pairs ----

// The choices of a layout, by the index of a value of each.
const std::vector<std::vector<std::string>> choices = {
    {"1", "2", "4", "8"},                                                  // tp
    {"1", "2", "4", "8"},                                                  // cp
    {"1", "2", "4"},                                                       // pp
    {"ring", "double", "ulysses", "hybrid", "all_gather"},                 // cp_algorithm
    {"none", "half", "full"},                                              // cp_kv_cache
    {"1f1b", "gpipe", "zbh1", "zbv", "dualpipev", "dualpipe", "seq1f1b"},  // pipeline
    {"none", "full", "selective", "activation", "norm"},                   // recompute
    {"whole", "cut"},                                                      // rows between matrices
    {"whole", "sharded"},                                                  // optimizer
    {"0", "1", "2"},                                                       // tp_x
};
using chosen = std::vector<std::size_t>;

// The layout of these choices, if 8 ranks have it.
std::optional<settings> layout_of(settings s, const chosen& which) {
  const auto value = [&](std::size_t i) { return choices[i][which[i]]; };
  auto& p = s.parallel;
  p.tp = std::stoll(value(0)), p.cp = std::stoll(value(1)), p.pp = std::stoll(value(2));
  if (8 % p.ranks_of_copy() != 0 || s.data.batch % (8 / p.ranks_of_copy()) != 0) return {};
  p.tp_x = std::stoll(value(9));
  if (p.in_two() && (p.tp == 1 || p.tp % p.tp_x != 0)) return {};
  const std::int64_t heads = 8 / (p.in_two() ? p.tp_x : p.tp), sharing = p.attention_ranks();
  const std::string algorithm = value(3);
  p.cp_algorithm = algorithm == "double" ? "ring" : algorithm;
  p.cp_window = algorithm == "double" ? 2 : 1;
  p.cp_ulysses = algorithm == "hybrid" ? 2 : 1;
  p.cp_kv_cache = value(4);
  const bool ring = p.cp_algorithm == "ring" || p.cp_algorithm == "hybrid";
  if (sharing == 1 && (which[3] != 0 || which[4] != 0)) return {};
  if (sharing == 2 && (algorithm == "double" || algorithm == "hybrid")) return {};
  if (!ring && which[4] != 0) return {};
  if (algorithm == "ulysses" && heads < sharing) return {};
  if (algorithm == "hybrid" && heads < p.cp_ulysses) return {};
  p.pipeline = value(5);
  p.sequence_splits = p.pipeline == "seq1f1b" ? 3 : 1;
  if (sharing > 1 && p.sequence_splits > 1) return {};
  const bool two_chunks = p.pipeline == "zbv" || p.pipeline == "dualpipev";
  if (p.pp == 1 && which[5] != 0) return {};
  if (p.pp == 4 && two_chunks) return {};
  s.memory.recompute = value(6);
  p.sequence_parallel = value(7) == "cut";
  if ((p.tp == 1 || p.in_two()) && p.sequence_parallel) return {};
  s.run.zero = value(8) == "sharded";
  s.run.ranks = 8;
  return s;
}

std::string text_of(const settings& s) {
  const auto& p = s.parallel;
  return "tp " + std::to_string(p.tp) + " by " + std::to_string(p.tp_x) + ", cp " +
         std::to_string(p.cp) + ", pp " + std::to_string(p.pp) + ", " + p.cp_algorithm + " " +
         std::to_string(p.cp_window) + ", " + p.cp_kv_cache + ", " + p.pipeline + ", " +
         s.memory.recompute + ", rows cut " + std::to_string(p.sequence_parallel) + ", zero " +
         std::to_string(s.run.zero);
}

using pair_of_values = std::array<std::size_t, 4>;  // a choice and its value, twice

std::set<pair_of_values> pairs_in(const chosen& which) {
  std::set<pair_of_values> all;
  for (std::size_t i = 0; i < which.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) all.insert({i, which[i], j, which[j]});
  return all;
}

// Layouts that have all pairs of values which any layout has, each the one of many random ones with
// the most pairs that none before it has; at most `most`.
std::vector<settings> covering_layouts(const settings& base, std::size_t most) {
  std::mt19937 random(7);
  std::vector<chosen> all;
  std::set<pair_of_values> missing;
  for (int i = 0; i < 4000; ++i) {
    chosen which;
    for (const auto& values : choices)
      which.push_back(random() % 3 == 0 ? 0 : random() % values.size());
    if (!layout_of(base, which)) continue;
    const auto pairs = pairs_in(which);
    missing.insert(pairs.begin(), pairs.end());
    all.push_back(which);
  }
  std::vector<settings> picked;
  while (!missing.empty() && picked.size() < most) {
    std::size_t best = 0, most_new = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::size_t found = 0;
      for (const pair_of_values& each : pairs_in(all[i])) found += missing.count(each);
      if (found > most_new) best = i, most_new = found;
    }
    for (const pair_of_values& each : pairs_in(all[best])) missing.erase(each);
    picked.push_back(*layout_of(base, all[best]));
  }
  return picked;
}

}  // namespace

// VELO_PRETRAIN_LONG: 50 steps.
TEST_CASE("ranks that share a model have the losses and gradients of one rank") {
  const std::int64_t steps = std::getenv("VELO_PRETRAIN_LONG") != nullptr ? 50 : 3;
  // By what changes the losses.
  using key = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::string>;
  static std::map<key, outcome> wholes;
  for (const layout& each : layouts()) DYNAMIC_SECTION(each.name) {
      settings cut = small_model();
      each.set(cut);
      settings whole = cut;
      whole.parallel = {};
      whole.run.zero = false;
      cut.run.ranks = each.ranks;
      const decoder::model_settings& m = cut.model;
      outcome& expected = wholes[{m.tied, m.kv_heads, m.kv_share, m.layers, cut.data.documents}];
      if (expected.losses.empty()) expected = train_for(steps, whole);
      compare(expected, train_for(steps, cut));
    }
}

// Cuts of 8 ranks, algorithms, orders and recompute: each value of each beside each value of each
// other, as far as they fit together. VELO_PRETRAIN_LONG: 20 steps of all; else 2 of some.
TEST_CASE("pairs of cuts, orders and recompute have the losses and gradients of one rank") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::int64_t steps = is_long ? 20 : 2;
  const auto count = is_long ? std::size_t{400} : std::size_t{10};
  settings base = small_model();
  base.model.heads = base.model.kv_heads = 8;
  base.model.kv_share = GENERATE(0, 2);
  if (base.model.kv_share > 0) base.model.layers = 8;  // four stages begin with keys of their own
  base.data.sequence = 40, base.data.accumulation = 8;
  const outcome whole = train_for(steps, base);
  for (const settings& cut : covering_layouts(base, count)) {
    INFO(text_of(cut));
    compare(whole, train_for(steps, cut));
  }
}

namespace {

void check_same_bits(settings s) {
  const outcome first = train_for(3, s);
  CHECK(train_for(3, s) == first);
  s.run.threads = 2;
  CHECK(train_for(3, s) == first);
  for (const char* kind : {"full", "block", "uniform", "selective", "activation", "norm"}) {
    INFO(kind);
    s.memory.recompute = kind;
    s.memory.recompute_layers = kind == std::string("uniform") ? 2 : 0;
    CHECK(train_for(3, s) == first);
  }
  s.memory.recompute_layers = 0;
  s.memory.recompute = "none";
  s.memory.swap_activations = "host";
  CHECK(train_for(3, s) == first);
  s.memory.swap_activations = "off";
  if (s.data.has_documents() && s.parallel.attention_ranks() > 1)
    return;  // a rank's rows are not as many in each step
  s.memory.plan = true;
  CHECK(train_for(3, s) == first);
}

}  // namespace

TEST_CASE("a layout has the same bits each time, with any threads and recompute") {
  settings s = small_model();
  s.data.documents = GENERATE("false", "lines");
  s.model.kv_share = GENERATE(0, 2);
  s.parallel.tp = 2, s.run.ranks = 4;
  if (GENERATE(false, true))
    s.parallel.tp = 4, s.parallel.tp_x = 2;
  else
    s.parallel.cp = 2, s.parallel.sequence_parallel = true;
  check_same_bits(s);
}

TEST_CASE("splits of windows have the same bits each time, with any threads and recompute") {
  settings s = small_model();
  s.data.documents = GENERATE("false", "lines");
  s.model.kv_share = GENERATE(0, 2);
  s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
  s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
  s.run.ranks = 4;
  check_same_bits(s);
}

TEST_CASE("inputs that tensor ranks share between the passes change no bit, and take less") {
  settings s = small_model();
  s.parallel.tp = 3, s.run.ranks = 3;
  s.memory.recompute = "full";
  const auto train_measured = [&](std::uint64_t& peak) {
    outcome made;
    on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      take_steps(rank, one, 3, made);
      if (rank.leads()) peak = rank.memory().stats().purpose_peak[VELO_PURPOSE_ACTIVATION];
    });
    return made;
  };
  std::uint64_t whole = 0, cut = 0;
  const outcome first = train_measured(whole);
  s.memory.distribute_saved = true;
  CHECK(train_measured(cut) == first);
  // Of the inputs of all layers but the one at work, two thirds.
  const std::int64_t input = s.data.batch * s.data.sequence * s.model.hidden * 4;
  const auto less = static_cast<std::uint64_t>((s.model.layers - 1) * input * 2 / 3);
  CHECK(whole - cut >= less * 9 / 10);
}

TEST_CASE("a rank that trains on documents has the same bits with a memory plan") {
  settings s = small_model();
  s.data.documents = "lines";
  const outcome first = train_for(4, s);
  s.memory.plan = true;
  CHECK(train_for(4, s) == first);
}

namespace {

void save(decoder::member& rank, decoder::trainer& one, const std::string& path) {
  const decoder::checkpoint now = one.state("{}");
  if (rank.leads())
    decoder::save_checkpoint(path, now, "");
  else
    decoder::trainer::give(now);
}

std::string contents_of(const std::string& checkpoint) {
  return get(checkpoint + "/model.safetensors") + get(checkpoint + "/training_state.safetensors");
}

// Whether ranks with these settings train the model of others, on the same text.
bool trains_the_same(const settings& one, const settings& other) {
  return one.model.tied == other.model.tied && one.model.kv_heads == other.model.kv_heads &&
         one.model.kv_share == other.model.kv_share && one.model.layers == other.model.layers &&
         one.data.documents == other.data.documents;
}

// Whether no stage begins with a layer that shares the keys of the one before it.
bool stages_have_keys(const settings& s) {
  if (s.parallel.pp == 1) return true;
  const decoder::stage_plan plan(s);
  for (int stage = 0; stage < plan.stages(); ++stage)
    if (s.model.shares_keys(plan.layers_of(stage).first)) return false;
  return true;
}

}  // namespace

// bf16: an inner width of 110 cut in two puts two ranks' elements into a word of the file.
TEST_CASE("a checkpoint of any layout has the same bits under any other, and training goes on") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::pair<const char*, std::int64_t> kinds[] = {{"f32", 0}, {"bf16", 0}, {"bf16", 2}};
  for (const auto& [type, kv_share] : kinds) {
    settings base = small_model();
    base.model.dtype = type;
    base.model.kv_share = kv_share;
    base.schedule.steps = 4;
    outcome whole;
    on_trainers(base, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      take_steps(rank, one, 4, whole);
    });
    std::size_t turn = 0;
    for (const layout& from : layouts()) {
      settings first = base;
      from.set(first);
      if (!trains_the_same(first, base) || !stages_have_keys(first)) continue;
      first.run.ranks = from.ranks;
      const temporary folder;
      outcome made;
      on_trainers(first, [&](decoder::member& rank, decoder::trainer& one) {
        one.start();
        take_steps(rank, one, 2, made);
        save(rank, one, folder / "first");
      });
      for (const layout& to : layouts()) {
        settings second = base;
        to.set(second);
        if (!trains_the_same(second, base) || !stages_have_keys(second)) continue;
        if (!is_long && ++turn % 5 != 0) continue;
        INFO(type << ", from " << from.name << " to " << to.name);
        second.run.ranks = to.ranks;
        outcome on = made;
        on_trainers(second, [&](decoder::member& rank, decoder::trainer& one) {
          one.resume(decoder::checkpoint_reader(folder / "first"));
          save(rank, one, folder / "second");
          take_steps(rank, one, 2, on);
        });
        CHECK((contents_of(folder / "first") == contents_of(folder / "second")));
        REQUIRE(on.losses.size() == 4);
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(on.losses[i] ==
                Approx(whole.losses[i]).epsilon(*type == 'f' ? 1e-5 : 2e-2).margin(0));
      }
    }
  }
}
