// Layouts that together have each pair of choices train as one rank does.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

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
  const bool caches = algorithm != "all_gather";
  if (sharing == 1 && (which[3] != 0 || which[4] != 0)) return {};
  if (sharing == 2 && (algorithm == "double" || algorithm == "hybrid")) return {};
  if (!caches && which[4] != 0) return {};
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

// Cuts of 8 ranks, algorithms, orders and recompute: each value of each beside each value of each
// other, as far as they fit together. VELO_PRETRAIN_LONG: 20 steps of all; else 2 of some.
TEST_CASE("pairs of cuts, orders and recompute have the losses and gradients of one rank") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const auto count = is_long ? std::size_t{400} : std::size_t{10};
  settings base = small_model();
  base.model.heads = base.model.kv_heads = 8;
  base.model.kv_share = GENERATE(0, 2);
  if (base.model.kv_share > 0) base.model.layers = 8;  // four stages begin with keys of their own
  base.data.sequence = 40, base.data.accumulation = 8;
  const std::int64_t steps = is_long ? 20 : 2;
  const outcome whole = train_for(steps, base);
  for (const settings& cut : covering_layouts(base, count)) {
    INFO(text_of(cut));
    compare(whole, train_for(steps, cut));
  }
}
