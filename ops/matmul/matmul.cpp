// matmul, matmul_add and matmul_add_fp32 as operators: shapes, strides, and which form of the
// engine serves.
//
// Leading dimensions of `a` fold into its rows; what cannot fold is refused. matmul_add is matmul
// with a residual in the epilogue. matmul_add_fp32 is the engine's product with a transposed A that
// adds to a float32 C.
#include <algorithm>
#include <optional>

#include "core/handle/inside.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/broadcast.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/pack.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/widened.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// The matrix behind a handle that was checked before.
const packed_matrix& matrix_of(velo_pack pack) {
  return core::object_of<weight_pack>(pack).matrix();
}

struct weight_shape {
  std::int64_t n, ld;  // columns; elements between stored rows, 0 for a pack
};

// What matmul has and matmul_add has not.
bool accumulates(const velo_matmul_args& a) {
  return a.accumulate != 0;
}
bool accumulates(const velo_matmul_add_args&) {
  return false;
}
// Whether c is a field that may be read.
constexpr bool has_old_c(const velo_matmul_args&) {
  return true;
}
constexpr bool has_old_c(const velo_matmul_add_args&) {
  return false;
}
velo_dtype dtype_of_c(const velo_matmul_args& a) {
  return a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.a->dtype;
}
velo_dtype dtype_of_c(const velo_matmul_add_args& a) {
  return a.a->dtype;
}

template <class Args>
weight_shape check_weight(const Args& a, std::int64_t k) {
  if (a.packed != nullptr) {
    const packed_matrix& pack = matrix_of(a.packed);
    if (a.b != nullptr) fail(VELO_ERR_ARGUMENT, "args.b", "NULL beside packed", "a tensor");
    if (a.transpose_b != 0) {
      fail(VELO_ERR_ARGUMENT, "args.transpose_b", "0 beside packed", "1");
    }
    if (pack.type() != type_of(a.a->dtype)) {
      fail(VELO_ERR_DTYPE, "args.packed", text("a pack of %s", dtype_name(a.a->dtype).buffer),
           text("one of %s", dtype_name(dtype_of(pack.type())).buffer));
    }
    if (pack.k() != k) {
      fail(VELO_ERR_SHAPE, "args.packed", core::concat("a pack of ", k, " rows"),
           core::concat("one of ", pack.k()));
    }
    return {pack.n(), 0};
  }
  if (a.b == nullptr) fail(VELO_ERR_NULL, "args.b", "a tensor, or packed", "NULL");
  require_rank(*a.b, "b", 2, 2);
  require_dtype(*a.b, "b", a.a->dtype);
  const std::int64_t n = a.b->shape[a.transpose_b != 0 ? 0 : 1];
  const std::int64_t wanted[] = {a.transpose_b != 0 ? n : k, a.transpose_b != 0 ? k : n};
  require_shape(*a.b, "b", 2, wanted);
  return {n, fold(*a.b, "b").ld};
}

// The product without its pointers and its bias, and how its residual is read.
struct matmul_problem {
  gemm_problem product;
  broadcast residual;
};

void infer_residual(const velo_matmul_args&, matmul_problem&, const std::int64_t*) {}
void infer_residual(const velo_matmul_add_args& a, matmul_problem& problem,
                    const std::int64_t* shape) {
  require_dtype(*a.add, "add", a.a->dtype);
  problem.residual = require_broadcast(*a.add, "add", a.a->ndim, shape);
}

template <class Args>
void infer(const Args& a, matmul_problem& problem, output_shapes& outputs) {
  require_rank(*a.a, "a", 2, a.transpose_a != 0 ? 2 : max_rank);
  gemm_problem& p = problem.product;
  const bool transposed = a.transpose_a != 0;
  const folded left = fold(*a.a, "a");
  p.m = transposed ? left.columns : left.rows;
  p.k = transposed ? left.rows : left.columns;
  const weight_shape weight = check_weight(a, p.k);
  p.n = weight.n;
  p.lda = left.ld;
  p.ldb = weight.ld;
  require_below_2_31(std::max(p.n, p.k), a.packed != nullptr ? "a" : "b");
  if (a.bias != nullptr) {
    require_shape(*a.bias, "bias", 1, &p.n);
    if (!(a.bias->dtype == f32)) require_dtype(*a.bias, "bias", a.a->dtype);
  }
  std::int64_t shape[max_rank];
  for (int i = 0; i < a.a->ndim; ++i) shape[i] = a.a->shape[i];
  if (transposed) shape[0] = p.m;
  shape[a.a->ndim - 1] = p.n;
  p.type = type_of(a.a->dtype);
  p.transpose_a = transposed;
  p.transpose_b = a.transpose_b != 0;
  p.epilogue.accumulate = accumulates(a);
  infer_residual(a, problem, shape);
  outputs.set(a.c, dtype_of_c(a), a.a->ndim, shape);
  if (a.c != nullptr) {
    const folded c = fold(*a.c, "c");
    p.ldc = c.ld;
    p.c_type = type_of(a.c->dtype);
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
  p.m = shape[0];
  p.n = shape[1];
  p.k = row_count(x);
  p.type = type_of(x.dtype);
  p.lda = p.m;
  p.transpose_a = true;
  p.ldb = p.n;
  p.ldc = p.n;
  p.epilogue.accumulate = true;
}

void place_residual(const velo_matmul_args&, const matmul_problem&, gemm_problem&,
                    core::execution&) {}
void place_residual(const velo_matmul_add_args& a, const matmul_problem& problem, gemm_problem& p,
                    core::execution& on) {
  const broadcast& b = problem.residual;
  p.epilogue.residual = {data<const void>(a.add), b.ld,
                         b.at_one_distance ? nullptr : b.rows(p.m, on.scratch), b.one_column};
}

template <class Args>
gemm_problem placed(const Args& a, const matmul_problem& problem, core::execution& on) {
  gemm_problem p = problem.product;
  place_residual(a, problem, p, on);
  p.a = data<const void>(a.a);
  p.b = data<const void>(a.b);
  p.c = data<void>(a.c);
  p.epilogue.bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  return p;
}

gemm_problem placed(const velo_matmul_add_fp32_args& a, const matmul_problem& problem,
                    core::execution&) {
  gemm_problem p = problem.product;
  p.a = data<const void>(a.grad_output);
  p.b = data<const void>(a.total_input);
  p.c = data<void>(a.grad);
  return p;
}

template <class Args>
const packed_matrix* pack_of(const Args& a) {
  return a.packed == nullptr ? nullptr : &matrix_of(a.packed);
}
const packed_matrix* pack_of(const velo_matmul_add_fp32_args&) {
  return nullptr;
}

// Resolves the pack again when the call runs: it may have been destroyed since it was queued.
template <class Args>
const packed_matrix* live_pack_of(const Args& a) {
  if (a.packed == nullptr) return nullptr;
  return &core::resolve<weight_pack>(a.packed, "args.packed").matrix();
}
const packed_matrix* live_pack_of(const velo_matmul_add_fp32_args&) {
  return nullptr;
}

// Refuses the destruction of the pack by functions of the host that the call runs.
class use_of_pack {
 public:
  template <class Args>
  explicit use_of_pack(const Args& a) {
    if (a.packed != nullptr) here_.emplace(a.packed, core::part::given);
  }
  explicit use_of_pack(const velo_matmul_add_fp32_args&) {}

 private:
  std::optional<core::inside_scope> here_;
};

template <class Args>
void run(const Args& a, const matmul_problem& problem, const gemm_kernels& kernels,
         core::execution& on) {
  const gemm_problem p = placed(a, problem, on);
  const packed_matrix* pack = live_pack_of(a);
  const use_of_pack mine(a);
  multiply(p, pack, kernels, on);
}

template <class Args>
const char* reject(const Args& a, const matmul_problem& problem, const kernel_entry& kernel) {
  if (const char* why = reject_product(kernel, problem.product.type)) return why;
  if (static_cast<const gemm_kernels*>(kernel.kernels)->plain()) return nullptr;
  const packed_matrix* pack = pack_of(a);
  if (pack != nullptr && !pack->serves(kernel.isa))
    return "the pack has the form of another instruction set";
  return nullptr;
}

template <class Args>
void cost_of(const Args& a, const matmul_problem& problem, op_cost& cost) {
  const gemm_problem& p = problem.product;
  cost.multiply(flops_of(p), flops_of(p), a.a->dtype);
  if (a.packed != nullptr) cost.bytes_read += bytes_of_rows(p.k, p.n, a.a->dtype);
  if (has_old_c(a) && !accumulates(a))
    cost.bytes_read -= cost.bytes_written;  // c is read to add to it alone
}

void cost_of_add(const velo_matmul_add_fp32_args& a, const matmul_problem& problem, op_cost& cost) {
  const double flops = flops_of(problem.product);
  cost.multiply(flops, flops, a.total_input->dtype);
}

}  // namespace

extern const operator_def matmul_operator = with_cost<cost_of<velo_matmul_args>>(
    define<infer<velo_matmul_args>, run<velo_matmul_args>, reject<velo_matmul_args>>(
        gemm_kernel_list));
extern const operator_def matmul_add_operator = with_cost<cost_of<velo_matmul_add_args>>(
    define<infer<velo_matmul_add_args>, run<velo_matmul_add_args>, reject<velo_matmul_add_args>>(
        gemm_kernel_list));
extern const operator_def matmul_add_fp32_operator = with_cost<cost_of_add>(
    define<infer_add, run<velo_matmul_add_fp32_args>, reject<velo_matmul_add_fp32_args>>(
        gemm_kernel_list));

}  // namespace velo::ops
