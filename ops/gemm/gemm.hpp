// The matrix product engine:  C[m x n] (+)= op(A)[m x k] * op(B)[k x n] (+ bias),  sums in f32,
// rounded once at the end.
//
// C is cut into tiles of mc x nt, one task each; a task walks the depth in passes of kc and the
// columns in panels, and hands micro-panels of eight rows of A to the micro-kernel
// (micro_kernel.hpp; on tiles strips of 32, tile_panel.hpp). B is packed beforehand by the caller
// (packed_matrix), once for all tasks, or inside each task when there is one row of tiles, while it
// multiplies the panel before (panel_feed.hpp). Sums wait in scratch between passes and are
// finished from registers in the last. Invariant: passes and panels depend on problem and isa only,
// an element's sum not on the tile it lies in; tiles depend on the number of threads, too
// (tile_grid.hpp), so the bits are the same for any number of threads. Nothing is allocated. Cost:
// 2 m n k FLOP.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host/cpu.hpp"
#include "core/stream/parallel.hpp"
#include "ops/gemm/carried_copy.hpp"
#include "ops/gemm/element_type.hpp"

namespace velo::ops {

// What products run on. `dot`: bf16 is multiplied as it is, by tiles or the dot product;
// otherwise it is widened to f32 while it is packed, which is the faster way where the dot product
// is slow or missing.
struct gemm_target {
  core::isa isa;
  bool dot;

  gemm_target(core::isa isa);  // implicit: the isa's better way
  gemm_target(core::isa l, bool d) : isa(l), dot(d) {}
};

// Whether the bf16 dot product beats widening to f32 on this processor.
bool dot_product_pays();

// A block of a product whose columns lie in panels, each panel's rows one behind the other: what
// ranks hand each other, in lines that are written whole (sched/overlap).
struct panel_block {
  std::int64_t rows = 0;   // of a panel
  std::int64_t first = 0;  // the one that is the first of this product's
};

struct gemm_problem {
  std::int64_t m = 0, n = 0, k = 0;
  element_type type = element_type::f32;  // of A and B
  const void* a = nullptr;                // [m][k], or [k][m] when transposed
  std::int64_t lda = 0;  // elements between stored rows; within a row elements are neighbors
  bool transpose_a = false;
  const void* b = nullptr;  // [k][n], or [n][k] when transposed; unused when a pack is given
  std::int64_t ldb = 0;
  bool transpose_b = false;
  void* c = nullptr;  // [m][n]
  std::int64_t ldc = 0;
  element_type c_type = element_type::f32;
  const float* bias = nullptr;  // one a column, or null
  bool accumulate = false;      // add to C; the sum is rounded once

  // Of ranks that sum their products, each times a packed weight: C is such a block, at a line's
  // begin, and written around the cache, for a peer; or C is the sum of this rounded product, rank
  // `own`'s, and of the blocks of the `ranks` - 1 others, in their order. Either without bias and
  // accumulate.
  panel_block block;
  bool to_block = false;
  const void* const* products = nullptr;
  int ranks = 0, own = 0;

  // Where such a sum is written once more, around the cache: a block, or rows `ldc` apart that
  // begin and end at lines.
  void* twin = nullptr;
  bool twin_is_block = false;

  const carried_copy* carried = nullptr;  // what a product with a packed weight copies meanwhile
};

// op(B) in panels of columns, each panel's rows of the depth in one run: what products read.
// The form is that of one type and isa; ISAs that multiply alike share it.
class packed_matrix {
 public:
  packed_matrix() = default;
  packed_matrix(std::int64_t k, std::int64_t n, element_type type, const gemm_target& target);

  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  element_type type() const { return type_; }
  bool serves(const gemm_target& target) const;  // whether its products read this form
  std::size_t bytes() const;                     // of the memory it wants, 64-byte aligned
  int panel() const;                             // columns of a panel
  // `count` of its columns from `first` on, a multiple of 96: of every form's panels.
  packed_matrix columns(std::int64_t first, std::int64_t count) const;
  void place(void* memory) { words_ = static_cast<std::uint32_t*>(memory); }

  // Copies a weight in: [k][n], or [n][k] when transposed, `ld` elements between stored rows.
  // Allocates nothing.
  void update(const void* weight, std::int64_t ld, bool transposed, const core::parallel& threads);

  // A column back out, for the reference.
  struct column {
    const std::uint32_t* words;
    std::int64_t stride, per_word;

    float operator[](std::int64_t k) const;
  };
  column at(std::int64_t n) const;

 private:
  friend class gemm_run;
  std::int64_t k_ = 0, n_ = 0;
  element_type type_ = element_type::f32;
  gemm_target target_{core::isa{}, false};
  std::uint32_t* words_ = nullptr;
};

// Bytes of scratch (64-byte aligned) that gemm needs; `packed` says that B comes as a pack.
std::size_t gemm_scratch_bytes(const gemm_problem& problem, bool packed, int threads,
                               const gemm_target& target);

// `b`: op(B) in a form that serves this target, or null.
void gemm(const gemm_problem& problem, const packed_matrix* b, const core::parallel& threads,
          void* scratch, const gemm_target& target);

// A block back in rows `ld` elements apart, around the cache.
struct block_source {
  const void* block;
  std::int64_t rows, columns;
  int panel;  // packed_matrix::panel
  element_type type;
};
void copy_rows(const block_source& from, void* to, std::int64_t ld, const core::parallel& threads,
               core::isa isa);

// The same product in plain loops, every sum in double; truth for the engine, and optimization
// level 0.
void gemm_reference(const gemm_problem& problem, const packed_matrix* b,
                    const core::parallel& threads);

}  // namespace velo::ops
