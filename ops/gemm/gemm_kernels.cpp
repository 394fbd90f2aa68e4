// Which table of kernels an ISA has, and which way of multiplying bf16 is the better one.
#include "ops/gemm/gemm_kernels.hpp"

#include <atomic>

#include "core/simd/detect.hpp"
#include "ops/gemm/gemm.hpp"

namespace velo::ops {

const gemm_kernels& gemm_kernels_for(core::isa isa) {
  const kernel_entry* entry = gemm_kernel_list.entries;
  while (entry->isa > isa || !core::permitted(entry->isa)) ++entry;
  return *static_cast<const gemm_kernels*>(entry->kernels);
}

// VDPBF16PS does two products a lane. Zen 4 and Zen 5 issue it as often as an FMA (235 of 117 and
// 575 of 287 GF/s, one core); Intel's server cores with AMX issue it a quarter as often (120 of 238
// GF/s), so there widening wins.
//
// Remembered, because CPUID is slow under a hypervisor; not in a constant made on first use, whose
// guard is a lock that a fork may find held.
bool dot_product_pays() {
  enum answer { unknown, no, yes };
  static std::atomic<int> remembered{unknown};
  int known = remembered.load(std::memory_order_relaxed);
  if (known == unknown) {
    known = core::detect_vendor() != core::vendor::intel ? yes : no;
    remembered.store(known, std::memory_order_relaxed);
  }
  return known == yes;
}

gemm_target::gemm_target(core::isa l) : isa(l), dot(false) {
  const gemm_kernels& kernels = gemm_kernels_for(isa);
  dot = kernels.tiles != nullptr || (kernels.multiply_pairs != nullptr && dot_product_pays());
}

}  // namespace velo::ops
