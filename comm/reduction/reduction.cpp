// The choice of kernels: the first of the list that the configured processor runs.
#include "comm/reduction/reduction.hpp"

namespace velo::comm {

const reduction_kernels& reductions_for(core::isa highest) {
  const kernel_entry* at = reduction_kernel_list.entries;
  while (at->isa > highest) ++at;
  return *static_cast<const reduction_kernels*>(at->kernels);
}

}  // namespace velo::comm
