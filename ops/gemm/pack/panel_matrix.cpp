// Tasks of some rows each.
#include "ops/gemm/pack/panel_matrix.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"

namespace velo::ops {

void copy_to_rows(const panel_matrix& from, void* to, std::int64_t ld,
                  const core::parallel& threads, core::isa isa) {
  constexpr std::int64_t task_rows = 256;  // a panel of them is a run long enough to prefetch
  const gemm_kernels& kernels = gemm_kernels_for(isa);
  const std::int64_t element = element_bytes(from.type);
  threads.slices(core::ceil_div(from.rows, task_rows), [&](std::int64_t task, int) {
    const std::int64_t first = task * task_rows;
    kernels.copy_panel_rows({static_cast<const char*>(from.data), from.rows, from.panel * element,
                             from.columns * element, first, std::min(first + task_rows, from.rows),
                             static_cast<char*>(to) + first * ld * element, ld * element});
  });
}

}  // namespace velo::ops
