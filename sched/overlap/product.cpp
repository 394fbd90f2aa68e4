// Checks that the operators share, and products in slices of rows.
#include "sched/overlap/product.hpp"

#include "ops/operator/output_shapes.hpp"

namespace velo::sched {
namespace {

using core::fail;
using ops::operator==;
using core::text;

constexpr overlap_kernel sliced{overlap_kernel::way::sliced},
    composition{overlap_kernel::way::composition}, reference{overlap_kernel::way::reference};

constexpr ops::kernel_entry entries[] = {
    {"sliced", core::isa::avx2, &sliced, VELO_DEVICE_CPU, 2},
    {"composition", core::isa::avx2, &composition, VELO_DEVICE_CPU, 1},
    {"reference", core::isa::scalar, &reference}};

ops::element_type type_of(velo_dtype dtype) {
  return dtype == ops::f32 ? ops::element_type::f32 : ops::element_type::bf16;
}

std::int64_t element_bytes(ops::element_type type) {
  return type == ops::element_type::f32 ? 4 : 2;
}

}  // namespace

extern const ops::kernel_list overlap_kernel_list{entries, 3};

overlap_problem problem_of(velo_group group, const velo_tensor& x, const velo_tensor& weight,
                           bool transpose_weight) {
  ops::require_rank(x, "x", 2);
  ops::require_rank(weight, "weight", 2, 2);
  ops::require_dtype(weight, "weight", x.dtype);
  overlap_problem all{};
  ops::gemm_problem& p = all.product;
  p.m = ops::row_count(x), p.k = ops::row_size(x);
  p.n = weight.shape[transpose_weight ? 0 : 1];
  const std::int64_t wanted[] = {transpose_weight ? p.n : p.k, transpose_weight ? p.k : p.n};
  ops::require_shape(weight, "weight", 2, wanted);
  if (std::max(p.n, p.k) >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "sizes below 2^31", ops::shape_name(2, weight.shape));
  p.type = p.c_type = type_of(x.dtype);
  p.lda = p.k, p.ldb = weight.shape[1], p.ldc = p.n;
  p.transpose_b = transpose_weight;
  all.dtype = x.dtype;
  all.group = group == nullptr ? nullptr : &core::resolve<comm::group>(group, "args.group");
  return all;
}

void set_product_shape(ops::output_shapes& outputs, ops::output_shapes::output y,
                       const velo_tensor& x, std::int64_t n) {
  std::int64_t shape[ops::max_rank];
  std::copy(x.shape, x.shape + x.ndim, shape);
  shape[x.ndim - 1] = n;
  outputs.set(y, x.dtype, x.ndim, shape);
}

void enter_group(overlap_problem& problem, const comm::operation& what, core::stream& on,
                 const ops::enqueue& put) {
  if (problem.group == nullptr) return put();
  if (&on.owner() != &problem.group->owner())
    fail(VELO_ERR_ARGUMENT, "args.group", "a group of the stream's context",
         "one of another context");
  problem.group->enter(on, problem.place, what, put);
}

const char* why_not_sliced(const overlap_problem& problem, const ops::kernel_entry& kernel) {
  if (static_cast<const overlap_kernel*>(kernel.kernels)->how != overlap_kernel::way::sliced)
    return nullptr;
  if (problem.group == nullptr || problem.group->size() == 1) return "the group has one rank";
  if (!problem.group->has_relay()) return "the transport of the group sends no pieces";
  return nullptr;
}

void multiply(const ops::gemm_problem& problem, overlap_kernel::way how, core::execution& turn) {
  if (how == overlap_kernel::way::reference)
    return ops::gemm_reference(problem, nullptr, turn.threads);
  void* scratch =
      turn.scratch.take(ops::gemm_scratch_bytes(problem, false, turn.threads.threads(), turn.isa));
  ops::gemm(problem, nullptr, turn.threads, scratch, turn.isa);
}

sliced_product::sliced_product(const ops::gemm_problem& problem, core::arena& scratch,
                               core::execution& on)
    : problem_(problem), weight_(problem.k, problem.n, problem.type, on.isa) {
  weight_.place(scratch.take(weight_.bytes()));
  in_turn(on, [&](core::execution& turn) {
    weight_.update(problem.b, problem.ldb, problem.transpose_b, turn.threads);
  });
}

void sliced_product::multiply(std::int64_t first_row, std::int64_t rows,
                              core::execution& turn) const {
  ops::gemm_problem slice = problem_;
  slice.m = rows;
  slice.a = static_cast<const char*>(slice.a) + first_row * slice.lda * element_bytes(slice.type);
  slice.c = static_cast<char*>(slice.c) + first_row * slice.ldc * element_bytes(slice.c_type);
  void* own =
      turn.scratch.take(ops::gemm_scratch_bytes(slice, true, turn.threads.threads(), turn.isa));
  ops::gemm(slice, &weight_, turn.threads, own, turn.isa);
}

}  // namespace velo::sched
