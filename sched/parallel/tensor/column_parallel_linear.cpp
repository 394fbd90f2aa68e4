// column_parallel_linear and its gradient: a weight whose outputs are cut between ranks.
//
// With rows that are cut, too, x is gathered before the product and dx is scattered after it; with
// whole rows only dx is summed. x is gathered again for the weight's gradient where the forward
// pass kept none. In slices its rows travel with the sums of dx; otherwise the product for the
// weight's gradient runs while the last slices of dx arrive. The sums are not written before, so
// their bits are those of the calls apart.
#include <algorithm>
#include <cstring>

#include "ops/operator/widened.hpp"
#include "sched/parallel/tensor/linear.hpp"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;
using core::number;
using forward_args = velo_column_parallel_linear_args;
using gradient_args = velo_column_parallel_linear_backward_args;
using way = overlap_kernel::way;

// ---- forward ----

struct problem : linear_problem {
  bool gathers_output;
  std::int64_t first_output, all_outputs;  // of a row of y and dy: this rank's first, and all
};

// The outputs of each rank, where those of all are gathered.
row_parts outputs_of(const velo_ints* list, const linear_problem& p) {
  if (list == nullptr) return row_parts(p.n * p.ranks(), p.ranks());
  return row_parts(list->data, p.ranks(), 1);
}

void check_outputs(const velo_ints& list, const problem& p) {
  if (!p.gathers_output)
    fail(VELO_ERR_ARGUMENT, "args.columns", "NULL without gather_output", "a list");
  check_list(list, p.ranks(), "args.columns", "columns");
  if (const std::int64_t wanted = list.data[p.rank()]; p.n != wanted)
    fail(VELO_ERR_SHAPE, "args.weight.shape", concat(wanted, " rows, as args.columns says"),
         number(p.n));
  const std::int64_t sizes[] = {p.rows, p.lines, sum_of(list)};
  if (!ops::countable(3, sizes))
    fail(VELO_ERR_ARGUMENT, "args.columns", "columns that fit the rows", number(sum_of(list)));
}

// Ranks agree on the outputs of each.
void set_outputs(problem& p, const velo_ints* list) {
  if (list != nullptr) check_outputs(*list, p);
  p.first_output = 0, p.all_outputs = p.n;
  if (!p.gathers_output) return agree_on(p, 0);
  const row_parts parts = outputs_of(list, p);
  p.first_output = parts.of(p.rank()).begin, p.all_outputs = parts.rows();
  agree_on(p, list != nullptr ? hash_of(*list) : static_cast<std::uint64_t>(p.n) + 1);
}

template <class Args>
problem problem_of(const Args& a, const char* function, const velo_tensor& t, const char* name,
                   rows_of which) {
  problem p{linear_problem_of(fields_of(a), function, t, name, which), a.gather_output != 0, 0, 0};
  if (p.gathers_output && p.cuts_rows)
    fail(VELO_ERR_ARGUMENT, "args.gather_output", "0 with sequence_parallel", "1");
  set_outputs(p, a.columns);
  return p;
}

void infer(const forward_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a, "velo_column_parallel_linear", *a.x, "x", rows_of::this_rank);
  require_linear(*a.x, "x", p, shape_of(p, *a.x, rows_of::this_rank, p.k));
  require_bias(a.bias, p);
  require_pack(a.packed, p.dtype, p.k, p.n);
  agree_on(p, 1);
  p.communicates = p.in.group != nullptr && (p.cuts_rows || p.gathers_output);
  const linear_shape y = shape_of(p, *a.x, rows_of::all_ranks, p.all_outputs);
  outputs.set(a.y, p.dtype, y.rank, y.sizes);
  const linear_shape all = shape_of(p, *a.x, rows_of::all_ranks, p.k);
  constexpr std::int64_t none = 0;
  p.cuts_rows ? outputs.set(a.gathered, p.dtype, all.rank, all.sizes)
              : outputs.set(a.gathered, p.dtype, 1, &none);
}

comm::operation opening(const problem& p) {
  return opening_of(p, comm::collective::all_gather, p.gathers_output ? p.all_outputs : p.k);
}

// Copies the outputs of rank after rank, all rows of each, to their columns of y. widths: bytes of
// a row.
void join_columns(const problem& p, const comm::blocks& widths, const char* outputs, char* y,
                  core::execution& turn) {
  const std::int64_t row = p.all_outputs * p.element_bytes();
  turn.threads.slices(row == 0 ? 0 : p.m(), [&](std::int64_t i, int) {
    for (const auto& [begin, bytes] : widths)
      if (bytes > 0)
        std::memcpy(y + i * row + begin, outputs + begin * p.m() + i * bytes,
                    static_cast<std::size_t>(bytes));
  });
}

void multiply_all(const ops::gemm_problem& product, way how, core::execution& on) {
  in_turn(on, [&](core::execution& turn) { multiply(product, how, turn); });
}

// A running forward call in the group.
struct forward_call {
  const forward_args& a;
  const problem& p;
  const way how;
  core::execution& on;

  void gather_output(ops::gemm_problem product, comm::transport& link, core::arena& scratch) const {
    void* own = take_rows(p, p.m(), p.n, scratch);
    void* all = take_rows(p, p.m(), p.all_outputs, scratch);
    const row_parts parts = outputs_of(a.columns, p);
    product.c = own;
    multiply_all(product, how, on);
    comm::operation what = opening(p);
    what.set_count(p.m() * p.n);
    what.in = own, what.out = all;
    what.out_blocks = listed_blocks(parts, p.m());
    link.run(what, on);
    in_turn(on, [&](core::execution& turn) {
      join_columns(p, blocks_of(parts, p.element_bytes()), static_cast<const char*>(all),
                   ops::data<char>(a.y), turn);
    });
  }

  void gather_rows(ops::gemm_problem product, comm::transport& link, core::arena& scratch) const {
    const row_parts parts = parts_of(a.rows, p);
    comm::operation what = gather_of(p, parts, p.k);
    what.in = product.a;
    char* keep = a.gathered == nullptr ? nullptr : ops::data<char>(a.gathered);
    if (how == way::sliced) {
      const cut in = gather_cut(p, parts, p.k);
      mark_sliced(what, in.signature());
      const auto relay = link.begin_relay(what, on);
      return gather_in_slices({product, what, *relay, on, scratch, p.rank(), p.ranks(), in, parts},
                              keep);
    }
    what.out = keep != nullptr ? keep : take_rows(p, p.m(), p.k, scratch);
    link.run(what, on);
    product.a = what.out;
    multiply_all(product, how, on);
  }
};

void run_alone(const forward_args& a, const problem& p, ops::gemm_problem product, way how,
               core::execution& on) {
  in_turn(on, [&](core::execution& turn) {
    if (a.bias != nullptr) product.epilogue.bias = ops::widened(*a.bias, turn);
    multiply(product, how, turn);
    const std::int64_t bytes = p.m() * p.k * p.element_bytes();
    if (p.cuts_rows && a.gathered != nullptr && bytes > 0)
      std::memcpy(ops::data<void>(a.gathered), product.a, static_cast<std::size_t>(bytes));
  });
}

void run(const forward_args& a, const problem& p, const overlap_kernel& kernel,
         core::execution& on) {
  const auto product_by = [&](const weight_source& weight) {
    return output_product(p, ops::data<const void>(a.x), weight, ops::data<void>(a.y));
  };
  if (!p.communicates) {
    const weight_source weight(*a.weight, a.packed, kernel.how, on.isa);
    return run_alone(a, p, product_by(weight), kernel.how, on);
  }
  p.in.group->serve(p.in.ticket, opening(p), [&](comm::transport& link, core::arena& scratch) {
    const weight_source weight(*a.weight, a.packed, kernel.how, on.isa);
    ops::gemm_problem product = product_by(weight);
    if (a.bias != nullptr) product.epilogue.bias = ops::widened(*a.bias, scratch);
    const forward_call call{a, p, kernel.how, on};
    p.gathers_output ? call.gather_output(product, link, scratch)
                     : call.gather_rows(product, link, scratch);
  });
}

const char* reject(const forward_args& a, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (p.gathers_output) return "outputs are gathered after the product";
  if (!p.communicates) return "x is whole on this rank";
  if (const char* why = why_not_sliced(p)) return why;
  return gather_cut(p, parts_of(a.rows, p), p.k).pays() ? nullptr : too_small;
}

void enter(const forward_args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_linear(p, opening(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.communicates) p.in.group->drop(p.in.ticket, opening(p));
}

void count_flops(const forward_args&, const problem& p, ops::op_cost& cost) {
  add_products(p, 1, cost);
}

// ---- gradient ----

struct gradient_problem : problem {
  bool gathers_x, has_dx;
};

// Without sequence_parallel the forward call writes [0].
bool has_gathered(const gradient_args& a) {
  return a.gathered != nullptr && (a.gathered->ndim > 1 || ops::numel(*a.gathered) > 0);
}

void infer_gradient(const gradient_args& a, gradient_problem& p, ops::output_shapes& outputs) {
  p = gradient_problem{
      problem_of(a, "velo_column_parallel_linear_backward", *a.dy, "dy", rows_of::all_ranks), false,
      a.dx != nullptr};
  const velo_tensor& dy = *a.dy;
  require_linear(dy, "dy", p, shape_of(p, dy, rows_of::all_ranks, p.all_outputs));
  const linear_shape own = shape_of(p, dy, rows_of::this_rank, p.k);
  if (a.x != nullptr) require_linear(*a.x, "x", p, own);
  if (has_gathered(a)) {
    if (!p.cuts_rows)
      fail(VELO_ERR_ARGUMENT, "args.gathered", "NULL without sequence_parallel", "a tensor");
    require_linear(*a.gathered, "gathered", p, shape_of(p, dy, rows_of::all_ranks, p.k));
  } else if (a.dweight != nullptr) {
    ops::require_given(a.x, "x");
  }
  require_pack(a.packed, p.dtype, p.n, p.k);
  outputs.set(a.dx, p.dtype, own.rank, own.sizes);
  infer_weight_gradients(a, p, outputs);
  p.gathers_x = p.cuts_rows && p.in.group != nullptr && a.dweight != nullptr && !has_gathered(a);
  p.communicates = p.in.group != nullptr && (p.has_dx || p.gathers_x);
  agree_on(p, 2 + (p.has_dx ? 4 : 0) + (p.gathers_x ? 8 : 0));
}

comm::operation gradient_opening(const gradient_problem& p) {
  const auto sum = p.cuts_rows ? comm::collective::reduce_scatter : comm::collective::all_reduce;
  return opening_of(p, p.gathers_x ? comm::collective::all_gather : sum, p.k);
}

// The blocks of a piece: those for peers, and rows of x or sums of this rank.
cut gradient_cut(const gradient_problem& p, const row_parts& parts) {
  return sum_cut(p, parts, p.k, p.cuts_rows && !p.gathers_x ? p.ranks() - 1 : p.ranks());
}

// A running call of the gradient.
struct gradient_call {
  const gradient_args& a;
  const gradient_problem& p;
  const way how;
  core::execution& on;
  const weight_source weight{*a.weight, a.dx == nullptr ? nullptr : a.packed, how, on.isa};

  ops::gemm_problem dx_product() const {
    return input_product(p, dy(), p.all_outputs, weight,
                         a.dx == nullptr ? nullptr : ops::data<void>(a.dx));
  }
  void multiply_rest(const void* all_x) const {
    multiply_weight_gradients(p, weight_gradients_of(a), dy(), p.all_outputs, all_x, how, on);
  }
  // x of all ranks, where it need not be gathered.
  const void* known_x() const {
    const velo_tensor* x = has_gathered(a) ? a.gathered : a.x;
    return x == nullptr ? nullptr : ops::data<const void>(x);
  }

  void one_after_another(comm::transport& link, core::arena& scratch) const {
    const row_parts parts = parts_of(a.rows, p);
    const void* all_x = known_x();
    if (p.gathers_x) {
      comm::operation gather = gather_of(p, parts, p.k);
      gather.in = ops::data<const void>(a.x);
      gather.out = take_rows(p, p.m(), p.k, scratch);
      link.run(gather, on);
      all_x = gather.out;
    }
    if (p.has_dx) sum_dx(parts, link, scratch);
    multiply_rest(all_x);
  }

  void in_slices(comm::transport& link, core::arena& scratch) const {
    const row_parts parts = p.cuts_rows ? parts_of(a.rows, p) : row_parts(p.m(), p.ranks());
    const cut in = gradient_cut(p, parts);
    const ops::gemm_problem product = dx_product();
    comm::operation what = p.cuts_rows ? scatter_of(p, parts, p.k, on) : all_reduce_of(p, p.k, on);
    what.in = p.gathers_x ? ops::data<const void>(a.x) : product.c;
    mark_sliced(what, in.signature(sliced_product::panel(product, on.isa)));
    const auto relay = link.begin_relay(what, on);
    slicing s{product, what, *relay, on, scratch, p.rank(), p.ranks(), in, parts};
    if (p.gathers_x) {
      s.carried = static_cast<char*>(take_rows(p, p.m(), p.k, scratch));
    } else {
      s.meanwhile = [this] { multiply_rest(known_x()); };
    }
    p.cuts_rows ? reduce_scatter_in_slices(s, {&product.a, {product.m, 1}})
                : all_reduce_in_slices(s);
    if (p.gathers_x) multiply_rest(s.carried);
  }

 private:
  const void* dy() const {
    return ops::data<const char>(a.dy) + p.first_output * p.element_bytes();
  }
  void sum_dx(const row_parts& parts, comm::transport& link, core::arena& scratch) const {
    ops::gemm_problem product = dx_product();
    comm::operation what = p.cuts_rows ? scatter_of(p, parts, p.k, on) : all_reduce_of(p, p.k, on);
    what.out = product.c;
    if (p.cuts_rows) product.c = take_rows(p, p.m(), p.k, scratch);
    what.in = product.c;
    multiply_all(product, how, on);
    link.run(what, on);
  }
};

void run_gradient(const gradient_args& a, const gradient_problem& p, const overlap_kernel& kernel,
                  core::execution& on) {
  if (!p.communicates) {
    const gradient_call call{a, p, kernel.how, on};
    if (p.has_dx) multiply_all(call.dx_product(), kernel.how, on);
    return call.multiply_rest(call.known_x());
  }
  p.in.group->serve(p.in.ticket, gradient_opening(p),
                    [&](comm::transport& link, core::arena& scratch) {
                      const gradient_call call{a, p, kernel.how, on};
                      kernel.how == way::sliced ? call.in_slices(link, scratch)
                                                : call.one_after_another(link, scratch);
                    });
}

const char* reject_gradient(const gradient_args& a, const gradient_problem& p,
                            const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (!p.has_dx) return "no dx is wanted, whose sum is sliced";
  if (const char* why = why_not_sliced(p)) return why;
  const row_parts parts = p.cuts_rows ? parts_of(a.rows, p) : row_parts(p.m(), p.ranks());
  return gradient_cut(p, parts).pays() ? nullptr : too_small;
}

void enter_gradient(const gradient_args&, gradient_problem& p, core::stream& on,
                    const ops::enqueue& put) {
  enter_linear(p, gradient_opening(p), on, put);
}

void drop_gradient(const gradient_problem& p) noexcept {
  if (p.communicates) p.in.group->drop(p.in.ticket, gradient_opening(p));
}

void count_gradient_flops(const gradient_args& a, const gradient_problem& p, ops::op_cost& cost) {
  add_products(p, (a.dx != nullptr ? 1 : 0) + (a.dweight != nullptr ? 1 : 0), cost);
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def column_parallel_linear_operator = with_cost<sched::count_flops>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list));
extern const operator_def column_parallel_linear_backward_operator =
    with_cost<sched::count_gradient_flops>(
        define_waiting<sched::infer_gradient, sched::run_gradient, sched::reject_gradient,
                       sched::enter_gradient, sched::drop_gradient>(sched::overlap_kernel_list));

}  // namespace velo::ops
