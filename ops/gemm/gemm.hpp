// The matrix product engine:  C[m x n] = epilogue(op(A)[m x k] * op(B)[k x n]),  sums in f32.
//
// C is cut into tiles, one task each (tile_grid.hpp). A task walks the depth in passes and the
// columns in panels, and hands micro-panels of eight rows of A to the micro-kernel
// (kernel/micro_kernel.hpp), or strips of 32 to the kernel on tile registers
// (kernel/tile_panel.hpp). B is packed beforehand by the caller (pack/packed_matrix.hpp), once for
// all tasks, or inside each task while it multiplies the panel before (pack/next_panel.hpp);
// products of few rows read it in place (strip_product.cpp). Sums wait in scratch between passes,
// and the last pass applies the epilogue from registers (epilogue.hpp). Invariant: an element's sum
// is one chain of additions in ascending depth that depends on problem and target only, so the bits
// are the same in any tile, for any number of threads and, of a row, for any number of rows.
// Nothing is allocated. Cost: 2 m n k FLOP.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/stream/parallel.hpp"
#include "ops/gemm/epilogue.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/gemm/kernel/target.hpp"
#include "ops/gemm/pack/packed_matrix.hpp"

namespace velo::ops {

// A left side that is not stored. `write` writes its rows [first, first + count), compact, to `to`,
// each row once, a few rows at a time: they are packed before they leave the cache.
struct row_source {
  void (*write)(const void* self, std::int64_t first, std::int64_t count, void* to) = nullptr;
  const void* self = nullptr;
};

struct gemm_problem {
  std::int64_t m = 0, n = 0, k = 0;
  element_type type = element_type::f32;  // of A and B
  const void* a = nullptr;                // [m][k], or [k][m] when transposed
  std::int64_t lda = 0;  // elements between stored rows; within a row elements are neighbors
  bool transpose_a = false;
  row_source rows_of_a;     // or, in place of A, with an lda of k; not in gemm_reference
  const void* b = nullptr;  // [k][n], or [n][k] when transposed
  std::int64_t ldb = 0;
  bool transpose_b = false;
  const packed_matrix* packed_b = nullptr;  // or, in place of B, a form that serves the target
  void* c = nullptr;     // [m][n]; in panels a matrix of epilogue.panels.rows rows, at a line
  std::int64_t ldc = 0;  // unused in panels
  element_type c_type = element_type::f32;  // f16 for no product of bf16
  matrix_layout c_layout = matrix_layout::rows;
  gemm_epilogue epilogue;
};

// Bytes of scratch (64-byte aligned) that gemm needs.
std::size_t gemm_scratch_bytes(const gemm_problem& problem, int threads, const gemm_target& target);

void gemm(const gemm_problem& problem, const core::parallel& threads, void* scratch,
          const gemm_target& target);

// The same product in plain loops, every sum in double, with all steps on C in rows: the reference
// for the engine's tests, and optimization level 0.
void gemm_reference(const gemm_problem& problem, const core::parallel& threads);

}  // namespace velo::ops
