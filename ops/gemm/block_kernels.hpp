// The candidates behind block_kernel::make, one table per instruction set: what block.cpp chooses
// from.
//
// portable_* are velo's own loops over intrinsics; jit_block asks libxsmm's generator; amx_block
// drives the tiles. Invariant: every function computes the same block as block.hpp states; they
// differ in rounding order only.
#pragma once

#include "ops/gemm/block.hpp"

namespace velo::ops {

// velo's own kernels; f32, or bf16 widened to f32 (products and sums in f32, nothing else is
// rounded).
void portable_block_scalar(const block_shape& shape, const void* a, const void* b, float* c);
void portable_block_avx2(const block_shape& shape, const void* a, const void* b, float* c);
void portable_block_avx512(const block_shape& shape, const void* a, const void* b, float* c);

// Whether the bf16 dot product beats widening to f32 on this processor.
bool dot_product_pays();

// bf16 on AMX tiles; only inside a block_session of isa amx.
void amx_block(const block_shape& shape, const void* a, const void* b, float* c);
void amx_load_configuration();
void amx_release_configuration();

// libxsmm's code for `shape`, or null when it has none (type, isa, a leading dimension it cannot
// encode, no executable memory). The call order is the generator's: column-major, so its A is our
// packed B.
using jit_function = void (*)(const void* b, const void* a, float* c);
jit_function jit_block(const block_shape& shape, core::isa isa);

}  // namespace velo::ops
