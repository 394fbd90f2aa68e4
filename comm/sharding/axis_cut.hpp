// How an axis cuts a dimension: which elements each index on the axis holds.
//
// A dimension is one block or several, one behind the other, each of units that are not cut: an
// index gets units by the uneven rule, and the elements that its units need. Where units share
// elements, neighboring indices may hold the same ones, so what an index holds of a block is
// several segments: runs of elements that as many indices hold, at most three of a block. Bounds
// given by a caller take the place of blocks; nothing says that they make up the dimension until
// `prove`. Invariant: segments of an index ascend, and two segments of two indices are equal or
// disjoint, unless they come from bounds. Cost: a query visits the blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/text.hpp"

namespace velo::comm {

struct span {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

inline bool operator==(const span& a, const span& b) {
  return a.begin == b.begin && a.end == b.end;
}

// Share `index` of `count` things among `shares`: the first `count mod shares` get one more.
span uneven_share(std::int64_t count, std::int64_t shares, std::int64_t index);

// Elements of a dimension that an index holds.
struct segment {
  span whole;            // in the dimension
  std::int64_t at;       // where it begins among the elements of the index
  std::int64_t holders;  // indices that hold it
};

class axis_cut {
 public:
  struct block {
    std::int64_t size, units, repeat;
  };

  // Units are multiples of repeat, and units / repeat divides the size.
  axis_cut(std::int64_t indices, std::vector<block> blocks);
  // bounds: begin and end for each index
  axis_cut(std::int64_t indices, std::vector<std::int64_t> bounds);

  std::int64_t indices() const { return indices_; }
  std::vector<segment> segments(std::int64_t index) const;
  std::string text() const;  // blocks or bounds, for comparison

  // Says what is wrong where the segments of all indices do not make up a dimension of `size`, each
  // held by as many indices as it says; an empty text where they do.
  core::text prove(std::int64_t size) const;

 private:
  void add_segments(const block& of, std::int64_t first, std::int64_t index,
                    std::vector<segment>& to) const;

  std::int64_t indices_;
  std::vector<block> blocks_;
  std::vector<std::int64_t> bounds_;
};

}  // namespace velo::comm
