// Capsules: a call in one file, for a bug report, that `velo replay-capsule` runs again.
//
// A capsule is a gzip file: one line of JSON, then the bytes of the tensors that the line lists
// with "data": true, in its order. The line has the release, operator, kernel and ISA, and every
// field that was given: attributes as they are; a tensor with dtype, sizes, strides, its address
// modulo 64, the number and the CRC-32 of its bytes before the call, or the name of an earlier
// tensor that has the same memory; a handle with its kind alone. "outputs" has the CRC-32 of each
// tensor written, by the kernel and by the reference.
#pragma once

#include <string>

#include "ops/operator/args_block.hpp"

namespace velo::ops {

// A call whose kernel was followed by the reference. The three args differ in the memory of the
// outputs alone.
struct recorded_call {
  const op_spec& spec;
  const kernel_entry& kernel;
  const void* before;     // as the call found it
  const void* after;      // as the kernel left it
  const void* reference;  // as the reference left it
};

// Writes a file of a new name into the folder and returns its path. Throws IO, MEMORY.
std::string write_capsule(const std::string& folder, const recorded_call& call, bool with_data);

}  // namespace velo::ops
