// The base of the operators that overlap a product with a collective: this rank's product, whole or
// by blocks of rows and columns, and the call's ticket in its group.
//
// Products use the engine (ops/gemm) and round as matmul does, so elements have the same bits in
// any blocks. The weight is packed once for all blocks. A product holds the context's turn; a wait
// for peers never does, since a peer may itself be waiting for other work of this context, which
// needs the turn.
#pragma once

#include <vector>

#include "comm/group/group.hpp"
#include "core/stream/execution.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/overlapped_copy.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "sched/overlap/row_parts.hpp"

namespace velo::sched {

// The implementations of these operators.
struct overlap_kernel {
  enum class way { sliced, composition, reference } how;
};
extern const ops::kernel_list overlap_kernel_list;

// A call's group, and the call's ticket in it.
struct membership {
  comm::group* group;  // nullptr: this rank alone
  comm::group::ticket ticket;

  int size() const { return group == nullptr ? 1 : group->size(); }
  int rank() const { return group == nullptr ? 0 : group->rank(); }
};
membership membership_in(velo_group group, const char* argument);  // throws HANDLE
// argument: "args.group". Both throw ARGUMENT for a group of another context, enter_group also what
// `put` throws.
void require_group_of(const core::stream& on, const membership& in, const char* argument);
void enter_group(membership& in, const char* argument, const comm::request& what, core::stream& on,
                 const ops::enqueue& put);
// One of the two groups of a call; either may be missing.
struct group_side {
  membership* in;
  const char* argument;
  comm::operation what;
};
// Enters both groups at once, first the one at the lower address, so that two concurrent calls have
// the same order in both.
void enter_both(const group_side& one, const group_side& other, core::stream& on,
                const ops::enqueue& put);

// y = x @ op(weight); y need not be known yet.
struct overlap_problem {
  ops::gemm_problem product;
  velo_dtype dtype;
  std::int64_t slices;      // the call's, or else the table's; 0: chosen here, 1: none
  core::overlap_mode mode;  // of the group's context
};
overlap_problem problem_of(const velo_tensor& x, const velo_tensor& weight, bool transpose_weight,
                           std::int64_t slices);

// The elements of each rank in rows of `width`. Listed: none where the parts have no list, since an
// operation without blocks has equal ones.
comm::blocks blocks_of(const row_parts& parts, std::int64_t width);
inline comm::blocks listed_blocks(const row_parts& parts, std::int64_t width) {
  return parts.is_listed() ? blocks_of(parts, width) : comm::blocks();
}

// Completes a call's number of slices by the settings of the group's context, for a product of
// rows x depth by depth x columns. Settings are read here alone, so that a call has one number.
struct slice_choice {
  core::overlap_mode mode = core::overlap_mode::automatic;
  std::int64_t slices;
};
slice_choice choose_slices(const membership& in, std::int64_t slices, std::int64_t rows,
                           std::int64_t depth, std::int64_t columns);
void choose_slices(overlap_problem& problem, const membership& in);
// Whether a call or a setting asks for slices, instead of leaving the choice to this library.
inline bool asks_for_slices(const overlap_problem& problem) {
  return problem.slices > 1 || problem.mode == core::overlap_mode::sliced;
}

// The product of this rank; what is sent and received is not counted.
template <class Args, class Problem>
void cost_of(const Args&, const Problem& problem, ops::op_cost& cost) {
  const overlap_problem& all = problem;
  const double flops = 2.0 * static_cast<double>(all.product.m) *
                       static_cast<double>(all.product.n) * static_cast<double>(all.product.k);
  cost.multiply(flops, flops, all.dtype);
}

// bias: nullptr, or [n] or [1, n], float32 or of the product's dtype.
void require_bias(const velo_tensor* bias, std::int64_t n, velo_dtype dtype);
// The shape [n] or [1, n].
void require_columns(const velo_tensor& t, const char* field, std::int64_t n);

// An operation over tensors of the problem's dtype. count: the elements of the longer tensor.
comm::operation operation_of(const overlap_problem& problem, comm::collective kind,
                             std::int64_t count, const char* function);

// Computes the whole product, inside a turn.
void multiply(const ops::gemm_problem& problem, overlap_kernel::way how, core::execution& turn);

// Adds a bias, one number a column, to rows of the result of `of`, and rounds. It is a product
// without depth, whose epilogue does the addition. Inside a turn.
struct bias_target {
  void* c;
  std::int64_t rows, columns;
};
void add_bias(const ops::gemm_problem& of, const float* bias, const bias_target& to,
              overlap_kernel::way how, core::execution& turn);

// why_not_sliced: the reason for which the group or the fields of a call rule out slices; nullptr:
// none.
bool is_sliced(const ops::kernel_entry& kernel);
const char* why_not_sliced(const membership& in, const overlap_problem& problem);
inline constexpr const char* too_small = "the buffer of the group has no room for slices";

// Calls f(execution&) in the context's turn.
template <class F>
void in_turn(core::execution& on, F&& f) {
  on.context.take_turn(on.stream, f);
}

// A block of a matrix.
struct block {
  std::int64_t row, rows, column, columns;  // column: a multiple of 96
};

// The left operand of a product: several matrices, one after the other, whose rows are parts of
// all rows.
struct row_source {
  const void* const* matrices;
  row_parts parts;
  comm::relay* relay = nullptr;  // set if the matrices may be tensors of its ranks
};

// The targets of a sum of products: this rank's rows, and a second output for peers.
struct sum_target {
  void* c;
  std::int64_t ldc;
  ops::second_output second;  // panels in shared memory, or a peer's rows
};

// Matrices with a weight each, [k][n] of any k and one n: a product for each group of rows.
struct grouped_rows {
  row_source rows;
  const void* const* weights;
  const std::int64_t* depths;  // k of each
};

// A product computed by blocks, in any order.
class sliced_product {
 public:
  // Packs the weight into memory of `scratch`, unless it is packed already. groups: nullptr, or the
  // matrices and weights in place of those of `problem`.
  sliced_product(const ops::gemm_problem& problem, const grouped_rows* groups, core::arena& scratch,
                 core::execution& on);

  // Multiplies rows of one matrix of `a` by columns of the weight into `c`, overlapped with the
  // copies `copies`.
  void multiply(const block& of, const row_source& a, void* c, std::int64_t ldc,
                const ops::overlapped_copy& copies, core::execution& turn) const;
  // Multiplies a block for the peer that sums it, into panels in shared memory.
  void multiply_for_peer(const block& of, const row_source& a, void* to,
                         core::execution& turn) const;
  // Multiplies a block and adds the blocks that peers multiplied for this rank, in rank order.
  void multiply_and_sum(const block& of, const row_source& a, const ops::addend_list& peers,
                        const sum_target& to, core::execution& turn) const;
  // Copies a block from panels in shared memory to rows.
  void copy_rows(const block& of, const void* from, void* to, std::int64_t ld,
                 core::execution& turn) const;

  // Columns of a panel in the blocks for peers. Ranks with the same kernels have the same value.
  static int panel(const ops::gemm_problem& problem, core::isa isa);

 private:
  void run(ops::gemm_problem slice, const block& of, const row_source& a,
           core::execution& turn) const;

  const ops::gemm_problem& problem_;
  std::vector<ops::packed_matrix> weights_;  // one, or one for each matrix
};

}  // namespace velo::sched
