// Holes between placed buffers are found by a walk in the order of address.
#include "memory/plan/solver/greedy.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace velo::memory {
namespace {

double rank(const lifetime& b, plan_order order) {
  const double length = static_cast<double>(b.upper) - static_cast<double>(b.lower);
  switch (order) {
    case plan_order::size:
      return -static_cast<double>(b.size);
    case plan_order::area:
      return -static_cast<double>(b.size) * length;
    case plan_order::length:
      return -length;
    case plan_order::begin:
      break;
  }
  return static_cast<double>(b.lower);
}

}  // namespace

std::vector<std::int32_t> sorted(const std::vector<lifetime>& buffers, plan_order by) {
  std::vector<double> ranks;
  ranks.reserve(buffers.size());
  for (const lifetime& b : buffers) ranks.push_back(rank(b, by));
  std::vector<std::int32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::tie(ranks[a], buffers[b].size) < std::tie(ranks[b], buffers[a].size);
  });
  return order;
}

namespace {

bool meet(const lifetime& a, const lifetime& b) {
  return a.lower < b.upper && b.lower < a.upper;
}

// The buffers placed so far, by address.
struct placed_buffer {
  std::int64_t offset;
  lifetime buffer;
};

std::int64_t find_hole(const std::vector<placed_buffer>& placed, const lifetime& b, plan_fit fit) {
  std::int64_t end = 0, hole = -1, least = 0;
  for (const placed_buffer& p : placed) {
    if (!meet(p.buffer, b)) continue;
    const std::int64_t room = p.offset - end;
    if (room >= b.size && (hole < 0 || room < least)) {
      hole = end;
      least = room;
      if (fit == plan_fit::lowest) return hole;
    }
    end = std::max(end, p.offset + p.buffer.size);
  }
  return hole >= 0 ? hole : end;
}

}  // namespace

std::vector<std::int64_t> place_in_order(const std::vector<lifetime>& buffers,
                                         const std::vector<std::int32_t>& order, plan_fit fit) {
  std::vector<std::int64_t> offsets(buffers.size());
  std::vector<placed_buffer> placed;
  placed.reserve(buffers.size());
  for (const std::int32_t i : order) {
    offsets[i] = find_hole(placed, buffers[i], fit);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offsets[i],
        [](std::int64_t offset, const placed_buffer& p) { return offset < p.offset; });
    placed.insert(at, {offsets[i], buffers[i]});
  }
  return offsets;
}

void push_down(const std::vector<lifetime>& buffers, std::vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return offsets[a] < offsets[b]; });
  for (std::size_t x = 0; x < order.size(); ++x) {
    std::int64_t low = 0;
    for (std::size_t y = 0; y < x; ++y)
      if (meet(buffers[order[x]], buffers[order[y]]))
        low = std::max(low, offsets[order[y]] + buffers[order[y]].size);
    offsets[order[x]] = low;
  }
}

std::int64_t height_of(const std::vector<lifetime>& buffers,
                       const std::vector<std::int64_t>& offsets) {
  std::int64_t height = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    height = std::max(height, offsets[i] + buffers[i].size);
  return height;
}

}  // namespace velo::memory
