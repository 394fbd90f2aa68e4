// dropout_add_rms_norm and dropout_add_layer_norm as operators: which tensors go together, and how
// rows become slices. Both have the same fields but for beta and mean, so one text serves both.
#include "ops/norm/dropout_add_norm.hpp"

#include <type_traits>

#include "ops/norm/norm_rows.hpp"
#include "ops/operator/dropout_part.hpp"
#include "velo/ops_norm.h"

namespace velo::ops {
namespace {

using rms_args = velo_dropout_add_rms_norm_args;
using layer_args = velo_dropout_add_layer_norm_args;
using rms_backward_args = velo_dropout_add_rms_norm_backward_args;
using layer_backward_args = velo_dropout_add_layer_norm_backward_args;

template <class Args>
constexpr bool centered =
    std::is_same_v<Args, layer_args> || std::is_same_v<Args, layer_backward_args>;

const dropout_add_norm_pair& pair_of(const dropout_add_norm_kernels& kernels, bool layer) {
  return layer ? kernels.layer : kernels.rms;
}

// The scales have the dtype of x, the gains that or float32. A float32 sum of 16-bit x that comes
// from a residual has float32 gains.
template <class Args>
void require_scales(const Args& a, const velo_tensor& x, const velo_tensor* residual) {
  require_rank(x, "x", 1);
  require_shape(*a.gamma, "gamma", 1, x.shape + (x.ndim - 1));
  const bool wide = residual != nullptr && residual->dtype == f32;
  if (wide || !(a.gamma->dtype == f32)) require_dtype(*a.gamma, "gamma", wide ? f32 : x.dtype);
  if (a.rowscale != nullptr) {
    require_shape(*a.rowscale, "rowscale", x.ndim - 1, x.shape);
    require_dtype(*a.rowscale, "rowscale", x.dtype);
  }
  if (a.layerscale != nullptr) {
    require_shape(*a.layerscale, "layerscale", 1, x.shape + (x.ndim - 1));
    require_dtype(*a.layerscale, "layerscale", x.dtype);
  }
}

template <class Args>
void infer(const Args& a, norm_problem& p, output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  velo_dtype sum = a.residual_in_fp32 != 0 ? f32 : x.dtype;
  if (a.residual != nullptr) {
    require_shape(*a.residual, "residual", x.ndim, x.shape);
    require_f32_or(*a.residual, "residual", x.dtype);
    sum = a.residual->dtype;
  }
  require_scales(a, x, a.residual);
  check_dropout_part(a.dropout_origin, a.dropout_extents, x);
  p = {row_count(x), row_size(x), 1};
  outputs.like(a.y, x);
  outputs.like(a.pre_norm, x, sum);
  outputs.like(a.mask, x, u8);
  const statistics_shape statistics(x, 1);
  outputs.set(a.rstd, f32, x.ndim, statistics.sizes);
  if constexpr (centered<Args>) {
    if (a.beta != nullptr) require_like(*a.beta, "beta", *a.gamma, "gamma");
    outputs.set(a.mean, f32, x.ndim, statistics.sizes);
  }
}

// A gradient is asked for where an input is missing without which there is none.
void require_for(const velo_tensor* gradient, const velo_tensor* input, const char* field,
                 const char* of) {
  if (gradient != nullptr && input == nullptr)
    core::fail(VELO_ERR_NULL, core::concat("args.", field),
               core::concat("a tensor, because ", of, " is given"), "NULL");
}

template <class Args>
void infer_backward(const Args& a, norm_problem& p, output_shapes& outputs) {
  const velo_tensor &dy = *a.dy, &z = *a.pre_norm;
  require_shape(z, "pre_norm", dy.ndim, dy.shape);
  require_f32_or(z, "pre_norm", dy.dtype);
  if (a.dpre_norm != nullptr) require_like(*a.dpre_norm, "dpre_norm", z, "pre_norm");
  if (a.x != nullptr) require_like(*a.x, "x", dy, "dy");
  require_scales(a, dy, nullptr);
  check_dropout_part(a.dropout_origin, a.dropout_extents, dy);
  require_for(a.drowscale, a.rowscale, "rowscale", "drowscale");
  require_for(a.drowscale, a.x, "x", "drowscale");
  require_for(a.dlayerscale, a.layerscale, "layerscale", "dlayerscale");
  require_for(a.dlayerscale, a.x, "x", "dlayerscale");
  p = {row_count(dy), row_size(dy), 1};
  const statistics_shape statistics(dy, 1);
  require_shape(*a.rstd, "rstd", dy.ndim, statistics.sizes);
  outputs.like(a.dx, dy);
  outputs.like(a.dresidual, z);
  outputs.like(a.dgamma, *a.gamma, f32);
  if (a.rowscale != nullptr && a.x != nullptr) outputs.like(a.drowscale, *a.rowscale, f32);
  if (a.layerscale != nullptr && a.x != nullptr) outputs.like(a.dlayerscale, *a.layerscale, f32);
  if constexpr (centered<Args>) {
    require_shape(*a.mean, "mean", dy.ndim, statistics.sizes);
    outputs.like(a.dbeta, *a.gamma, f32);
  }
}

// The numbers of rows in the whole of x, where anything is dropped.
template <class Args>
dropout_indices rows_of(const Args& a, const velo_tensor& x) {
  const bool drops = a.p > 0;
  return {x.ndim - 1, x.shape, drops ? a.dropout_origin : nullptr,
          drops ? a.dropout_extents : nullptr};
}

// The terms of both passes: the scales as floats, dropout's rule and indices, scratch for
// each thread.
class terms {
 public:
  template <class Args>
  terms(const Args& a, const velo_tensor& x, const norm_problem& p, core::execution& on)
      : n_(p.n),
        rows_(rows_of(a, x)),
        column_(a.dropout_origin == nullptr ? 0 : a.dropout_origin->data[x.ndim - 1]),
        rule_(simd::dropout_of(a.p, static_cast<std::uint64_t>(a.seed),
                               static_cast<std::uint64_t>(a.offset))) {
    all_.n = n_;
    all_.pitch = static_cast<std::uint64_t>(
        a.dropout_extents == nullptr ? n_ : a.dropout_extents->data[x.ndim - 1]);
    all_.gamma = widened(*a.gamma, on);
    if (a.rowscale != nullptr) all_.rowscale = widened(*a.rowscale, on);
    if (a.layerscale != nullptr) all_.layerscale = widened(*a.layerscale, on);
    if (a.p > 0) all_.rule = &rule_;
    scratch_ = on.scratch.take<float>(static_cast<std::size_t>(on.threads.threads()) * stride());
  }
  // body(first row, its terms) for slices of rows whose indices have one pitch.
  template <class Body>
  void each_slice(std::int64_t first, std::int64_t count, int thread, const Body& body) const {
    rows_.each_run(first, count, [&](std::int64_t row, std::int64_t rows, std::uint64_t number) {
      add_norm_terms slice = all_;
      if (slice.rowscale != nullptr) slice.rowscale += row;
      slice.first = number * slice.pitch + static_cast<std::uint64_t>(column_);
      slice.rows = rows;
      slice.scratch = scratch_ + static_cast<std::size_t>(thread) * stride();
      body(row, slice);
    });
  }

 private:
  // Two rows, and a line, so that threads write no line of another.
  std::size_t stride() const { return static_cast<std::size_t>(2 * n_ + 31) / 16 * 16; }

  std::int64_t n_;
  const dropout_indices rows_;
  const std::int64_t column_;  // of the whole, the first of x
  simd::dropout_rule rule_;
  add_norm_terms all_{};
  float* scratch_;
};

template <class T>
T* from(T* p, std::int64_t first) {
  return p == nullptr ? nullptr : p + first;
}

template <class T, class Z, class Args>
void forward(const Args& a, const norm_problem& p, const dropout_add_norm_kernels& kernels,
             core::execution& on) {
  const auto& kernel = pair_of(kernels, centered<Args>).forward;
  const terms by(a, *a.x, p, on);
  const float* beta = nullptr;
  float* mean = nullptr;
  if constexpr (centered<Args>) beta = widened_or(a.beta, p.n, 0, on), mean = data<float>(a.mean);
  const row_slices slices = slice_rows(p.rows, p.n * static_cast<std::int64_t>(sizeof(Z)));
  const bool bypass =
      bypass_cache(data<T>(a.y), p.rows, p.n * static_cast<std::int64_t>(sizeof(T)), on);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    by.each_slice(
        slices.begin(task), slices.count(task), thread,
        [&](std::int64_t first, const add_norm_terms& slice) {
          const std::int64_t at = first * p.n;
          kernel(dropout_add_norm_slice<T, Z>{
              data<const T>(a.x) + at, from(data<const Z>(a.residual), at), beta, data<T>(a.y) + at,
              from(data<Z>(a.pre_norm), at), from(data<std::uint8_t>(a.mask), at),
              from(mean, first), from(data<float>(a.rstd), first), static_cast<float>(a.epsilon),
              bypass, slice});
        });
  });
}

template <class T, class Z, class Args>
void backward(const Args& a, const norm_problem& p, const dropout_add_norm_kernels& kernels,
              core::execution& on) {
  const auto& kernel = pair_of(kernels, centered<Args>).backward;
  const terms by(a, *a.dy, p, on);
  const float* mean = nullptr;
  const velo_tensor* dbeta = nullptr;
  if constexpr (centered<Args>) mean = data<const float>(a.mean), dbeta = a.dbeta;
  const row_slices slices = slices_of_gradient(p);
  const bool sums = a.dgamma != nullptr || dbeta != nullptr, accumulate = a.accumulate != 0;
  const partial_rows gains(sums, slices, p.n, on), biases(sums && mean != nullptr, slices, p.n, on);
  const partial_rows scales(a.dlayerscale != nullptr, slices, p.n, on);
  const bool needs_x = a.dlayerscale != nullptr || a.drowscale != nullptr;
  const T* x = needs_x ? data<const T>(a.x) : nullptr;
  on.threads(slices.tasks(), [&](std::int64_t task, int thread) {
    by.each_slice(
        slices.begin(task), slices.count(task), thread,
        [&](std::int64_t first, const add_norm_terms& slice) {
          const std::int64_t at = first * p.n;
          kernel(dropout_add_norm_backward_slice<T, Z>{
              data<const T>(a.dy) + at, from(data<const Z>(a.dpre_norm), at), from(x, at),
              data<const Z>(a.pre_norm) + at, from(mean, first), data<const float>(a.rstd) + first,
              data<T>(a.dx) + at, from(data<Z>(a.dresidual), at), gains.begin(task),
              biases.begin(task), scales.begin(task), from(data<float>(a.drowscale), first),
              accumulate, slice});
        });
  });
  gains.add_to(a.dgamma, accumulate, kernels.columns, on);
  biases.add_to(dbeta, accumulate, kernels.columns, on);
  scales.add_to(a.dlayerscale, accumulate, kernels.columns, on);
}

template <class Args>
void run(const Args& a, const norm_problem& p, const dropout_add_norm_kernels& kernels,
         core::execution& on) {
  const bool wide = a.residual != nullptr   ? a.residual->dtype == f32
                    : a.pre_norm != nullptr ? a.pre_norm->dtype == f32
                                            : false;
  with_element_type(a.x->dtype, [&](auto element) {
    using T = decltype(element);
    wide ? forward<T, float>(a, p, kernels, on) : forward<T, T>(a, p, kernels, on);
  });
}

template <class Args>
void run_backward(const Args& a, const norm_problem& p, const dropout_add_norm_kernels& kernels,
                  core::execution& on) {
  with_element_type(a.dy->dtype, [&](auto element) {
    using T = decltype(element);
    a.pre_norm->dtype == f32 ? backward<T, float>(a, p, kernels, on)
                             : backward<T, T>(a, p, kernels, on);
  });
}

template <class Args>
void cost_of(const Args& a, const norm_problem&, op_cost& cost) {
  if (a.accumulate == 0) return;
  cost.bytes_read += bytes_of(a.dgamma) + bytes_of(a.drowscale) + bytes_of(a.dlayerscale);
  if constexpr (centered<Args>) cost.bytes_read += bytes_of(a.dbeta);
}

}  // namespace

extern const operator_def dropout_add_rms_norm_operator =
    define<infer<rms_args>, run<rms_args>>(dropout_add_norm_kernel_list);
extern const operator_def dropout_add_layer_norm_operator =
    define<infer<layer_args>, run<layer_args>>(dropout_add_norm_kernel_list);
extern const operator_def dropout_add_rms_norm_backward_operator =
    with_cost<cost_of<rms_backward_args>>(
        define<infer_backward<rms_backward_args>, run_backward<rms_backward_args>>(
            dropout_add_norm_kernel_list));
extern const operator_def dropout_add_layer_norm_backward_operator =
    with_cost<cost_of<layer_backward_args>>(
        define<infer_backward<layer_backward_args>, run_backward<layer_backward_args>>(
            dropout_add_norm_kernel_list));

}  // namespace velo::ops
