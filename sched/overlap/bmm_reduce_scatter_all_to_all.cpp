// bmm_reduce_scatter_all_to_all: each of this rank's experts multiplies its rows, the products of
// the ranks of tp are summed and scattered, a bias is added, and the rows go back to the ranks of
// ep whose tokens they are.
//
// A product writes its result where the sum wants it: a part for each rank of tp, one behind the
// other, [local][ep][rows][width] each, with some columns of all rows, or all columns of some rows
// of each source, in whose order x is put for that. So no product is transposed. Parts are rounded
// before they are summed, and the bias is added to rounded sums, also where there is no group of
// tp. The sums are put in the order of the ranks of ep on their way into the exchange. Cost: the
// products, the collectives, and a pass over the sums; one more for a bias, and one over x for rows
// of several sources.
#include <cstring>
#include <new>

#include "ops/operator/widened.hpp"
#include "sched/overlap/expert_blocks.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using args = velo_bmm_reduce_scatter_all_to_all_args;
using core::concat;
using core::fail;
using core::number;
using problem = expert_problem;

// A size that the ranks of a group divide evenly.
std::int64_t divided(std::int64_t size, std::int64_t ranks, const char* shape_field,
                     const char* what, const char* group) {
  if (size % ranks != 0)
    fail(VELO_ERR_SHAPE, shape_field,
         concat(what, " that divide by the ", ranks, " ranks of ", group), number(size));
  return size / ranks;
}

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  p = problem{};
  set_groups(a, p, comm::collective::reduce_scatter, "velo_bmm_reduce_scatter_all_to_all");
  ops::require_rank(*a.x, "x", 3, 3);
  const std::int64_t* x = a.x->shape;
  p.of.local = x[0];
  p.of.rows = divided(x[1], p.of.ep, "args.x.shape", "rows", "group_ep");
  set_product(p, *a.x, *a.weight, a.transpose_weight != 0, x[1], x[2]);
  p.of.width = p.product.n;
  if (p.of.by_columns)
    p.of.width = divided(p.product.n, p.of.tp, "args.weight.shape", "columns", "group_tp");
  else
    p.of.rows = divided(p.of.rows, p.of.tp, "args.x.shape", "rows of a rank", "group_tp");
  require_expert_bias(a.bias, p.of.local, p.of.width, p.dtype);
  const std::int64_t all = product_of_sizes(x[0], p.of.ep, *a.x, "args.x.shape");
  const std::int64_t y[] = {all, p.of.rows, p.of.width}, products[] = {x[0], x[1], p.product.n};
  if (!ops::countable(3, y) || !ops::countable(3, products))
    ops::refuse_sizes(3, x, "args.x.shape");
  outputs.set(a.y, p.dtype, 3, y);
}

std::size_t bytes_of_part(const problem& p) {
  return static_cast<std::size_t>(p.of.part_elements() * p.of.element);
}

// ---- products ----

// x with the rows of each expert by the rank of tp that sums them, [local][tp][ep][rows]: x itself
// where it has them so.
const char* ordered_rows(const args& a, const problem& p, core::execution& turn) {
  const char* const x = ops::data<const char>(a.x);
  const expert_blocks& of = p.of;
  if (of.by_columns || of.tp == 1 || of.ep == 1) return x;
  const std::int64_t block = of.rows * p.product.k * of.element, all = of.ep * of.tp;
  auto* to = turn.scratch.take<char>(static_cast<std::size_t>(of.local * all * block));
  turn.threads.slices(of.local * all, [&](std::int64_t i, int) {
    const std::int64_t e = i / all, t = i / of.ep % of.tp, q = i % of.ep;
    std::memcpy(to + i * block, x + (e * all + q * of.tp + t) * block,
                static_cast<std::size_t>(block));
  });
  return to;
}

// The product of expert e for a rank of tp, without its addresses in x.
ops::gemm_problem product_for(const args& a, const problem& p, std::int64_t e, std::int64_t t) {
  const expert_blocks& of = p.of;
  ops::gemm_problem one = p.product;
  one.b = ops::data<const char>(a.weight) + e * one.n * one.k * of.element;
  if (of.by_columns) {
    const std::int64_t first = t * of.width;
    one.b =
        static_cast<const char*>(one.b) + (one.transpose_b ? first * one.k : first) * of.element;
    one.n = one.ldc = of.width;
  } else {
    one.m = of.ep * of.rows;
  }
  return one;
}

void multiply_all(const args& a, const problem& p, overlap_kernel::way how, void* to,
                  core::execution& on) {
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    const expert_blocks& of = p.of;
    const char* const x = ordered_rows(a, p, turn);
    const std::int64_t count = of.local * of.tp;
    auto* products = turn.scratch.take<ops::gemm_problem>(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t e = i / of.tp, t = i % of.tp;
      auto* one = new (products + i) ops::gemm_problem(product_for(a, p, e, t));
      const std::int64_t row = e * p.product.m + (of.by_columns ? 0 : t * one->m);
      one->a = x + row * one->k * of.element;
      one->c = static_cast<char*>(to) + (t * of.local + e) * of.ep * of.block_bytes();
    }
    multiply_experts(products, count, how, turn);
  });
}

// ---- sums ----

// Adds the bias to the sums, [local][ep][rows][width].
void add_biases(const args& a, const problem& p, overlap_kernel::way how, void* sums,
                core::execution& on) {
  if (a.bias == nullptr) return;
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    const float* bias = ops::widened(*a.bias, turn);
    ops::gemm_problem of = p.product;
    of.ldc = p.of.width;
    for (std::int64_t e = 0; e < p.of.local; ++e)
      add_bias(of, bias + e * p.of.width,
               {static_cast<char*>(sums) + e * p.of.ep * p.of.block_bytes(), p.of.ep * p.of.rows,
                p.of.width},
               how, turn);
  });
}

// Sends the sums of a rank's experts to the ranks of ep.
void send_back(const problem& p, const void* sums, comm::operation& what, comm::transport& link,
               core::arena& scratch, core::execution& on) {
  auto* to = scratch.take<char>(bytes_of_part(p));
  in_turn(on, [&](core::execution& turn) {
    const std::int64_t rows = p.of.ep * p.of.rows, row = p.of.row_bytes();
    each_row(
        p.of, p.of.ep, p.of.block_bytes(),
        [&](std::int64_t e, std::int64_t first, std::int64_t count) {
          for (std::int64_t q = first; q < first + count; ++q)
            std::memcpy(to + (q * p.of.local + e) * p.of.block_bytes(),
                        static_cast<const char*>(sums) + (e * rows + q * p.of.rows) * row,
                        static_cast<std::size_t>(p.of.block_bytes()));
        },
        turn);
  });
  what.in = to;
  link.run(what, on);
}

// The two steps of a call that its groups take, of which either may be missing.
class scattered_call {
 public:
  scattered_call(const args& a, const problem& p, overlap_kernel::way how, core::execution& on)
      : a_(a), p_(p), how_(how), on_(on), y_(ops::data<void>(a.y)) {}

  void multiply_and_sum(problem& p, later_group& experts) const {
    comm::operation what = over_tensor(p);
    what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on_.isa));
    p.tensor.group->serve(p.tensor.ticket, what, [&](comm::transport& link, core::arena& scratch) {
      void* products = scratch.take(bytes_of_part(p) * static_cast<std::size_t>(p.of.tp));
      multiply_all(a_, p, how_, products, on_);
      what.in = products;
      what.out = experts.is_missing() ? y_ : scratch.take(bytes_of_part(p));
      link.run(what, on_);
      add_biases(a_, p_, how_, what.out, on_);
      if (!experts.is_missing()) exchange(experts, what.out);
    });
  }
  void multiply_alone(later_group& experts) const {
    if (experts.is_missing()) return multiply_into(y_);
    comm::operation& what = experts.what();
    what.out = y_;
    experts.serve([&](comm::transport& link, core::arena& scratch) {
      void* sums = scratch.take(bytes_of_part(p_));
      multiply_into(sums);
      send_back(p_, sums, what, link, scratch, on_);
    });
  }

 private:
  void multiply_into(void* sums) const {
    multiply_all(a_, p_, how_, sums, on_);
    add_biases(a_, p_, how_, sums, on_);
  }
  void exchange(later_group& experts, const void* sums) const {
    comm::operation& what = experts.what();
    what.out = y_;
    experts.serve([&](comm::transport& link, core::arena& scratch) {
      send_back(p_, sums, what, link, scratch, on_);
    });
  }

  const args& a_;
  const problem& p_;
  const overlap_kernel::way how_;
  core::execution& on_;
  void* const y_;
};

void run(const args& a, const problem& inferred, const overlap_kernel& kernel,
         core::execution& on) {
  problem p = inferred;
  later_group experts(p.experts, exchange_of(p), p.tensor.group != nullptr);
  const scattered_call call(a, p, kernel.how, on);
  p.tensor.group == nullptr ? call.multiply_alone(experts) : call.multiply_and_sum(p, experts);
}

const char* reject(const args&, const problem&, const ops::kernel_entry& kernel) {
  return is_sliced(kernel) ? "the products of all experts are summed at once" : nullptr;
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def bmm_reduce_scatter_all_to_all_operator =
    with_cost<sched::cost_of_experts<sched::args>>(
        define_waiting<sched::infer, sched::run, sched::reject, sched::enter_experts<sched::args>,
                       sched::drop_groups>(sched::overlap_kernel_list));

}  // namespace velo::ops
