// Arithmetic of boxes.
#include "comm/sharding/box.hpp"

#include <algorithm>

namespace velo::comm {

bool is_empty(const box& of) {
  return std::any_of(of.begin(), of.end(), [](const span& s) { return s.empty(); });
}

box intersection(const box& a, const box& b) {
  box both(a.size());
  for (std::size_t d = 0; d < a.size(); ++d)
    both[d] = {std::max(a[d].begin, b[d].begin), std::min(a[d].end, b[d].end)};
  return both;
}

std::vector<box> difference(const box& from, const box& without) {
  std::vector<box> left;
  const box both = intersection(from, without);
  if (is_empty(both)) return {from};
  box rest = from;  // dimensions before d are those of both
  for (std::size_t d = 0; d < from.size(); ++d) {
    for (const span& s : {span{from[d].begin, both[d].begin}, span{both[d].end, from[d].end}}) {
      if (s.empty()) continue;
      left.push_back(rest);
      left.back()[d] = s;
    }
    rest[d] = both[d];
  }
  return left;
}

box moved(const box& of, const std::vector<std::int64_t>& by) {
  box to = of;
  for (std::size_t d = 0; d < of.size(); ++d) to[d].begin += by[d], to[d].end += by[d];
  return to;
}

namespace {

// Adds the boxes of a range of dimensions d and later; `before` holds the ranges of the others.
void add_boxes(span range, const std::vector<std::int64_t>& shape, std::size_t d, box& before,
               std::vector<box>& to) {
  if (range.empty()) return;
  if (d == shape.size()) {
    to.push_back(before);
    return;
  }
  std::int64_t row = 1;  // elements of an index of dimension d
  for (std::size_t i = d + 1; i < shape.size(); ++i) row *= shape[i];
  const auto add = [&](span indices, span within) {
    if (indices.empty()) return;
    before.push_back(indices);
    add_boxes(within, shape, d + 1, before, to);
    before.pop_back();
  };
  const std::int64_t first = range.begin / row, last = range.end / row;
  const std::int64_t whole = first + (range.begin % row != 0 ? 1 : 0);  // the first whole index
  if (whole > first) {
    const std::int64_t end = std::min(range.end, whole * row);
    add({first, first + 1}, {range.begin - first * row, end - first * row});
  }
  add({whole, last}, {0, row});
  if (last >= whole) add({last, last + 1}, {0, range.end - last * row});
}

}  // namespace

std::vector<box> boxes_of(span range, const std::vector<std::int64_t>& shape) {
  std::vector<box> all;
  box before;
  add_boxes(range, shape, 0, before, all);
  return all;
}

}  // namespace velo::comm
