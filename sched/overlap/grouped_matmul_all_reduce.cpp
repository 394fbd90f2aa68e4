// grouped_matmul_all_reduce: y[e] = sum over ranks of x[e] @ weight[e], with every rank's product
// rounded to y's dtype, and a bias added to the rounded sum.
//
// The results of all groups lie one after another in one matrix, which is y where y is one tensor,
// else memory of the group. In the sliced way they are one product, whose rows have the weights of
// their groups: a slice takes no notice of the groups (slices.hpp). It needs results of one width.
// Otherwise all products are one parallel region (ops/gemm/gemm_groups.hpp), and one all_reduce
// sums them. Rows get their bias, and go to the tensors of a list, when their sums have arrived.
// Cost: that of matmul_all_reduce; where y is a list, a copy of y more.
#include <algorithm>
#include <cstring>

#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/gemm_groups.hpp"
#include "ops/matmul/group_list.hpp"
#include "ops/operator/output_shapes.hpp"
#include "ops/operator/widened.hpp"
#include "sched/overlap/slices.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using args = velo_grouped_matmul_all_reduce_args;
using core::concat;
using core::fail;
using core::number;
using ops::operator==;

struct problem : overlap_problem {
  membership in;
  std::int64_t groups, elements;  // elements: of y
  bool one_width;                 // all results have as many columns
  double flops;
  std::uint64_t signature;  // of what must be the same on all ranks
};

bool has_one_x(const args& a) {
  return a.split_item == VELO_GROUPED_SPLIT_ONE_X || a.split_item == VELO_GROUPED_SPLIT_ONE;
}
bool has_one_y(const args& a) {
  return a.split_item == VELO_GROUPED_SPLIT_ONE_Y || a.split_item == VELO_GROUPED_SPLIT_ONE;
}

// ---- checks ----

void require_tensors(const velo_tensors& list, std::int64_t count, const char* field) {
  if (list.count != count)
    fail(VELO_ERR_ARGUMENT, concat("args.", field, ".count"), number(count), number(list.count));
}

// How many groups there are, by x and the list.
std::int64_t groups_of(const args& a) {
  if (!has_one_x(a)) {
    if (a.group_list != nullptr)
      fail(VELO_ERR_ARGUMENT, "args.group_list", "NULL where x is a list", "a list");
    if (a.x->count < 1) fail(VELO_ERR_ARGUMENT, "args.x.count", "at least 1", number(a.x->count));
    return a.x->count;
  }
  require_tensors(*a.x, 1, "x");
  ops::require_rank(a.x->data[0], "x[0]", 2, 2);
  if (a.group_list == nullptr)
    fail(VELO_ERR_NULL, "args.group_list", "a list where x is one tensor", "NULL");
  const std::int64_t groups =
      ops::group_list{a.group_list, nullptr, false}.require(a.x->data[0].shape[0]);
  if (groups < 1) fail(VELO_ERR_ARGUMENT, "args.group_list.count", "at least 1", number(groups));
  return groups;
}

// Whether one tensor has the weights of all groups.
bool has_one_weight(const args& a, std::int64_t groups) {
  return a.weight->count == 1 && (groups > 1 || a.weight->data[0].ndim == 3);
}

// A group's product. Rows and results are counted from the first group's.
struct part {
  std::int64_t row, rows, k, n;
  std::int64_t first;  // element of the results
  const velo_tensor *x, *weight;
  std::int64_t x_first, weight_first;  // elements of the tensors
};

// Calls f(e, part) for each group.
template <class F>
void each_part(const args& a, std::int64_t groups, const F& f) {
  const bool one_x = has_one_x(a), one_weight = has_one_weight(a, groups);
  part p{};
  for (std::int64_t e = 0; e < groups; ++e) {
    p.x = a.x->data + (one_x ? 0 : e);
    p.weight = a.weight->data + (one_weight ? 0 : e);
    p.rows = one_x ? a.group_list->data[e] - p.row : p.x->shape[0];
    p.k = p.x->shape[1], p.n = p.weight->shape[p.weight->ndim - 1];
    p.x_first = one_x ? p.row * p.k : 0;
    p.weight_first = one_weight ? e * p.k * p.n : 0;
    f(e, p);
    p.row += p.rows, p.first += p.rows * p.n;
  }
}

// A field of a list, as messages name it.
core::text name_of(const char* field, std::int64_t e) {
  return concat(field, "[", e, "]");
}

void require_inputs(const args& a, std::int64_t groups) {
  const velo_dtype dtype = a.x->data[0].dtype;
  for (std::int64_t e = 0; e < a.x->count; ++e) {
    ops::require_rank(a.x->data[e], name_of("x", e).buffer, 2, 2);
    ops::require_dtype(a.x->data[e], name_of("x", e).buffer, dtype);
  }
  const bool one = has_one_x(a) && has_one_weight(a, groups);
  if (!one) require_tensors(*a.weight, groups, "weight");
  for (std::int64_t e = 0; e < a.weight->count; ++e) {
    const velo_tensor& w = a.weight->data[e];
    const std::int64_t k = a.x->data[has_one_x(a) ? 0 : e].shape[1];
    const core::text name = name_of("weight", e);
    ops::require_rank(w, name.buffer, 2, one ? 3 : 2);
    ops::require_dtype(w, name.buffer, dtype);
    std::int64_t rows = k;
    if (one && w.ndim == 2 && __builtin_mul_overflow(groups, k, &rows))
      ops::refuse_sizes(2, w.shape, "args.weight[0].shape");
    const std::int64_t n = w.shape[w.ndim - 1];
    const std::int64_t flat[] = {rows, n}, stacked[] = {groups, k, n};
    ops::require_shape(w, name.buffer, w.ndim, w.ndim == 3 ? stacked : flat);
    if (std::max(k, n) >= std::int64_t{1} << 31)
      fail(VELO_ERR_SHAPE, concat("args.", name.buffer, ".shape"), "sizes below 2^31",
           ops::shape_name(w.ndim, w.shape));
  }
}

void require_biases(const args& a, const problem& p) {
  if (a.bias == nullptr) return;
  require_tensors(*a.bias, p.groups, "bias");
  each_part(a, p.groups, [&](std::int64_t e, const part& one) {
    require_columns(a.bias->data[e], name_of("bias", e).buffer, one.n);
    ops::require_f32_or(a.bias->data[e], name_of("bias", e).buffer, p.dtype);
  });
}

void require_results(const args& a, const problem& p) {
  if (a.y == nullptr) return;
  const bool one = has_one_y(a);
  require_tensors(*a.y, one ? 1 : p.groups, "y");
  each_part(a, p.groups, [&](std::int64_t e, const part& of) {
    const std::int64_t shape[] = {one ? p.product.m : of.rows, of.n};
    const velo_tensor& y = a.y->data[one ? 0 : e];
    ops::require_dtype(y, name_of("y", one ? 0 : e).buffer, p.dtype);
    ops::require_shape(y, name_of("y", one ? 0 : e).buffer, 2, shape);
  });
}

void infer(const args& a, problem& p, ops::output_shapes&) {
  p = problem{};
  p.groups = groups_of(a);
  require_inputs(a, p.groups);
  p.dtype = a.x->data[0].dtype;
  p.one_width = true;
  p.signature = static_cast<std::uint64_t>(p.groups);
  each_part(a, p.groups, [&](std::int64_t e, const part& one) {
    if (e == 0) p.product.k = one.k, p.product.n = one.n;
    p.one_width = p.one_width && one.n == p.product.n;
    p.flops += 2.0 * static_cast<double>(one.rows) * static_cast<double>(one.n) *
               static_cast<double>(one.k);
    const std::int64_t result[] = {one.rows, one.n};
    if (!ops::countable(2, result) ||
        __builtin_add_overflow(p.elements, one.rows * one.n, &p.elements) ||
        __builtin_add_overflow(p.product.m, one.rows, &p.product.m))
      ops::refuse_sizes(2, result, concat("args.", name_of("x", e).buffer, ".shape").buffer);
    p.signature = comm::mixed(p.signature + static_cast<std::uint64_t>(one.rows) + 1);
    p.signature = comm::mixed(p.signature + static_cast<std::uint64_t>(one.n) + 1);
  });
  require_biases(a, p);
  require_results(a, p);
  p.product.type = p.product.c_type = ops::type_of(p.dtype);
  p.product.lda = p.product.k, p.product.ldb = p.product.ldc = p.product.n;
  p.slices = a.parallel_num;
  p.in = membership_in(a.group, "args.group");
  choose_slices(p, p.in);
}

comm::operation reduction_of(const problem& p) {
  comm::operation what =
      operation_of(p, comm::collective::all_reduce, p.elements, "velo_grouped_matmul_all_reduce");
  what.terms.require_same(p.signature);
  return what;
}

cut cut_of(const problem& p) {
  const int ranks = p.in.size();
  return cut(
      {row_parts(p.product.m, ranks).most(), p.product.n, p.dtype.bits / 8, ranks, false, p.slices},
      p.in.group->relay_slot_bytes());
}

// ---- a call ----

// What a call works on: its groups, and the matrix of all results.
class grouped_call {
 public:
  grouped_call(const args& a, const problem& p, overlap_kernel::way how, core::arena& scratch)
      : a_(a), p_(p), how_(how), scratch_(scratch), bytes_(p.dtype.bits / 8) {
    const auto count = static_cast<std::size_t>(p.groups);
    parts_ = scratch.take<part>(count);
    each_part(a, p.groups, [&](std::int64_t e, const part& one) { parts_[e] = one; });
    if (a.bias != nullptr) {
      bias_ = scratch.take<const float*>(count);
      for (std::int64_t e = 0; e < p.groups; ++e) bias_[e] = ops::widened(a.bias->data[e], scratch);
    }
    results_ = has_one_y(a) ? ops::data<void>(a.y->data)
                            : scratch.take(static_cast<std::size_t>(p.elements * bytes_));
  }

  void* results() const { return results_; }

  // All products of this rank; of a rank alone into y. Without biases.
  void multiply_all(bool alone, core::execution& turn) const {
    const core::scratch_scope scope(turn.scratch);
    auto* products = turn.scratch.take<ops::gemm_problem>(static_cast<std::size_t>(p_.groups));
    for (std::int64_t e = 0; e < p_.groups; ++e) {
      ops::gemm_problem* one = new (products + e) ops::gemm_problem(product_of(parts_[e]));
      one->c = alone ? alone_result_of(e) : result_of(parts_[e], 0);
    }
    if (how_ != overlap_kernel::way::reference)
      return ops::gemm_groups(products, p_.groups, turn.threads, turn.scratch, turn.isa);
    for (std::int64_t e = 0; e < p_.groups; ++e) multiply(products[e], how_, turn);
  }

  // Adds the biases of a rank alone to its rounded products, as to the sums of several ranks.
  void add_biases_alone(core::execution& turn) const {
    for (std::int64_t e = 0; e < p_.groups && bias_ != nullptr; ++e)
      add_bias(product_of(parts_[e]), bias_[e], {alone_result_of(e), parts_[e].rows, parts_[e].n},
               how_, turn);
  }

  // The groups as the matrices and weights of one product.
  grouped_rows rows() const {
    const auto count = static_cast<std::size_t>(p_.groups);
    auto* x = scratch_.take<const void*>(count);
    auto* weights = scratch_.take<const void*>(count);
    auto *depths = scratch_.take<std::int64_t>(count), *rows = scratch_.take<std::int64_t>(count);
    for (std::int64_t e = 0; e < p_.groups; ++e) {
      const ops::gemm_problem one = product_of(parts_[e]);
      x[e] = one.a, weights[e] = one.b, depths[e] = one.k, rows[e] = parts_[e].rows;
    }
    return {{x, row_parts(rows, static_cast<int>(p_.groups), 1)}, weights, depths};
  }

  // Adds the biases to rows whose sums have arrived, and copies them to the tensors of a list.
  void finish(const row_range& range, core::execution& on) const {
    if (bias_ == nullptr && has_one_y(a_)) return;
    in_turn(on, [&](core::execution& turn) {
      for (std::int64_t e = 0; e < p_.groups; ++e) {
        const part& one = parts_[e];
        const std::int64_t begin = std::max(range.begin, one.row) - one.row;
        const std::int64_t end = std::min(range.end(), one.row + one.rows) - one.row;
        if (begin < end) finish(e, {begin, end - begin}, turn);
      }
    });
  }

 private:
  const char* address(const velo_tensor* t, std::int64_t element) const {
    return ops::data<const char>(t) + element * bytes_;
  }
  char* result_of(const part& one, std::int64_t row) const {
    return static_cast<char*>(results_) + (one.first + row * one.n) * bytes_;
  }
  void* alone_result_of(std::int64_t e) const {
    return has_one_y(a_) ? result_of(parts_[e], 0) : ops::data<void>(a_.y->data + e);
  }
  ops::gemm_problem product_of(const part& one) const {
    ops::gemm_problem all = p_.product;
    all.m = one.rows, all.n = one.n, all.k = one.k;
    all.a = address(one.x, one.x_first), all.lda = one.k;
    all.b = address(one.weight, one.weight_first), all.ldb = all.ldc = one.n;
    return all;
  }
  void finish(std::int64_t e, const row_range& rows, core::execution& turn) const {
    const part& one = parts_[e];
    char* const from = result_of(one, rows.begin);
    if (bias_ != nullptr)
      add_bias(product_of(one), bias_[e], {from, rows.count, one.n}, how_, turn);
    if (has_one_y(a_)) return;
    const std::int64_t row = one.n * bytes_;
    char* const to = ops::data<char>(a_.y->data + e) + rows.begin * row;
    std::memcpy(to, from, static_cast<std::size_t>(rows.count * row));
  }

  const args& a_;
  const problem& p_;
  const overlap_kernel::way how_;
  core::arena& scratch_;
  const std::int64_t bytes_;  // of an element
  part* parts_;
  const float** bias_ = nullptr;  // one a group
  void* results_;
};

void run_alone(const args& a, const problem& p, overlap_kernel::way how, core::execution& on) {
  in_turn(on, [&](core::execution& turn) {
    const core::scratch_scope scope(turn.scratch);
    const grouped_call call(a, p, how, turn.scratch);
    call.multiply_all(true, turn);
    call.add_biases_alone(turn);
  });
}

void run_in_slices(const grouped_call& call, problem& p, comm::operation& what,
                   comm::transport& link, core::arena& scratch, core::execution& on) {
  const cut in = cut_of(p);
  mark(what, in.signature(sliced_product::panel(p.product, on.isa)));
  const auto relay = link.begin_relay(what, on);
  const row_parts parts(p.product.m, p.in.size());
  const grouped_rows groups = call.rows();
  p.product.c = call.results();
  slicing s{p.product, what, *relay, on, scratch, p.in.group->rank(), p.in.size(), in, parts};
  s.groups = &groups;
  s.arrived = [&](const row_range& rows) { call.finish(rows, on); };
  all_reduce_in_slices(s);
}

void run(const args& a, const problem& inferred, const overlap_kernel& kernel,
         core::execution& on) {
  problem p = inferred;
  if (p.in.group == nullptr) return run_alone(a, p, kernel.how, on);
  comm::operation what = reduction_of(p);
  what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    const grouped_call call(a, p, kernel.how, scratch);
    what.in = what.out = call.results();
    if (kernel.how == overlap_kernel::way::sliced)
      return run_in_slices(call, p, what, link, scratch, on);
    in_turn(on, [&](core::execution& turn) { call.multiply_all(false, turn); });
    link.run(what, on);
    call.finish({0, p.product.m}, on);
  });
}

// Slices pack all weights first, which costs less beside many rows of each.
const char* reject(const args&, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (!p.one_width) return "results of different widths";
  problem each = p;
  each.product.m /= p.groups;
  const char* why = why_not_sliced(p.in, each);
  return why != nullptr || cut_of(p).pays() ? why : too_small;
}

void enter(const args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", reduction_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, reduction_of(p));
}

void count(const args&, const problem& p, ops::op_cost& cost) {
  cost.multiply(p.flops, p.flops, p.dtype);
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def grouped_matmul_all_reduce_operator = with_cost<sched::count>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list));

}  // namespace velo::ops
