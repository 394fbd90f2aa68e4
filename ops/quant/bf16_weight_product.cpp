// The loops of products by integers that became bf16.
#include "ops/quant/bf16_weight_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t most_rows = 512, most_columns = 3 * pack_columns, most_depth = 1024;
constexpr std::int64_t rows_of_task = 64;

class bf16_blocks {
 public:
  bf16_blocks(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on)
      : p_(p), kernels_(kernels), on_(on), columns_(std::min(most_columns, p.w.n)) {
    const std::int64_t rows = std::min(most_rows, p.m);
    words_ = take<simd::bf16>(columns_ * std::min(most_depth, p.w.scales.group));
    sums_ = take<float>(rows * columns_);
    result_ = take<float>(rows * columns_);
    for (const std::int64_t m : {rows, p.m % most_rows})
      for (const bool accumulate : {false, true})
        scratch_bytes_ = std::max(scratch_bytes_, bytes_for(m, accumulate));
    scratch_ = on.scratch.take(scratch_bytes_);
  }

  void multiply() {
    for (std::int64_t j = 0; j < p_.w.n; j += most_columns)
      for (std::int64_t i = 0; i < p_.m; i += most_rows)
        multiply_block({i, std::min(p_.m, i + most_rows)}, {j, std::min(p_.w.n, j + most_columns)});
  }

 private:
  template <class T>
  T* take(std::int64_t n) {
    return on_.scratch.take<T>(static_cast<std::size_t>(n));
  }
  template <class Body>
  void each_rows(std::int64_t rows, Body&& body) const {
    on_.threads.slices(rows * columns_ >> 14, core::ceil_div(rows, rows_of_task),
                       [&](std::int64_t task, int) {
                         const std::int64_t first = task * rows_of_task;
                         body(first, std::min(rows_of_task, rows - first), task);
                       });
  }

  gemm_problem product_of(index_range rows, index_range columns, index_range depth) const;
  std::size_t bytes_for(std::int64_t rows, bool accumulate) const;
  void widen(index_range columns, index_range depth) const;
  bool scale(std::int64_t rows, index_range columns, std::int64_t group) const;
  void multiply_block(index_range rows, index_range columns) const;

  const weight_product& p_;
  const weight_quant_kernels& kernels_;
  core::execution& on_;
  const std::int64_t columns_;  // elements between rows of sums_ and result_
  simd::bf16* words_;           // a block of the weight, compact, its rows as they are stored
  float *sums_, *result_;       // of a group, and of all groups so far
  std::size_t scratch_bytes_ = 0;
  void* scratch_ = nullptr;
};

// A block of the weight lies compact, its rows along the columns or the depth.
gemm_problem bf16_blocks::product_of(index_range rows, index_range columns,
                                     index_range depth) const {
  gemm_problem g;
  g.m = rows.size(), g.n = columns.size(), g.k = depth.size();
  g.type = element_type::bf16;
  g.a = static_cast<const simd::bf16*>(p_.x) + rows.begin * p_.w.k + depth.begin;
  g.lda = p_.w.k;
  g.b = words_, g.transpose_b = p_.w.transposed;
  g.ldb = p_.w.transposed ? depth.size() : columns.size();
  g.c = sums_, g.ldc = columns_;
  g.epilogue.accumulate = depth.begin % p_.w.scales.group != 0;
  return g;
}

std::size_t bf16_blocks::bytes_for(std::int64_t rows, bool accumulate) const {
  const std::int64_t group = p_.w.scales.group;
  std::size_t most = 0;
  const std::int64_t last = p_.w.k % group;  // of a group that has less
  for (const std::int64_t depth :
       {std::min(group, most_depth), group % most_depth, last % most_depth})
    for (const std::int64_t columns : {columns_, p_.w.n % most_columns}) {
      gemm_problem g = product_of({0, rows}, {0, columns}, {0, depth});
      g.epilogue.accumulate = accumulate;
      most = std::max(most, gemm_scratch_bytes(g, on_.threads.threads(), kernels_.isa));
    }
  return most;
}

// A pack's columns lie in panels, most_columns are whole ones.
void bf16_blocks::widen(index_range columns, index_range depth) const {
  const weight_matrix& w = p_.w;
  const index_range &rows = w.transposed ? columns : depth,
                    &within = w.transposed ? depth : columns;
  const std::int64_t most = w.in_panels ? pack_columns : within.size();
  on_.threads.slices(rows.size() * within.size() >> 15, core::ceil_div(rows.size(), rows_of_task),
                     [&](std::int64_t task, int) {
                       const std::int64_t first = task * rows_of_task;
                       for (std::int64_t j = 0; j < within.size(); j += most)
                         for (std::int64_t i = first;
                              i < std::min(rows.size(), first + rows_of_task); ++i)
                           kernels_.widen_to_bf16({w.byte_of(rows.begin + i, within.begin + j),
                                                   w.int4, words_ + i * within.size() + j,
                                                   std::min(most, within.size() - j)});
                     });
}

bool bf16_blocks::scale(std::int64_t rows, index_range columns, std::int64_t group) const {
  bool finite[most_rows / rows_of_task];
  std::fill(std::begin(finite), std::end(finite), true);
  each_rows(rows, [&](std::int64_t first, std::int64_t count, std::int64_t task) {
    const std::int64_t at = first * columns_;
    finite[task] =
        kernels_.add_group({sums_ + at, result_ + at, columns_, count, columns.size(), p_.w.scales,
                            group * p_.w.scales.ld + columns.begin, group > 0});
  });
  return std::all_of(std::begin(finite), std::end(finite), [](bool one) { return one; });
}

void bf16_blocks::multiply_block(index_range rows, index_range columns) const {
  const std::int64_t k = p_.w.k, group = p_.w.scales.group;
  bool all_finite = true;
  for (index_range of{0, 0}; of.begin < k; of.begin = of.end) {
    of.end = std::min({k, of.begin + most_depth, (of.begin / group + 1) * group});
    widen(columns, of);
    gemm(product_of(rows, columns, of), on_.threads, scratch_, kernels_.isa);
    if (of.end == k || of.end % group == 0)
      all_finite &= scale(rows.size(), columns, of.begin / group);
  }
  if (k == 0)
    std::memset(result_, 0, sizeof(float) * static_cast<std::size_t>(rows.size() * columns_));
  each_rows(rows.size(), [&](std::int64_t first, std::int64_t count, std::int64_t) {
    for (std::int64_t i = first; !all_finite && i < first + count; ++i)
      recompute_overflowed(p_, rows.begin + i, columns, result_ + i * columns_);
    finish_sums(p_, kernels_, result_ + first * columns_, columns_,
                {rows.begin + first, rows.begin + first + count}, columns);
  });
}

}  // namespace

bool multiplies_as_bf16(const weight_product& p, const weight_quant_kernels& kernels) {
  return !p.backward && suits_bf16(p.m, p.x_type, p.w.scales.offset != nullptr, p.row_invariant) &&
         gemm_target(kernels.isa).dot;
}

void multiply_as_bf16(const weight_product& p, const weight_quant_kernels& kernels,
                      core::execution& on) {
  bf16_blocks(p, kernels, on).multiply();
}

}  // namespace velo::ops
