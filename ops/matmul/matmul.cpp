// matmul and matmul_add_fp32 as operators: shapes, strides, and which form of the engine serves.
//
// Leading dimensions of `a` fold into its rows; what cannot fold is refused. matmul_add_fp32 is the
// engine's product with a turned A that adds to a float32 C.
#include <algorithm>

#include "core/simd/scalar.hpp"
#include "ops/gemm/block_kernels.hpp"
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

block_type type_of(const velo_tensor& t) {
  return t.dtype == f32 ? block_type::f32 : block_type::bf16;
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

void check_weight(const velo_matmul_args& a, std::int64_t k) {
  if (a.packed != nullptr) {
    const packed_matrix& pack = matrix_of(a.packed);
    if (a.b != nullptr) fail(VELO_ERR_ARGUMENT, "args.b", "NULL beside packed", "a tensor");
    if (a.transpose_b != 0) {
      fail(VELO_ERR_ARGUMENT, "args.transpose_b", "0 beside packed", "1");
    }
    if (pack.type() != type_of(*a.a)) {
      fail(VELO_ERR_DTYPE, "args.packed", text("a pack of %s", dtype_name(a.a->dtype).buffer),
           pack.type() == block_type::f32 ? "one of float32" : "one of bfloat16");
    }
    if (pack.k() != k) {
      fail(VELO_ERR_SHAPE, "args.packed", text("a pack of %lld rows", static_cast<long long>(k)),
           text("one of %lld", static_cast<long long>(pack.k())));
    }
    return;
  }
  if (a.b == nullptr) fail(VELO_ERR_NULL, "args.b", "a tensor, or packed", "NULL");
  require_rank(*a.b, "b", 2, 2);
  require_dtype(*a.b, "b", a.a->dtype);
  const std::int64_t n = a.b->shape[a.transpose_b != 0 ? 0 : 1];
  const std::int64_t wanted[] = {a.transpose_b != 0 ? n : k, a.transpose_b != 0 ? k : n};
  require_shape(*a.b, "b", 2, wanted);
  fold(*a.b, "b");
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

void infer(const velo_matmul_args& a, output_shapes& outputs) {
  require_rank(*a.a, "a", 2, a.transpose_a != 0 ? 2 : max_rank);
  fold(*a.a, "a");
  check_weight(a, a.transpose_a != 0 ? a.a->shape[0] : a.a->shape[a.a->ndim - 1]);
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
  outputs.set("c", a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.a->dtype, a.a->ndim, shape);
  if (a.c != nullptr && a.c->ndim >= 1) {
    const folded c = fold(*a.c, "c");
    if (c.rows > 1 && c.columns > 0 && c.ld < c.columns) {
      refuse_strides(*a.c, "c", "rows that do not overlap");
    }
  }
}

void infer_add(const velo_matmul_add_fp32_args& a, output_shapes& outputs) {
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
  outputs.set("grad", f32, 2, shape);
}

// bias as float32: itself, or a widened copy in scratch.
const float* bias_of(const velo_tensor* bias, core::execution& on) {
  if (bias == nullptr || bias->dtype == f32) return data<const float>(bias);
  const std::int64_t n = numel(*bias);
  auto* wide = on.scratch.take<float>(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) wide[i] = simd::to_float(data<const simd::bf16>(bias)[i]);
  return wide;
}

gemm_problem problem_of(const velo_matmul_args& a, core::execution& on) {
  const sizes s = sizes_of(a);
  gemm_problem p;
  p.m = s.m, p.n = s.n, p.k = s.k, p.type = type_of(*a.a);
  p.a = data<const void>(a.a), p.lda = fold(*a.a, "a").ld, p.turn_a = a.transpose_a != 0;
  if (a.b != nullptr) {
    p.b = data<const void>(a.b), p.ldb = fold(*a.b, "b").ld, p.turn_b = a.transpose_b != 0;
  }
  p.c = data<void>(a.c), p.ldc = fold(*a.c, "c").ld, p.c_type = type_of(*a.c);
  p.bias = bias_of(a.bias, on), p.accumulate = a.accumulate != 0;
  return p;
}

// grad[n][k] += grad_output[t][n]^T * total_input[t][k]: the tokens are the depth.
gemm_problem problem_of(const velo_matmul_add_fp32_args& a, core::execution&) {
  gemm_problem p;
  p.m = a.grad->shape[0], p.n = a.grad->shape[1], p.k = row_count(*a.total_input);
  p.type = type_of(*a.total_input);
  p.a = data<const void>(a.grad_output), p.lda = p.m, p.turn_a = true;
  p.b = data<const void>(a.total_input), p.ldb = p.n;
  p.c = data<void>(a.grad), p.ldc = p.n;
  p.accumulate = true;
  return p;
}

velo_pack pack_of(const velo_matmul_args& a) {
  return a.packed;
}
velo_pack pack_of(const velo_matmul_add_fp32_args&) {
  return nullptr;
}
bool is_f32(const velo_matmul_args& a) {
  return a.a->dtype == f32;
}
bool is_f32(const velo_matmul_add_fp32_args& a) {
  return a.total_input->dtype == f32;
}

// The isa the engine runs at for a candidate. float32 products are the same from avx512 up, and
// may know of the larger caches above.
isa isa_for(isa candidate, bool f32_inputs, isa highest) {
  return f32_inputs && candidate >= isa::avx512 ? highest : std::min(candidate, highest);
}

template <class Args>
void run_engine(const Args& a, core::execution& on, isa candidate) {
  const gemm_problem p = problem_of(a, on);
  const velo_pack handle = pack_of(a);
  const packed_matrix* pack = handle == nullptr ? nullptr : &matrix_of(handle);
  const core::isa isa = isa_for(candidate, is_f32(a), on.isa);
  void* scratch =
      on.scratch.take(gemm_scratch_bytes(p, pack != nullptr, on.threads.threads(), isa));
  gemm(p, pack, on.threads, scratch, isa);
}

template <class Args, isa Isa>
void run(const Args& a, core::execution& on) {
  run_engine(a, on, Isa);
}
template <class Args>
void run_reference(const Args& a, core::execution& on) {
  const velo_pack handle = pack_of(a);
  reference::gemm(problem_of(a, on), handle == nullptr ? nullptr : &matrix_of(handle), on.threads);
}

template <class Args, isa Isa>
const char* reject(const void* args) {
  const Args& a = *static_cast<const Args*>(args);
  if (is_f32(a) && Isa > isa::avx512) return "float32 products gain nothing over avx512";
  if (Isa == isa::avx512_bf16 && !dot_product_pays()) {
    return "the bfloat16 dot product is slower than float32 on this processor";
  }
  const velo_pack pack = pack_of(a);
  if (pack != nullptr && !matrix_of(pack).serves(Isa)) {
    return "the pack has the form of another instruction set";
  }
  return nullptr;
}

template <class Args, isa Isa>
constexpr candidate isa_kernel(const char* name) {
  return kernel<Args, run<Args, Isa>>(name, Isa, reject<Args, Isa>);
}

template <class Args>
constexpr candidate kernels[] = {
    isa_kernel<Args, isa::amx>("amx"),
    isa_kernel<Args, isa::avx512_bf16>("avx512_bf16"),
    isa_kernel<Args, isa::avx512>("avx512"),
    isa_kernel<Args, isa::avx2>("avx2"),
    isa_kernel<Args, isa::scalar>("scalar"),
    kernel<Args, run_reference<Args>>("reference", isa::scalar),
};

}  // namespace

extern const operator_def matmul_operator =
    define<velo_matmul_args, infer>(kernels<velo_matmul_args>);
extern const operator_def matmul_add_fp32_operator =
    define<velo_matmul_add_fp32_args, infer_add>(kernels<velo_matmul_add_fp32_args>);

}  // namespace velo::ops
