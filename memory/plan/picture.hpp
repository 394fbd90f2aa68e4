// A placement as a picture: time to the right, addresses upwards, a rectangle for every buffer, the
// live bytes beneath, height and lower bound as lines. SVG, readable without a program of ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/plan/csv.hpp"

namespace velo::memory {

// capacity: a third line; 0 for none.
std::string draw_placement(const plan_table& table, const std::vector<std::int64_t>& offsets,
                           std::int64_t capacity);

}  // namespace velo::memory
