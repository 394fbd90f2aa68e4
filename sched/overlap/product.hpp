// What operators that multiply next to a collective share: the product of this rank, whole or a
// block of rows and columns at a time, and the call's place in its group.
//
// Products are the engine's (ops/gemm), rounded as matmul rounds them: elements have the same bits
// in whatever blocks they are multiplied. The weight is packed once for all blocks. Whoever
// multiplies takes the turn of the context for as long as that lasts, and waits for peers without
// it.
#pragma once

#include "comm/group/group.hpp"
#include "core/stream/execution.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/overlapped_copy.hpp"
#include "ops/operator/definition.hpp"

namespace velo::sched {

// How an operator is carried out.
struct overlap_kernel {
  enum class way { sliced, composition, reference } how;
};
extern const ops::kernel_list overlap_kernel_list;

// A call's part in a group.
struct membership {
  comm::group* group;  // nullptr: this rank alone
  comm::group::ticket place;

  int size() const { return group == nullptr ? 1 : group->size(); }
};
membership membership_in(velo_group group, const char* argument);  // throws HANDLE
// argument: "args.group". Throws ARGUMENT for a group of another context, and what put does.
void enter_group(membership& in, const char* argument, const comm::operation& what,
                 core::stream& on, const ops::enqueue& put);

// y = x @ op(weight); y may be unknown.
struct overlap_problem {
  ops::gemm_problem product;
  velo_dtype dtype;
  std::int64_t slices;  // asked for; 0: chosen, 1: none
};
overlap_problem problem_of(const velo_tensor& x, const velo_tensor& weight, bool transpose_weight,
                           std::int64_t slices);

// An operation over tensors of the problem's dtype; count: of elements of the longer one.
comm::operation operation_of(const overlap_problem& problem, comm::collective kind,
                             std::int64_t count, const char* function);

// All of it, in a turn.
void multiply(const ops::gemm_problem& problem, overlap_kernel::way how, core::execution& turn);

// Why a call is not carried out in slices, as far as its group and fields say; nullptr: it may be.
bool is_sliced(const ops::kernel_entry& kernel);
const char* why_not_sliced(const membership& in, const overlap_problem& problem);
inline constexpr const char* too_small = "the buffer of the group has no room for slices";

// f(execution&) in the context's turn.
template <class F>
void in_turn(core::execution& on, F&& f) {
  on.context.take_turn(on.stream, f);
}

// Some rows and columns of a matrix.
struct block {
  std::int64_t row, rows, column, columns;  // column: a multiple of 96
};

// The left side of a product: rows of several matrices, one behind the other, of as many rows each.
struct row_source {
  const void* const* of;
  std::int64_t each;
  comm::relay* shown_by = nullptr;  // whose tensors they may be
};

// Where a sum of products is written: to this rank's rows, and once more for peers.
struct sum_target {
  void* c;
  std::int64_t ldc;
  ops::second_output second;  // in panels in shared memory, or to a peer's rows
};

// Blocks of a product, in any order.
class sliced_product {
 public:
  // Packs the weight, in memory of `scratch`.
  sliced_product(const ops::gemm_problem& problem, core::arena& scratch, core::execution& on);

  // Multiplies rows of one matrix of `a` by columns of the weight, to `c`, and copies `copies`
  // meanwhile.
  void multiply(const block& of, const row_source& a, void* c, std::int64_t ldc,
                const ops::overlapped_copy& copies, core::execution& turn) const;
  // Multiplies a block that a peer sums, to panels in shared memory.
  void multiply_for_peer(const block& of, const row_source& a, void* to,
                         core::execution& turn) const;
  // Multiplies a block and adds those that peers multiplied for this rank, in the order of ranks.
  void multiply_and_sum(const block& of, const row_source& a, const ops::addend_list& peers,
                        const sum_target& to, core::execution& turn) const;
  // Copies a block in panels from shared memory to rows.
  void copy_rows(const block& of, const void* from, void* to, std::int64_t ld,
                 core::execution& turn) const;

  // Columns of a panel of the blocks for peers. Ranks with the same kernels agree on it.
  static int panel(const ops::gemm_problem& problem, core::isa isa);

 private:
  void run(ops::gemm_problem slice, const block& of, const row_source& a,
           core::execution& turn) const;

  const ops::gemm_problem& problem_;
  ops::packed_matrix weight_;
};

}  // namespace velo::sched
