// rms_norm in plain loops with double sums (norm_ref.hpp): the reference for the other kernels, and
// the kernel of optimization level 0.
#include "ops/norm/rms_norm.hpp"

#include "ops/norm/norm_ref.hpp"

namespace velo::ops::reference {

extern const rms_norm_kernels rms_norm = norm<false>;

}  // namespace velo::ops::reference
