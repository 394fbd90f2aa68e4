// Sizes of a packed weight of int8, its elements, and its update.
#include "ops/quant/packed_integers.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "ops/operator/kernels_at.hpp"

namespace velo::ops {

packed_integers::packed_integers(std::int64_t k, std::int64_t n, core::isa isa)
    : k_(k),
      n_(n),
      kernels_(&kernels_at<integer_product_kernels>(integer_product_kernel_list, isa)) {}

std::int64_t packed_integers::padded_k() const {
  return core::round_up(k_, std::int64_t{kernels_->depth_unit});
}

std::int64_t packed_integers::panel_words() const {
  return padded_k() * kernels_->element_bytes / 4 * integer_columns;
}

std::size_t packed_integers::bytes() const {
  return static_cast<std::size_t>(core::ceil_div(n_, std::int64_t{integer_columns}) * panel_step() *
                                  4);
}

std::int8_t packed_integers::at(std::int64_t k, std::int64_t n) const {
  const std::int64_t a_word = 4 / kernels_->element_bytes, column = n % integer_columns;
  const std::int64_t index = (k / a_word * integer_columns + column) * a_word + k % a_word;
  const std::uint32_t* words = panel(n / integer_columns);
  if (kernels_->element_bytes == 1) return reinterpret_cast<const std::int8_t*>(words)[index];
  std::int16_t wide;
  std::memcpy(&wide, reinterpret_cast<const char*>(words) + index * 2, sizeof wide);
  return static_cast<std::int8_t>(wide);
}

void packed_integers::update(const void* weight, std::int64_t ld, bool transposed,
                             const core::parallel& threads) {
  const auto* from = static_cast<const std::int8_t*>(weight);
  const std::int64_t panels = core::ceil_div(n_, std::int64_t{integer_columns});
  threads.slices(n_ * k_ >> 16, panels, [&](std::int64_t q, int) {
    const std::int64_t column = q * integer_columns;
    const int columns = static_cast<int>(std::min<std::int64_t>(integer_columns, n_ - column));
    std::uint32_t* to = words_ + q * panel_step();
    kernels_->take_panel({from + (transposed ? column * ld : column), ld, transposed, k_,
                          padded_k(), columns, to,
                          reinterpret_cast<std::int32_t*>(to + panel_words())});
  });
}

}  // namespace velo::ops
