// unpad_strided_batch_matmul and its gradient as operators: a product for each sequence and head
// (two for the gradient), all of a call in one parallel region (ops/gemm/gemm_groups.hpp).
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/unpad/strided_matrices.hpp"
#include "velo/ops_unpad.h"

namespace velo::ops {
namespace {

struct strided_problem {
  element_type type;
  std::int64_t repeats;  // dimension 0 of tensors of rank 2
  double flops;          // of one product for each repeat, sequence and head
};

// [elements], or [repeats, elements] where the model has repeats.
struct flat_shape {
  std::int64_t sizes[2];
};
flat_shape flat(std::int64_t elements, const velo_tensor& model) {
  return {{model.ndim == 2 ? model.shape[0] : elements, elements}};
}

// Requires [elements] or [repeats, elements]; returns the number of repeats.
std::int64_t require_flat(const velo_tensor& t, const char* field, std::int64_t elements) {
  require_rank(t, field, 1, 2);
  require_shape(t, field, t.ndim, flat(elements, t).sizes);
  return t.ndim == 2 ? t.shape[0] : 1;
}

void require_beside(const velo_tensor& t, const char* field, std::int64_t elements,
                    const velo_tensor& model) {
  require_dtype(t, field, model.dtype);
  require_shape(t, field, model.ndim, flat(elements, model).sizes);
}

void set_beside(output_shapes& outputs, output_shapes::output field, std::int64_t elements,
                const velo_tensor& model) {
  outputs.set(field, model.dtype, model.ndim, flat(elements, model).sizes);
}

double flops_of(const strided_lists& lists) {
  double flops = 0;
  for (std::int64_t i = 0; i < lists.sequences(); ++i) {
    const strided_product p = lists.product(i);
    flops += 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  }
  return flops * static_cast<double>(lists.heads());
}

void infer(const velo_unpad_strided_batch_matmul_args& a, strided_problem& p,
           output_shapes& outputs) {
  const strided_lists lists(a);
  const strided_totals all = lists.require({false, false, true});
  p.type = type_of(a.a->dtype);
  p.repeats = require_flat(*a.a, "a", all.a);
  require_beside(*a.b, "b", all.b, *a.a);
  set_beside(outputs, a.c, all.c, *a.a);
  p.flops = flops_of(lists) * static_cast<double>(p.repeats);
}

void infer_backward(const velo_unpad_strided_batch_matmul_backward_args& a, strided_problem& p,
                    output_shapes& outputs) {
  const strided_lists lists(a);
  const strided_totals all = lists.require({a.da != nullptr, a.db != nullptr, false});
  p.type = type_of(a.dc->dtype);
  p.repeats = require_flat(*a.dc, "dc", all.c);
  if (a.da != nullptr) require_given(a.b, "b");
  if (a.db != nullptr) require_given(a.a, "a");
  if (a.a != nullptr) {
    require_beside(*a.a, "a", all.a, *a.dc);
    set_beside(outputs, a.db, all.b, *a.dc);
  }
  if (a.b != nullptr) {
    require_beside(*a.b, "b", all.b, *a.dc);
    set_beside(outputs, a.da, all.a, *a.dc);
  }
  p.flops = flops_of(lists) * static_cast<double>(p.repeats);
}

// ---- the products ----

// A matrix of one head.
struct head_matrix {
  char* data;
  std::int64_t ld;
  bool transposed;

  head_matrix turned() const { return {data, ld, !transposed}; }
};

// The matrix of head h in a flat tensor where those of the sequence begin at `first`.
head_matrix head(const velo_tensor* t, std::int64_t first, const strided_matrices& x,
                 std::int64_t h) {
  if (x.rows == 0 || x.columns == 0) return {data<char>(t), x.ld, x.transposed};  // any stride
  return {data<char>(t) + bytes_of(t->dtype, first + h * x.stride), x.ld, x.transposed};
}

// c[m][n] = op(a) op(b); a c that is stored transposed is the product of the transposed factors in
// the other order.
gemm_problem product_of(element_type type, const head_matrix& a, const head_matrix& b,
                        const head_matrix& c, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (c.transposed) return product_of(type, b.turned(), a.turned(), c.turned(), n, m, k);
  gemm_problem p;
  p.type = p.c_type = type;
  p.m = m, p.n = n, p.k = k;
  p.a = a.data, p.lda = a.ld, p.transpose_a = a.transposed;
  p.b = b.data, p.ldb = b.ld, p.transpose_b = b.transposed;
  p.c = c.data, p.ldc = c.ld;
  return p;
}

// Calls each(product, the first elements of a sequence in a, b and c), repeat by repeat.
template <class Each>
void for_sequences(const strided_lists& lists, std::int64_t repeats, const Each& each) {
  strided_totals first = {0, 0, 0};
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::int64_t i = 0; i < lists.sequences(); ++i) {
      const strided_product x = lists.product(i);
      each(x, first);
      first.a += lists.heads() * x.m * x.k;
      first.b += lists.heads() * x.k * x.n;
      first.c += lists.heads() * x.m * x.n;
    }
  }
}

// The number of products whose result, which is c, a or b, has elements.
std::int64_t count_products(const strided_lists& lists, std::int64_t repeats, bool c, bool a,
                            bool b) {
  std::int64_t count = 0;
  for_sequences(lists, 1, [&](const strided_product& x, const strided_totals&) {
    const int results = (c && x.m != 0 && x.n != 0 ? 1 : 0) + (a && x.m != 0 && x.k != 0 ? 1 : 0) +
                        (b && x.k != 0 && x.n != 0 ? 1 : 0);
    if (results != 0) count += results * lists.heads();
  });
  return count * repeats;
}

void run(const velo_unpad_strided_batch_matmul_args& a, const strided_problem& p,
         const gemm_kernels& kernels, core::execution& on) {
  const strided_lists lists(a);
  product_list products(count_products(lists, p.repeats, true, false, false), on.scratch);
  for_sequences(lists, p.repeats, [&](const strided_product& x, const strided_totals& first) {
    for (std::int64_t h = 0; x.m != 0 && x.n != 0 && h < lists.heads(); ++h)
      products.add(product_of(p.type, head(a.a, first.a, x.a, h), head(a.b, first.b, x.b, h),
                              head(a.c, first.c, x.c, h), x.m, x.n, x.k));
  });
  products.multiply(kernels, on);
}

void run_backward(const velo_unpad_strided_batch_matmul_backward_args& a, const strided_problem& p,
                  const gemm_kernels& kernels, core::execution& on) {
  const strided_lists lists(a);
  const bool da = a.da != nullptr, db = a.db != nullptr;
  product_list products(count_products(lists, p.repeats, false, da, db), on.scratch);
  for_sequences(lists, p.repeats, [&](const strided_product& x, const strided_totals& first) {
    for (std::int64_t h = 0; da && x.m != 0 && x.k != 0 && h < lists.heads(); ++h)
      products.add(product_of(p.type, head(a.dc, first.c, x.c, h),
                              head(a.b, first.b, x.b, h).turned(), head(a.da, first.a, x.a, h), x.m,
                              x.k, x.n));
    for (std::int64_t h = 0; db && x.k != 0 && x.n != 0 && h < lists.heads(); ++h)
      products.add(product_of(p.type, head(a.a, first.a, x.a, h).turned(),
                              head(a.dc, first.c, x.c, h), head(a.db, first.b, x.b, h), x.k, x.n,
                              x.m));
  });
  products.multiply(kernels, on);
}

template <class Args>
const char* reject(const Args&, const strided_problem& p, const kernel_entry& kernel) {
  return reject_product(kernel, p.type);
}

void cost_of(const velo_unpad_strided_batch_matmul_args& a, const strided_problem& p,
             op_cost& cost) {
  cost.multiply(p.flops, p.flops, a.a->dtype);
}
void cost_of_backward(const velo_unpad_strided_batch_matmul_backward_args& a,
                      const strided_problem& p, op_cost& cost) {
  const double flops = p.flops * ((a.da != nullptr ? 1 : 0) + (a.db != nullptr ? 1 : 0));
  cost.multiply(flops, flops, a.dc->dtype);
}

}  // namespace

extern const operator_def unpad_strided_batch_matmul_operator = with_cost<cost_of>(
    define<infer, run, reject<velo_unpad_strided_batch_matmul_args>>(gemm_kernel_list));
extern const operator_def unpad_strided_batch_matmul_backward_operator =
    with_cost<cost_of_backward>(
        define<infer_backward, run_backward, reject<velo_unpad_strided_batch_matmul_backward_args>>(
            gemm_kernel_list));

}  // namespace velo::ops
