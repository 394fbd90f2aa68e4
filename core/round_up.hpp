// Sizes in whole units: of alignments, panels, pages.
#pragma once

#include <type_traits>

namespace velo::core {

template <class Int>
constexpr Int round_up(Int x, std::common_type_t<Int> unit) {
  return (x + unit - 1) / unit * unit;
}

}  // namespace velo::core
