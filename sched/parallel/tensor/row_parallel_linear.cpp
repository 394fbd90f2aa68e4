// row_parallel_linear and its gradient: a weight whose inputs are cut between ranks.
//
// The products of the ranks are summed, and with rows that are cut each rank gets the sums of its
// rows; the bias is added once, to the rounded sums. The gradient of cut rows gathers dy once, for
// all its results.
#include <algorithm>
#include <cstring>

#include "ops/operator/widened.hpp"
#include "sched/parallel/tensor/linear.hpp"

namespace velo::sched {
namespace {

using forward_args = velo_row_parallel_linear_args;
using gradient_args = velo_row_parallel_linear_backward_args;
using way = overlap_kernel::way;

// ---- forward ----

void infer(const forward_args& a, linear_problem& p, ops::output_shapes& outputs) {
  p = linear_problem_of(fields_of(a), "velo_row_parallel_linear", *a.x, "x", rows_of::all_ranks);
  require_linear(*a.x, "x", p, shape_of(p, *a.x, rows_of::all_ranks, p.k));
  require_bias(a.bias, p);
  require_pack(a.packed, p.dtype, p.k, p.n);
  agree_on(p, 3);
  p.communicates = p.in.group != nullptr;
  const linear_shape y = shape_of(p, *a.x, rows_of::this_rank, p.n);
  outputs.set(a.y, p.dtype, y.rank, y.sizes);
}

comm::operation opening(const linear_problem& p) {
  return opening_of(
      p, p.cuts_rows ? comm::collective::reduce_scatter : comm::collective::all_reduce, p.n);
}

row_parts summed_parts(const velo_ints* list, const linear_problem& p) {
  return p.cuts_rows ? parts_of(list, p) : row_parts(p.m(), p.ranks());
}
cut forward_cut(const linear_problem& p, const row_parts& parts) {
  return sum_cut(p, parts, p.n, p.cuts_rows ? p.ranks() - 1 : p.ranks());
}

// A running forward call. The bias is added to each slice while it is in cache if this rank alone
// reads the sums, else to all of y.
struct forward_call {
  const forward_args& a;
  const linear_problem& p;
  const way how;
  core::execution& on;
  const weight_source weight{*a.weight, a.packed, how, on.isa};

  ops::gemm_problem product() const {
    return output_product(p, ops::data<const void>(a.x), weight, ops::data<void>(a.y));
  }
  void in_group(comm::transport& link, core::arena& scratch) const {
    const row_parts parts = summed_parts(a.rows, p);
    comm::operation what = p.cuts_rows ? scatter_of(p, parts, p.n, on) : all_reduce_of(p, p.n, on);
    how == way::sliced ? in_slices(what, parts, link, scratch)
                       : one_after_another(what, link, scratch);
  }
  void alone() const {
    in_turn(on, [&](core::execution& turn) {
      const core::scratch_scope scope(turn.scratch);
      multiply(product(), how, turn);
      add_whole_bias(turn);
    });
  }

 private:
  void in_slices(comm::operation& what, const row_parts& parts, comm::transport& link,
                 core::arena& scratch) const {
    const cut in = forward_cut(p, parts);
    const ops::gemm_problem all = product();
    what.in = all.c;
    mark_sliced(what, in.signature(sliced_product::panel(all, on.isa)));
    const auto relay = link.begin_relay(what, on);
    slicing s{all, what, *relay, on, scratch, p.rank(), p.ranks(), in, parts};
    if (!p.cuts_rows) {
      all_reduce_in_slices(s);
      return in_turn(on, [&](core::execution& turn) { add_whole_bias(turn); });
    }
    if (a.bias != nullptr) s.bias = ops::widened(*a.bias, scratch);
    reduce_scatter_in_slices(s, {&all.a, {all.m, 1}});
  }
  void one_after_another(comm::operation& what, comm::transport& link, core::arena& scratch) const {
    ops::gemm_problem all = product();
    what.out = all.c;
    if (p.cuts_rows) all.c = take_rows(p, p.m(), p.n, scratch);
    what.in = all.c;
    in_turn(on, [&](core::execution& turn) { multiply(all, how, turn); });
    link.run(what, on);
    in_turn(on, [&](core::execution& turn) { add_whole_bias(turn); });
  }
  void add_whole_bias(core::execution& turn) const {
    if (a.bias == nullptr) return;
    const core::scratch_scope scope(turn.scratch);
    add_bias(product(), ops::widened(*a.bias, turn), {ops::data<void>(a.y), p.own_m(), p.n}, how,
             turn);
  }
};

void run(const forward_args& a, const linear_problem& p, const overlap_kernel& kernel,
         core::execution& on) {
  if (!p.communicates) return forward_call{a, p, kernel.how, on}.alone();
  p.in.group->serve(p.in.ticket, opening(p), [&](comm::transport& link, core::arena& scratch) {
    forward_call{a, p, kernel.how, on}.in_group(link, scratch);
  });
}

const char* reject(const forward_args& a, const linear_problem& p,
                   const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (const char* why = why_not_sliced(p)) return why;
  return forward_cut(p, summed_parts(a.rows, p)).pays() ? nullptr : too_small;
}

void enter(const forward_args&, linear_problem& p, core::stream& on, const ops::enqueue& put) {
  enter_linear(p, opening(p), on, put);
}

void drop(const linear_problem& p) noexcept {
  if (p.communicates) p.in.group->drop(p.in.ticket, opening(p));
}

void count_flops(const forward_args&, const linear_problem& p, ops::op_cost& cost) {
  add_products(p, 1, cost);
}

// ---- gradient ----

void infer_gradient(const gradient_args& a, linear_problem& p, ops::output_shapes& outputs) {
  const velo_tensor& dy = *a.dy;
  p = linear_problem_of(fields_of(a), "velo_row_parallel_linear_backward", dy, "dy",
                        rows_of::this_rank);
  require_linear(dy, "dy", p, shape_of(p, dy, rows_of::this_rank, p.n));
  const linear_shape all = shape_of(p, dy, rows_of::all_ranks, p.k);
  if (a.dweight != nullptr) ops::require_given(a.x, "x");
  if (a.x != nullptr) require_linear(*a.x, "x", p, all);
  require_pack(a.packed, p.dtype, p.n, p.k);
  outputs.set(a.dx, p.dtype, all.rank, all.sizes);
  infer_weight_gradients(a, p, outputs);
  const bool keeps_dy = weight_gradients_of(a).any();
  p.communicates = p.in.group != nullptr && p.cuts_rows && (a.dx != nullptr || keeps_dy);
  agree_on(p, 4 + (a.dx != nullptr ? 8 : 0) + (keeps_dy ? 16 : 0));
}

comm::operation gradient_opening(const linear_problem& p) {
  return opening_of(p, comm::collective::all_gather, p.n);
}

// A running call of the gradient.
struct gradient_call {
  const gradient_args& a;
  const linear_problem& p;
  const way how;
  core::execution& on;
  const weight_source weight{*a.weight, a.dx == nullptr ? nullptr : a.packed, how, on.isa};

  void multiply_dx(const void* all_dy) const {
    if (a.dx == nullptr) return;
    const ops::gemm_problem product = dx_product(all_dy);
    in_turn(on, [&](core::execution& turn) { multiply(product, how, turn); });
  }
  void multiply_rest(const void* all_dy) const {
    multiply_weight_gradients(p, weight_gradients_of(a), all_dy, p.n,
                              a.x == nullptr ? nullptr : ops::data<const void>(a.x), how, on);
  }
  void in_group(comm::transport& link, core::arena& scratch) const {
    const row_parts parts = parts_of(a.rows, p);
    comm::operation what = gather_of(p, parts, p.n);
    what.in = ops::data<const void>(a.dy);
    const bool keeps = how != way::sliced || weight_gradients_of(a).any();
    void* const all_dy = keeps ? take_rows(p, p.m(), p.n, scratch) : nullptr;
    if (how == way::sliced) {
      const cut in = gather_cut(p, parts, p.n);
      mark_sliced(what, in.signature());
      const ops::gemm_problem product = dx_product(what.in);
      const auto relay = link.begin_relay(what, on);
      gather_in_slices({product, what, *relay, on, scratch, p.rank(), p.ranks(), in, parts},
                       static_cast<char*>(all_dy));
    } else {
      what.out = all_dy;
      link.run(what, on);
      multiply_dx(all_dy);
    }
    multiply_rest(all_dy);
  }

 private:
  ops::gemm_problem dx_product(const void* dy) const {
    return input_product(p, dy, p.n, weight, ops::data<void>(a.dx));
  }
};

void run_gradient(const gradient_args& a, const linear_problem& p, const overlap_kernel& kernel,
                  core::execution& on) {
  if (p.communicates)
    return p.in.group->serve(p.in.ticket, gradient_opening(p),
                             [&](comm::transport& link, core::arena& scratch) {
                               gradient_call{a, p, kernel.how, on}.in_group(link, scratch);
                             });
  const gradient_call call{a, p, kernel.how, on};
  const void* dy = ops::data<const void>(a.dy);
  call.multiply_dx(dy);
  call.multiply_rest(dy);
}

const char* reject_gradient(const gradient_args& a, const linear_problem& p,
                            const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (!p.communicates) return "dy is whole on this rank";
  if (a.dx == nullptr) return "no dx is wanted, whose product is sliced";
  if (const char* why = why_not_sliced(p)) return why;
  return gather_cut(p, parts_of(a.rows, p), p.n).pays() ? nullptr : too_small;
}

void enter_gradient(const gradient_args&, linear_problem& p, core::stream& on,
                    const ops::enqueue& put) {
  enter_linear(p, gradient_opening(p), on, put);
}

void drop_gradient(const linear_problem& p) noexcept {
  if (p.communicates) p.in.group->drop(p.in.ticket, gradient_opening(p));
}

void count_gradient_flops(const gradient_args& a, const linear_problem& p, ops::op_cost& cost) {
  add_products(p, (a.dx != nullptr ? 1 : 0) + (a.dweight != nullptr ? 1 : 0), cost);
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def row_parallel_linear_operator = with_cost<sched::count_flops>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list));
extern const operator_def row_parallel_linear_backward_operator =
    with_cost<sched::count_gradient_flops>(
        define_waiting<sched::infer_gradient, sched::run_gradient, sched::reject_gradient,
                       sched::enter_gradient, sched::drop_gradient>(sched::overlap_kernel_list));

}  // namespace velo::ops
