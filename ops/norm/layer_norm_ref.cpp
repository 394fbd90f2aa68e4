// layer_norm in plain loops with double sums (norm_ref.hpp): the reference for the other kernels,
// and the kernel of optimization level 0.
#include "ops/norm/layer_norm.hpp"

#include "ops/norm/norm_ref.hpp"

namespace velo::ops::reference {

extern const layer_norm_kernels layer_norm = norm<true>;

}  // namespace velo::ops::reference
