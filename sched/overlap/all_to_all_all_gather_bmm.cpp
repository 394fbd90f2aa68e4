// all_to_all_all_gather_bmm: the rows of this rank's experts arrive from the ranks of ep, the parts
// of the ranks of tp are put together, and each expert multiplies its rows: with a bias and an
// activation, y = act(rows @ weight + bias).
//
// Parts are put together in one pass, in `gathered` or in scratch: from the memory of the peers
// where ranks of tp see each other's (sliced), else from that of the group (composition). A rank
// without a group of tp or ep skips that collective. The bits are those of all_to_all, all_gather,
// matmul and the activation one after another. Cost: that of the collectives, a pass over the rows,
// the products, and a pass over y for an activation.
#include <algorithm>
#include <cstring>
#include <new>

#include "ops/activation/pointwise.hpp"
#include "ops/operator/kernels_at.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"
#include "sched/overlap/expert_blocks.hpp"
#include "sched/overlap/slices.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using args = velo_all_to_all_all_gather_bmm_args;
using core::concat;
using core::fail;
using problem = expert_problem;

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  p = problem{};
  set_groups(a, p, comm::collective::all_gather, "velo_all_to_all_all_gather_bmm");
  ops::require_rank(*a.x, "x", 3, 3);
  const std::int64_t* x = a.x->shape;
  if (x[0] % p.of.ep != 0)
    fail(VELO_ERR_SHAPE, "args.x.shape",
         concat("experts that divide by the ", p.of.ep, " ranks of group_ep"), core::number(x[0]));
  p.of.local = x[0] / p.of.ep, p.of.rows = x[1], p.of.width = x[2];
  const std::int64_t by_rows = p.of.by_columns ? 1 : p.of.tp;
  const std::int64_t by_columns = p.of.by_columns ? p.of.tp : 1;
  const std::int64_t rows = product_of_sizes(product_of_sizes(x[1], p.of.ep, *a.x, "args.x.shape"),
                                             by_rows, *a.x, "args.x.shape");
  const std::int64_t depth = product_of_sizes(x[2], by_columns, *a.x, "args.x.shape");
  set_product(p, *a.x, *a.weight, a.transpose_weight != 0, rows, depth);
  require_expert_bias(a.bias, p.of.local, p.product.n, p.dtype);
  const std::int64_t gathered[] = {p.of.local, rows, depth}, y[] = {p.of.local, rows, p.product.n};
  if (!ops::countable(3, gathered) || !ops::countable(3, y))
    ops::refuse_sizes(3, x, "args.x.shape");
  outputs.set(a.y, p.dtype, 3, y);
  outputs.set(a.gathered, p.dtype, 3, gathered);
  outputs.set(a.pre_activation, p.dtype, 3, y);
}

ops::activation_function function_of(std::int64_t activation) {
  switch (activation) {
    case VELO_EXPERT_ACTIVATION_SILU:
      return ops::silu;
    case VELO_EXPERT_ACTIVATION_RELU:
      return ops::relu;
    case VELO_EXPERT_ACTIVATION_FASTGELU:
      return ops::fast_gelu;
    default:
      return ops::gelu;
  }
}

// y = act(from), where both may be the same.
template <class T>
void activate(ops::activation_function function, const T* from, T* y, std::int64_t count,
              core::isa isa, core::execution& turn) {
  const auto& kernels = ops::kernels_at<ops::pointwise_kernels>(ops::pointwise_kernel_list, isa);
  const ops::row_slices blocks = ops::slice_elements(count);
  turn.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t at = blocks.begin(task);
    kernels.forward[function](
        ops::pointwise_slice<T>{from + at, y + at, blocks.count(task), false});
  });
}

// The work of a rank on the parts, once they have arrived.
class gathered_call {
 public:
  gathered_call(const args& a, const problem& p, overlap_kernel::way how)
      : a_(a), p_(p), how_(how) {}

  // The rows of all experts as one matrix: for the caller, or in scratch. The latter may be missing
  // where there is no group: then the part is that matrix. relay: set if parts are tensors of its
  // ranks.
  const void* gather(const void* const* parts, comm::relay* relay, core::arena* scratch,
                     core::execution& on) const {
    const bool lies_so = p_.of.tp == 1 && (p_.of.ep == 1 || p_.of.local == 1);
    if (lies_so && a_.gathered == nullptr) return parts[0];
    const auto bytes = static_cast<std::size_t>(p_.of.local * p_.of.expert_bytes());
    char* const to =
        a_.gathered != nullptr ? ops::data<char>(a_.gathered) : scratch->take<char>(bytes);
    in_turn(on, [&](core::execution& turn) {
      if (relay == nullptr) return copy_rows(parts, to, turn);
      const comm::relay::tensor_access access(*relay);
      copy_rows(parts, to, turn);
    });
    return to;
  }

  void multiply(const void* rows, core::execution& on) const {
    in_turn(on, [&](core::execution& turn) {
      const core::scratch_scope scope(turn.scratch);
      multiply_rows(rows, turn);
      finish(turn);
    });
  }

 private:
  void copy_rows(const void* const* parts, char* to, core::execution& turn) const {
    const std::int64_t row = p_.of.expert_width() * p_.of.element;
    each_row(
        p_.of, p_.of.expert_rows(), row,
        [&](std::int64_t e, std::int64_t first, std::int64_t count) {
          gather_rows(p_.of, parts, e, first, count, to + e * p_.of.expert_bytes() + first * row);
        },
        turn);
  }

  void multiply_rows(const void* rows, core::execution& turn) const {
    const auto count = static_cast<std::size_t>(p_.of.local);
    auto* products = turn.scratch.take<ops::gemm_problem>(count);
    const float* bias = a_.bias != nullptr ? ops::widened(*a_.bias, turn) : nullptr;
    char* const to = ops::data<char>(a_.pre_activation != nullptr ? a_.pre_activation : a_.y);
    for (std::int64_t e = 0; e < p_.of.local; ++e) {
      auto* one = new (products + e) ops::gemm_problem(p_.product);
      one->a = static_cast<const char*>(rows) + e * p_.of.expert_bytes();
      one->b = ops::data<const char>(a_.weight) + e * one->n * one->k * p_.of.element;
      one->c = to + e * one->m * one->n * p_.of.element;
      if (bias != nullptr) one->epilogue.bias = bias + e * one->n;
    }
    multiply_experts(products, p_.of.local, how_, turn);
  }

  void finish(core::execution& turn) const {
    const std::int64_t count = p_.of.local * p_.product.m * p_.product.n;
    const velo_tensor* from = a_.pre_activation != nullptr ? a_.pre_activation : a_.y;
    if (a_.act_type == VELO_EXPERT_ACTIVATION_NONE) {
      if (from != a_.y && count > 0)
        std::memcpy(ops::data<void>(a_.y), ops::data<const void>(from),
                    static_cast<std::size_t>(count * p_.of.element));
      return;
    }
    const core::isa isa = how_ == overlap_kernel::way::reference ? core::isa::scalar : turn.isa;
    ops::with_element_type(p_.dtype, [&](auto element) {
      using T = decltype(element);
      activate(function_of(a_.act_type), ops::data<const T>(from), ops::data<T>(a_.y), count, isa,
               turn);
    });
  }

  const args& a_;
  const problem& p_;
  const overlap_kernel::way how_;
};

std::int64_t part_bytes(const problem& p) {
  return p.of.part_elements() * p.of.element;
}

// Reads the parts of all ranks of tp in place. Peers may go on when the rows are copied.
const void* gather_posted(const gathered_call& call, const problem& p, comm::operation& what,
                          comm::transport& link, core::arena& scratch, core::execution& on) {
  mark(what, 1);  // differs from a plain gather
  const auto relay = link.begin_relay(what, on);
  const row_parts parts(p.of.tp, static_cast<int>(p.of.tp));
  posted_rows posted(what, *relay, on, p.tensor.rank(), parts, part_bytes(p));
  const void* rows = call.gather(posted.rows().matrices, relay.get(), &scratch, on);
  posted.end();
  return rows;
}

// Multiplies rows of the parts of all ranks of tp, of which `part` is this one's. scratch: that of
// ep's group, or nullptr.
void gather_and_multiply(const args& a, const problem& p, overlap_kernel::way how,
                         later_group& tensor, const void* part, core::arena* scratch,
                         core::execution& on) {
  const gathered_call call(a, p, how);
  if (tensor.is_missing()) return call.multiply(call.gather(&part, nullptr, scratch, on), on);
  comm::operation& what = tensor.what();
  what.in = part;
  tensor.serve([&](comm::transport& link, core::arena& own) {
    if (how == overlap_kernel::way::sliced)
      return call.multiply(gather_posted(call, p, what, link, own, on), on);
    what.out = own.take(static_cast<std::size_t>(part_bytes(p) * p.of.tp));
    link.run(what, on);
    auto* parts = own.take<const void*>(static_cast<std::size_t>(p.of.tp));
    for (std::int64_t t = 0; t < p.of.tp; ++t)
      parts[t] = static_cast<const char*>(what.out) + t * part_bytes(p);
    call.multiply(call.gather(parts, nullptr, &own, on), on);
  });
}

void run(const args& a, const problem& inferred, const overlap_kernel& kernel,
         core::execution& on) {
  problem p = inferred;
  const void* x = ops::data<const void>(a.x);
  later_group tensor(p.tensor, over_tensor(p), p.experts.group != nullptr);
  if (p.experts.group == nullptr)
    return gather_and_multiply(a, p, kernel.how, tensor, x, nullptr, on);
  comm::operation what = exchange_of(p);
  what.in = x;
  p.experts.group->serve(p.experts.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    what.out = scratch.take(static_cast<std::size_t>(part_bytes(p)));
    link.run(what, on);
    gather_and_multiply(a, p, kernel.how, tensor, what.out, &scratch, on);
  });
}

const char* reject(const args&, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (p.of.tp == 1) return "group_tp has one rank";
  const std::int64_t room = p.tensor.group->relay_slot_bytes();
  if (room == 0) return "the transport does not show ranks each other's memory";
  if (p.mode == core::overlap_mode::whole) return "overlap.mode is whole";
  const bool fits = p.tensor.group->shows_tensors() || posted_rows::fit(part_bytes(p), room);
  return fits ? nullptr : too_small;
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def all_to_all_all_gather_bmm_operator =
    with_cost<sched::cost_of_experts<sched::args>>(
        define_waiting<sched::infer, sched::run, sched::reject, sched::enter_experts<sched::args>,
                       sched::drop_groups>(sched::overlap_kernel_list));

}  // namespace velo::ops
