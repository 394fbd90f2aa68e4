// Sizes in whole units, as of alignments, panels, pages and ranks.
#pragma once

#include <type_traits>

namespace velo::core {

// The number of units that cover x: x / unit, rounded up.
template <class X, class Unit>
constexpr std::common_type_t<X, Unit> ceil_div(X x, Unit unit) {
  return (x + unit - 1) / unit;
}

template <class Int>
constexpr Int round_up(Int x, std::common_type_t<Int> unit) {
  return (x + unit - 1) / unit * unit;
}

}  // namespace velo::core
