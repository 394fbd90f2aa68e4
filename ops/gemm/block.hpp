// The block product attention is built from:  C[m x n] (+)= A[m x k] * B[k x n].
//
// A is row-major with leading dimension lda (elements). B is packed: f32 as rows of n elements;
// bf16 as pairs along k, [k/2][n][2] ("VNNI-2"), which both the bf16 dot product and the AMX tiles
// read. C is row-major f32 with ldc. A block is made once (JIT or lookup) and is then one indirect
// call, safe from any thread inside a block_session.
// Invariant: the bits of C depend on shape and instruction set only.
// Cost: 2*m*n*k FLOP at 90 % of peak from 32x64x64 up (f32), 70 % from 64x64x128 up (AMX).
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace velo::ops {

enum class block_type : int { f32, bf16 };  // type of A and B; products accumulate in f32

struct block_shape {
  int m = 0, n = 0, k = 0;  // n a multiple of 16; k even for bf16; any m >= 1
  std::int64_t lda = 0;     // elements between rows of A
  std::int64_t ldb = 0;     // elements (f32) or pairs (bf16) between packed rows of B, >= n
  std::int64_t ldc = 0;     // elements between rows of C
  block_type type = block_type::f32;
  bool accumulate = false;  // C += instead of C =
};

class block_kernel {
 public:
  void operator()(const void* a, const void* b, float* c) const { run_(*this, a, b, c); }
  const block_shape& shape() const { return shape_; }
  const char* name() const { return name_; }  // "libxsmm", "amx", "portable avx2", ...

  using run_fn = void (*)(const block_kernel&, const void* a, const void* b, float* c);
  // The kernel for `shape` on `isa`; jit=false selects velo's own portable code. Never fails.
  static block_kernel make(const block_shape& shape, core::isa isa, bool jit);

 private:
  friend struct block_kernel_maker;
  block_shape shape_{};
  run_fn run_ = nullptr;
  void* code_ = nullptr;  // the JIT function, owned by its registry
  const char* name_ = "";
};

// Held by a thread while it calls block kernels: loads and releases the AMX tile configuration;
// free elsewhere.
class block_session {
 public:
  explicit block_session(core::isa isa);
  ~block_session();
  block_session(const block_session&) = delete;
  block_session& operator=(const block_session&) = delete;

 private:
  bool tiles_;
};

}  // namespace velo::ops
