// One product that is cut into tiles: what its tasks are, and the phases of a product by itself.
//
// The plan says how it is cut and what is packed when (gemm_plan.hpp). A product among others
// (gemm_groups.hpp) has the same tasks in a region that all share.
#pragma once

#include "core/round_up.hpp"
#include "ops/gemm/gemm_plan.hpp"
#include "ops/gemm/left_operand.hpp"
#include "ops/gemm/output.hpp"
#include "ops/gemm/overlapped_copy.hpp"
#include "ops/gemm/pack/next_panel.hpp"

namespace velo::ops {

// Scratch of a product: what all threads share, plan.shared_b + plan.shared_a bytes, and an area
// for each thread of at least plan.own bytes.
struct product_scratch {
  char* shared;
  char* own;
  std::size_t own_step;  // bytes from one thread's area to the next one's
};

class tiled_product {
 public:
  // Problem and plan outlive it.
  tiled_product(const gemm_problem& problem, const gemm_plan& plan, const product_scratch& scratch,
                const gemm_target& target)
      : p_(problem),
        plan_(plan),
        form_(plan_.form),
        grid_(plan_.grid),
        kernels_(gemm_kernels_for(target.isa)),
        scratch_(scratch),
        a_(problem, plan_, kernels_, scratch.shared + plan_.shared_b) {}

  void run(const core::parallel& threads) const;

  // The tasks of a product without phases: those that pack A come before all others.
  std::int64_t packing_tasks() const { return plan_.packs_a_once ? a_.packing_tasks() : 0; }
  void pack(std::int64_t task) const { a_.pack_task(task); }
  std::int64_t tiles() const { return grid_.row_tiles * grid_.column_tiles; }
  void multiply(std::int64_t tile, int thread) const {
    multiply(tile / grid_.column_tiles, tile % grid_.column_tiles, 0, thread);
  }

 private:
  // One task's part of C, and its own part of the scratch.
  struct tile {
    std::int64_t row;
    int rows;
    std::int64_t first, end;    // panels
    std::int64_t packed_panel;  // first of the panels that this phase packed
    char* own_a;
    std::uint32_t* own_b;
    float* sums;
    copy_share* copies;  // or null
  };

  const std::uint32_t* panel_of_b(const tile& t, std::int64_t p, std::int64_t q) const;
  std::uint32_t* own_panel(const tile& t, std::int64_t p, std::int64_t q) const;
  void pack_inside(const tile& t, std::int64_t p, std::int64_t q) const;
  next_panel next_at(const tile& t, std::int64_t p, std::int64_t q) const;
  next_panel next_after(const tile& t, std::int64_t p, std::int64_t q) const;
  void multiply_micro_panels(const tile& t, std::int64_t p, std::int64_t q,
                             const std::uint32_t* a) const;
  struct strip;
  void multiply_strips(const tile& t, std::int64_t p, const std::uint32_t* a) const;
  void multiply_strip(const tile& t, const strip& s, const std::uint32_t* a) const;
  void multiply_first_rows(const tile& t, const strip& s, const std::uint32_t* a,
                           const line_run& fetch) const;
  micro_args strip_args(const tile& t, const strip& s, const std::uint32_t* a) const;
  line_run lines_after(const tile& t, const strip& s, int call, int calls) const;
  void multiply_tiles(const tile& t, std::int64_t p, std::int64_t q, const char* a) const;
  void finish_gated(const tile& t, std::int64_t q) const;
  void multiply(std::int64_t row_tile, std::int64_t column_tile, std::int64_t phase_first,
                int thread) const;

  // Words of the largest panel of one pass.
  std::int64_t slot_words() const { return form_.padded_depth(0) / form_.per_word() * form_.panel; }
  source_matrix source_of_b() const { return {p_.b, p_.ldb, p_.transpose_b}; }
  output_block output_at(const tile& t, std::int64_t q) const {
    const int columns = form_.columns(q);
    return output_of(p_, {t.row, form_.column_in_half(q), t.rows, columns, columns == form_.panel});
  }
  std::int64_t last_pass() const { return form_.passes() - 1; }
  // Whether kernels finish the sums of pass `p`; those of gated panels wait for each other.
  bool finishes(std::int64_t p) const { return !plan_.gated() && p >= last_pass(); }
  // The place of a panel's sums among its tile's. In a single gated pass sums wait for those of the
  // partner alone.
  std::int64_t sums_panel(const tile& t, std::int64_t q) const {
    return plan_.gated() && last_pass() <= 0 ? q % 2 : q - t.first;
  }
  float* sums_of(const tile& t, std::int64_t q) const {
    if (!plan_.on_tile_registers) return t.sums + sums_panel(t, q) * form_.panel;
    const std::int64_t strips = core::ceil_div(t.rows, tile_side);
    return t.sums + sums_panel(t, q) * strips * tile_side * tile_side;
  }

  const gemm_problem& p_;
  const gemm_plan& plan_;
  const packed_form& form_;
  const tile_grid& grid_;
  const gemm_kernels& kernels_;
  const product_scratch scratch_;
  const left_operand a_;
};

}  // namespace velo::ops
