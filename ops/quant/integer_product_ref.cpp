// The reference has no kernels: integer_matmul.cpp computes it in plain loops.
#include "ops/quant/integer_product.hpp"

namespace velo::ops::reference {

extern const integer_product_kernels integer_product = {};

}  // namespace velo::ops::reference
