// The kernels of an operator: one struct of function pointers, and one constant instance of it for
// each ISA that has one.
//
// The operator's header declares the struct and its kernel_list; its .inl ends in the instance,
// and CMake (velo_kernels) writes the thin file that compiles the .inl for an ISA and the list of
// all instances: highest ISA first, the plain reference last. So no operator names an ISA, and a
// new ISA touches core/simd and its list of ISAs alone. Files compiled for one ISA include this
// header, so it includes nothing of the standard library.
#pragma once

#include <stdint.h>

#include "core/simd/kernel_list.hpp"
#include "core/simd/types.hpp"

namespace velo::ops {

// A kernel that exists for float32, bfloat16 and float16: called with a slice of one of them.
template <template <class> class Slice, class Result = void>
struct of_each_dtype {
  Result (*on_f32)(const Slice<float>&);
  Result (*on_bf16)(const Slice<simd::bf16>&);
  Result (*on_f16)(const Slice<simd::f16>&);

  Result operator()(const Slice<float>& s) const { return on_f32(s); }
  Result operator()(const Slice<simd::bf16>& s) const { return on_bf16(s); }
  Result operator()(const Slice<simd::f16>& s) const { return on_f16(s); }
};

using simd::kernel_entry;
using simd::kernel_list;

}  // namespace velo::ops
