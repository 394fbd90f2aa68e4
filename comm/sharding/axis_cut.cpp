// The arithmetic of cuts, and the proof that nothing is missing and nothing twice.
#include "comm/sharding/axis_cut.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

namespace {

// The share that has a thing; the inverse of uneven_share.
std::int64_t share_with(std::int64_t count, std::int64_t shares, std::int64_t thing) {
  const std::int64_t least = count / shares, larger = count % shares;
  const std::int64_t in_larger = larger * (least + 1);
  return thing < in_larger ? thing / (least + 1) : larger + (thing - in_larger) / least;
}

core::text missing(span elements) {
  if (elements.size() == 1) return core::concat("element ", elements.begin, " held by no index");
  return core::concat("elements ", elements.begin, " to ", elements.end - 1, " held by no index");
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

std::string axis_cut::text() const {
  std::string all = bounds_.empty() ? "blocks" : "bounds";
  const auto add = [&](std::int64_t n) { all += ' ', all += core::number(n).buffer; };
  for (const std::int64_t bound : bounds_) add(bound);
  for (const block& b : blocks_) add(b.size), add(b.units), add(b.repeat);
  return all;
}

// A chunk is what `repeat` units share. The first and the last chunk of an index may have other
// holders, too; those between have none.
void axis_cut::add_segments(const block& of, std::int64_t first, std::int64_t index,
                            std::vector<segment>& to) const {
  const span units = uneven_share(of.units, indices_, index);
  if (units.empty()) return;
  const std::int64_t chunk = of.size / (of.units / of.repeat);
  std::int64_t at = to.empty() ? 0 : to.back().at + to.back().whole.size();
  const auto add = [&](span chunks) {
    if (chunks.empty()) return;
    const std::int64_t holders = share_with(of.units, indices_, chunks.end * of.repeat - 1) + 1 -
                                 share_with(of.units, indices_, chunks.begin * of.repeat);
    to.push_back({{first + chunks.begin * chunk, first + chunks.end * chunk}, at, holders});
    at += chunks.size() * chunk;
  };
  const std::int64_t begin = units.begin / of.repeat, end = (units.end - 1) / of.repeat + 1;
  const std::int64_t own_begin = std::min(end, core::ceil_div(units.begin, of.repeat)),
                     own_end = std::max(own_begin, units.end / of.repeat);
  add({begin, own_begin});
  add({own_begin, own_end});
  add({own_end, end});
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
  return all;
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
    if (first.whole.begin > next) return missing({next, first.whole.begin});
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
  if (next < size) return missing({next, size});
  return {};
}

}  // namespace velo::comm
