// matmul and matmul_add_fp32 as operators: shapes, strides, and which form of the engine serves.
//
// Leading dimensions of `a` fold into its rows; what cannot fold is refused. matmul_add_fp32 is the
// engine's product with a turned A that adds to a float32 C.
#include <algorithm>
#include <iterator>

#include "core/simd/scalar.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/gemm_plan.hpp"
#include "ops/matmul/pack.hpp"
#include "ops/operator/definition.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

using core::fail;
using core::isa;
using core::text;

element_type type_of(const velo_tensor& t) {
  return t.dtype == f32 ? element_type::f32 : element_type::bf16;
}

// A tensor as a matrix: all dimensions but the last folded into rows.
struct folded {
  std::int64_t rows = 1, columns = 0;
  std::int64_t ld = 0;  // elements between rows
};

[[noreturn]] void refuse_strides(const velo_tensor& t, const char* field, const char* wanted) {
  fail(VELO_ERR_LAYOUT, text("args.%s.strides", field), wanted, shape_name(t.ndim, t.strides));
}

// Strides of dimensions with one element or none say nothing, so they are not looked at.
folded fold(const velo_tensor& t, const char* field) {
  folded f;
  const int last = t.ndim - 1;
  f.columns = t.shape[last];
  f.rows = row_count(t);
  f.ld = f.columns;
  if (t.strides == nullptr || numel(t) == 0) return f;
  if (f.columns > 1 && t.strides[last] != 1) {
    refuse_strides(t, field, "unit stride in the last dimension");
  }
  std::int64_t span = 0;  // elements that the dimensions inside the present one step over
  for (int d = last - 1; d >= 0; --d) {
    if (t.shape[d] == 1) continue;
    if (span == 0) {
      f.ld = t.strides[d];
    } else if (t.strides[d] != span) {
      refuse_strides(t, field, "leading dimensions that fold into rows at one distance");
    }
    span = t.strides[d] * t.shape[d];
    if (f.ld == 0) refuse_strides(t, field, "rows at a distance from each other");
  }
  return f;
}

struct sizes {
  std::int64_t m, n, k;
};

const packed_matrix& matrix_of(velo_pack pack) {
  return core::resolve<weight_pack>(pack, "args.packed").matrix();
}

// Returns the distance of the weight's rows; 0 for a pack.
std::int64_t check_weight(const velo_matmul_args& a, std::int64_t k) {
  if (a.packed != nullptr) {
    const packed_matrix& pack = matrix_of(a.packed);
    if (a.b != nullptr) fail(VELO_ERR_ARGUMENT, "args.b", "NULL beside packed", "a tensor");
    if (a.transpose_b != 0) {
      fail(VELO_ERR_ARGUMENT, "args.transpose_b", "0 beside packed", "1");
    }
    if (pack.type() != type_of(*a.a)) {
      fail(VELO_ERR_DTYPE, "args.packed", text("a pack of %s", dtype_name(a.a->dtype).buffer),
           pack.type() == element_type::f32 ? "one of float32" : "one of bfloat16");
    }
    if (pack.k() != k) {
      fail(VELO_ERR_SHAPE, "args.packed", text("a pack of %lld rows", static_cast<long long>(k)),
           text("one of %lld", static_cast<long long>(pack.k())));
    }
    return 0;
  }
  if (a.b == nullptr) fail(VELO_ERR_NULL, "args.b", "a tensor, or packed", "NULL");
  require_rank(*a.b, "b", 2, 2);
  require_dtype(*a.b, "b", a.a->dtype);
  const std::int64_t n = a.b->shape[a.transpose_b != 0 ? 0 : 1];
  const std::int64_t wanted[] = {a.transpose_b != 0 ? n : k, a.transpose_b != 0 ? k : n};
  require_shape(*a.b, "b", 2, wanted);
  return fold(*a.b, "b").ld;
}

sizes sizes_of(const velo_matmul_args& a) {
  const bool turned = a.transpose_a != 0;
  const std::int64_t rows = row_count(*a.a), columns = a.a->shape[a.a->ndim - 1];
  const std::int64_t n =
      a.packed != nullptr ? matrix_of(a.packed).n() : a.b->shape[a.transpose_b != 0 ? 0 : 1];
  return {turned ? columns : rows, n, turned ? rows : columns};
}

void require_below_2_31(std::int64_t size, const char* field) {
  if (size < (std::int64_t{1} << 31)) return;
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field), "sizes below 2^31",
       text("%lld", static_cast<long long>(size)));
}

// Everything of the product but where its elements lie and its bias.
struct matmul_problem {
  gemm_problem product;
};

void infer(const velo_matmul_args& a, matmul_problem& problem, output_shapes& outputs) {
  require_rank(*a.a, "a", 2, a.transpose_a != 0 ? 2 : max_rank);
  gemm_problem& p = problem.product;
  p.lda = fold(*a.a, "a").ld;
  p.ldb = check_weight(a, a.transpose_a != 0 ? a.a->shape[0] : a.a->shape[a.a->ndim - 1]);
  const sizes s = sizes_of(a);
  require_below_2_31(std::max(s.n, s.k), a.packed != nullptr ? "a" : "b");
  if (a.bias != nullptr) {
    require_shape(*a.bias, "bias", 1, &s.n);
    if (!(a.bias->dtype == f32)) require_dtype(*a.bias, "bias", a.a->dtype);
  }
  std::int64_t shape[max_rank];
  for (int i = 0; i < a.a->ndim; ++i) shape[i] = a.a->shape[i];
  if (a.transpose_a != 0) shape[0] = s.m;
  shape[a.a->ndim - 1] = s.n;
  p.m = s.m, p.n = s.n, p.k = s.k, p.type = type_of(*a.a);
  p.turn_a = a.transpose_a != 0, p.turn_b = a.transpose_b != 0;
  p.accumulate = a.accumulate != 0;
  outputs.set(a.c, a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.a->dtype, a.a->ndim, shape);
  if (a.c != nullptr && a.c->ndim >= 1) {
    const folded c = fold(*a.c, "c");
    if (c.rows > 1 && c.columns > 0 && c.ld < c.columns) {
      refuse_strides(*a.c, "c", "rows that do not overlap");
    }
    p.ldc = c.ld, p.c_type = type_of(*a.c);
  }
}

// grad[n][k] += grad_output[t][n]^T * total_input[t][k]: the tokens are the depth.
void infer_add(const velo_matmul_add_fp32_args& a, matmul_problem& problem,
               output_shapes& outputs) {
  const velo_tensor &x = *a.total_input, &dy = *a.grad_output;
  require_rank(x, "total_input", 2);
  require_rank(dy, "grad_output", x.ndim, x.ndim);
  require_dtype(dy, "grad_output", x.dtype);
  std::int64_t wanted[max_rank];
  for (int i = 0; i < x.ndim; ++i) wanted[i] = x.shape[i];
  wanted[x.ndim - 1] = dy.shape[x.ndim - 1];
  require_shape(dy, "grad_output", x.ndim, wanted);
  const std::int64_t shape[] = {dy.shape[dy.ndim - 1], x.shape[x.ndim - 1]};
  require_below_2_31(std::max(row_count(x), shape[1]), "total_input");
  outputs.set(a.grad, f32, 2, shape);
  gemm_problem& p = problem.product;
  p.m = shape[0], p.n = shape[1], p.k = row_count(x);
  p.type = type_of(x);
  p.lda = p.m, p.turn_a = true;
  p.ldb = p.n, p.ldc = p.n;
  p.accumulate = true;
}

// bias as float32: itself, or a widened copy in scratch.
const float* bias_of(const velo_tensor* bias, core::execution& on) {
  if (bias == nullptr || bias->dtype == f32) return data<const float>(bias);
  const std::int64_t n = numel(*bias);
  auto* wide = on.scratch.take<float>(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) wide[i] = simd::to_float(data<const simd::bf16>(bias)[i]);
  return wide;
}

gemm_problem placed(const velo_matmul_args& a, const matmul_problem& problem, core::execution& on) {
  gemm_problem p = problem.product;
  p.a = data<const void>(a.a), p.b = data<const void>(a.b), p.c = data<void>(a.c);
  p.bias = bias_of(a.bias, on);
  return p;
}

gemm_problem placed(const velo_matmul_add_fp32_args& a, const matmul_problem& problem,
                    core::execution&) {
  gemm_problem p = problem.product;
  p.a = data<const void>(a.grad_output), p.b = data<const void>(a.total_input);
  p.c = data<void>(a.grad);
  return p;
}

const packed_matrix* pack_of(const velo_matmul_args& a) {
  return a.packed == nullptr ? nullptr : &matrix_of(a.packed);
}
const packed_matrix* pack_of(const velo_matmul_add_fp32_args&) {
  return nullptr;
}

// How a candidate multiplies: by the engine on one ISA, or in plain loops.
struct matmul_kernels {
  isa on;
  bool plain;
};

// The ISA the engine runs at for a candidate. float32 products are the same from avx512 up, and
// may know of the larger caches above.
isa isa_for(isa candidate, bool f32_inputs, isa highest) {
  return f32_inputs && candidate >= isa::avx512 ? highest : std::min(candidate, highest);
}

template <class Args>
void run(const Args& a, const matmul_problem& problem, const matmul_kernels& kernels,
         core::execution& on) {
  const gemm_problem p = placed(a, problem, on);
  const packed_matrix* pack = pack_of(a);
  if (kernels.plain) return reference::gemm(p, pack, on.threads);
  const core::isa isa = isa_for(kernels.on, p.type == element_type::f32, on.isa);
  void* scratch =
      on.scratch.take(gemm_scratch_bytes(p, pack != nullptr, on.threads.threads(), isa));
  gemm(p, pack, on.threads, scratch, isa);
}

template <class Args>
const char* reject(const Args& a, const matmul_problem& problem, const kernel_entry& kernel) {
  if (static_cast<const matmul_kernels*>(kernel.kernels)->plain) return nullptr;
  if (problem.product.type == element_type::f32 && kernel.isa > isa::avx512)
    return "float32 products gain nothing over avx512";
  if (kernel.isa == isa::avx512_bf16 && !dot_product_pays())
    return "the bfloat16 dot product is slower than float32 on this processor";
  const packed_matrix* pack = pack_of(a);
  if (pack != nullptr && !pack->serves(kernel.isa))
    return "the pack has the form of another instruction set";
  return nullptr;
}

constexpr matmul_kernels engines[] = {{isa::amx, false},    {isa::avx512_bf16, false},
                                      {isa::avx512, false}, {isa::avx2, false},
                                      {isa::scalar, false}, {isa::scalar, true}};
constexpr kernel_entry entries[] = {
    {"amx", isa::amx, &engines[0]},       {"avx512_bf16", isa::avx512_bf16, &engines[1]},
    {"avx512", isa::avx512, &engines[2]}, {"avx2", isa::avx2, &engines[3]},
    {"scalar", isa::scalar, &engines[4]}, {"reference", isa::scalar, &engines[5]},
};
constexpr kernel_list kernels = {entries, static_cast<int>(std::size(entries))};

}  // namespace

extern const operator_def matmul_operator =
    define<infer, run<velo_matmul_args>, reject<velo_matmul_args>>(kernels);
extern const operator_def matmul_add_fp32_operator =
    define<infer_add, run<velo_matmul_add_fp32_args>, reject<velo_matmul_add_fp32_args>>(kernels);

}  // namespace velo::ops
