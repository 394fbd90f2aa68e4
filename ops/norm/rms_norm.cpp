// rms_norm as an operator: what its tensors must look like, how rows become slices, and which
// kernels there are.
//
// dgamma sums over all rows, so each slice keeps a row of partial sums and the partial rows are
// added in slice order.
#include "ops/norm/rms_norm.hpp"

#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_norm.h"

namespace velo::ops {
namespace {

using simd::bf16;

// gamma has the trailing shape of x, and is float32 or of x's dtype.
void require_gain(const velo_tensor& gamma, const velo_tensor& x) {
  require_rank(x, "x", 1);
  require_rank(gamma, "gamma", 1, x.ndim);
  require_shape(gamma, "gamma", gamma.ndim, x.shape + (x.ndim - gamma.ndim));
  if (!(gamma.dtype == f32)) require_dtype(gamma, "gamma", x.dtype);
}

// The shape of rstd: x with the normalized dimensions set to 1.
struct statistics_shape {
  std::int64_t sizes[max_rank];
  statistics_shape(const velo_tensor& x, int normalized) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i < x.ndim - normalized ? x.shape[i] : 1;
  }
};

void infer(const velo_rms_norm_args& a, output_shapes& outputs) {
  require_gain(*a.gamma, *a.x);
  outputs.like("y", *a.x);
  outputs.set("rstd", f32, a.x->ndim, statistics_shape(*a.x, a.gamma->ndim).sizes);
}

void infer_backward(const velo_rms_norm_backward_args& a, output_shapes& outputs) {
  require_gain(*a.gamma, *a.x);
  require_like(*a.dy, "dy", *a.x, "x");
  require_shape(*a.rstd, "rstd", a.x->ndim, statistics_shape(*a.x, a.gamma->ndim).sizes);
  outputs.like("dx", *a.x);
  outputs.like("dgamma", *a.gamma, f32);
}

// gamma as float32: itself, or a widened copy in scratch.
const float* gain(const velo_tensor& gamma, core::execution& on) {
  if (gamma.dtype == f32) return data<const float>(&gamma);
  const std::int64_t n = numel(gamma);
  auto* wide = on.scratch.take<float>(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) wide[i] = simd::to_float(data<const bf16>(&gamma)[i]);
  return wide;
}

template <class T>
void forward(const velo_rms_norm_args& a, core::execution& on,
             void (*kernel)(const rms_norm_slice<T>&)) {
  const std::int64_t n = numel(*a.gamma);
  const std::int64_t rows = row_count(*a.x, a.gamma->ndim);
  if (n == 0 || rows == 0) return;
  const auto row_bytes = n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(rows, row_bytes);
  const bool bypass = bypass_cache(data<T>(a.y), rows, row_bytes, on);
  const float* gamma = gain(*a.gamma, on);
  float* rstd = data<float>(a.rstd);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    kernel({data<const T>(a.x) + first * n, gamma, data<T>(a.y) + first * n,
            rstd == nullptr ? nullptr : rstd + first, slices.count(task), n,
            static_cast<float>(a.epsilon), bypass});
  });
}

template <class T>
void backward(const velo_rms_norm_backward_args& a, core::execution& on,
              void (*kernel)(const rms_norm_backward_slice<T>&),
              void (*gain_kernel)(const rms_norm_gain_columns&)) {
  const std::int64_t n = numel(*a.gamma);
  const std::int64_t rows = row_count(*a.x, a.gamma->ndim);
  if (n == 0) return;
  const auto row_bytes = n * static_cast<std::int64_t>(sizeof(T));
  // At most 32 partial rows of at least 16 rows each, and no more than 4 MiB of them.
  const row_slices slices =
      slice_rows_into(rows, std::clamp<std::int64_t>((1 << 20) / n, 1, 32), 16);
  const auto partial_count = static_cast<std::size_t>(slices.tasks() * n);
  float* partial = a.dgamma == nullptr ? nullptr : on.scratch.take<float>(partial_count);
  const bool bypass = bypass_cache(data<T>(a.dx), rows, row_bytes, on);
  const float* gamma = gain(*a.gamma, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    float* sums = partial == nullptr ? nullptr : partial + task * n;
    if (sums != nullptr) std::memset(sums, 0, sizeof(float) * static_cast<std::size_t>(n));
    kernel({data<const T>(a.dy) + first * n, data<const T>(a.x) + first * n, gamma,
            data<const float>(a.rstd) + first, data<T>(a.dx) + first * n, sums, slices.count(task),
            n, bypass});
  });
  if (a.dgamma == nullptr) return;
  constexpr std::int64_t block = 1024;  // columns of a task
  on.threads((n + block - 1) / block, [&](std::int64_t task, int) {
    const std::int64_t at = task * block;
    gain_kernel({partial + at, slices.tasks(), n, data<float>(a.dgamma) + at,
                 std::min(block, n - at), a.accumulate != 0});
  });
}

template <void (*F32)(const rms_norm_slice<float>&), void (*BF16)(const rms_norm_slice<bf16>&)>
void run(const velo_rms_norm_args& a, core::execution& on) {
  a.x->dtype == f32 ? forward<float>(a, on, F32) : forward<bf16>(a, on, BF16);
}
template <void (*F32)(const rms_norm_backward_slice<float>&),
          void (*BF16)(const rms_norm_backward_slice<bf16>&),
          void (*Gain)(const rms_norm_gain_columns&)>
void run(const velo_rms_norm_backward_args& a, core::execution& on) {
  a.x->dtype == f32 ? backward<float>(a, on, F32, Gain) : backward<bf16>(a, on, BF16, Gain);
}

constexpr candidate forward_kernels[] = {
    kernel<velo_rms_norm_args, run<avx512_bf16::rms_norm, avx512_bf16::rms_norm>>(
        "avx512_bf16", core::isa::avx512_bf16),
    kernel<velo_rms_norm_args, run<avx512::rms_norm, avx512::rms_norm>>("avx512",
                                                                        core::isa::avx512),
    kernel<velo_rms_norm_args, run<avx2::rms_norm, avx2::rms_norm>>("avx2", core::isa::avx2),
    kernel<velo_rms_norm_args, run<reference::rms_norm, reference::rms_norm>>("reference",
                                                                              core::isa::scalar),
};
constexpr candidate backward_kernels[] = {
    kernel<velo_rms_norm_backward_args,
           run<avx512_bf16::rms_norm_backward, avx512_bf16::rms_norm_backward,
               avx512_bf16::rms_norm_gain>>("avx512_bf16", core::isa::avx512_bf16),
    kernel<velo_rms_norm_backward_args,
           run<avx512::rms_norm_backward, avx512::rms_norm_backward, avx512::rms_norm_gain>>(
        "avx512", core::isa::avx512),
    kernel<velo_rms_norm_backward_args,
           run<avx2::rms_norm_backward, avx2::rms_norm_backward, avx2::rms_norm_gain>>(
        "avx2", core::isa::avx2),
    kernel<
        velo_rms_norm_backward_args,
        run<reference::rms_norm_backward, reference::rms_norm_backward, reference::rms_norm_gain>>(
        "reference", core::isa::scalar),
};

}  // namespace

extern const operator_def rms_norm_operator = define<velo_rms_norm_args, infer>(forward_kernels);
extern const operator_def rms_norm_backward_operator =
    define<velo_rms_norm_backward_args, infer_backward>(backward_kernels);

}  // namespace velo::ops
