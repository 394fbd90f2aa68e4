// The kernels that products need of an instruction set: one table of functions, one constant
// instance an ISA. The reference's instance is empty.
//
// Every ISA multiplies words that are floats with the micro-kernel, pairs of bf16 where it has a
// dot product, and on tile registers where it has them. Cost of a choice: none inside a product.
#pragma once

#include "ops/gemm/kernel/element_type.hpp"
#include "ops/gemm/kernel/micro_kernel.hpp"
#include "ops/gemm/kernel/panel_rows.hpp"
#include "ops/gemm/kernel/reorder.hpp"
#include "ops/gemm/kernel/source_panel.hpp"
#include "ops/gemm/kernel/tile_panel.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Products on tile registers, whose configuration a thread loads before and releases after them.
struct tile_kernels {
  void (*multiply)(const tile_panel&);
  void (*load)();
  void (*release)();
};

struct gemm_kernels {
  core::isa isa;
  int width;                     // floats of a vector
  micro_kernel multiply_floats;  // null in the reference
  micro_kernel multiply_pairs;   // null where there is no dot product
  const tile_kernels* tiles;     // null where there are none
  reorder_kernels floats, wide_bf16, wide_f16, pairs;
  source_kernels sources;  // of products that read B in place
  // Packs a left side for tile registers in strips of 32 rows, ld_to words apart: t[i][j] =
  // s[i][j], two to a word; 16 words of every row after each other, then the next 16.
  void (*strips)(const reorder&);
  void (*fence)();  // after stores around the cache
  void (*copy_panel_rows)(const panel_rows&);

  bool plain() const { return multiply_floats == nullptr; }
  // Whether a lower ISA has the same kernels for `type`: a dot product changes those of bf16 alone.
  bool repeats(element_type type) const {
    return multiply_pairs != nullptr && type != element_type::bf16;
  }

  // From elements of type `from` to words of type `to`.
  const reorder_kernels& reorders(element_type from, element_type to) const {
    return from == element_type::f32   ? floats
           : from == element_type::f16 ? wide_f16
           : to == element_type::f32   ? wide_bf16
                                       : pairs;
  }
  source_kernels::kernel multiply_source(element_type from, element_type to) const {
    return from == element_type::f32   ? sources.floats
           : from == element_type::f16 ? sources.wide_f16
           : to == element_type::f32   ? sources.wide_bf16
                                       : sources.pairs;
  }
  micro_kernel multiply(element_type words) const {
    return words == element_type::f32 ? multiply_floats : multiply_pairs;
  }
};

extern const kernel_list gemm_kernel_list;

const gemm_kernels& gemm_kernels_for(core::isa isa);  // of the highest permitted ISA up to it

// A thread holds one while it multiplies on tile registers. It loads and releases their
// configuration.
class tile_session {
 public:
  explicit tile_session(const tile_kernels* tiles) : tiles_(tiles) {
    if (tiles_ != nullptr) tiles_->load();
  }
  ~tile_session() {
    if (tiles_ != nullptr) tiles_->release();
  }
  tile_session(const tile_session&) = delete;
  tile_session& operator=(const tile_session&) = delete;

 private:
  const tile_kernels* tiles_;
};

}  // namespace velo::ops
