// matmul_all_reduce: y = sum over ranks of x @ op(weight), with every rank's product rounded to y's
// dtype, and a bias added to the rounded sum.
//
// In the sliced way each rank multiplies a slice into its slot, which peers read, and sums its part
// of the previous slice; rows get the bias when their sums have arrived. Slices of a quantized
// product are of columns (column_slices.hpp); the bias of int8 by int8 is in its sums of integers.
#include <algorithm>

#include "ops/operator/output_shapes.hpp"
#include "ops/operator/widened.hpp"
#include "sched/overlap/column_slices.hpp"
#include "sched/overlap/quantized_product.hpp"
#include "sched/overlap/slices.hpp"
#include "sched/overlap/weight_source.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using args = velo_matmul_all_reduce_args;
using ops::operator==;

struct problem : overlap_problem {
  membership in;
  quantized_sizes quantized;

  bool is_quantized() const { return quantized.how != quantization::none; }
};

quantized_operands operands_of(const args& a) {
  return {a.x,     a.weight, a.bias,       a.packed,        a.transpose_weight != 0,
          a.scale, a.offset, a.group_size, a.dequant_scale, a.per_token_scale};
}

// The dtype of a product of int8 by int8.
velo_dtype output_of(const args& a) {
  switch (a.output_dtype) {
    case VELO_DEQUANTIZED_FLOAT16:
      return core::f16;
    case VELO_DEQUANTIZED_BFLOAT16:
      return core::bf16;
    case VELO_DEQUANTIZED_FLOAT32:
      return core::f32;
    default:
      return a.dequant_scale->dtype == core::bf16 ? core::bf16 : core::f16;
  }
}

void set_product(const args& a, problem& p) {
  if (a.dequant_scale == nullptr && a.output_dtype != VELO_DEQUANTIZED_BY_SCALE)
    core::fail(VELO_ERR_ARGUMENT, "args.output_dtype",
               "by_scale, because args.dequant_scale is NULL", core::number(a.output_dtype));
  const velo_dtype output = a.dequant_scale == nullptr ? a.x->dtype : output_of(a);
  p.quantized = require_quantized(operands_of(a), output, p);
  p.slices = a.parallel_num;
  if (!p.is_quantized()) {
    static_cast<overlap_problem&>(p) =
        problem_of(*a.x, *a.weight, a.transpose_weight != 0, a.parallel_num);
    require_pack(a.packed, p.dtype, p.product.k, p.product.n);
  }
  if (p.quantized.how != quantization::integers) require_bias(a.bias, p.product.n, p.dtype);
}

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  p = problem{};
  set_product(a, p);
  p.in = membership_in(a.group, "args.group");
  choose_slices(p, p.in);
  std::int64_t shape[ops::max_rank];
  std::copy(a.x->shape, a.x->shape + a.x->ndim, shape);
  shape[a.x->ndim - 1] = p.product.n;
  outputs.set(a.y, p.dtype, a.x->ndim, shape);
}

comm::operation reduction_of(const problem& p) {
  comm::operation what = operation_of(p, comm::collective::all_reduce, p.product.m * p.product.n,
                                      "velo_matmul_all_reduce");
  what.in = what.out = p.product.c;
  return what;
}

cut cut_of(const problem& p) {
  const int ranks = p.in.size();
  return cut(
      {row_parts(p.product.m, ranks).most(), p.product.n, p.dtype.bits / 8, ranks, false, p.slices},
      p.in.group->relay_slot_bytes());
}

// Adds the bias, if any, to rows of the sums.
void add_to_rows(const float* bias, const row_range& rows, const problem& p,
                 overlap_kernel::way how, core::execution& on) {
  if (bias == nullptr) return;
  in_turn(on, [&](core::execution& turn) {
    char* const first =
        static_cast<char*>(p.product.c) + rows.begin * p.product.n * (p.dtype.bits / 8);
    add_bias(p.product, bias, {first, rows.count, p.product.n}, how, turn);
  });
}

weight_source source_of(const args& a, overlap_kernel::way how, const core::execution& on) {
  return {*a.weight, a.packed, how, on.isa};
}

// The bias in float32 where it is added to the sums, else nullptr.
const float* bias_of_sums(const args& a, const problem& p, core::arena& scratch) {
  const bool adds = a.bias != nullptr && p.quantized.how != quantization::integers;
  return adds ? ops::widened(*a.bias, scratch) : nullptr;
}

void multiply_alone(const args& a, problem& p, overlap_kernel::way how, core::execution& on) {
  const weight_source weight = source_of(a, how, on);
  weight.set(p.product);
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    const float* bias = bias_of_sums(a, p, turn.scratch);
    if (p.is_quantized())
      return multiply_quantized(operands_of(a), p.quantized, p, bias, p.product.c, how, turn);
    p.product.epilogue.bias = bias;
    multiply(p.product, how, turn);
  });
}

// The product that is summed over the ranks, where it is not sliced.
void multiply_own(const args& a, const problem& p, overlap_kernel::way how, core::execution& on) {
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    if (p.is_quantized())
      return multiply_quantized(operands_of(a), p.quantized, p, nullptr, p.product.c, how, turn);
    multiply(p.product, how, turn);
  });
}

column_cut column_cut_of(const problem& p) {
  return {p, p.in.size(), p.in.group->relay_slot_bytes()};
}

// A quantized product in slices of columns, and its sum, without a bias that is added to sums.
void sum_quantized_slices(const args& a, const problem& p, comm::operation& what,
                          comm::transport& link, core::arena& scratch, core::execution& on) {
  const column_cut in = column_cut_of(p);
  what.terms.counts = in.signature();
  const auto relay = link.begin_relay(what, on);
  const quantized_product product(operands_of(a), p.quantized, p, nullptr, scratch);
  all_reduce_in_columns(
      {p, what, *relay, on, p.in.group->rank(), p.in.size(), in,
       [&](const auto& of, void* to, core::execution& turn) {
         product.multiply({of.first, of.count}, to, overlap_kernel::way::sliced, turn);
       }});
}

void run(const args& a, const problem& inferred, const overlap_kernel& kernel,
         core::execution& on) {
  problem p = inferred;
  p.product.a = ops::data<const void>(a.x);
  p.product.c = ops::data<void>(a.y);
  if (p.in.group == nullptr) return multiply_alone(a, p, kernel.how, on);
  comm::operation what = reduction_of(p);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    const weight_source weight = source_of(a, kernel.how, on);
    weight.set(p.product);
    const float* bias = bias_of_sums(a, p, scratch);
    const auto add = [&](const row_range& rows) { add_to_rows(bias, rows, p, kernel.how, on); };
    if (kernel.how == overlap_kernel::way::sliced && p.is_quantized()) {
      sum_quantized_slices(a, p, what, link, scratch, on);
      add({0, p.product.m});
    } else if (kernel.how == overlap_kernel::way::sliced) {
      const cut in = cut_of(p);
      what.terms.counts = in.signature(sliced_product::panel(p.product, on.isa));
      const auto relay = link.begin_relay(what, on);
      const row_parts parts(p.product.m, p.in.size());
      slicing s{p.product, what, *relay, on, scratch, p.in.group->rank(), p.in.size(), in, parts};
      if (bias != nullptr) s.arrived = add;
      all_reduce_in_slices(s);
    } else {
      multiply_own(a, p, kernel.how, on);
      link.run(what, on);
      add({0, p.product.m});
    }
  });
}

const char* reject(const args&, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (const char* why = why_not_sliced(p.in, p)) return why;
  if (p.is_quantized() && !asks_for_slices(p)) return columns_not_asked_for;
  return (p.is_quantized() ? column_cut_of(p).pays() : cut_of(p).pays()) ? nullptr : too_small;
}

void enter(const args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", reduction_of(p), on, put);
}

void count(const args& a, const problem& p, ops::op_cost& cost) {
  count_product(operands_of(a), p.quantized.how, p, cost);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, reduction_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def matmul_all_reduce_operator = with_cost<sched::count>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list));

}  // namespace velo::ops
