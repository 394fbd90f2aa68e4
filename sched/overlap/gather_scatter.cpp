// all_gather_matmul, matmul_reduce_scatter, and their composition: rows are gathered over one group
// and multiplied, and the sum over another group is scattered to its ranks.
//
// A missing group means this rank alone, and its collective is skipped. Rows are divided along the
// first dimension, evenly or by a list, so each rank's rows are contiguous. Ranks agree on a list
// before rows move: its hash is in the terms of the call. Intermediate buffers are in the memory of
// the group that is served. The sliced way (slices.hpp) multiplies rows in place or from slots, and
// sums the blocks that peers posted. The bits equal those of the separate calls. A bias is added to
// rounded sums; without a group to sum over, to the sums of the product before they are rounded.
// Rows beside the sum (args.beside) are gathered over the group of the sum: in slices each piece
// carries rows of them with the blocks of the same rows; otherwise before the sum.
#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

#include "ops/operator/widened.hpp"
#include "sched/overlap/slices.hpp"
#include "sched/overlap/weight_source.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;

struct problem : overlap_problem {
  membership gathering, scattering;
  const char* function;
  std::int64_t lines;                           // matrix rows of each row of the first dimension
  std::int64_t x_count, y_rows, y_count;        // of this rank: elements, matrix rows
  std::uint64_t gather_hash, scatter_hash;      // of the lists; 0: equal parts
  bool carries;                                 // rows beside the sum
  const velo_ints *gather_rows, *scatter_rows;  // of the running call, or nullptr
  const void *x, *beside;
  void *gathered, *y, *all_beside;  // of the running call
  const velo_tensor *weight, *bias;
  velo_pack packed;
};

// The fields that the three operators share.
struct fields {
  const velo_tensor *x, *weight, *bias;
  // gathered: nullptr if the operator has no such field
  const velo_tensor *const *y, *const *gathered;
  bool transpose_weight;
  std::int64_t slices;
  velo_pack packed;
  const velo_ints *gather_rows, *scatter_rows;
  const velo_tensor* beside = nullptr;
  const velo_tensor* const* all_beside = nullptr;  // nullptr if the operator has no such field
};
template <class Args>
fields fields_of(const Args& a, const velo_tensor* const* gathered, const velo_ints* gather_rows,
                 const velo_ints* scatter_rows) {
  fields f;
  f.x = a.x, f.weight = a.weight, f.bias = a.bias, f.y = &a.y, f.gathered = gathered;
  f.transpose_weight = a.transpose_weight != 0, f.slices = a.parallel_num, f.packed = a.packed;
  f.gather_rows = gather_rows, f.scatter_rows = scatter_rows;
  return f;
}
fields fields_of(const velo_all_gather_matmul_args& a) {
  return fields_of(a, &a.gathered, a.rows, nullptr);
}
fields fields_of(const velo_matmul_reduce_scatter_args& a) {
  return fields_of(a, nullptr, nullptr, a.rows);
}
fields fields_of(const velo_all_gather_matmul_reduce_scatter_args& a) {
  fields f = fields_of(a, &a.gathered, a.gather_rows, a.scatter_rows);
  f.beside = a.beside, f.all_beside = &a.beside_gathered;
  return f;
}

// The names of the lists.
template <class Args>
constexpr bool has_two_groups = std::is_same_v<Args, velo_all_gather_matmul_reduce_scatter_args>;
template <class Args>
constexpr const char* gather_list = has_two_groups<Args> ? "args.gather_rows" : "args.rows";
template <class Args>
constexpr const char* scatter_list = has_two_groups<Args> ? "args.scatter_rows" : "args.rows";

void set_members(const velo_all_gather_matmul_args& a, problem& p) {
  p.gathering = membership_in(a.group, "args.group");
  p.function = "velo_all_gather_matmul";
}
void set_members(const velo_matmul_reduce_scatter_args& a, problem& p) {
  p.scattering = membership_in(a.group, "args.group");
  p.function = "velo_matmul_reduce_scatter";
}
void set_members(const velo_all_gather_matmul_reduce_scatter_args& a, problem& p) {
  p.gathering = membership_in(a.gather_group, "args.gather_group");
  p.scattering = membership_in(a.scatter_group, "args.scatter_group");
  if (p.gathering.group != nullptr && p.gathering.group == p.scattering.group)
    fail(VELO_ERR_ARGUMENT, "args.scatter_group", "another group than gather_group", "the same");
  p.function = "velo_all_gather_matmul_reduce_scatter";
}

// The rows of all gathering ranks, of which x has this rank's.
std::int64_t rows_gathered(const fields& f, const membership& in, const char* list) {
  std::int64_t all = f.x->shape[0];
  if (f.gather_rows != nullptr) {
    check_list(*f.gather_rows, in.size(), list);
    if (const std::int64_t wanted = f.gather_rows->data[in.rank()]; all != wanted)
      fail(VELO_ERR_SHAPE, "args.x.shape", concat(wanted, " rows, as ", list, " says"),
           core::number(all));
    return sum_of(*f.gather_rows);
  }
  if (__builtin_mul_overflow(all, std::int64_t{in.size()}, &all))
    ops::refuse_sizes(f.x->ndim, f.x->shape, "args.x.shape");
  return all;
}

// The rows of `all` whose sums this rank receives.
std::int64_t rows_scattered(const fields& f, const membership& in, const char* list,
                            std::int64_t all) {
  if (f.scatter_rows != nullptr) {
    check_list(*f.scatter_rows, in.size(), list);
    if (const std::int64_t sum = sum_of(*f.scatter_rows); sum != all)
      fail(VELO_ERR_ARGUMENT, list, concat("a sum of ", all, ", the rows of the product"),
           core::number(sum));
    return f.scatter_rows->data[in.rank()];
  }
  if (all % in.size() != 0)
    fail(VELO_ERR_SHAPE, "args.x.shape",
         concat("a first dimension that divides by ", in.size(), " ranks, or ", list),
         core::number(all));
  return all / in.size();
}

// The lists belong to the call's arguments, which a queued call copies, so each call sets its own.
void set_lists(const fields& f, problem& p) {
  p.gather_rows = f.gather_rows, p.scatter_rows = f.scatter_rows;
}

// Checks the rows beside the sum, which have the shape of y. all: that of all ranks' rows of y.
void set_beside(const fields& f, problem& p, std::int64_t (&all)[ops::max_rank],
                std::int64_t own_rows, ops::output_shapes& outputs) {
  constexpr std::int64_t none = 0;
  if (f.all_beside == nullptr) return;
  if (f.beside == nullptr) return outputs.set(*f.all_beside, p.dtype, 1, &none);
  ops::require_dtype(*f.beside, "beside", p.dtype);
  outputs.set(*f.all_beside, p.dtype, f.x->ndim, all);
  all[0] = own_rows;
  ops::require_shape(*f.beside, "beside", f.x->ndim, all);
  p.carries = *f.all_beside != nullptr;
}

std::uint64_t hash_of_list(const velo_ints* list) {
  return list == nullptr ? 0 : hash_of(*list);
}

template <class Args>
void infer(const Args& a, problem& p, ops::output_shapes& outputs) {
  const fields f = fields_of(a);
  p = problem{};
  static_cast<overlap_problem&>(p) = problem_of(*f.x, *f.weight, f.transpose_weight, f.slices);
  require_bias(f.bias, p.product.n, p.dtype);
  require_pack(f.packed, p.dtype, p.product.k, p.product.n);
  set_members(a, p);
  std::int64_t shape[ops::max_rank];
  std::copy(f.x->shape, f.x->shape + f.x->ndim, shape);
  const int last = f.x->ndim - 1;
  shape[0] = rows_gathered(f, p.gathering, gather_list<Args>);
  if (!ops::countable(f.x->ndim, shape)) ops::refuse_sizes(f.x->ndim, f.x->shape, "args.x.shape");
  if (f.gathered != nullptr) outputs.set(*f.gathered, p.dtype, f.x->ndim, shape);
  p.lines = 1;
  for (int i = 1; i < last; ++i) p.lines *= shape[i];
  p.product.m = shape[0] * p.lines;
  choose_slices(p, p.scattering.group != nullptr ? p.scattering : p.gathering);
  const std::int64_t own_rows = rows_scattered(f, p.scattering, scatter_list<Args>, shape[0]);
  shape[last] = p.product.n;
  set_beside(f, p, shape, own_rows, outputs);
  shape[0] = own_rows;
  outputs.set(*f.y, p.dtype, f.x->ndim, shape);
  p.x_count = ops::numel(*f.x);
  p.y_rows = own_rows * p.lines, p.y_count = p.y_rows * p.product.n;
  p.gather_hash = hash_of_list(f.gather_rows), p.scatter_hash = hash_of_list(f.scatter_rows);
}

// The terms of a call with a list have the elements of all ranks together.
comm::operation gather_of(const problem& p) {
  const std::int64_t all = p.product.m * p.product.k;
  comm::operation what = operation_of(p, comm::collective::all_gather,
                                      p.gather_hash != 0 ? all : p.x_count, p.function);
  if (p.gather_hash != 0) what.terms.require_same(p.gather_hash);
  what.set_count(p.x_count);
  what.out_count = all;
  return what;
}

comm::operation scatter_of(const problem& p) {
  comm::operation what =
      operation_of(p, comm::collective::reduce_scatter, p.product.m * p.product.n, p.function);
  if (p.scatter_hash != 0 || p.carries)
    what.terms.require_same(comm::mixed(p.scatter_hash * 2 + p.carries));
  what.out_count = p.y_count;
  what.set_count(p.y_count);
  return what;
}

row_parts parts_of(const velo_ints* list, const membership& in, const problem& p) {
  if (list == nullptr) return row_parts(p.product.m, in.size());
  return row_parts(list->data, in.size(), p.lines);
}
row_parts gathered_parts(const problem& p) {
  return parts_of(p.gather_rows, p.gathering, p);
}
row_parts scattered_parts(const problem& p) {
  return parts_of(p.scatter_rows, p.scattering, p);
}

// Returns the buffer between two parts: the caller's if there is one, else memory of the group.
void* buffer_for(std::int64_t elements, void* given, const problem& p, core::arena& scratch) {
  if (given != nullptr) return given;
  return scratch.take(static_cast<std::size_t>(elements * (p.dtype.bits / 8)));
}

weight_source source_of(const problem& p, overlap_kernel::way how, const core::execution& on) {
  return {*p.weight, p.packed, how, on.isa};
}

void multiply_all(const problem& p, overlap_kernel::way how, core::execution& on) {
  in_turn(on, [&](core::execution& turn) { multiply(p.product, how, turn); });
}

// Computes y of a rank that has no sum: the bias is added before the product is rounded.
void multiply_into_y(problem& p, overlap_kernel::way how, core::execution& on) {
  const weight_source weight = source_of(p, how, on);
  weight.set(p.product);
  p.product.c = p.y;
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    if (p.bias != nullptr) p.product.epilogue.bias = ops::widened(*p.bias, turn);
    multiply(p.product, how, turn);
  });
}

void add_bias_to_sums(const problem& p, overlap_kernel::way how, core::execution& on) {
  if (p.bias == nullptr) return;
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    add_bias(p.product, ops::widened(*p.bias, turn), {p.y, p.y_rows, p.product.n}, how, turn);
  });
}

// scatter_cut: how the rows that each rank receives are cut, with a block for each peer, and one
// of the rows beside the sum. gather_cut: how posted rows are cut.
cut scatter_cut(const problem& p) {
  const int blocks = p.scattering.size() - (p.carries ? 0 : 1);
  return cut({scattered_parts(p).most(), p.product.n, p.dtype.bits / 8, blocks, false, p.slices},
             p.scattering.group->relay_slot_bytes());
}
cut gather_cut(const problem& p) {
  return cut({gathered_parts(p).most(), p.product.k, p.dtype.bits / 8, 1, true, p.slices},
             p.gathering.group->relay_slot_bytes());
}

// Gathers the rows beside the sum before it.
void gather_beside(const problem& p, comm::transport& link, core::execution& on) {
  if (!p.carries) return;
  comm::operation what =
      operation_of(p, comm::collective::all_gather, p.product.m * p.product.n, p.function);
  what.terms.require_same(comm::mixed(p.scatter_hash * 2 + 1));
  what.set_count(p.y_count);
  what.in = p.beside, what.out = p.all_beside;
  what.out_blocks = listed_blocks(scattered_parts(p), p.product.n);
  link.run(what, on);
}

void copy_beside_alone(const problem& p) {
  const std::int64_t bytes = p.y_count * (p.dtype.bits / 8);
  if (p.carries && bytes > 0) std::memcpy(p.all_beside, p.beside, static_cast<std::size_t>(bytes));
}

// Computes y from gathered rows.
void multiply_and_scatter(problem& p, const row_source& rows, overlap_kernel::way how,
                          core::execution& on) {
  if (p.scattering.group == nullptr) return multiply_into_y(p, how, on);
  comm::operation what = scatter_of(p);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.scattering.group->serve(
      p.scattering.ticket, what, [&](comm::transport& link, core::arena& scratch) {
        const weight_source weight = source_of(p, how, on);
        weight.set(p.product);
        if (how == overlap_kernel::way::sliced) {
          const cut in = scatter_cut(p);
          what.in = p.beside;
          mark(what, in.signature(sliced_product::panel(p.product, on.isa)));
          const auto relay = link.begin_relay(what, on);
          p.product.c = p.y;
          const row_parts parts = scattered_parts(p);
          slicing s{p.product,           what, *relay, on, scratch, p.scattering.group->rank(),
                    p.scattering.size(), in,   parts};
          if (p.bias != nullptr) s.bias = ops::widened(*p.bias, scratch);
          if (p.carries) s.carried = static_cast<char*>(p.all_beside);
          return reduce_scatter_in_slices(s, rows);
        }
        gather_beside(p, link, on);
        p.product.c = buffer_for(p.product.m * p.product.n, nullptr, p, scratch);
        multiply_all(p, how, on);
        what.in = p.product.c;
        what.in_blocks = listed_blocks(scattered_parts(p), p.product.n);
        what.out = p.y;
        link.run(what, on);
        add_bias_to_sums(p, how, on);
      });
}

void drop_scattering(const problem& p) noexcept {
  if (p.scattering.group != nullptr) p.scattering.group->drop(p.scattering.ticket, scatter_of(p));
}

void drop(const problem& p) noexcept {
  if (p.gathering.group != nullptr) p.gathering.group->drop(p.gathering.ticket, gather_of(p));
  drop_scattering(p);
}

row_source one_matrix(const problem& p) {
  return {&p.product.a, {p.product.m, 1}};
}

// Runs the part of a call in the gathering group; `then` continues with the rows.
using continuation = std::function<void(const row_source&)>;
void gather(problem& p, comm::operation& what, comm::transport& link, core::arena& scratch,
            core::execution& on, const continuation& then) {
  what.out = buffer_for(what.out_count, p.gathered, p, scratch);
  what.out_blocks = listed_blocks(gathered_parts(p), p.product.k);
  link.run(what, on);
  p.product.a = what.out;
  then(one_matrix(p));
}

void gather_and_multiply(problem& p, comm::operation& what, comm::transport& link,
                         core::arena& scratch, core::execution& on) {
  const cut in = gather_cut(p);
  mark(what, in.signature());
  const auto relay = link.begin_relay(what, on);
  const weight_source weight = source_of(p, overlap_kernel::way::sliced, on);
  weight.set(p.product);
  p.product.c = p.y;
  if (p.bias != nullptr) p.product.epilogue.bias = ops::widened(*p.bias, scratch);
  const row_parts parts = gathered_parts(p);
  gather_in_slices({p.product, what, *relay, on, scratch, p.gathering.group->rank(),
                    p.gathering.size(), in, parts},
                   static_cast<char*>(p.gathered));
}

std::int64_t row_bytes(const problem& p) {
  return p.product.k * (p.dtype.bits / 8);
}

void post_rows(const problem& p, comm::operation& what, comm::transport& link, core::execution& on,
               const continuation& then) {
  mark(what, 1);  // differs from a plain gather and from slices
  const auto relay = link.begin_relay(what, on);
  posted_rows posted(what, *relay, on, p.gathering.group->rank(), gathered_parts(p), row_bytes(p));
  if (p.gathered != nullptr) posted.keep(p.gathered);
  then(posted.rows());
  posted.end();
}

// A failure before the call is served in the scattering group drops its ticket there.
void gather_and_continue(problem& p, overlap_kernel::way how, core::execution& on) {
  comm::operation what = gather_of(p);
  what.in = p.x;
  const bool sliced = how == overlap_kernel::way::sliced;
  const bool posts = sliced && posted_rows::fit(gathered_parts(p).most() * row_bytes(p),
                                                p.gathering.group->relay_slot_bytes());
  p.scattering.ticket.begun = false;  // begins when it is served, within the gathering's time
  bool gathered = false;
  const auto then = [&](const row_source& rows) {
    gathered = true;
    p.product.a = rows.matrices[0];
    multiply_and_scatter(p, rows, how, on);
  };
  try {
    p.gathering.group->serve(p.gathering.ticket, what,
                             [&](comm::transport& link, core::arena& scratch) {
                               if (sliced && p.scattering.group == nullptr) {
                                 gather_and_multiply(p, what, link, scratch, on);
                               } else if (posts) {
                                 post_rows(p, what, link, on, then);
                               } else {
                                 gather(p, what, link, scratch, on, then);
                               }
                             });
  } catch (...) {
    if (!gathered) drop_scattering(p);
    throw;
  }
}

template <class Args>
void run(const Args& a, const problem& inferred, const overlap_kernel& kernel,
         core::execution& on) {
  const fields f = fields_of(a);
  problem p = inferred;
  p.x = p.product.a = ops::data<const void>(f.x);
  p.weight = f.weight, p.packed = f.packed;
  p.y = ops::data<void>(*f.y);
  p.bias = f.bias;
  set_lists(f, p);
  p.gathered = f.gathered == nullptr ? nullptr : ops::data<void>(*f.gathered);
  if (p.carries) p.beside = ops::data<const void>(f.beside);
  if (p.carries) p.all_beside = ops::data<void>(*f.all_beside);
  copy_beside_alone(p);
  if (p.gathering.group != nullptr) return gather_and_continue(p, kernel.how, on);
  if (p.gathered != nullptr && p.x_count > 0)
    std::memcpy(p.gathered, p.x, static_cast<std::size_t>(p.x_count * (p.dtype.bits / 8)));
  multiply_and_scatter(p, one_matrix(p), kernel.how, on);
}

template <class Args>
const char* reject(const Args& a, const problem& inferred, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  problem p = inferred;
  set_lists(fields_of(a), p);
  const bool scatters = p.scattering.group != nullptr;
  const char* why = why_not_sliced(scatters ? p.scattering : p.gathering, p);
  if (why != nullptr) return why;
  return (scatters ? scatter_cut(p) : gather_cut(p)).pays() ? nullptr : too_small;
}

template <class Args>
void enter(const Args&, problem& p, core::stream& on, const ops::enqueue& put) {
  constexpr bool both = has_two_groups<Args>;
  enter_both({&p.gathering, both ? "args.gather_group" : "args.group", gather_of(p)},
             {&p.scattering, both ? "args.scatter_group" : "args.group", scatter_of(p)}, on, put);
}

template <class Args>
constexpr ops::operator_def definition() {
  return ops::with_cost<cost_of<Args, problem>>(
      ops::define_waiting<infer<Args>, run<Args>, reject<Args>, enter<Args>, drop>(
          overlap_kernel_list));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def all_gather_matmul_operator =
    sched::definition<velo_all_gather_matmul_args>();
extern const operator_def matmul_reduce_scatter_operator =
    sched::definition<velo_matmul_reduce_scatter_args>();
extern const operator_def all_gather_matmul_reduce_scatter_operator =
    sched::definition<velo_all_gather_matmul_reduce_scatter_args>();

}  // namespace velo::ops
