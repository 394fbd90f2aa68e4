// Indices of containers. Ranks, stages, dimensions and elements are counted in signed integers;
// containers are indexed with std::size_t.
#pragma once

#include <cstddef>

namespace velo::core {

// all[at(rank)]
template <class Int>
constexpr std::size_t at(Int place) noexcept {
  return static_cast<std::size_t>(place);
}

}  // namespace velo::core
