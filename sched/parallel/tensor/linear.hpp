// What the linear layers of tensor parallelism share: the rows and sizes of a call, the operations
// of its group, and the products of a rank.
//
// A layer has m rows over all ranks and a weight [n][k] of this rank. Rows are cut along the first
// dimension of the tensors, and each of those is `lines` rows of the matrices. Invariant: a result
// has the bits of one product over all rows, whatever gathers or sums it.
#pragma once

#include "ops/operator/output_shapes.hpp"
#include "sched/overlap/slices.hpp"
#include "sched/overlap/weight_source.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {

// The fields that the four operators have.
struct linear_fields {
  velo_group group;
  const velo_tensor* weight;
  const velo_ints* rows;
  bool cuts_rows;
  std::int64_t slices;
};
template <class Args>
linear_fields fields_of(const Args& a) {
  return {a.group, a.weight, a.rows, a.sequence_parallel != 0, a.parallel_num};
}

struct linear_problem {
  membership in;
  const char* function;
  velo_dtype dtype;
  std::int64_t rows, own_rows;  // of the first dimension: of all ranks, of this one
  std::int64_t lines;           // matrix rows of each
  std::int64_t n, k;            // of this rank's weight
  std::int64_t slices;
  core::overlap_mode mode;
  std::uint64_t signature;  // of what must be the same on all ranks
  bool cuts_rows, communicates;

  int ranks() const { return in.size(); }
  int rank() const { return in.group == nullptr ? 0 : in.group->rank(); }
  std::int64_t m() const { return rows * lines; }
  std::int64_t own_m() const { return own_rows * lines; }
  std::int64_t element_bytes() const { return dtype.bits / 8; }
};

// Checks weight and list, and reads the rows of all ranks from `t`, which has all of them or this
// rank's. t: the tensor x or dy, of at least two dimensions. It communicates nothing yet.
enum class rows_of { this_rank, all_ranks };
linear_problem linear_problem_of(const linear_fields& f, const char* function, const velo_tensor& t,
                                 const char* name, rows_of which);
// Makes `word` something on which ranks must agree.
void agree_on(linear_problem& p, std::uint64_t word);

// The shape of a tensor of the call: the first dimension, those in between of `like`, the last.
struct linear_shape {
  int rank;
  std::int64_t sizes[ops::max_rank];
};
linear_shape shape_of(const linear_problem& p, const velo_tensor& like, rows_of which,
                      std::int64_t last);
void require_linear(const velo_tensor& t, const char* name, const linear_problem& p,
                    const linear_shape& shape);
inline void require_bias(const velo_tensor* bias, const linear_problem& p) {
  require_bias(bias, p.n, p.dtype);
}

row_parts parts_of(const velo_ints* list, const linear_problem& p);

// ---- the group's operations ----

// The first operation of a call. It hears of ranks that disagree.
comm::operation opening_of(const linear_problem& p, comm::collective kind, std::int64_t width);
// Rows of `width` elements: those of all ranks, or the sums of this rank's rows.
comm::operation gather_of(const linear_problem& p, const row_parts& parts, std::int64_t width);
comm::operation scatter_of(const linear_problem& p, const row_parts& parts, std::int64_t width,
                           const core::execution& on);
comm::operation all_reduce_of(const linear_problem& p, std::int64_t width,
                              const core::execution& on);
// Makes an operation one of slices, whose sizes ranks must agree on.
void mark_sliced(comm::operation& what, std::uint64_t cut_signature);

// Enters the group if the call communicates. Refuses a group of another context in any case.
void enter_linear(linear_problem& p, const comm::operation& opening, core::stream& on,
                  const ops::enqueue& put);

// Why the group or the fields of a call rule out slices, or nullptr.
const char* why_not_sliced(const linear_problem& p);
// A cut of rows of `width` elements, with so many blocks in a piece.
cut sum_cut(const linear_problem& p, const row_parts& parts, std::int64_t width, int blocks);
cut gather_cut(const linear_problem& p, const row_parts& parts, std::int64_t width);

// ---- the products of a rank ----

void* take_rows(const linear_problem& p, std::int64_t rows, std::int64_t width,
                core::arena& scratch);
// y = x @ weight^T, of all rows.
ops::gemm_problem output_product(const linear_problem& p, const void* x,
                                 const weight_source& weight, void* y);
// dx = dy @ weight, of all rows. ld: elements between rows of dy.
ops::gemm_problem input_product(const linear_problem& p, const void* dy, std::int64_t ld,
                                const weight_source& weight, void* dx);

// The gradients of weight and bias, each of which may be nullptr.
struct weight_gradients {
  const velo_tensor *dweight, *dbias;
  bool accumulate;

  bool any() const { return dweight != nullptr || dbias != nullptr; }
};
template <class Args>
weight_gradients weight_gradients_of(const Args& a) {
  return {a.dweight, a.dbias, a.accumulate != 0};
}
velo_dtype dtype_of_dweight(const velo_tensor* dweight, const linear_problem& p);
template <class Args>
void infer_weight_gradients(const Args& a, const linear_problem& p, ops::output_shapes& outputs) {
  const std::int64_t sizes[] = {p.n, p.k};
  outputs.set(a.dweight, dtype_of_dweight(a.dweight, p), 2, sizes);
  outputs.set(a.dbias, core::f32, 1, &p.n);
}
// dy and x: all rows. ld: elements between rows of dy.
void multiply_weight_gradients(const linear_problem& p, const weight_gradients& to, const void* dy,
                               std::int64_t ld, const void* x, overlap_kernel::way how,
                               core::execution& on);

// The flops of `products` products of the layer's size.
void add_products(const linear_problem& p, int products, ops::op_cost& cost);

}  // namespace velo::sched
