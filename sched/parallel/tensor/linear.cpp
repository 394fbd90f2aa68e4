// The checks, operations and products of the linear layers.
#include "sched/parallel/tensor/linear.hpp"

#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/operands.hpp"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;
using core::number;
using core::text;
using ops::operator==;

// The rows of all ranks, when each has as many.
std::int64_t even_rows(const linear_problem& p, const velo_tensor& t, const char* name,
                       rows_of which) {
  std::int64_t all = t.shape[0];
  if (which == rows_of::this_rank && __builtin_mul_overflow(all, std::int64_t{p.ranks()}, &all))
    ops::refuse_sizes(t.ndim, t.shape, text("args.%s.shape", name));
  if (all % p.ranks() != 0)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", name),
         text("a first dimension that divides by %d ranks, or args.rows", p.ranks()), number(all));
  return all;
}

void require_rows(const velo_tensor& t, const char* name, std::int64_t wanted) {
  if (t.shape[0] != wanted)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", name), concat(wanted, " rows, as args.rows says"),
         number(t.shape[0]));
}

void set_rows(linear_problem& p, const linear_fields& f, const velo_tensor& t, const char* name,
              rows_of which) {
  if (!p.cuts_rows) {
    if (f.rows != nullptr)
      fail(VELO_ERR_ARGUMENT, "args.rows", "NULL without sequence_parallel", "a list");
    p.rows = p.own_rows = t.shape[0];
  } else if (f.rows == nullptr) {
    p.rows = even_rows(p, t, name, which);
    p.own_rows = p.rows / p.ranks();
  } else {
    check_list(*f.rows, p.ranks(), "args.rows");
    p.rows = sum_of(*f.rows);
    p.own_rows = f.rows->data[p.rank()];
    require_rows(t, name, which == rows_of::all_ranks ? p.rows : p.own_rows);
  }
}

std::uint64_t signature_of(const linear_problem& p, const velo_ints* list) {
  const std::uint64_t own = comm::mixed(static_cast<std::uint64_t>(p.slices) * 2 + p.cuts_rows + 1);
  return list == nullptr ? own : comm::mixed(own + hash_of(*list));
}

comm::operation operation_of(const linear_problem& p, comm::collective kind, std::int64_t count) {
  overlap_problem typed{};
  typed.dtype = p.dtype;
  comm::operation what = operation_of(typed, kind, count, p.function);
  what.terms.require_same(p.signature);
  return what;
}

ops::gemm_problem product_of(const linear_problem& p) {
  ops::gemm_problem one;
  one.type = one.c_type = ops::type_of(p.dtype);
  return one;
}

}  // namespace

linear_problem linear_problem_of(const linear_fields& f, const char* function, const velo_tensor& t,
                                 const char* name, rows_of which) {
  const velo_tensor& weight = *f.weight;
  ops::require_rank(t, name, 2);
  ops::require_rank(weight, "weight", 2, 2);
  ops::require_dtype(weight, "weight", t.dtype);
  linear_problem p{};
  p.in = membership_in(f.group, "args.group");
  p.function = function;
  p.dtype = t.dtype;
  p.n = weight.shape[0], p.k = weight.shape[1];
  if (std::max(p.n, p.k) >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "sizes below 2^31", ops::shape_name(2, weight.shape));
  p.cuts_rows = f.cuts_rows;
  set_rows(p, f, t, name, which);
  p.lines = 1;
  for (int i = 1; i + 1 < t.ndim; ++i) p.lines *= t.shape[i];
  const std::int64_t sizes[] = {p.rows, p.lines, std::max({p.n, p.k, std::int64_t{1}}),
                                std::int64_t{p.ranks()}};
  if (!ops::countable(4, sizes)) ops::refuse_sizes(t.ndim, t.shape, text("args.%s.shape", name));
  const slice_choice chosen = choose_slices(p.in, f.slices, p.m(), p.k, p.n);
  p.slices = chosen.slices, p.mode = chosen.mode;
  p.signature = signature_of(p, f.rows);
  return p;
}

void agree_on(linear_problem& p, std::uint64_t word) {
  p.signature = comm::mixed(p.signature + word + 1);
}

linear_shape shape_of(const linear_problem& p, const velo_tensor& like, rows_of which,
                      std::int64_t last) {
  linear_shape shape{like.ndim, {}};
  std::copy(like.shape, like.shape + like.ndim, shape.sizes);
  shape.sizes[0] = which == rows_of::all_ranks ? p.rows : p.own_rows;
  shape.sizes[like.ndim - 1] = last;
  return shape;
}

void require_linear(const velo_tensor& t, const char* name, const linear_problem& p,
                    const linear_shape& shape) {
  ops::require_dtype(t, name, p.dtype);
  ops::require_shape(t, name, shape.rank, shape.sizes);
}

row_parts parts_of(const velo_ints* list, const linear_problem& p) {
  if (list == nullptr) return row_parts(p.m(), p.ranks());
  return row_parts(list->data, p.ranks(), p.lines);
}

// ---- the group's operations ----

comm::operation opening_of(const linear_problem& p, comm::collective kind, std::int64_t width) {
  return operation_of(p, kind, p.m() * width);
}

comm::operation gather_of(const linear_problem& p, const row_parts& parts, std::int64_t width) {
  comm::operation what = operation_of(p, comm::collective::all_gather, p.m() * width);
  what.set_count(p.own_m() * width);
  what.out_blocks = listed_blocks(parts, width);
  return what;
}

comm::operation scatter_of(const linear_problem& p, const row_parts& parts, std::int64_t width,
                           const core::execution& on) {
  comm::operation what = operation_of(p, comm::collective::reduce_scatter, p.m() * width);
  what.out_count = p.own_m() * width;
  what.set_count(what.out_count);
  what.in_blocks = listed_blocks(parts, width);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  return what;
}

comm::operation all_reduce_of(const linear_problem& p, std::int64_t width,
                              const core::execution& on) {
  comm::operation what = operation_of(p, comm::collective::all_reduce, p.m() * width);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  return what;
}

void mark_sliced(comm::operation& what, std::uint64_t cut_signature) {
  what.terms.require_same(comm::mixed(what.terms.counts + cut_signature));
}

void enter_linear(linear_problem& p, const comm::operation& opening, core::stream& on,
                  const ops::enqueue& put) {
  if (p.communicates) return enter_group(p.in, "args.group", opening, on, put);
  require_group_of(on, p.in, "args.group");
  put();
}

const char* why_not_sliced(const linear_problem& p) {
  overlap_problem sized{};
  sized.product.m = p.m();
  sized.slices = p.slices, sized.mode = p.mode;
  return why_not_sliced(p.in, sized);
}

cut sum_cut(const linear_problem& p, const row_parts& parts, std::int64_t width, int blocks) {
  return cut({parts.most(), width, p.element_bytes(), blocks, false, p.slices},
             p.in.group->relay_slot_bytes());
}

cut gather_cut(const linear_problem& p, const row_parts& parts, std::int64_t width) {
  return cut({parts.most(), width, p.element_bytes(), 1, true, p.slices},
             p.in.group->relay_slot_bytes());
}

// ---- the products of a rank ----

void* take_rows(const linear_problem& p, std::int64_t rows, std::int64_t width,
                core::arena& scratch) {
  return scratch.take(static_cast<std::size_t>(rows * width * p.element_bytes()));
}

ops::gemm_problem output_product(const linear_problem& p, const void* x,
                                 const weight_source& weight, void* y) {
  ops::gemm_problem one = product_of(p);
  one.m = p.m(), one.n = p.n, one.k = p.k;
  one.a = x, one.lda = p.k;
  weight.set(one);
  one.ldb = p.k, one.transpose_b = true;
  one.c = y, one.ldc = p.n;
  return one;
}

ops::gemm_problem input_product(const linear_problem& p, const void* dy, std::int64_t ld,
                                const weight_source& weight, void* dx) {
  ops::gemm_problem one = product_of(p);
  one.m = p.m(), one.n = p.k, one.k = p.n;
  one.a = dy, one.lda = ld;
  weight.set(one);
  one.ldb = p.k;
  one.c = dx, one.ldc = p.k;
  return one;
}

velo_dtype dtype_of_dweight(const velo_tensor* dweight, const linear_problem& p) {
  return dweight != nullptr && dweight->dtype == core::f32 ? core::f32 : p.dtype;
}

void multiply_weight_gradients(const linear_problem& p, const weight_gradients& to, const void* dy,
                               std::int64_t ld, const void* x, overlap_kernel::way how,
                               core::execution& on) {
  const auto multiply_into = [&](ops::gemm_problem one, const velo_tensor& result,
                                 core::execution& turn) {
    one.c = ops::data<void>(&result);
    one.c_type = ops::type_of(result.dtype);
    one.epilogue.accumulate = to.accumulate;
    multiply(one, how, turn);
  };
  if (!to.any()) return;
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    if (to.dweight != nullptr && p.n > 0 && p.k > 0) {
      ops::gemm_problem one = product_of(p);
      one.m = p.n, one.n = p.k, one.k = p.m();
      one.a = dy, one.lda = ld, one.transpose_a = true;
      one.b = x, one.ldb = p.k;
      one.ldc = p.k;
      multiply_into(one, *to.dweight, turn);
    }
    if (to.dbias != nullptr && p.n > 0) {
      const ops::element_type type = ops::type_of(p.dtype);
      const void* ones = ops::take_ones(type, p.m(), turn.scratch);
      multiply_into(ops::column_sums(type, ones, dy, p.m(), p.n, ld), *to.dbias, turn);
    }
  });
}

void add_products(const linear_problem& p, int products, ops::op_cost& cost) {
  const double flops = 2.0 * products * static_cast<double>(p.m()) * static_cast<double>(p.n) *
                       static_cast<double>(p.k);
  cost.multiply(flops, flops, p.dtype);
}

}  // namespace velo::sched
