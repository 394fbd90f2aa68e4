// Reads of the mask.
#include "sched/parallel/context/adaptive/visibility.hpp"

#include <algorithm>

namespace velo::sched {
namespace {

// body(query, key) for each visible cell.
template <class Body>
void each_visible(const sequence_shape& of, const Body& body) {
  const std::int64_t sequence = of.sequence();
  for (std::int64_t q = 0; q < sequence; ++q)
    for (std::int64_t k = 0; k < sequence; ++k)
      if (of.mask[q * sequence + k] == 0) body(q, k);
}

}  // namespace

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
  each_visible(of, [&](std::int64_t q, std::int64_t k) {
    all.set(part_of[core::at(q)], part_of[core::at(k)]);
  });
  return all;
}

seen_blocks::seen_blocks(const sequence_shape& of, const std::vector<rows>& blocks)
    : blocks_(blocks),
      count_(static_cast<std::int64_t>(blocks.size())),
      pairs_(count_),
      sees_(core::at(of.sequence() * count_)),
      seen_(sees_.size()) {
  std::vector<std::int64_t> block_of(core::at(of.sequence()));
  for (std::int64_t i = 0; i < count_; ++i)
    for (const span& s : blocks[core::at(i)])
      std::fill(block_of.begin() + s.begin, block_of.begin() + s.end, i);
  each_visible(of, [&](std::int64_t q, std::int64_t k) {
    const std::int64_t i = block_of[core::at(q)], j = block_of[core::at(k)];
    sees_[core::at(q * count_ + j)] = 1;
    seen_[core::at(k * count_ + i)] = 1;
    pairs_.set(i, j);
  });
}

rows seen_blocks::marked(const rows& block, const std::vector<std::uint8_t>& marks,
                         std::int64_t other) const {
  rows found;
  for (const span& s : block)
    for (std::int64_t row = s.begin; row < s.end; ++row)
      if (marks[core::at(row * count_ + other)] != 0) append(found, {row, row + 1});
  return found;
}

rows seen_blocks::queries(std::int64_t i, std::int64_t j) const {
  return marked(blocks_[core::at(i)], sees_, j);
}

rows seen_blocks::keys(std::int64_t i, std::int64_t j) const {
  return marked(blocks_[core::at(j)], seen_, i);
}

}  // namespace velo::sched
