// Layouts that together have each pair of values of different choices.
//
// Layouts are drawn at random around a pair that no layout has yet, and that with the most such
// pairs is taken. A pair that no draw fits is sought among all layouts that differ from the
// defaults in at most three other choices, in order, until one is accepted. Pairs for which there
// is none are `without`; those that are known to be impossible are not sought.
#pragma once

#include <random>
#include <set>

#include "tests/examples/decoder/parallel/pair_choices.hpp"

namespace pairs {

inline std::vector<pair_of_values> pairs_in(const chosen& which) {
  std::vector<pair_of_values> all;
  for (std::size_t i = 0; i < which.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) all.push_back({{i, which[i]}, {j, which[j]}});
  return all;
}

inline std::set<pair_of_values> all_pairs() {
  std::set<pair_of_values> all;
  for (std::size_t i = 0; i < choices().size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (std::size_t a = 0; a < choices()[i].size(); ++a)
        for (std::size_t b = 0; b < choices()[j].size(); ++b) all.insert({{i, a}, {j, b}});
  return all;
}

// The first accepted layout with at most `more` values beside those of `which` that are no
// defaults, in the choices from `from` on that are not in `fixed`; empty: there is none.
inline chosen found_near(const chosen& which, const pair_of_values& fixed, int more,
                         std::size_t from = 0) {
  if (is_accepted(which)) return which;
  if (more == 0) return {};
  for (std::size_t i = from; i < which.size(); ++i) {
    if (i == fixed.first.first || i == fixed.second.first) continue;
    chosen next = which;
    for (next[i] = 1; next[i] < choices()[i].size(); ++next[i])
      if (chosen found = found_near(next, fixed, more - 1, i + 1); !found.empty()) return found;
  }
  return {};
}

// A layout with both values and otherwise defaults.
inline chosen with_both(const pair_of_values& pair) {
  chosen which = defaults();
  for (const place& each : {pair.first, pair.second}) which[each.first] = each.second;
  return which;
}

// At most `most` layouts.
class covering {
 public:
  covering(std::size_t most, const std::set<pair_of_values>& impossible) : missing_(all_pairs()) {
    for (const pair_of_values& each : impossible) missing_.erase(each);
    while (!missing_.empty() && layouts.size() < most) {
      const pair_of_values next = *missing_.begin();
      chosen best = best_with(next);
      if (best.empty()) best = found_near(with_both(next), next, 3);
      if (best.empty()) {
        without.insert(next);
        missing_.erase(next);
        continue;
      }
      for (const pair_of_values& each : pairs_in(best)) missing_.erase(each);
      layouts.push_back(best);
    }
  }

  std::vector<chosen> layouts;
  std::set<pair_of_values> without;  // pairs for which no layout was found

 private:
  // Of some random layouts with a pair, the one with the most missing pairs; empty: none was
  // acceptable. Defaults are drawn more often, since most values exclude some others.
  chosen best_with(const pair_of_values& pair) {
    constexpr int draws = 3000, wanted = 12;
    chosen best;
    std::size_t most = 0;
    for (int draw = 0, found = 0; draw < draws && found < wanted; ++draw) {
      chosen which;
      for (const choice& each : choices())
        which.push_back(random_() % 2 == 0 ? 0 : random_() % each.size());
      for (const place& each : {pair.first, pair.second}) which[each.first] = each.second;
      if (!is_accepted(which)) continue;
      ++found;
      std::size_t covered = 0;
      for (const pair_of_values& each : pairs_in(which)) covered += missing_.count(each);
      if (covered > most) best = which, most = covered;
    }
    return best;
  }

  std::set<pair_of_values> missing_;
  std::mt19937 random_{7};
};

}  // namespace pairs
