// Boxes of elements: a range in each dimension.
//
// A transfer needs the intersection of two boxes, the rest of a box without another, and the boxes
// of a flat range of a tensor. Invariant: the boxes of a result are disjoint; a box without
// dimensions is one element. Cost: a rest is at most two boxes a dimension, a flat range at most
// two a dimension and one more.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/sharding/axis_cut.hpp"

namespace velo::comm {

using box = std::vector<span>;

bool is_empty(const box& of);
box intersection(const box& a, const box& b);  // of as many dimensions; empty where they are apart
std::vector<box> difference(const box& from, const box& without);  // disjoint
box moved(const box& of, const std::vector<std::int64_t>& by);

// Elements [begin, end) of a compact tensor.
std::vector<box> boxes_of(span range, const std::vector<std::int64_t>& shape);

}  // namespace velo::comm
