// The packed form of op(B): panels of columns, cut into passes over the depth.
//
// A panel's rows are contiguous words, a word being one f32 or two bf16 that are neighbors along
// the depth. The last panel may be narrower: a multiple of 16 columns. A gated product's columns
// are two halves, whose panels take turns: one of the first half, then its partner. Invariant:
// panel width and pass depth fix the order of additions, so they are a function of problem and
// target only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/round_up.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "ops/gemm/kernel/target.hpp"

namespace velo::ops {

using core::round_up;

// Columns of a panel of B: two tile registers, or three vectors of sixteen.
constexpr int panel_columns(bool on_tile_registers) {
  return on_tile_registers ? tile_side : 48;
}

struct source_matrix {
  const void* data;
  std::int64_t ld;
  bool transposed;  // stored [n][k]
};

struct packed_form {
  element_type type, compute;  // of the source, of the words
  std::int64_t k, n;
  int panel;   // columns of a panel
  int pass;    // depth of a pass
  int halves;  // 2 of a gated product

  packed_form(std::int64_t k, std::int64_t n, element_type type, const gemm_target& target,
              bool gated = false);

  // Elements of the depth in a word.
  int per_word() const { return compute == element_type::bf16 ? 2 : 1; }
  // Whether the products of `target` over this form run on tile registers.
  bool on_tile_registers(const gemm_target& target) const {
    return compute == element_type::bf16 && gemm_kernels_for(target.isa).tiles != nullptr;
  }
  std::int64_t panels() const { return halves * core::ceil_div(n / halves, panel); }
  // A panel's first column within its half, and in the matrix.
  std::int64_t column_in_half(std::int64_t q) const { return q / halves * panel; }
  std::int64_t column(std::int64_t q) const { return q % halves * (n / 2) + column_in_half(q); }
  // Its place in a packed weight, whose halves are whole panels and follow each other.
  std::int64_t place_in_weight(std::int64_t q) const {
    return q % halves * (panels() / 2) + q / halves;
  }
  std::int64_t passes() const { return core::ceil_div(k, pass); }
  int depth(std::int64_t p) const {
    return static_cast<int>(k - p * pass < pass ? k - p * pass : pass);
  }
  int depth_words(std::int64_t p) const { return core::ceil_div(depth(p), per_word()); }
  int padded_depth(std::int64_t p) const {
    return static_cast<int>(round_up(depth(p), compute == element_type::bf16 ? 32 : 16));
  }
  std::int64_t padded_k() const {
    return passes() == 0 ? 0 : (passes() - 1) * pass + padded_depth(passes() - 1);
  }
  // Words of a panel of full width, all passes.
  std::int64_t panel_words() const { return padded_k() / per_word() * panel; }
  int columns(std::int64_t q) const {
    const std::int64_t left = n / halves - column_in_half(q);
    return static_cast<int>(left < panel ? left : panel);
  }
  int width(std::int64_t q) const { return static_cast<int>(round_up(columns(q), 16)); }
  // The index of a panel's first element in pass p, in the stored matrix.
  std::int64_t source_index(const source_matrix& b, std::int64_t p, std::int64_t q) const {
    const std::int64_t row = p * pass;
    return b.transposed ? column(q) * b.ld + row : row * b.ld + column(q);
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(padded_k() / per_word() * round_up(n, 16) * 4);
  }
};

}  // namespace velo::ops
