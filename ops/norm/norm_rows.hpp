// How the norms' tensors become slices of rows: the shapes that rms_norm, layer_norm and the fused
// norms share, and the runs of the first two.
//
// Gradients that sum over all rows (dgamma, dbeta) get a row of partial sums from each slice, and
// the partial rows are added in slice order.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "ops/norm/norm.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"

namespace velo::ops {

// Rows of n elements, over the trailing `normalized` dimensions of a tensor.
struct norm_problem {
  std::int64_t rows, n;
  int normalized;
};

// The shape of a number a row: x with the normalized dimensions set to 1.
struct statistics_shape {
  std::int64_t sizes[max_rank];
  statistics_shape(const velo_tensor& x, int normalized) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i < x.ndim - normalized ? x.shape[i] : 1;
  }
};

// A gain or a bias has the trailing shape of x, and is float32 or of x's dtype.
inline void require_gain(const velo_tensor& gamma, const char* field, const velo_tensor& x) {
  require_rank(x, "x", 1);
  require_rank(gamma, field, 1, x.ndim);
  require_shape(gamma, field, gamma.ndim, x.shape + (x.ndim - gamma.ndim));
  require_f32_or(gamma, field, x.dtype);
}

// Over the dimensions of gamma, or the last one without it.
inline norm_problem norm_problem_of(const velo_tensor& x, const velo_tensor* gamma) {
  if (gamma != nullptr) require_gain(*gamma, "gamma", x);
  require_rank(x, "x", 1);
  const int normalized = gamma == nullptr ? 1 : gamma->ndim;
  return {row_count(x, normalized), row_size(x, normalized), normalized};
}

// A tensor of n elements as float32, or n times `otherwise` where it is left out.
inline const float* widened_or(const velo_tensor* t, std::int64_t n, float otherwise,
                               core::execution& on) {
  if (t != nullptr) return widened(*t, on);
  auto* all = on.scratch.take<float>(static_cast<std::size_t>(n));
  std::fill_n(all, n, otherwise);
  return all;
}

// At most 32 partial rows, of at least 16 rows each, and at most 4 MiB of each sum.
inline row_slices slices_of_gradient(const norm_problem& p) {
  return slice_rows_into(
      p.rows, std::clamp<std::int64_t>((1 << 20) / std::max<std::int64_t>(p.n, 1), 1, 32), 16);
}

// Partial sums of columns, a row for each slice; null where the gradient is not asked for.
struct partial_rows {
  float* rows = nullptr;
  std::int64_t count = 0, n = 0;

  partial_rows(bool wanted, const row_slices& slices, std::int64_t n, core::execution& on)
      : count(slices.tasks()), n(n) {
    if (wanted) rows = on.scratch.take<float>(static_cast<std::size_t>(count * n));
  }
  // The row of a slice, set to 0.
  float* begin(std::int64_t slice) const {
    if (rows == nullptr) return nullptr;
    float* row = rows + slice * n;
    std::memset(row, 0, sizeof(float) * static_cast<std::size_t>(n));
    return row;
  }
  // Writes or adds the sum of all rows, blocks of columns at a time.
  void add_to(const velo_tensor* sum, bool accumulate, void (*columns)(const norm_columns&),
              core::execution& on) const {
    if (sum == nullptr) return;
    constexpr std::int64_t block = 1024;
    on.threads(core::ceil_div(n, block), [&](std::int64_t task, int) {
      const std::int64_t at = task * block;
      columns({rows + at, count, n, data<float>(sum) + at, std::min(block, n - at), accumulate});
    });
  }
};

struct norm_gains {
  const float *gamma, *beta;
};

// known: of each row, or nullptr.
template <class T, class Args>
void normalize(const Args& a, const norm_problem& p, const norm_gains& by, float* mean,
               const norm_kernels& kernels, core::execution& on,
               const row_statistics* known = nullptr) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(p.rows, row_bytes);
  const bool bypass = bypass_cache(data<T>(a.y), p.rows, row_bytes, on);
  float* rstd = data<float>(a.rstd);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    kernels.forward(norm_slice<T>{
        data<const T>(a.x) + first * p.n, by.gamma, by.beta, data<T>(a.y) + first * p.n,
        mean == nullptr ? nullptr : mean + first, rstd == nullptr ? nullptr : rstd + first,
        slices.count(task), p.n, static_cast<float>(a.epsilon), bypass,
        known == nullptr ? nullptr : known + first});
  });
}

// mean, dbeta: nullptr of an rms_norm. known: of each row, or nullptr.
template <class T, class Args>
void normalize_backward(const Args& a, const norm_problem& p, const float* gamma, const float* mean,
                        const velo_tensor* dbeta, const norm_kernels& kernels, core::execution& on,
                        const row_gradient_terms* known = nullptr) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slices_of_gradient(p);
  const bool sums = a.dgamma != nullptr || dbeta != nullptr;
  const partial_rows gains(sums, slices, p.n, on);
  const partial_rows biases(sums && mean != nullptr, slices, p.n, on);
  const bool bypass = bypass_cache(data<T>(a.dx), p.rows, row_bytes, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    kernels.backward(norm_backward_slice<T>{
        data<const T>(a.dy) + first * p.n, data<const T>(a.x) + first * p.n, gamma,
        mean == nullptr ? nullptr : mean + first, data<const float>(a.rstd) + first,
        data<T>(a.dx) + first * p.n, gains.begin(task), biases.begin(task), slices.count(task), p.n,
        bypass, known == nullptr ? nullptr : known + first});
  });
  gains.add_to(a.dgamma, a.accumulate != 0, kernels.columns, on);
  biases.add_to(dbeta, a.accumulate != 0, kernels.columns, on);
}

}  // namespace velo::ops
