// matmul_all_reduce: y = sum over ranks of x @ op(weight), with every rank's product rounded to y's
// dtype.
//
// In the sliced way each rank multiplies a slice into its slot, which peers read, and sums its part
// of the previous slice.
#include <algorithm>

#include "sched/overlap/slices.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

struct problem : overlap_problem {
  membership in;
};

void infer(const velo_matmul_all_reduce_args& a, problem& p, ops::output_shapes& outputs) {
  static_cast<overlap_problem&>(p) =
      problem_of(*a.x, *a.weight, a.transpose_weight != 0, a.parallel_num);
  p.in = membership_in(a.group, "args.group");
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

void run(const velo_matmul_all_reduce_args& a, const problem& inferred,
         const overlap_kernel& kernel, core::execution& on) {
  problem p = inferred;
  p.product.a = ops::data<const void>(a.x);
  p.product.b = ops::data<const void>(a.weight);
  p.product.c = ops::data<void>(a.y);
  const auto multiply_all = [&] {
    in_turn(on, [&](core::execution& turn) { multiply(p.product, kernel.how, turn); });
  };
  if (p.in.group == nullptr) return multiply_all();
  comm::operation what = reduction_of(p);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    if (kernel.how == overlap_kernel::way::sliced) {
      const cut in = cut_of(p);
      what.terms.counts = in.signature(sliced_product::panel(p.product, on.isa));
      const auto relay = link.begin_relay(what, on);
      const row_parts parts(p.product.m, p.in.size());
      all_reduce_in_slices(
          {p.product, what, *relay, on, scratch, p.in.group->rank(), p.in.size(), in, parts});
    } else {
      multiply_all();
      link.run(what, on);
    }
  });
}

const char* reject(const velo_matmul_all_reduce_args&, const problem& p,
                   const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  const char* why = why_not_sliced(p.in, p);
  return why != nullptr || cut_of(p).pays() ? why : too_small;
}

void enter(const velo_matmul_all_reduce_args&, problem& p, core::stream& on,
           const ops::enqueue& put) {
  enter_group(p.in, "args.group", reduction_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, reduction_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def matmul_all_reduce_operator =
    with_cost<sched::cost_of<velo_matmul_all_reduce_args, sched::problem>>(
        define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
            sched::overlap_kernel_list));

}  // namespace velo::ops
