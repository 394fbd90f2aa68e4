// The reference has no kernels: weight_product.cpp computes it in plain loops.
#include "ops/quant/weight_quant.hpp"

namespace velo::ops::reference {

extern const weight_quant_kernels weight_quant = {};

}  // namespace velo::ops::reference
