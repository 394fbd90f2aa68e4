// Holes among what is placed: found by a walk in the order of address, or kept in two indices.
#include "memory/plan_greedy.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
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

bool meet(const lifetime& a, const lifetime& b) {
  return a.lower < b.upper && b.lower < a.upper;
}

// What is placed, in the order of address.
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

// Free ranges below the top, by address and by size.
class holes {
 public:
  std::int64_t take(std::int64_t size) {
    const auto fit = by_size_.lower_bound({size, 0});
    if (fit == by_size_.end()) return grow(size);
    const auto [room, offset] = *fit;
    remove(offset, room);
    if (room > size) add(offset + size, room - size);
    return offset;
  }

  void give(std::int64_t offset, std::int64_t size) {
    const auto next = by_offset_.lower_bound(offset);
    std::int64_t end = offset + size;
    if (next != by_offset_.begin()) {
      const auto [before, room] = *std::prev(next);
      if (before + room == offset) {
        offset = before;
        remove(before, room);
      }
    }
    const auto after = by_offset_.find(end);
    if (after != by_offset_.end()) {
      const auto [start, room] = *after;
      end += room;
      remove(start, room);
    }
    add(offset, end - offset);
  }

 private:
  // Nothing fits: a hole that touches the top is used with what lacks above it.
  std::int64_t grow(std::int64_t size) {
    std::int64_t offset = top_;
    if (!by_offset_.empty()) {
      const auto [start, room] = *by_offset_.rbegin();
      if (start + room == top_) {
        offset = start;
        remove(start, room);
      }
    }
    top_ = offset + size;
    return offset;
  }
  void add(std::int64_t offset, std::int64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t top_ = 0;
};

}  // namespace

std::vector<std::int64_t> place_in_order(const std::vector<lifetime>& buffers, plan_order order,
                                         plan_fit fit) {
  std::vector<std::int64_t> offsets(buffers.size());
  std::vector<placed_buffer> placed;
  placed.reserve(buffers.size());
  for (const std::int32_t i : sorted(buffers, order)) {
    offsets[i] = find_hole(placed, buffers[i], fit);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offsets[i],
        [](std::int64_t offset, const placed_buffer& p) { return offset < p.offset; });
    placed.insert(at, {offsets[i], buffers[i]});
  }
  return offsets;
}

std::vector<std::int64_t> place_as_time_passes(const std::vector<lifetime>& buffers) {
  std::vector<std::int64_t> offsets(buffers.size());
  std::vector<std::int32_t> ends(buffers.size());
  std::iota(ends.begin(), ends.end(), 0);
  std::stable_sort(ends.begin(), ends.end(), [&](std::int32_t a, std::int32_t b) {
    return buffers[a].upper < buffers[b].upper;
  });
  holes free;
  std::size_t ended = 0;
  for (const std::int32_t i : sorted(buffers, plan_order::begin)) {
    for (; buffers[ends[ended]].upper <= buffers[i].lower; ++ended)
      free.give(offsets[ends[ended]], buffers[ends[ended]].size);
    offsets[i] = free.take(buffers[i].size);
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
