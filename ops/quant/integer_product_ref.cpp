// The reference computes products in plain loops (integer_matmul.cpp). It packs weights alone, into
// quads of bytes, for contexts without vectors.
#include <cstring>

#include "ops/quant/integer_product.hpp"

namespace velo::ops::reference {
namespace {

void take_panel(const integer_panel& s) {
  auto* bytes = reinterpret_cast<int8_t*>(s.to);
  std::memset(bytes, 0, static_cast<std::size_t>(s.padded * integer_columns));
  for (int64_t k = 0; k < s.depth; ++k)
    for (int j = 0; j < s.columns; ++j)
      bytes[(k / 4 * integer_columns + j) * 4 + k % 4] =
          s.from[s.transposed ? j * s.ld + k : k * s.ld + j];
  std::memset(s.start, 0, sizeof(int32_t) * integer_columns);
}

}  // namespace

extern const integer_product_kernels integer_product = {
    core::isa::scalar, 4, 1, nullptr, take_panel, nullptr, nullptr, nullptr, {}, nullptr, nullptr};

}  // namespace velo::ops::reference
