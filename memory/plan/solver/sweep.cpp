// Holes are indexed by size for best fit, and by address alone for first fit.
#include "memory/plan/solver/sweep.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/index.hpp"
#include "memory/plan/solver/greedy.hpp"

namespace velo::memory {
namespace {

constexpr std::size_t most_looks = 256;        // holes examined for each buffer on average
constexpr std::size_t between_questions = 16;  // buffers between two checks of the time

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
  // Nothing fits: the hole at the top is used and extended upwards.
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

// The length of a lifetime, at most the largest std::int64_t.
std::int64_t length(const lifetime& b) {
  const auto span = static_cast<std::uint64_t>(b.upper) - static_cast<std::uint64_t>(b.lower);
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(span, std::numeric_limits<std::int64_t>::max()));
}

// Free ranges from address 0 on without end, by address.
class range_holes {
 public:
  range_holes() { holes_[0] = std::numeric_limits<std::int64_t>::max(); }

  std::int64_t take_lowest(std::int64_t size) {
    auto at = holes_.begin();
    for (; at->second - at->first < size; ++at) ++looks_;
    return cut(at, at->first, size);
  }
  // The highest address below the ceiling; where there is none, the lowest.
  std::int64_t take_below(std::int64_t ceiling, std::int64_t size) {
    for (auto at = holes_.lower_bound(ceiling); at != holes_.begin();) {
      --at;
      ++looks_;
      const std::int64_t end = std::min(at->second, ceiling);
      if (end - at->first >= size) return cut(at, end - size, size);
    }
    return take_lowest(size);
  }
  void give(std::int64_t offset, std::int64_t size) {
    const auto above = holes_.lower_bound(offset);
    std::int64_t end = offset + size;
    if (above != holes_.end() && above->first == end) {
      end = above->second;
      holes_.erase(above);
    }
    const auto next = holes_.lower_bound(offset);
    if (next != holes_.begin() && std::prev(next)->second == offset) {
      std::prev(next)->second = end;
    } else {
      holes_.emplace_hint(next, offset, end);
    }
  }
  std::size_t looks() const { return looks_; }

 private:
  std::int64_t cut(std::map<std::int64_t, std::int64_t>::iterator at, std::int64_t offset,
                   std::int64_t size) {
    const std::int64_t end = at->second;
    if (offset > at->first) {
      at->second = offset;
    } else {
      at = holes_.erase(at);
    }
    if (offset + size < end) holes_.emplace_hint(holes_.upper_bound(offset), offset + size, end);
    return offset;
  }

  std::map<std::int64_t, std::int64_t> holes_;  // from begin to end
  std::size_t looks_ = 0;
};

}  // namespace

plan_sweep::plan_sweep(const std::vector<lifetime>& buffers)
    : buffers_(buffers), begins_(sorted(buffers, plan_order::begin)), ends_(buffers.size()) {
  std::iota(ends_.begin(), ends_.end(), 0);
  std::stable_sort(ends_.begin(), ends_.end(), [&](std::int32_t a, std::int32_t b) {
    return buffers[a].upper < buffers[b].upper;
  });
  lengths_.reserve(buffers.size());
  for (const lifetime& b : buffers) lengths_.push_back(length(b));
  std::sort(lengths_.begin(), lengths_.end());
}

std::int64_t plan_sweep::length_of(double fraction) const {
  const auto last = static_cast<double>(lengths_.size() - 1);
  return lengths_[core::at(fraction * last)];
}

std::vector<std::int64_t> plan_sweep::by_best_fit() const {
  std::vector<std::int64_t> offsets(buffers_.size());
  holes free;
  std::size_t ended = 0;
  for (const std::int32_t i : begins_) {
    for (; buffers_[ends_[ended]].upper <= buffers_[i].lower; ++ended)
      free.give(offsets[ends_[ended]], buffers_[ends_[ended]].size);
    offsets[i] = free.take(buffers_[i].size);
  }
  return offsets;
}

std::vector<std::int64_t> plan_sweep::from_both_ends(std::int64_t brief, std::int64_t ceiling,
                                                     const std::function<bool()>& over) const {
  std::vector<std::int64_t> offsets(buffers_.size());
  range_holes free;
  std::size_t ended = 0, placed = 0;
  for (const std::int32_t i : begins_) {
    for (; buffers_[ends_[ended]].upper <= buffers_[i].lower; ++ended)
      free.give(offsets[ends_[ended]], buffers_[ends_[ended]].size);
    offsets[i] = length(buffers_[i]) > brief ? free.take_lowest(buffers_[i].size)
                                             : free.take_below(ceiling, buffers_[i].size);
    if (free.looks() > most_looks * (buffers_.size() + 1000)) return {};
    if (placed++ % between_questions == 0 && over()) return {};
  }
  return offsets;
}

}  // namespace velo::memory
