// rotary_position_embedding as an operator: how the tables broadcast, and how rows become slices.
//
// x is seen as planes (the first two dimensions) of rows (the third). The row of the tables follows
// from where a row of x stands, or from `positions` there. The gradient of the tables is summed one
// table row a task, over the rows of x that used it, in order.
#include "ops/rope/rotary_position_embedding.hpp"

#include <cstring>

#include "core/round_up.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"
#include "velo/ops_rope.h"

namespace velo::ops {
namespace {

using core::text;

constexpr std::int64_t rows_per_slice = 64;

// Element strides of a 4-D tensor, compact when it has none.
struct strides4 {
  std::int64_t at[4];
  strides4() = default;
  explicit strides4(const velo_tensor& t) {
    at[3] = 1;
    for (int i = 2; i >= 0; --i) at[i] = at[i + 1] * t.shape[i + 1];
    if (t.strides != nullptr) std::memcpy(at, t.strides, sizeof at);
  }
  std::int64_t offset(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return i * at[0] + j * at[1] + k * at[2];
  }
};

// Strides of a compact tensor as x walks it: 0 along broadcast dimensions. `step` is that of a row:
// of a table, or of one position.
struct broadcast_strides {
  std::int64_t at[3];
  broadcast_strides() = default;
  broadcast_strides(const velo_tensor& table, std::int64_t step) {
    for (int i = 2; i >= 0; --i) {
      at[i] = table.shape[i] == 1 ? 0 : step;
      step *= table.shape[i];
    }
  }
  std::int64_t offset(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return i * at[0] + j * at[1] + k * at[2];
  }
};

void require_unit_stride(const velo_tensor& t, const char* field) {
  if (t.strides != nullptr && t.ndim > 0 && t.shape[t.ndim - 1] > 1 && t.strides[t.ndim - 1] != 1) {
    core::fail(VELO_ERR_LAYOUT, text("args.%s.strides", field), "unit stride in the last dimension",
               shape_name(t.ndim, t.strides));
  }
}

void require_broadcast(const velo_tensor& t, const char* field, const velo_tensor& x) {
  for (int i = 0; i < 3; ++i) {
    if (t.shape[i] == 1 || t.shape[i] == x.shape[i]) continue;
    core::fail(VELO_ERR_SHAPE, text("args.%s.shape", field),
               core::concat(x.shape[i], " or 1 in dimension ", i), shape_name(t.ndim, t.shape));
  }
}

void require_tables(const velo_tensor& x, const char* x_field, const velo_tensor& cos,
                    const velo_tensor& sin, const velo_tensor* positions) {
  require_rank(x, x_field, 4, 4);
  const int rank = positions == nullptr ? 4 : 2;
  require_rank(cos, "cos", rank, rank);
  require_unit_stride(x, x_field);
  require_f32_or(cos, "cos", x.dtype);
  if (positions == nullptr) {
    require_broadcast(cos, "cos", x);
  } else {
    require_rank(*positions, "positions", 3, 3);
    require_broadcast(*positions, "positions", x);
  }
  const std::int64_t rotated = cos.shape[rank - 1];
  if (rotated % 2 != 0 || rotated > x.shape[3]) {
    core::fail(VELO_ERR_SHAPE, "args.cos.shape",
               core::concat("an even last size of at most ", x.shape[3]),
               shape_name(cos.ndim, cos.shape));
  }
  require_like(sin, "sin", cos, "cos");
}

// x as it is walked: planes of rows, and how the tables, or the positions, follow.
struct rotary_problem {
  std::int64_t sizes[4];
  strides4 from, to;
  broadcast_strides table;
  std::int64_t rotated;
  bool dense;  // rows are written whole and in order
};

rotary_problem problem_of(const velo_tensor& from, const velo_tensor* to, const velo_tensor& cos,
                          const velo_tensor* positions) {
  const std::int64_t rotated = cos.shape[cos.ndim - 1];
  rotary_problem p{
      {},
      strides4(from),
      strides4(to == nullptr ? from : *to),
      positions == nullptr ? broadcast_strides(cos, rotated) : broadcast_strides(*positions, 1),
      rotated,
      to != nullptr && is_compact(*to) && rotated == from.shape[3]};
  std::memcpy(p.sizes, from.shape, sizeof p.sizes);
  return p;
}

void infer(const velo_rotary_position_embedding_args& a, rotary_problem& p,
           output_shapes& outputs) {
  require_tables(*a.x, "x", *a.cos, *a.sin, a.positions);
  if (a.y != nullptr) require_unit_stride(*a.y, "y");
  outputs.like(a.y, *a.x);
  p = problem_of(*a.x, a.y, *a.cos, a.positions);
}

void infer_backward(const velo_rotary_position_embedding_backward_args& a, rotary_problem& p,
                    output_shapes& outputs) {
  require_tables(*a.dy, "dy", *a.cos, *a.sin, a.positions);
  if (a.dx != nullptr) require_unit_stride(*a.dx, "dx");
  outputs.like(a.dx, *a.dy);
  outputs.like(a.dcos, *a.cos, f32);
  outputs.like(a.dsin, *a.sin, f32);
  p = problem_of(*a.dy, a.dx, *a.cos, a.positions);
  if ((a.dcos == nullptr) != (a.dsin == nullptr)) {
    core::fail(VELO_ERR_NULL, a.dcos == nullptr ? "args.dcos" : "args.dsin",
               "dcos and dsin together, or neither", "NULL");
  }
  if (a.dcos == nullptr) return;
  if (a.x == nullptr)
    core::fail(VELO_ERR_NULL, "args.x", "the forward input, for dcos and dsin", "NULL");
  require_like(*a.x, "x", *a.dy, "dy");
  require_unit_stride(*a.x, "x");
}

struct rotation {
  const velo_tensor &from, &to, &cos, &sin;
  const velo_tensor* positions;
  bool interleaved;
  bool inverse;
};

// Rows of x whose rows of the tables follow each other at a constant step.
struct row_run {
  std::int64_t count, table, step;  // `table`: where the first one's begins
};

// The tables' rows of rows `k` and later of plane (i, j), at most `most`. Without positions these
// are all there are; with positions, those that name the same row, or each the next.
class table_walk {
 public:
  table_walk(const rotation& r, const rotary_problem& p)
      : at_(r.positions == nullptr ? r.cos : *r.positions), given_(r.positions != nullptr), p_(p) {}

  row_run next(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t most) const {
    const std::int64_t first = p_.table.offset(i, j, k), apart = p_.table.at[2];
    if (!given_) return {most, first, apart};
    const std::int64_t row = at_[first];
    if (apart == 0 || most == 1) return {most, row * p_.rotated, 0};
    const std::int64_t step = at_[first + apart] - row;
    if (step != 0 && step != 1) return {1, row * p_.rotated, 0};
    std::int64_t count = 2;
    while (count < most && at_[first + count * apart] == row + count * step) ++count;
    return {count, row * p_.rotated, step * p_.rotated};
  }

 private:
  index_reader at_;
  bool given_;
  const rotary_problem& p_;
};

template <class T>
void turn(const rotation& r, const rotary_problem& p,
          const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const std::int64_t* size = p.sizes;
  if (product(size, 4) == 0) return;
  const float* cos = widened(r.cos, on);
  const float* sin = widened(r.sin, on);
  const auto half_bytes = p.rotated / 2 * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = p.dense && half_bytes % 64 == 0 &&
                      bypass_cache(data<T>(&r.to), size[0] * size[1] * size[2], 2 * half_bytes, on);
  const std::int64_t chunks = core::ceil_div(size[2], rows_per_slice);
  const std::int64_t amount = slice_rows(size[0] * size[1] * size[2], 2 * half_bytes).tasks();
  const table_walk tables(r, p);
  on.threads.slices(amount, size[0] * size[1] * chunks, [&](std::int64_t task, int) {
    const std::int64_t plane = task / chunks;
    const std::int64_t i = plane / size[1], j = plane % size[1];
    const std::int64_t begin = task % chunks * rows_per_slice;
    const std::int64_t end = std::min(begin + rows_per_slice, size[2]);
    row_run rows;
    for (std::int64_t k = begin; k < end; k += rows.count) {
      rows = tables.next(i, j, k, end - k);
      kernels.rotate(rotary_slice<T>{
          data<const T>(&r.from) + p.from.offset(i, j, k), data<T>(&r.to) + p.to.offset(i, j, k),
          cos + rows.table, sin + rows.table, rows.count, p.from.at[2], p.to.at[2], rows.step,
          size[3], p.rotated, r.interleaved, r.inverse, bypass});
    }
  });
}

// dcos and dsin: each table row gathers from the rows of x that used it. A use stands for the rows
// of x that share an element of the tables' rows, or of the positions.
template <class T>
class table_gradient {
 public:
  table_gradient(const velo_rotary_position_embedding_backward_args& a, const rotary_problem& p,
                 const rotary_position_embedding_kernels& kernels)
      : a_(a), p_(p), kernels_(kernels), x_(*a.x) {
    std::memcpy(kept_, (a.positions == nullptr ? a.cos : a.positions)->shape, sizeof kept_);
    empty_ = product(p.sizes, 4) == 0;  // and then sizes may be anything
  }

  void gather(core::execution& on) const {
    if (p_.rotated == 0) return;
    if (a_.positions != nullptr) return gather_by_position(on);
    on.threads(product(kept_, 3), [&](std::int64_t row, int) {
      clear(row);
      add(row, row);
    });
  }

 private:
  // The uses of each table row in order, by a counting sort.
  void gather_by_position(core::execution& on) const {
    const index_reader at(*a_.positions);
    const std::int64_t rows = a_.cos->shape[0], uses = numel(*a_.positions);
    auto* end = on.scratch.take<std::int64_t>(static_cast<std::size_t>(rows + 1));
    auto* order = on.scratch.take<std::int64_t>(static_cast<std::size_t>(uses));
    std::memset(end, 0, sizeof(std::int64_t) * static_cast<std::size_t>(rows + 1));
    for (std::int64_t u = 0; u < uses; ++u) ++end[at[u] + 1];
    for (std::int64_t row = 0; row < rows; ++row) end[row + 1] += end[row];
    for (std::int64_t u = 0; u < uses; ++u) order[end[at[u]]++] = u;
    on.threads(rows, [&](std::int64_t row, int) {
      clear(row);
      for (std::int64_t u = row == 0 ? 0 : end[row - 1]; u < end[row]; ++u) add(row, order[u]);
    });
  }

  void clear(std::int64_t row) const {
    for (const velo_tensor* table : {a_.dcos, a_.dsin})
      std::memset(data<float>(table) + row * p_.rotated, 0,
                  sizeof(float) * static_cast<std::size_t>(p_.rotated));
  }

  void add(std::int64_t row, std::int64_t use) const {
    if (empty_) return;
    const std::int64_t at[3] = {use / (kept_[1] * kept_[2]), use / kept_[2] % kept_[1],
                                use % kept_[2]};
    std::int64_t first[3], last[3];
    for (int d = 0; d < 3; ++d) {
      first[d] = kept_[d] == 1 ? 0 : at[d];
      last[d] = kept_[d] == 1 ? p_.sizes[d] : at[d] + 1;
    }
    for (std::int64_t i = first[0]; i < last[0]; ++i) {
      for (std::int64_t j = first[1]; j < last[1]; ++j) {
        for (std::int64_t k = first[2]; k < last[2]; ++k) {
          kernels_.add_to_tables(rotary_table_row<T>{
              data<const T>(a_.dy) + p_.from.offset(i, j, k),
              data<const T>(a_.x) + x_.offset(i, j, k), data<float>(a_.dcos) + row * p_.rotated,
              data<float>(a_.dsin) + row * p_.rotated, p_.rotated,
              a_.mode == VELO_ROTARY_MODE_INTERLEAVED});
        }
      }
    }
  }

  const velo_rotary_position_embedding_backward_args& a_;
  const rotary_problem& p_;
  const rotary_position_embedding_kernels& kernels_;
  strides4 x_;
  std::int64_t kept_[3];
  bool empty_;
};

void require_positions(const velo_tensor* positions, const velo_tensor& cos) {
  if (positions != nullptr) require_indices(*positions, "positions", cos.shape[0]);
}

void run(const velo_rotary_position_embedding_args& a, const rotary_problem& p,
         const rotary_position_embedding_kernels& kernels, core::execution& on) {
  require_positions(a.positions, *a.cos);
  const bool interleaved = a.mode == VELO_ROTARY_MODE_INTERLEAVED;
  const rotation r{*a.x, *a.y, *a.cos, *a.sin, a.positions, interleaved, false};
  with_element_type(a.x->dtype, [&](auto element) { turn<decltype(element)>(r, p, kernels, on); });
}

void run_backward(const velo_rotary_position_embedding_backward_args& a, const rotary_problem& p,
                  const rotary_position_embedding_kernels& kernels, core::execution& on) {
  require_positions(a.positions, *a.cos);
  const bool interleaved = a.mode == VELO_ROTARY_MODE_INTERLEAVED;
  const rotation r{*a.dy, *a.dx, *a.cos, *a.sin, a.positions, interleaved, true};
  with_element_type(a.dy->dtype, [&](auto element) {
    using T = decltype(element);
    if (a.dcos != nullptr)  // before dx may overwrite dy
      table_gradient<T>(a, p, kernels).gather(on);
    turn<T>(r, p, kernels, on);
  });
}

}  // namespace

extern const operator_def rotary_position_embedding_operator =
    define<infer, run>(rotary_position_embedding_kernel_list);
extern const operator_def rotary_position_embedding_backward_operator =
    define<infer_backward, run_backward>(rotary_position_embedding_kernel_list);

}  // namespace velo::ops
