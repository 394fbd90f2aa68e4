// The choice of panel width and pass depth.
#include "ops/gemm/pack/packed_form.hpp"

#include <algorithm>

namespace velo::ops {
namespace {

int most_depth(const packed_form& form, const gemm_target& target) {
  // Tile registers: a panel of 32 KiB stays in L1.
  if (form.on_tile_registers(target)) return 512;
  // FMA and dot product: few passes are worth more than a small A, until A comes from L3 for every
  // panel.
  return form.compute == element_type::bf16 || form.k <= 2048 ? 1024 : 512;
}

}  // namespace

packed_form::packed_form(std::int64_t k_, std::int64_t n_, element_type type_,
                         const gemm_target& target, bool gated)
    : type(type_), compute(target.words_of(type_)), k(k_), n(n_), halves(gated ? 2 : 1) {
  panel = panel_columns(on_tile_registers(target));
  // Passes of nearly equal depth.
  const int most = most_depth(*this, target);
  const std::int64_t count = std::max<std::int64_t>(core::ceil_div(k, most), 1);
  const std::int64_t depth = std::max<std::int64_t>(core::ceil_div(k, count), 1);
  pass = static_cast<int>(round_up(depth, 64));
}

}  // namespace velo::ops
