// rms_norm_matmul and its gradient as operators: a product whose left side is normed in cache, some
// rows at a time, where the engine packs it (ops/gemm/left_operand.hpp).
//
// The rows pass through the kernels of rms_norm, so the bits are those of rms_norm and matmul; of
// the normed x there is only the copy that the engine packs, in scratch as large as x. Scaling the
// sums by rstd instead would overflow in float16 and still need gamma in the packing. The gradient
// is a product, then the gradient of rms_norm on it, then the products of the rows that are normed
// again. Cost: the products', one more read of x and, for the gradient, two writes and reads of as
// many numbers.
#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/gemm_plan.hpp"
#include "ops/matmul/product_gradients.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/norm/norm_rows.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/operator/kernels_at.hpp"

namespace velo::ops {
namespace {

weight_operand weight_of(const velo_rms_norm_matmul_args& a) {
  return {a.weight, a.packed, a.transpose_weight != 0, "weight", "transpose_weight"};
}

statistics_shape rstd_shape(const velo_tensor& x) {
  return {x, 1};
}

void require_columns_gain(const velo_tensor& gamma, const velo_tensor& x) {
  require_gain(gamma, "gamma", x);
  require_rank(gamma, "gamma", 1, 1);
}

// Rows of x as rms_norm gives them.
template <class T>
struct normed_rows {
  const norm_kernels& kernels;
  const T* x;
  const float* gamma;
  float* rstd;                  // to be written, or null
  const row_statistics* known;  // to be used, or null
  std::int64_t n;
  float epsilon;

  void write(std::int64_t first, std::int64_t count, T* to) const {
    kernels.forward(norm_slice<T>{x + first * n, gamma, nullptr, to, nullptr,
                                  rstd == nullptr ? nullptr : rstd + first, count, n, epsilon,
                                  false, known == nullptr ? nullptr : known + first});
  }
  void write_all(std::int64_t rows, T* to, core::execution& on) const {
    const row_slices slices = slice_rows(rows, n * static_cast<std::int64_t>(sizeof(T)));
    on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
      const std::int64_t first = slices.begin(task);
      write(first, slices.count(task), to + first * n);
    });
  }
};

const norm_kernels& norms_at(core::isa isa) {
  return kernels_at<norm_kernels>(rms_norm_kernel_list, isa);
}

void infer(const velo_rms_norm_matmul_args& a, gemm_problem& p, output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  require_columns_gain(*a.gamma, x);
  require_product(x, weight_of(a), a.bias, p);
  std::int64_t sizes[max_rank];
  std::copy_n(x.shape, x.ndim, sizes);
  sizes[x.ndim - 1] = p.n;
  outputs.set(a.y, x.dtype, x.ndim, sizes);
  outputs.set(a.rstd, f32, x.ndim, rstd_shape(x).sizes);
  if (a.y != nullptr) p.ldc = fold(*a.y, "y").ld;
}

// Blocks of rows, since the engine packs at most shared_a_bytes of a left side at once.
template <class T>
void multiply_normed(const gemm_problem& all, const normed_rows<T>& rows,
                     const gemm_kernels& kernels, core::execution& on) {
  struct block_rows {
    const normed_rows<T>& of;
    std::int64_t first;
  };
  const std::int64_t most = shared_a_bytes / (4 * std::max<std::int64_t>(all.k, 1));
  const std::int64_t step = std::max(most / source_rows * source_rows, source_rows);
  for (std::int64_t first = 0; first < all.m; first += step) {
    const block_rows block{rows, first};
    gemm_problem p = all;
    p.m = std::min(step, all.m - first);
    p.c = static_cast<T*>(all.c) + first * all.ldc;
    p.rows_of_a = {[](const void* self, std::int64_t row, std::int64_t count, void* to) {
                     const auto& own = *static_cast<const block_rows*>(self);
                     own.of.write(own.first + row, count, static_cast<T*>(to));
                   },
                   &block};
    const core::scratch_scope scope(on.scratch);
    multiply(p, kernels, on);
  }
}

template <class T>
void run_typed(const velo_rms_norm_matmul_args& a, gemm_problem p, const gemm_kernels& kernels,
               core::execution& on) {
  const normed_rows<T> rows{norms_at(kernels.isa),
                            data<const T>(a.x),
                            widened(*a.gamma, on),
                            data<float>(a.rstd),
                            nullptr,
                            p.k,
                            static_cast<float>(a.epsilon)};
  // A product without columns reads no rows of A, but rstd has to be written.
  if (!kernels.plain() && p.n != 0) return multiply_normed(p, rows, kernels, on);
  T* normed = on.scratch.take<T>(static_cast<std::size_t>(p.m * p.k));
  rows.write_all(p.m, normed, on);
  p.a = normed;
  multiply(p, kernels, on);
}

void run(const velo_rms_norm_matmul_args& a, const gemm_problem& problem,
         const gemm_kernels& kernels, core::execution& on) {
  gemm_problem p = problem;
  p.b = data<const void>(a.weight), p.c = data<void>(a.y), p.lda = p.k;
  p.epilogue.bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  const weight_in_use weight(weight_of(a));
  p.packed_b = weight.matrix();
  with_element_type(a.x->dtype, [&](auto t) { run_typed<decltype(t)>(a, p, kernels, on); });
}

const char* reject(const velo_rms_norm_matmul_args& a, const gemm_problem& p,
                   const kernel_entry& kernel) {
  if (const char* why = reject_product(kernel, p.type)) return why;
  return weight_of(a).reject(kernel);
}

void cost_of(const velo_rms_norm_matmul_args& a, const gemm_problem& p, op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p), a.x->dtype);
  cost.bytes_read += weight_of(a).packed_bytes(a.x->dtype, 1, p.k, p.n);
}

// ---- the gradient ----

void infer_backward(const velo_rms_norm_matmul_backward_args& a, product_gradients& p,
                    output_shapes& outputs) {
  const velo_tensor &x = *a.x, &dy = *a.dy;
  require_columns_gain(*a.gamma, x);
  require_rank(x, "x", 2);
  require_rank(dy, "dy", x.ndim, x.ndim);
  require_dtype(dy, "dy", x.dtype);
  require_shape(*a.rstd, "rstd", x.ndim, rstd_shape(x).sizes);
  if (a.dgamma != nullptr) require_given(a.weight, "weight");
  p.transpose_a = false, p.transpose_b = a.transpose_weight != 0;
  infer_gradients({dy.ndim, dy.shape, dy.dtype, fold(dy, "dy").ld}, {a.x, a.dx, "x", "dx"},
                  {a.weight, a.dweight, "weight", "dweight"}, product_dtype(a, dy.dtype), p,
                  outputs);
  require_below_2_31(std::max({p.m, p.n, p.k}), "dy");
  if (a.weight != nullptr) outputs.like(a.dgamma, *a.gamma, f32);
  outputs.set(a.dbias, f32, 1, &p.n);
  p.lda = p.ld_da = p.k;  // both are made in scratch
}

// The fields of rms_norm_backward that its run reads.
struct norm_call {
  const velo_tensor *dy, *x, *rstd, *dx, *dgamma;
  std::int64_t accumulate;
};

template <class T>
void run_backward_typed(const velo_rms_norm_matmul_backward_args& a, const product_gradients& p,
                        const gemm_kernels& kernels, core::execution& on) {
  const norm_kernels& norms = norms_at(kernels.isa);
  const float* gamma = widened(*a.gamma, on);
  T* rows = on.scratch.take<T>(static_cast<std::size_t>(p.m * p.k));
  const auto *dy = data<const void>(a.dy), *weight = data<const void>(a.weight);
  if (a.dx != nullptr || a.dgamma != nullptr) {
    multiply_gradients(p, {dy, nullptr, weight, rows, nullptr, nullptr, false}, kernels, on);
    velo_tensor gradient = *a.x;
    gradient.data = rows, gradient.byte_offset = 0;
    const velo_tensor* dx = a.dx != nullptr ? a.dx : &gradient;
    const norm_call call{&gradient, a.x, a.rstd, dx, a.dgamma, a.accumulate};
    normalize_backward<T>(call, {p.m, p.k, 1}, gamma, nullptr, nullptr, norms, on);
  }
  if (a.dweight != nullptr) {
    auto* known = on.scratch.take<row_statistics>(static_cast<std::size_t>(p.m));
    for (std::int64_t r = 0; r < p.m; ++r) known[r] = {0, double{data<const float>(a.rstd)[r]}};
    const normed_rows<T> again{norms, data<const T>(a.x), gamma, nullptr, known, p.k, 0};
    again.write_all(p.m, rows, on);
  }
  multiply_gradients(
      p,
      {dy, rows, weight, nullptr, data<void>(a.dweight), data<float>(a.dbias), a.accumulate != 0},
      kernels, on);
}

void run_backward(const velo_rms_norm_matmul_backward_args& a, const product_gradients& p,
                  const gemm_kernels& kernels, core::execution& on) {
  with_element_type(a.x->dtype,
                    [&](auto t) { run_backward_typed<decltype(t)>(a, p, kernels, on); });
}

const char* reject_backward(const velo_rms_norm_matmul_backward_args&, const product_gradients& p,
                            const kernel_entry& kernel) {
  return reject_product(kernel, p.type);
}

void cost_of_backward(const velo_rms_norm_matmul_backward_args& a, const product_gradients& p,
                      op_cost& cost) {
  const int products =
      (a.dx != nullptr || a.dgamma != nullptr ? 1 : 0) + (a.dweight != nullptr ? 1 : 0);
  cost.multiply(p.flops(products), p.flops(products), a.x->dtype);
  if (a.accumulate != 0)
    cost.bytes_read += bytes_of(a.dgamma) + bytes_of(a.dweight) + bytes_of(a.dbias);
}

}  // namespace

extern const operator_def rms_norm_matmul_operator =
    with_cost<cost_of>(define<infer, run, reject>(gemm_kernel_list));
extern const operator_def rms_norm_matmul_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, run_backward, reject_backward>(gemm_kernel_list));

}  // namespace velo::ops
