// Presets, totals, and the checks of a list's elements.
#include "ops/unpad/strided_matrices.hpp"

#include <algorithm>

#include "ops/operator/tensor.hpp"
#include "ops/unpad/sequences.hpp"
#include "velo/ops_unpad.h"

namespace velo::ops {
namespace {

using core::concat;
using core::fail;

constexpr const char* size_names[] = {"args.m", "args.n", "args.k"};
constexpr const char* ld_names[] = {"args.lda", "args.ldb", "args.ldc"};
constexpr const char* stride_names[] = {"args.stride_a", "args.stride_b", "args.stride_c"};
constexpr const char* transpose_names[] = {"args.transpose_a", "args.transpose_b"};
constexpr std::int64_t most_size = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t most_elements = std::int64_t{1} << 56;

[[noreturn]] void refuse(const char* field, const core::text& wanted, std::int64_t got,
                         std::int64_t element) {
  fail(VELO_ERR_ARGUMENT, field, wanted, concat(got, " in element ", element));
}

// The matrices of a preset's sequence: rows [s][heads * dim], scores [heads][s][s], or columns
// [heads][dim][s].
enum class layout { rows, scores, columns };

struct preset_product {
  bool m_is_dim, n_is_dim, k_is_dim;  // a head's columns, not the sequence's length
  layout a, b, c;
  bool transpose_a, transpose_b;
};

constexpr preset_product of_scores = {false,        false,          true,  layout::rows,
                                      layout::rows, layout::scores, false, true};
constexpr preset_product by_scores = {false,        true,         false, layout::scores,
                                      layout::rows, layout::rows, false, false};
constexpr preset_product presets[] = {
    of_scores,                                                                         // bmm1
    by_scores,                                                                         // dq
    {true, false, false, layout::rows, layout::scores, layout::columns, true, false},  // dk^T
    by_scores,                                                                         // bmm2
    of_scores,                                                                         // dp
    {false, true, false, layout::scores, layout::rows, layout::rows, true, false}};    // dv

strided_matrices laid_out(layout how, std::int64_t s, std::int64_t dim, std::int64_t heads,
                          bool transposed) {
  if (how == layout::scores) return {s, s, s, s * s, transposed};
  if (how == layout::columns) return {dim, s, s, s * dim, transposed};
  return {s, dim, heads * dim, dim, transposed};
}

// The matrices of all heads within `room` elements.
void require_inside(const strided_matrices& x, int tensor, std::int64_t heads, std::int64_t room,
                    std::int64_t element) {
  std::int64_t left = room - x.columns;
  if (x.rows > 1 && (x.ld < x.columns || x.ld > left / (x.rows - 1)))
    refuse(ld_names[tensor],
           concat("rows within their tensor, ", x.columns, " to ", left / (x.rows - 1)), x.ld,
           element);
  if (x.rows > 1) left -= (x.rows - 1) * x.ld;
  if (heads > 1 && (x.stride < 0 || x.stride > left / (heads - 1)))
    refuse(stride_names[tensor], concat("heads within their tensor, 0 to ", left / (heads - 1)),
           x.stride, element);
}

// Heads that are written must not overlap: one after the other, or side by side in rows.
void require_apart(const strided_matrices& x, int tensor, std::int64_t heads,
                   std::int64_t element) {
  if (heads == 1 || x.stride >= (x.rows - 1) * x.ld + x.columns) return;
  if (x.stride < x.columns || (heads - 1) * x.stride + x.columns > x.ld)
    refuse(stride_names[tensor], concat("matrices that do not overlap"), x.stride, element);
}

}  // namespace

std::int64_t strided_lists::sequences() const {
  return preset_ == VELO_STRIDED_MATMUL_PRESET_NONE ? sizes_[0]->count : seq_len_->count;
}

strided_matrices strided_lists::matrices(int tensor, std::int64_t sequence, std::int64_t rows,
                                         std::int64_t columns) const {
  strided_matrices x = {rows, columns, 0, 0, false};
  if (tensor < 2 && transposes_[tensor] != nullptr && transposes_[tensor]->data[sequence] != 0) {
    std::swap(x.rows, x.columns);
    x.transposed = true;
  }
  const velo_ints *ld = leading_[tensor], *stride = strides_[tensor];
  x.ld = ld != nullptr ? ld->data[sequence] : x.columns;
  x.stride = stride != nullptr ? stride->data[sequence] : x.rows * x.columns;
  return x;
}

strided_product strided_lists::product(std::int64_t i) const {
  if (preset_ == VELO_STRIDED_MATMUL_PRESET_NONE) {
    const std::int64_t m = sizes_[0]->data[i], n = sizes_[1]->data[i], k = sizes_[2]->data[i];
    return {m, n, k, matrices(0, i, m, k), matrices(1, i, k, n), matrices(2, i, m, n)};
  }
  const preset_product& p = presets[preset_ - 1];
  const std::int64_t s = seq_len_->data[i];
  const auto size = [&](bool is_dim) { return is_dim ? head_dim_ : s; };
  return {size(p.m_is_dim),
          size(p.n_is_dim),
          size(p.k_is_dim),
          laid_out(p.a, s, head_dim_, heads_, p.transpose_a),
          laid_out(p.b, s, head_dim_, heads_, p.transpose_b),
          laid_out(p.c, s, head_dim_, heads_, false)};
}

// Lists of as many elements as there are sequences, or none beside a preset.
void strided_lists::require_counts() const {
  const bool lists = preset_ == VELO_STRIDED_MATMUL_PRESET_NONE;
  if (lists != (seq_len_ == nullptr))
    fail(lists ? VELO_ERR_ARGUMENT : VELO_ERR_NULL, "args.seq_len",
         lists ? "NULL without a preset" : "a list", lists ? "a list" : "NULL");
  const auto require = [&](const velo_ints* list, const char* field, bool needed) {
    if (list != nullptr && !lists) fail(VELO_ERR_ARGUMENT, field, "NULL beside a preset", "a list");
    if (list == nullptr && needed && lists) fail(VELO_ERR_NULL, field, "a list", "NULL");
    if (list != nullptr && list->count != sizes_[0]->count)
      fail(VELO_ERR_ARGUMENT, field, concat(sizes_[0]->count, " elements, as args.m"),
           core::number(list->count));
  };
  for (int i = 0; i < 3; ++i) require(sizes_[i], size_names[i], true);
  for (int i = 0; i < 3; ++i) require(leading_[i], ld_names[i], false);
  for (int i = 0; i < 3; ++i) require(strides_[i], stride_names[i], false);
  for (int i = 0; i < 2; ++i) require(transposes_[i], transpose_names[i], false);
}

// Checks each size, and that their products count elements; returns the totals.
strided_totals strided_lists::require_sizes() const {
  if (seq_len_ != nullptr) {
    total_scores(*seq_len_, most_size, heads_);
    const std::int64_t sizes[] = {total_length(*seq_len_, most_size), heads_, head_dim_};
    if (!countable(3, sizes)) refuse_sizes(3, sizes, "args.head_dim");
  }
  strided_totals all = {0, 0, 0};
  for (std::int64_t i = 0; i < sequences(); ++i) {
    for (int which = 0; seq_len_ == nullptr && which < 3; ++which) {
      const std::int64_t size = sizes_[which]->data[i];
      if (size < 0 || size > most_size)
        refuse(size_names[which], concat("sizes in [0, ", most_size, "]"), size, i);
      if (which == 2 || transposes_[which] == nullptr) continue;
      const std::int64_t turned = transposes_[which]->data[i];
      if (turned != 0 && turned != 1) refuse(transpose_names[which], concat("0 or 1"), turned, i);
    }
    const strided_product p = product(i);
    const std::int64_t a[] = {heads_, p.m, p.k}, b[] = {heads_, p.k, p.n}, c[] = {heads_, p.m, p.n};
    for (const auto* sizes : {a, b, c})
      if (!countable(3, sizes)) refuse_sizes(3, sizes, "args.m");
    all.a += core::product(a, 3), all.b += core::product(b, 3), all.c += core::product(c, 3);
    if (std::max({all.a, all.b, all.c}) > most_elements)
      refuse("args.m", concat("less than 2^56 elements in all"), p.m, i);
  }
  return all;
}

strided_totals strided_lists::require(const bool (&written)[3]) const {
  require_counts();
  const strided_totals all = require_sizes();
  std::int64_t left[] = {all.a, all.b, all.c};
  for (std::int64_t i = 0; i < sequences(); ++i) {
    const strided_product p = product(i);
    const strided_matrices* operands[] = {&p.a, &p.b, &p.c};
    for (int tensor = 0; tensor < 3; ++tensor) {
      const strided_matrices& x = *operands[tensor];
      const std::int64_t own = heads_ * x.rows * x.columns;
      if (own != 0) {
        require_inside(x, tensor, heads_, written[tensor] ? own : left[tensor], i);
        if (written[tensor]) require_apart(x, tensor, heads_, i);
      }
      left[tensor] -= own;
    }
  }
  return all;
}

}  // namespace velo::ops
