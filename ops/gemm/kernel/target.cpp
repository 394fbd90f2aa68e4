// The faster way to multiply bf16 on each processor.
#include "ops/gemm/kernel/target.hpp"

#include <atomic>

#include "core/simd/detect.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"

namespace velo::ops {

// VDPBF16PS does two products a lane. Zen 4 and Zen 5 issue it as often as an FMA (235 of 117 and
// 575 of 287 GF/s, one core); Intel's server cores with AMX issue it a quarter as often (120 of 238
// GF/s), so widening wins there.
//
// The answer is cached, because CPUID is slow under a hypervisor. A constant made on first use will
// not do: a fork may find its guard locked.
bool dot_product_pays() {
  enum answer { unknown, no, yes };
  static std::atomic<int> cached{unknown};
  int known = cached.load(std::memory_order_relaxed);
  if (known == unknown) {
    known = core::detect_vendor() != core::vendor::intel ? yes : no;
    cached.store(known, std::memory_order_relaxed);
  }
  return known == yes;
}

gemm_target::gemm_target(core::isa l) : isa(l), dot(false) {
  const gemm_kernels& kernels = gemm_kernels_for(isa);
  dot = kernels.tiles != nullptr || (kernels.multiply_pairs != nullptr && dot_product_pays());
}

}  // namespace velo::ops
