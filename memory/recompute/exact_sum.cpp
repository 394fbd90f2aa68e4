// Joining lists into groups, and matching the four groups.
#include "memory/recompute/exact_sum.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/index.hpp"

namespace velo::memory {
namespace {

constexpr std::size_t most_sums = 2048;  // of a group
constexpr int most_tries = 8;

struct choice {
  std::int64_t sum;
  // Its origin: a sum of the previous step and a list's value, or sums of two groups.
  std::uint32_t left, right;
};
using choices = std::vector<choice>;

void keep_different(choices& all) {
  std::sort(all.begin(), all.end(), [](const choice& a, const choice& b) { return a.sum < b.sum; });
  all.erase(std::unique(all.begin(), all.end(),
                        [](const choice& a, const choice& b) { return a.sum == b.sum; }),
            all.end());
}

// Joins lists one after another until there are enough sums.
class group {
 public:
  explicit group(std::size_t first) : first_(first), steps_{{{0, 0, 0}}} {}

  // There are enough sums, or they are so dense that another list adds few.
  bool is_full() const {
    return sums().size() >= most_sums ||
           (sums().size() > 64 && 2 * sums().size() < 3 * steps_[steps_.size() - 2].size());
  }
  const choices& sums() const { return steps_.back(); }

  void join(const std::vector<std::int64_t>& list) {
    choices next;
    const choices& now = sums();
    const auto values = static_cast<std::uint32_t>(
        // As many values as most_sums needs.
        std::min(list.size(), 1 + 2 * most_sums / now.size()));
    for (std::uint32_t i = 0; i < now.size(); ++i)
      for (std::uint32_t j = 0; j < values; ++j) next.push_back({now[i].sum + list[j], i, j});
    keep_different(next);
    steps_.push_back(std::move(next));
  }

  // Stores which value of each list contributed to a sum.
  void tell(std::uint32_t which, std::vector<std::int32_t>& picked) const {
    for (std::size_t k = steps_.size() - 1; k > 0; --k) {
      picked[first_ + k - 1] = static_cast<std::int32_t>(steps_[k][which].right);
      which = steps_[k][which].left;
    }
  }

 private:
  std::size_t first_;  // index of the group's first list
  std::vector<choices> steps_;
};

std::int64_t remainder(std::int64_t value, std::int64_t of) {
  const std::int64_t r = value % of;
  return r < 0 ? r + of : r;
}

// Pairs whose sum has the wanted remainder modulo `of`.
choices pairs(const choices& a, const choices& b, std::int64_t of, std::int64_t wanted) {
  std::vector<std::vector<std::uint32_t>> by_remainder(static_cast<std::size_t>(of));
  for (std::uint32_t i = 0; i < a.size(); ++i)
    by_remainder[core::at(remainder(a[i].sum, of))].push_back(i);
  choices found;
  for (std::uint32_t j = 0; j < b.size() && found.size() < 4 * most_sums; ++j)
    for (const std::uint32_t i : by_remainder[core::at(remainder(wanted - b[j].sum, of))])
      found.push_back({a[i].sum + b[j].sum, i, j});
  keep_different(found);
  return found;
}

}  // namespace

std::vector<std::int32_t> find_exact_sum(const std::vector<std::vector<std::int64_t>>& lists,
                                         std::int64_t target) {
  std::vector<group> groups;
  std::size_t next = 0;
  for (int g = 0; g < 4; ++g) {
    groups.emplace_back(next);
    while (next < lists.size() && !groups.back().is_full()) groups.back().join(lists[next++]);
  }
  const auto of =
      static_cast<std::int64_t>(std::min(groups[0].sums().size(), groups[2].sums().size()));
  for (std::int64_t t = 0; t < std::min<std::int64_t>(of, most_tries); ++t) {
    const choices one = pairs(groups[0].sums(), groups[1].sums(), of, t);
    const choices two = pairs(groups[2].sums(), groups[3].sums(), of, remainder(target - t, of));
    auto a = one.begin();
    auto b = two.end();
    while (a != one.end() && b != two.begin()) {
      const std::int64_t sum = a->sum + (b - 1)->sum;
      if (sum < target) {
        ++a;
      } else if (sum > target) {
        --b;
      } else {
        std::vector<std::int32_t> picked(lists.size(), 0);
        groups[0].tell(a->left, picked);
        groups[1].tell(a->right, picked);
        groups[2].tell((b - 1)->left, picked);
        groups[3].tell((b - 1)->right, picked);
        return picked;
      }
    }
  }
  return {};
}

}  // namespace velo::memory
