// Sizes and offsets of public types on the platforms velo serves: little-endian, 64-bit, natural
// alignment.
//
// The numbers are computed here from the spec alone and asserted by every compiler in
// abi/generated/layout_lock.c, so that spec, headers and compilers must agree.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/gen/model.hpp"

namespace velo::gen {

struct extent {
  std::int64_t size = 0, alignment = 1;
};

extent extent_of(
    const spec& s,
    const member& m);  // of a field, arrays and unions included; size 0 for an unknown type

struct layout {
  std::vector<std::int64_t> offsets;  // of the fields
  extent whole;
};
layout layout_of(const spec& s, const std::vector<member>& fields);

structure args_of(const op& o);  // velo_<name>_args, what stands before its fields included

}  // namespace velo::gen
