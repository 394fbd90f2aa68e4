// Which kernel serves a block: AMX tiles, then libxsmm's JIT code, then velo's own loops.
//
// Rule for bf16: tiles where the isa has them; the bf16 dot product where it is at least as fast
// as the f32 FMA per multiply; otherwise both inputs are widened to f32 in registers and the f32
// FMA does the work.
#include "ops/gemm/block.hpp"

#include <cassert>

#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

using portable_fn = void (*)(const block_shape&, const void*, const void*, float*);

template <portable_fn Kernel>
void run_portable(const block_kernel& kernel, const void* a, const void* b, float* c) {
  Kernel(kernel.shape(), a, b, c);
}

}  // namespace

// VDPBF16PS does two products a lane. Zen 4 and Zen 5 issue it as often as an FMA (235 of 117 and
// 575 of 287 GF/s, one core); Intel's server cores with AMX issue it a quarter as often (120 of 238
// GF/s), so there widening wins.
bool dot_product_pays() {
  static const bool pays =
      core::detect_vendor() != core::vendor::intel;  // CPUID is slow under a hypervisor
  return pays;
}

struct block_kernel_maker {
  static void run_jit(const block_kernel& kernel, const void* a, const void* b, float* c) {
    reinterpret_cast<jit_function>(kernel.code_)(b, a, c);
  }

  static bool use_jit(block_kernel& kernel, core::isa isa) {
    const jit_function code = jit_block(kernel.shape_, isa);
    if (code == nullptr) return false;
    kernel.code_ = reinterpret_cast<void*>(code);
    kernel.run_ = run_jit;
    kernel.name_ = "libxsmm";
    return true;
  }

  static void use_portable(block_kernel& kernel, core::isa isa) {
    if (isa >= core::isa::avx512) {
      kernel.run_ = run_portable<portable_block_avx512>;
      kernel.name_ = "portable avx512";
    } else if (isa == core::isa::avx2) {
      kernel.run_ = run_portable<portable_block_avx2>;
      kernel.name_ = "portable avx2";
    } else {
      kernel.run_ = run_portable<portable_block_scalar>;
      kernel.name_ = "portable scalar";
    }
  }

  static void choose(block_kernel& kernel, core::isa isa, bool jit) {
    const bool bf16 = kernel.shape_.type == block_type::bf16;
    if (bf16 && isa == core::isa::amx) {
      kernel.run_ = run_portable<amx_block>;
      kernel.name_ = "amx";
      return;
    }
    const bool jit_serves =
        bf16 ? isa == core::isa::avx512_bf16 && dot_product_pays() : isa >= core::isa::avx2;
    if (jit && jit_serves && use_jit(kernel, isa)) return;
    use_portable(kernel, isa);
  }
};

block_kernel block_kernel::make(const block_shape& shape, core::isa isa, bool jit) {
  assert(shape.m >= 1 && shape.n >= 16 && shape.n % 16 == 0 && shape.k >= 1);
  assert(shape.type == block_type::f32 || shape.k % 2 == 0);
  block_kernel kernel;
  kernel.shape_ = shape;
  block_kernel_maker::choose(kernel, isa, jit);
  return kernel;
}

block_session::block_session(core::isa isa) : tiles_(isa == core::isa::amx) {
  if (tiles_) amx_load_configuration();
}

block_session::~block_session() {
  if (tiles_) amx_release_configuration();
}

}  // namespace velo::ops
