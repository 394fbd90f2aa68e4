// The arithmetic of cuts, and the proof that nothing is missing and nothing twice.
#include "comm/sharding/axis_cut.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace velo::comm {

namespace {

// The share that has a thing; the inverse of uneven_share.
std::int64_t share_with(std::int64_t count, std::int64_t shares, std::int64_t thing) {
  const std::int64_t least = count / shares, larger = count % shares;
  const std::int64_t in_larger = larger * (least + 1);
  return thing < in_larger ? thing / (least + 1) : larger + (thing - in_larger) / least;
}

}  // namespace

span uneven_share(std::int64_t count, std::int64_t shares, std::int64_t index) {
  const std::int64_t least = count / shares, larger = count % shares;
  const std::int64_t begin = index * least + std::min(index, larger);
  return {begin, begin + least + (index < larger ? 1 : 0)};
}

axis_cut::axis_cut(std::int64_t indices, std::vector<block> blocks)
    : indices_(indices), blocks_(std::move(blocks)) {}

axis_cut::axis_cut(std::int64_t indices, std::vector<std::int64_t> bounds)
    : indices_(indices), bounds_(std::move(bounds)) {}

std::vector<std::int64_t> axis_cut::numbers() const {
  std::vector<std::int64_t> all = bounds_;
  for (const block& b : blocks_) all.insert(all.end(), {b.size, b.units, b.repeat});
  return all;
}

// A chunk is what `repeat` units share. Chunks with the same holders are one segment.
void axis_cut::add_segments(const block& of, std::int64_t first, std::int64_t index,
                            std::vector<segment>& to) const {
  const span units = uneven_share(of.units, indices_, index);
  if (units.empty()) return;
  const std::int64_t chunk = of.size / (of.units / of.repeat);
  std::int64_t at = to.empty() ? 0 : to.back().at + to.back().whole.size();
  if (of.repeat == 1) {
    to.push_back({{first + units.begin * chunk, first + units.end * chunk}, at, 1});
    return;
  }
  span last_holders{0, 0};
  const std::int64_t end = (units.end - 1) / of.repeat + 1;
  for (std::int64_t c = units.begin / of.repeat; c < end; ++c) {
    const span holders{share_with(of.units, indices_, c * of.repeat),
                       share_with(of.units, indices_, (c + 1) * of.repeat - 1) + 1};
    if (holders == last_holders)
      to.back().whole.end += chunk;
    else
      to.push_back({{first + c * chunk, first + (c + 1) * chunk}, at, holders.size()});
    last_holders = holders;
    at += chunk;
  }
}

std::vector<segment> axis_cut::segments(std::int64_t index) const {
  std::vector<segment> all;
  if (!bounds_.empty()) {
    const span own{bounds_[core::at(2 * index)], bounds_[core::at(2 * index + 1)]};
    if (!own.empty()) all.push_back({own, 0, 1});
    return all;
  }
  std::int64_t first = 0;
  for (const block& one : blocks_) {
    add_segments(one, first, index, all);
    first += one.size;
  }
  all.erase(
      std::remove_if(all.begin(), all.end(), [](const segment& s) { return s.whole.empty(); }),
      all.end());
  return all;
}

std::int64_t axis_cut::size_of(std::int64_t index) const {
  std::int64_t size = 0;
  for (const segment& s : segments(index)) size += s.whole.size();
  return size;
}

core::text axis_cut::prove(std::int64_t size) const {
  struct held {
    span whole;
    std::int64_t holders, index;
  };
  std::vector<held> all;
  for (std::int64_t i = 0; i < indices_; ++i)
    for (const segment& s : segments(i)) all.push_back({s.whole, s.holders, i});
  std::stable_sort(all.begin(), all.end(), [](const held& a, const held& b) {
    return a.whole.begin != b.whole.begin ? a.whole.begin < b.whole.begin
                                          : a.whole.end < b.whole.end;
  });
  std::int64_t next = 0;
  for (std::size_t i = 0; i < all.size();) {
    const held& first = all[i];
    if (first.whole.begin > next)
      return core::concat("elements ", next, " to ", first.whole.begin - 1, " held by no index");
    if (first.whole.begin < next)
      return core::concat("element ", first.whole.begin, " held by index ", first.index,
                          " and by another");
    std::size_t end = i;
    while (end < all.size() && all[end].whole == first.whole) ++end;
    if (static_cast<std::int64_t>(end - i) != first.holders)
      return core::concat("element ", first.whole.begin, " held by ", end - i, " indices, not by ",
                          first.holders);
    next = first.whole.end;
    i = end;
  }
  if (next < size) return core::concat("elements ", next, " to ", size - 1, " held by no index");
  return {};
}

}  // namespace velo::comm
