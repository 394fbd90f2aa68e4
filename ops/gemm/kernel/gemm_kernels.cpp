// The choice of an ISA's table of kernels.
#include "ops/gemm/kernel/gemm_kernels.hpp"

#include "core/simd/detect.hpp"

namespace velo::ops {

const gemm_kernels& gemm_kernels_for(core::isa isa) {
  const kernel_entry* entry = gemm_kernel_list.entries;
  while (entry->isa > isa || !core::permitted(entry->isa)) ++entry;
  return *static_cast<const gemm_kernels*>(entry->kernels);
}

}  // namespace velo::ops
