// How a product is cut: panel width, pass depth, tile, and where scratch goes; and the packed form
// of op(B).
//
// Panel widths and pass depths fix the order of additions, so they are a function of problem and
// isa only. Tiles (tile_grid.hpp) decide what stays in cache together and how evenly threads share
// the work.
#pragma once

#include "core/round_up.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/gemm_kernels.hpp"
#include "ops/gemm/tile_grid.hpp"

namespace velo::ops {

using core::round_up;

// Columns of a panel of B: two tiles, or three vectors of sixteen.
constexpr int panel_columns(bool on_tiles) {
  return on_tiles ? tile_side : 48;
}

struct packed_form {
  element_type type, compute;  // of the source, of the words
  std::int64_t k, n;
  int panel;  // columns of a panel
  int pass;   // depth of a pass

  packed_form(std::int64_t k, std::int64_t n, element_type type, const gemm_target& target);

  int per_word() const {
    return compute == element_type::bf16 ? 2 : 1;
  }  // elements of the depth in a word
  // Whether the products of `target` over this form run on tiles.
  bool on_tiles(const gemm_target& target) const {
    return compute == element_type::bf16 && gemm_kernels_for(target.isa).tiles != nullptr;
  }
  std::int64_t panels() const { return (n + panel - 1) / panel; }
  std::int64_t passes() const { return (k + pass - 1) / pass; }
  int depth(std::int64_t p) const {
    return static_cast<int>(k - p * pass < pass ? k - p * pass : pass);
  }
  int padded_depth(std::int64_t p) const {
    return static_cast<int>(round_up(depth(p), compute == element_type::bf16 ? 32 : 16));
  }
  std::int64_t padded_k() const {
    return passes() == 0 ? 0 : (passes() - 1) * pass + padded_depth(passes() - 1);
  }
  int columns(std::int64_t p) const {
    return static_cast<int>(n - p * panel < panel ? n - p * panel : panel);
  }
  int width(std::int64_t p) const { return static_cast<int>(round_up(columns(p), 16)); }
  // Of a panel's first element in pass p, in the stored matrix.
  std::int64_t place(const struct source_matrix& b, std::int64_t p, std::int64_t q) const;
  std::size_t bytes() const {
    return static_cast<std::size_t>(padded_k() / per_word() * round_up(n, 16) * 4);
  }
};

// Where the words of one pass over some panels go: panel q to words + (q - origin) * panel_stride.
struct packed_target {
  std::uint32_t* words;
  std::int64_t panel_stride;
  std::int64_t origin;

  std::uint32_t* panel(std::int64_t q) const { return words + (q - origin) * panel_stride; }
};

struct source_matrix {
  const void* data;
  std::int64_t ld;
  bool transposed;  // stored [n][k]
};

// Packs steps [begin, end) of the depth of pass `p` into panel `q` at `to`; begin is even.
void pack_strip(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
                int begin, int end, std::uint32_t* to, const gemm_kernels& kernels);

// A part of a pass: steps [begin, end) of its depth, both even where they are not its ends.
struct depth_range {
  int begin, end;
};

// Packs `steps` of pass `p` of panels [first, end), and the zeros after its last.
void pack_panels(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
                 std::int64_t first, std::int64_t end, const packed_target& to,
                 const gemm_kernels& kernels);

struct gemm_plan {
  packed_form form;
  tile_grid grid;

  bool on_tiles;               // panels are multiplied on tiles, sums lie in squares
  bool reads_a;                // A is read where it lies; otherwise
  bool packs_a_once;           // it is packed before all tasks, or by each task
  bool pack_inside;            // each task packs the B it needs:
  bool feeds;                  // a panel while the one before is multiplied,
  std::int64_t inside_panels;  // or so many at a time

  // bytes
  std::size_t shared_a, shared_b, own_a, own_b, own_sums, own;

  gemm_plan(const gemm_problem& problem, bool packed, int threads, const gemm_target& target);

  // Of sums between passes. No power of two, so that rows spread over the sets of a cache.
  int sums_stride() const { return grid.tile_panels() * form.panel + 16; }
  std::size_t scratch_bytes(int threads) const {
    return shared_a + shared_b + own * static_cast<std::size_t>(threads);
  }
};

}  // namespace velo::ops
