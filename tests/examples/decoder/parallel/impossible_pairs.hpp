// The pairs of values that no layout of 8 ranks has, and why: each row has values that go with none
// of others, the settings beside which pretrain refuses the two for that reason, and its words.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/examples/decoder/parallel/pair_choices.hpp"

namespace pairs {

struct impossible_pairs {
  std::vector<const char*> values, others, beside;
  const char* words;

  // Each pair with the layout that shows its refusal.
  std::vector<std::pair<pair_of_values, chosen>> all() const {
    std::vector<std::pair<pair_of_values, chosen>> made;
    for (const char* value : values)
      for (const char* other : others) {
        chosen which = defaults();
        for (const char* each : beside) which[place_of(each).first] = place_of(each).second;
        place one = place_of(value), two = place_of(other);
        for (const place& each : {one, two}) which[each.first] = each.second;
        if (one.first < two.first) std::swap(one, two);
        made.push_back({{one, two}, which});
      }
    return made;
  }
};

// Every order but the default.
inline std::vector<const char*> orders_of_stages() {
  const std::size_t order = place_of("1f1b").first;
  std::vector<const char*> all;
  for (std::size_t kind = 1; kind < choices()[order].size(); ++kind)
    all.push_back(choices()[order][kind].name.c_str());
  return all;
}

inline std::vector<impossible_pairs> impossible_cuts() {
  const char* const too_many = "which must divide the 8 ranks";
  const char* const no_tensor_ranks = "is of ranks that share matrices, not with tp = 1";
  const char* const no_stages = "is of a model that is cut into stages, not with pp = 1";
  const std::vector<const char*> of_tensor_ranks = {"tp_x 1",   "tp_x 2",  "rows cut 1",
                                                    "slices 2", "level 2", "saved in parts 1"};
  return {
      {{"tp 8"}, {"cp 2", "cp 4", "cp 8", "pp 2", "pp 4", "pp 8"}, {}, too_many},
      {{"tp 4"}, {"cp 4", "cp 8", "pp 4", "pp 8"}, {}, too_many},
      {{"tp 2"}, {"cp 8", "pp 8"}, {}, too_many},
      {{"cp 8"}, {"pp 2", "pp 4", "pp 8"}, {}, too_many},
      {{"cp 4"}, {"pp 4", "pp 8"}, {}, too_many},
      {{"cp 2"}, {"pp 8"}, {}, too_many},
      {of_tensor_ranks, {"tp 1"}, {"recompute full"}, no_tensor_ranks},
      {of_tensor_ranks, {"cp 8", "pp 8"}, {"tp 2", "recompute full"}, too_many},
      {{"double ring"}, {"pp 4"}, {"cp 2"}, "cp_window = 2 must be less than cp = 2"},
      {{"double ring", "ulysses", "hybrid", "all_gather", "adaptive", "hybrid_adaptive",
        "cache half", "cache full", "gathered 1"},
       {"pp 8"},
       {},
       "is of ranks that share windows, not with cp = 1"},
      {orders_of_stages(), {"tp 8", "cp 8", "pp 1"}, {}, no_stages},
      {{"uneven stages"}, {"tp 8", "cp 8", "pp 1"}, {}, no_stages},
  };
}

inline std::vector<impossible_pairs> impossible_attention() {
  return {
      {{"double ring", "hybrid", "adaptive", "hybrid_adaptive"},
       {"seq1f1b"},
       {"cp 4", "pp 2"},
       "all_gather and ulysses have splits of windows"},
      {{"cache half", "cache full"},
       {"all_gather", "adaptive", "hybrid_adaptive"},
       {"cp 4"},
       "is of ring, hybrid and ulysses, not with cp_algorithm"},
      {{"cache half", "cache full"},
       {"seq1f1b"},
       {"cp 4", "pp 2", "ulysses"},
       "splits keep keys and values anyway, so not with pipeline = \"seq1f1b\""},
      {{"gathered 1"},
       {"ring", "double ring", "all_gather", "adaptive"},
       {"cp 4"},
       "is of ulysses, hybrid and hybrid_adaptive, not with cp_algorithm"},
  };
}

inline std::vector<impossible_pairs> impossible_recompute() {
  const std::vector<const char*> partial = {"recompute none", "recompute selective",
                                            "recompute activation", "recompute norm",
                                            "recompute mlp"};
  const char* const one_way = "is of matrices that are cut one way, not with tp_x";
  const char* const from_input = "is of layers that are recomputed from their input, not with";
  const char* const all_have = "is of rows that all ranks have, not with";
  return {
      {{"rows cut 1", "slices 2"}, {"tp_x 1", "tp_x 2"}, {"tp 4"}, one_way},
      {{"saved in parts 1"}, {"tp_x 1", "tp_x 2"}, {"tp 4", "recompute full"}, all_have},
      {{"saved in parts 1"}, {"rows cut 1"}, {"tp 2", "recompute full"}, all_have},
      {{"level 2", "saved in parts 1"}, partial, {"tp 2"}, from_input},
      {{"level 2"}, {"recompute uniform 2"}, {"tp 2"}, "recomputed one by one, not with"},
      {{"level 2"},
       {"saved in parts 1"},
       {"tp 2", "recompute full"},
       "is of rows that are not gathered again, not with distribute_saved_activations = true"},
  };
}

inline std::vector<impossible_pairs> all_impossible_pairs() {
  std::vector<impossible_pairs> all = impossible_cuts();
  for (const auto& some : {impossible_attention(), impossible_recompute()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace pairs
