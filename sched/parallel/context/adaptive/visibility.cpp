// Reads of the mask.
#include "sched/parallel/context/adaptive/visibility.hpp"

#include <algorithm>
#include <utility>

namespace velo::sched {

std::int64_t visibility::pairs() const {
  return std::count(sees_.begin(), sees_.end(), std::uint8_t{1});
}

visibility coarse_visibility(const sequence_shape& of, std::int64_t most) {
  const std::int64_t parts = std::min(of.sequence(), most);
  std::vector<std::int64_t> part_of(core::at(of.sequence()));
  for (std::int64_t i = 0; i < parts; ++i) {
    const span rows_of_it = comm::uneven_share(of.sequence(), parts, i);
    std::fill(part_of.begin() + rows_of_it.begin, part_of.begin() + rows_of_it.end, i);
  }
  visibility all(parts);
  for (std::int64_t q = 0; q < of.sequence(); ++q)
    for (std::int64_t k = 0; k < of.sequence(); ++k)
      if (of.mask[q * of.sequence() + k] == 0) all.set(part_of[core::at(q)], part_of[core::at(k)]);
  return all;
}

seen_blocks::seen_blocks(const sequence_shape& of, std::vector<rows> blocks)
    : of_(of),
      blocks_(std::move(blocks)),
      count_(static_cast<std::int64_t>(blocks_.size())),
      pairs_(count_),
      counts_(core::at(count_ * count_)),
      sees_(core::at(of.sequence() * count_)),
      seen_(sees_.size()) {
  for (std::int64_t i = 0; i < count_; ++i)
    for (const span& s : blocks_[core::at(i)])
      for (std::int64_t q = s.begin; q < s.end; ++q) read(q, i);
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j < count_; ++j)
      if (visible(i, j) > 0) pairs_.set(i, j);
}

// Counts and marks what a query of a block sees.
void seen_blocks::read(std::int64_t query, std::int64_t block) {
  const std::int64_t sequence = of_.sequence();
  const std::uint8_t* mask = of_.mask + query * sequence;
  std::uint8_t* seen = seen_.data() + block * sequence;
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::uint8_t sees = mask[k] == 0 ? 1 : 0;
      seen[k] |= sees;
      sum += sees;
    }
    return sum;
  };
  for (std::int64_t j = 0; j < count_; ++j) {
    cell_counts& to = counts_[core::at(block * count_ + j)];
    const std::int64_t before = to.all;
    for (const span& s : blocks_[core::at(j)]) {
      const std::int64_t end = std::clamp(query + 1, s.begin, s.end), causal = count(s.begin, end);
      to.causal += causal;
      to.all += causal + count(end, s.end);
    }
    sees_[core::at(j * sequence + query)] = to.all > before ? 1 : 0;
  }
}

rows seen_blocks::marked(const rows& block, const std::uint8_t* marks) const {
  rows found;
  for (const span& s : block)
    for (std::int64_t row = s.begin; row < s.end; ++row)
      if (marks[row] != 0) append(found, {row, row + 1});
  return found;
}

rows seen_blocks::queries(std::int64_t i, std::int64_t j) const {
  return marked(blocks_[core::at(i)], sees_.data() + j * of_.sequence());
}

rows seen_blocks::keys(std::int64_t i, std::int64_t j) const {
  return marked(blocks_[core::at(j)], seen_.data() + i * of_.sequence());
}

cells seen_blocks::cells_of(std::int64_t i, std::int64_t j) const {
  const attention_task causal{0, queries(i, j), keys(i, j), {0, 1}, cells::causal};
  const cell_counts& found = at(i, j);
  if (found.all == size_of(causal.queries) * size_of(causal.keys)) return cells::all;
  if (found.all == found.causal && found.all == sched::cells_of(causal, of_)) return cells::causal;
  return cells::masked;
}

}  // namespace velo::sched
