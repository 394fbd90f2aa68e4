// A result in panels (matrix_layout::panels of epilogue.hpp), and its copy to plain rows.
#pragma once

#include <cstdint>

#include "core/stream/parallel.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/gemm/kernel/target.hpp"

namespace velo::ops {

struct panel_matrix {
  const void* data;
  std::int64_t rows, columns;
  int panel;  // packed_matrix::panel
  element_type type;
};

// Copies it to rows `ld` elements apart, around the cache. Cost: memory speed.
void copy_to_rows(const panel_matrix& from, void* to, std::int64_t ld,
                  const core::parallel& threads, core::isa isa);

}  // namespace velo::ops
