// matmul_swiglu and its gradient as operators: gate and factor of a gated layer in one product,
// which the engine gates while their sums are in cache (ops/gemm/epilogue.hpp).
//
// The forward call writes h, the sums before the gate, only if asked. The gradient takes h or
// computes it again, makes dh of it, and multiplies dh as any product's gradient
// (product_gradients.hpp). Cost: the products, one more for an h computed again, and for the
// gradient a write and a read of dh.
#include <algorithm>

#include "ops/activation/gated.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/product_gradients.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/kernels_at.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"

namespace velo::ops {
namespace {

using core::fail;

template <class Args>
weight_operand weight_of(const Args& a) {
  return {a.weight, a.packed, a.transpose_weight != 0, "weight", "transpose_weight"};
}
weight_operand weight_of(const velo_matmul_swiglu_backward_args& a) {
  return {a.weight, nullptr, a.transpose_weight != 0, "weight", "transpose_weight"};
}

// The product of x and the weight: its p.n columns are two halves.
template <class Args>
void infer_product(const Args& a, gemm_problem& p) {
  require_product(*a.x, weight_of(a), a.bias, p);
  if (p.n % 2 != 0)
    fail(VELO_ERR_SHAPE, a.weight != nullptr ? "args.weight.shape" : "args.packed",
         "an even number of columns, of a gate and its factor", core::number(p.n));
}

void infer(const velo_matmul_swiglu_args& a, gemm_problem& p, output_shapes& outputs) {
  infer_product(a, p);
  // The halves of a pack must begin at whole panels of every kernel: 96 is the least common
  // multiple of their widths, 32 and 48.
  constexpr std::int64_t panels = 96;
  if (a.packed != nullptr && p.n / 2 % panels != 0)
    fail(VELO_ERR_SHAPE, "args.packed",
         core::concat("two halves, each of a multiple of ", panels, " columns"),
         core::concat("halves of ", p.n / 2));
  std::int64_t sizes[max_rank];
  std::copy_n(a.x->shape, a.x->ndim, sizes);
  sizes[a.x->ndim - 1] = p.n;
  outputs.set(a.h, a.x->dtype, a.x->ndim, sizes);
  sizes[a.x->ndim - 1] = p.n / 2;
  outputs.set(a.y, a.x->dtype, a.x->ndim, sizes);
  if (a.y != nullptr) p.ldc = fold(*a.y, "y").ld;
  if (a.h != nullptr) p.epilogue.gate.ld_before = fold(*a.h, "h").ld;
}

void run(const velo_matmul_swiglu_args& a, const gemm_problem& problem, const gemm_kernels& kernels,
         core::execution& on) {
  gemm_problem p = problem;
  p.a = data<const void>(a.x), p.b = data<const void>(a.weight), p.c = data<void>(a.y);
  p.epilogue.bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  p.epilogue.gate.before = data<void>(a.h);
  p.epilogue.gate.finish = kernels_at<gated_kernels>(gated_kernel_list, kernels.isa)
                               .silu_sums[static_cast<int>(p.c_type)];
  const weight_in_use weight(weight_of(a));
  p.packed_b = weight.matrix();
  multiply(p, kernels, on);
}

const char* reject(const velo_matmul_swiglu_args& a, const gemm_problem& p,
                   const kernel_entry& kernel) {
  if (const char* why = reject_product(kernel, p.type)) return why;
  return weight_of(a).reject(kernel);
}

void cost_of(const velo_matmul_swiglu_args& a, const gemm_problem& p, op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p), a.x->dtype);
  cost.bytes_read += weight_of(a).packed_bytes(a.x->dtype, 1, p.k, p.n);
}

// ---- the gradient ----

struct backward_problem {
  product_gradients products;
  gemm_problem again;  // of h, where it is not given
};

void infer_backward(const velo_matmul_swiglu_backward_args& a, backward_problem& p,
                    output_shapes& outputs) {
  const velo_tensor& dy = *a.dy;
  require_rank(dy, "dy", 2);
  std::int64_t sizes[max_rank];
  std::copy_n(dy.shape, dy.ndim, sizes);
  require_below_2_31(sizes[dy.ndim - 1], "dy");
  const std::int64_t n = 2 * sizes[dy.ndim - 1];
  require_below_2_31(n, "dy");
  sizes[dy.ndim - 1] = n;
  if (a.h != nullptr) {
    require_dtype(*a.h, "h", dy.dtype);
    require_shape(*a.h, "h", dy.ndim, sizes);
    if (a.bias != nullptr) {
      require_shape(*a.bias, "bias", 1, &n);
      require_f32_or(*a.bias, "bias", dy.dtype);
    }
  } else {
    require_given(a.x, "x");
    require_given(a.weight, "weight");
  }
  p.products.transpose_a = false, p.products.transpose_b = a.transpose_weight != 0;
  infer_gradients({dy.ndim, sizes, dy.dtype, n}, {a.x, a.dx, "x", "dx"},
                  {a.weight, a.dweight, "weight", "dweight"}, product_dtype(a, dy.dtype),
                  p.products, outputs);
  require_below_2_31(std::max(p.products.m, p.products.k), "dy");
  outputs.set(a.dbias, f32, 1, &n);
  if (a.h == nullptr) infer_product(a, p.again);
}

// h as given, or computed again into `scratch`.
template <class T>
const T* before_gate(const velo_matmul_swiglu_backward_args& a, const backward_problem& p,
                     T* scratch, const gemm_kernels& kernels, core::execution& on) {
  if (a.h != nullptr) return data<const T>(a.h);
  gemm_problem again = p.again;
  again.a = data<const void>(a.x), again.b = data<const void>(a.weight);
  again.c = scratch, again.ldc = again.n;
  again.epilogue.bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  multiply(again, kernels, on);
  return scratch;
}

template <class T>
void run_typed(const velo_matmul_swiglu_backward_args& a, const backward_problem& p,
               const gemm_kernels& kernels, core::execution& on) {
  const std::int64_t m = p.products.m, n = p.products.n, half = n / 2;
  T* dh = on.scratch.take<T>(static_cast<std::size_t>(m * n));
  const T* h = before_gate<T>(a, p, dh, kernels, on);
  const auto& gates = kernels_at<gated_kernels>(gated_kernel_list, kernels.isa);
  const row_slices slices = slice_rows(m, n * static_cast<std::int64_t>(sizeof(T)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    for (std::int64_t r = slices.begin(task), end = r + slices.count(task); r < end; ++r) {
      const T* gate = h + r * n;
      T* to = dh + r * n;
      gates.backward[silu](gated_backward_slice<T>{data<const T>(a.dy) + r * half, gate,
                                                   gate + half, to, to + half, half, false});
    }
  });
  multiply_gradients(p.products,
                     {dh, data<const void>(a.x), data<const void>(a.weight), data<void>(a.dx),
                      data<void>(a.dweight), data<float>(a.dbias), a.accumulate != 0},
                     kernels, on);
}

void run_backward(const velo_matmul_swiglu_backward_args& a, const backward_problem& p,
                  const gemm_kernels& kernels, core::execution& on) {
  with_element_type(a.dy->dtype, [&](auto t) { run_typed<decltype(t)>(a, p, kernels, on); });
}

const char* reject_backward(const velo_matmul_swiglu_backward_args&, const backward_problem& p,
                            const kernel_entry& kernel) {
  return reject_product(kernel, p.products.type);
}

void cost_of_backward(const velo_matmul_swiglu_backward_args& a, const backward_problem& p,
                      op_cost& cost) {
  const int products =
      (a.dx != nullptr ? 1 : 0) + (a.dweight != nullptr ? 1 : 0) + (a.h == nullptr ? 1 : 0);
  cost.multiply(p.products.flops(products), p.products.flops(products), a.dy->dtype);
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.dweight) + bytes_of(a.dbias);
}

}  // namespace

extern const operator_def matmul_swiglu_operator =
    with_cost<cost_of>(define<infer, run, reject>(gemm_kernel_list));
extern const operator_def matmul_swiglu_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, run_backward, reject_backward>(gemm_kernel_list));

}  // namespace velo::ops
