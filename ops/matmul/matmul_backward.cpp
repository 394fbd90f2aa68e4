// matmul_backward and matmul_add_backward as operators: the gradients of both factors and of the
// bias, each a product, and of a bias or a residual that was broadcast.
//
// product_gradients.hpp has the products; a gradient that is a sum over what was broadcast is made
// here, in double. Cost: the products', and for such a gradient a read of dc.
#include <algorithm>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/broadcast.hpp"
#include "ops/matmul/product_gradients.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

struct backward_problem {
  product_gradients products;
  broadcast added;   // of the bias or the residual
  bool bias_is_row;  // whose gradient is a product, too
};

// What matmul_backward has and matmul_add_backward has not.
bool accumulates(const velo_matmul_backward_args& a) {
  return a.accumulate != 0;
}
bool accumulates(const velo_matmul_add_backward_args&) {
  return false;
}
velo_dtype dtype_of_db(const velo_matmul_backward_args& a) {
  return product_dtype(a, a.dc->dtype);
}
velo_dtype dtype_of_db(const velo_matmul_add_backward_args& a) {
  return a.dc->dtype;
}

void infer_added(const velo_matmul_backward_args& a, backward_problem& p, output_shapes& outputs) {
  p.bias_is_row = a.bias == nullptr;
  if (a.bias == nullptr) return outputs.set(a.dbias, f32, 1, &p.products.n);
  require_f32_or(*a.bias, "bias", a.dc->dtype);
  p.added = require_broadcast(*a.bias, "bias", a.dc->ndim, a.dc->shape);
  p.bias_is_row = is_row(*a.bias, p.products.n);
  outputs.like(a.dbias, *a.bias, f32);
}
void infer_added(const velo_matmul_add_backward_args& a, backward_problem& p,
                 output_shapes& outputs) {
  p.bias_is_row = true;
  outputs.set(a.dbias, f32, 1, &p.products.n);
  if (a.dadd != nullptr) require_given(a.add, "add");
  if (a.add == nullptr) return;
  require_dtype(*a.add, "add", a.dc->dtype);
  p.added = require_broadcast(*a.add, "add", a.dc->ndim, a.dc->shape);
  outputs.like(a.dadd, *a.add);
}

template <class Args>
void infer(const Args& a, backward_problem& p, output_shapes& outputs) {
  product_gradients& all = p.products;
  all.transpose_a = a.transpose_a != 0, all.transpose_b = a.transpose_b != 0;
  require_rank(*a.dc, "dc", 2, all.transpose_a ? 2 : max_rank);
  const result_gradient dc{a.dc->ndim, a.dc->shape, a.dc->dtype, fold(*a.dc, "dc").ld};
  infer_gradients(dc, {a.a, a.da, "a", "da"}, {a.b, a.db, "b", "db"}, dtype_of_db(a), all, outputs);
  require_below_2_31(std::max({all.m, all.n, all.k}), "dc");
  infer_added(a, p, outputs);
}

// The gradient of what was added: the sum of dc over what was broadcast, as an Out.
template <class T, class Out>
class broadcast_sum {
 public:
  broadcast_sum(const velo_tensor& dc, const backward_problem& p, const velo_tensor& sum,
                bool accumulate)
      : dc_(data<const T>(&dc)),
        p_(p),
        sum_(data<Out>(&sum)),
        count_(numel(sum)),
        accumulate_(accumulate) {}

  // Tasks are parts of the columns, so no sum depends on their number; of one column, which they
  // would share, there is one task.
  void run(core::execution& on) const {
    constexpr std::int64_t task_columns = 256;
    const std::int64_t m = p_.products.m, n = p_.products.n;
    if (count_ == m * n) {
      return on.threads(m, [&](std::int64_t i, int) {
        for (std::int64_t j = 0; j < n; ++j)
          set(i * n + j, static_cast<double>(simd::to_float(row(i)[j])));
      });
    }
    auto* sums = on.scratch.take<double>(static_cast<std::size_t>(count_));
    std::fill(sums, sums + count_, 0.0);
    const std::int64_t step = p_.added.one_column ? n : task_columns;
    on.threads(core::ceil_div(n, std::max<std::int64_t>(step, 1)), [&](std::int64_t task, int) {
      add_columns(task * step, std::min((task + 1) * step, n), sums);
    });
    for (std::int64_t i = 0; i < count_; ++i) set(i, sums[i]);
  }

 private:
  const T* row(std::int64_t i) const { return dc_ + i * p_.products.ldc; }
  void set(std::int64_t i, double sum) const {
    simd::assign(sum_[i], sum + (accumulate_ ? static_cast<double>(simd::to_float(sum_[i])) : 0));
  }
  // Sums columns [first, end) of dc over the rows that shared one, or all of them where there is
  // one column, in double.
  void add_columns(std::int64_t first, std::int64_t end, double* sums) const {
    for (std::int64_t i = 0; i < p_.products.m; ++i) {
      double* to = sums + p_.added.row(i);
      for (std::int64_t j = first; j < end; ++j)
        to[p_.added.one_column ? 0 : j] += static_cast<double>(simd::to_float(row(i)[j]));
    }
  }

  const T* dc_;
  const backward_problem& p_;
  Out* sum_;
  std::int64_t count_;
  bool accumulate_;
};

void sum_added(const velo_matmul_backward_args& a, const backward_problem& p, core::execution& on) {
  if (p.bias_is_row || a.dbias == nullptr) return;
  with_element_type(a.dc->dtype, [&](auto t) {
    broadcast_sum<decltype(t), float>(*a.dc, p, *a.dbias, a.accumulate != 0).run(on);
  });
}
void sum_added(const velo_matmul_add_backward_args& a, const backward_problem& p,
               core::execution& on) {
  if (a.dadd == nullptr) return;
  with_element_type(a.dc->dtype, [&](auto t) {
    broadcast_sum<decltype(t), decltype(t)>(*a.dc, p, *a.dadd, false).run(on);
  });
}

template <class Args>
void run(const Args& a, const backward_problem& p, const gemm_kernels& kernels,
         core::execution& on) {
  multiply_gradients(
      p.products,
      {data<const void>(a.dc), data<const void>(a.a), data<const void>(a.b), data<void>(a.da),
       data<void>(a.db), p.bias_is_row ? data<float>(a.dbias) : nullptr, accumulates(a)},
      kernels, on);
  sum_added(a, p, on);
}

template <class Args>
const char* reject(const Args&, const backward_problem& p, const kernel_entry& kernel) {
  return reject_product(kernel, p.products.type);
}

template <class Args>
void cost_of(const Args& a, const backward_problem& p, op_cost& cost) {
  const int products = (a.da != nullptr ? 1 : 0) + (a.db != nullptr ? 1 : 0);
  const double flops = p.products.flops(products);
  cost.multiply(flops, flops, a.dc->dtype);
  if (accumulates(a)) cost.bytes_read += bytes_of(a.db) + bytes_of(a.dbias);
}

}  // namespace

template <class Args>
constexpr operator_def definition =
    with_cost<cost_of<Args>>(define<infer<Args>, run<Args>, reject<Args>>(gemm_kernel_list));

extern const operator_def matmul_backward_operator = definition<velo_matmul_backward_args>;
extern const operator_def matmul_add_backward_operator = definition<velo_matmul_add_backward_args>;

}  // namespace velo::ops
