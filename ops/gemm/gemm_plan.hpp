// How a product is cut, and where its scratch lies.
//
// The packed form fixes the order of additions. Tiles (tile_grid.hpp) decide which operands share a
// cache and how evenly threads share the work.
#pragma once

#include "ops/gemm/gemm.hpp"
#include "ops/gemm/pack/packed_form.hpp"
#include "ops/gemm/tile_grid.hpp"

namespace velo::ops {

// The largest A that is packed once for all tasks.
constexpr std::int64_t shared_a_bytes = std::int64_t{64} << 20;
// Rows that a row_source writes at a time: those of a strip on tile registers.
constexpr std::int64_t source_rows = 32;

struct gemm_plan {
  packed_form form;
  tile_grid grid;

  bool on_tile_registers;      // panels are multiplied on tile registers, sums lie in squares
  bool reads_b;                // B is read in place, a strip of its depth after another
  bool reads_a;                // A is read in place; otherwise
  bool packs_a_once;           // it is packed before all tasks, as rows of a row_source are, or
                               // by each task
  bool pack_inside;            // each task packs the B it needs:
  bool packs_ahead;            // a panel while the one before is multiplied,
  std::int64_t inside_panels;  // or so many at a time

  // Bytes of scratch: shared by all threads, and of each thread.
  std::size_t shared_a, shared_b, own_a, own_b, own_sums, own;

  gemm_plan(const gemm_problem& problem, int threads, const gemm_target& target);
  // One of several products in a region that all share: its tasks pack a plain B themselves,
  // whatever their number. `most_work`: multiplications of a tile; `most_a`: bytes left for an A
  // packed once.
  gemm_plan(const gemm_problem& problem, double most_work, std::int64_t most_a,
            const gemm_target& target);

  // B in place is read in strips of so many words of the depth: rows of two panels and the strip
  // after them stay in L2, one packed panel of it in L1.
  int strip_words() const { return strip_; }
  static constexpr int strip_panels = 2;

  // The row stride of sums between passes. It is no power of two, so that rows spread over the sets
  // of a cache.
  int sums_stride() const { return tile_panels() * form.panel + 16; }
  // The grid cuts a gated product into pairs of panels.
  std::int64_t first_panel(std::int64_t tile) const { return grid.first_panel(tile) * form.halves; }
  int tile_panels() const { return grid.tile_panels() * form.halves; }
  bool gated() const { return form.halves == 2; }
  std::size_t scratch_bytes(int threads) const {
    return shared_a + shared_b + own * static_cast<std::size_t>(threads);
  }

 private:
  int strip_ = 0;

  void place(const gemm_problem& problem, std::int64_t most_a);
};

}  // namespace velo::ops
