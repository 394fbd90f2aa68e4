// The blocks of rows that two operators move between the layout of tokens and that of experts.
//
// Experts lie on the ranks of one group, ep; their weights are cut between the ranks of another,
// tp. A rank has a part of its tokens' rows, [ep][local][rows][width], `local` experts for each
// rank of ep: all rows with some columns, or some rows with all columns. An expert works on all of
// [ep][tp][rows] rows of [width], or [ep][rows] rows of [tp][width]. A block is [rows][width].
// Between the two layouts there is one part for each rank of tp, and the functions here copy rows
// between parts and an expert's matrix. Invariant: every row is copied once. Cost: one read and one
// write of each.
#pragma once

#include <utility>

#include "ops/operator/rows.hpp"
#include "sched/overlap/product.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {

struct expert_blocks {
  std::int64_t local = 0, ep = 1, tp = 1;
  std::int64_t rows = 0, width = 0;  // of a block
  std::int64_t element = 0;          // bytes
  bool by_columns = false;           // ranks of tp have columns of the rows, else rows

  std::int64_t expert_rows() const { return ep * rows * (by_columns ? 1 : tp); }
  std::int64_t expert_width() const { return width * (by_columns ? tp : 1); }
  std::int64_t part_elements() const { return ep * local * rows * width; }
  std::int64_t block_bytes() const { return rows * width * element; }
  std::int64_t row_bytes() const { return width * element; }
  std::int64_t expert_bytes() const { return expert_rows() * expert_width() * element; }
};

// A call's two groups, the blocks that it moves, and the product of one expert.
struct expert_problem : overlap_problem {
  membership experts, tensor;  // ep, tp
  comm::collective over_tensor;
  expert_blocks of;
  const char* function;
};

// Reads the groups and the layout; throws ARGUMENT where both are the same group.
template <class Args>
void set_groups(const Args& a, expert_problem& p, comm::collective over_tensor,
                const char* function) {
  p.experts = membership_in(a.group_ep, "args.group_ep");
  p.tensor = membership_in(a.group_tp, "args.group_tp");
  if (p.experts.group != nullptr && p.experts.group == p.tensor.group)
    core::fail(VELO_ERR_ARGUMENT, "args.group_tp", "another group than group_ep", "the same");
  p.of.ep = p.experts.size(), p.of.tp = p.tensor.size();
  p.of.by_columns = a.shard_type == VELO_EXPERT_SHARD_COLUMNS;
  p.over_tensor = over_tensor, p.function = function;
}

// weight: [local, depth, n], or [local, n, depth] transposed. Sets the product of an expert, of
// `rows` rows, and the element's bytes.
void set_product(expert_problem& p, const velo_tensor& x, const velo_tensor& weight,
                 bool transposed, std::int64_t rows, std::int64_t depth);
// bias: nullptr, or [local, n] or [local, 1, n].
void require_expert_bias(const velo_tensor* bias, std::int64_t local, std::int64_t n,
                         velo_dtype dtype);
// `factor` times a size of a field; throws SHAPE where that is no number.
std::int64_t product_of_sizes(std::int64_t size, std::int64_t factor, const velo_tensor& of,
                              const char* shape_field);

// The exchange of parts over ep, and the operation over tp; ranks must agree on the blocks of both.
comm::operation exchange_of(const expert_problem& p);
comm::operation over_tensor(const expert_problem& p);
// Enters both groups, and drops the call from both.
void enter_groups(expert_problem& p, core::stream& on, const ops::enqueue& put);
void drop_groups(const expert_problem& p) noexcept;
template <class Args>
void enter_experts(const Args&, expert_problem& p, core::stream& on, const ops::enqueue& put) {
  enter_groups(p, on, put);
}

// The products of this rank's experts.
template <class Args>
void cost_of_experts(const Args&, const expert_problem& p, ops::op_cost& cost) {
  const ops::gemm_problem& one = p.product;
  const double flops = 2.0 * static_cast<double>(p.of.local) * static_cast<double>(one.m) *
                       static_cast<double>(one.n) * static_cast<double>(one.k);
  cost.multiply(flops, flops, p.dtype);
}

// Multiplies all experts, inside a turn.
void multiply_experts(ops::gemm_problem* products, std::int64_t count, overlap_kernel::way how,
                      core::execution& turn);

// Copies rows [first, first + count) of an expert from the parts, [ep][local][rows][width] each.
void gather_rows(const expert_blocks& of, const void* const* parts, std::int64_t expert,
                 std::int64_t first, std::int64_t count, void* to);
// Calls copy(expert, first row, rows) for all rows of all experts, `rows` each, in parallel.
template <class F>
void each_row(const expert_blocks& of, std::int64_t rows, std::int64_t row_bytes, const F& copy,
              core::execution& turn) {
  const ops::row_slices slices = ops::slice_rows(rows, row_bytes);
  const std::int64_t tasks = slices.tasks();
  turn.threads.slices(of.local * tasks, [&](std::int64_t task, int) {
    copy(task / tasks, slices.begin(task % tasks), slices.count(task % tasks));
  });
}

// The group that a call enters after its first one, within the time of that. Its ticket is dropped
// where a failure comes before.
class later_group {
 public:
  // nested: within the time of another group; otherwise it is the call's only one.
  later_group(membership& in, comm::operation what, bool nested) : in_(in), what_(std::move(what)) {
    if (nested) in_.ticket.begun = false;  // begins when it is served
  }
  ~later_group() {
    if (!served_ && in_.group != nullptr) in_.group->drop(in_.ticket, what_);
  }
  later_group(const later_group&) = delete;
  later_group& operator=(const later_group&) = delete;

  bool is_missing() const { return in_.group == nullptr; }
  comm::operation& what() { return what_; }
  template <class Body>
  void serve(Body&& body) {
    served_ = true;
    in_.group->serve(in_.ticket, what_, body);
  }

 private:
  membership& in_;
  comm::operation what_;
  bool served_ = false;
};

}  // namespace velo::sched
