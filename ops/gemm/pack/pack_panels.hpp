// Packing of op(B) into panels (packed_form.hpp): by one thread for itself, and by all threads for
// all. Cost: memory speed.
#pragma once

#include "core/stream/parallel.hpp"
#include "ops/gemm/pack/packed_form.hpp"

namespace velo::ops {

// Panel q of one pass is packed to words + (q - origin) * panel_stride.
struct packed_target {
  std::uint32_t* words;
  std::int64_t panel_stride;
  std::int64_t origin;

  std::uint32_t* panel(std::int64_t q) const { return words + (q - origin) * panel_stride; }
};

// A part of a pass: steps [begin, end) of its depth, both even where they are not its ends.
struct depth_range {
  int begin, end;
};

// Packs `steps` of the depth of pass `p` of panel `q` to `to`.
void pack_strip(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
                depth_range steps, std::uint32_t* to, const gemm_kernels& kernels);

// Packs `steps` of pass `p` of panels [first, end), and the zeros that follow the last step.
void pack_panels(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
                 std::int64_t first, std::int64_t end, const packed_target& to,
                 const gemm_kernels& kernels);

// Packs all passes of panels [first, end) to `words`, on all threads.
void pack_in_parallel(const packed_form& form, const source_matrix& b, std::int64_t first,
                      std::int64_t end, std::uint32_t* words, const core::parallel& threads,
                      const gemm_kernels& kernels);

}  // namespace velo::ops
