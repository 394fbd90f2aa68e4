// rotary_position_embedding as an operator: how the tables broadcast, and how rows become slices.
//
// x is seen as planes (the first two dimensions) of rows (the third). The gradient of the tables is
// summed one table row a task, over the rows of x that used it, in order.
#include "ops/rope/rotary_position_embedding.hpp"

#include <cstring>

#include "core/round_up.hpp"
#include "ops/operator/definition.hpp"
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

// Strides of a compact table as x walks it: 0 along broadcast dimensions.
struct table_strides {
  std::int64_t at[3];
  std::int64_t rotated;
  table_strides() = default;
  explicit table_strides(const velo_tensor& table) : rotated(table.shape[3]) {
    std::int64_t step = rotated;
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

void require_tables(const velo_tensor& x, const char* x_field, const velo_tensor& cos,
                    const velo_tensor& sin) {
  require_rank(x, x_field, 4, 4);
  require_rank(cos, "cos", 4, 4);
  require_unit_stride(x, x_field);
  if (!(cos.dtype == f32)) require_dtype(cos, "cos", x.dtype);
  for (int i = 0; i < 3; ++i) {
    if (cos.shape[i] != 1 && cos.shape[i] != x.shape[i]) {
      core::fail(VELO_ERR_SHAPE, "args.cos.shape",
                 core::concat(x.shape[i], " or 1 in dimension ", i),
                 shape_name(cos.ndim, cos.shape));
    }
  }
  if (cos.shape[3] % 2 != 0 || cos.shape[3] > x.shape[3]) {
    core::fail(VELO_ERR_SHAPE, "args.cos.shape",
               core::concat("an even last size of at most ", x.shape[3]),
               shape_name(cos.ndim, cos.shape));
  }
  require_like(sin, "sin", cos, "cos");
}

// x as it is walked: planes of rows, and how the tables follow.
struct rotary_problem {
  std::int64_t sizes[4];
  strides4 from, to;
  table_strides table;
  bool dense;  // rows are written whole and in order
};

rotary_problem problem_of(const velo_tensor& from, const velo_tensor* to, const velo_tensor& cos) {
  rotary_problem p{{},
                   strides4(from),
                   strides4(to == nullptr ? from : *to),
                   table_strides(cos),
                   to != nullptr && is_compact(*to) && cos.shape[3] == from.shape[3]};
  std::memcpy(p.sizes, from.shape, sizeof p.sizes);
  return p;
}

void infer(const velo_rotary_position_embedding_args& a, rotary_problem& p,
           output_shapes& outputs) {
  require_tables(*a.x, "x", *a.cos, *a.sin);
  if (a.y != nullptr) require_unit_stride(*a.y, "y");
  outputs.like(a.y, *a.x);
  p = problem_of(*a.x, a.y, *a.cos);
}

void infer_backward(const velo_rotary_position_embedding_backward_args& a, rotary_problem& p,
                    output_shapes& outputs) {
  require_tables(*a.dy, "dy", *a.cos, *a.sin);
  if (a.dx != nullptr) require_unit_stride(*a.dx, "dx");
  outputs.like(a.dx, *a.dy);
  outputs.like(a.dcos, *a.cos, f32);
  outputs.like(a.dsin, *a.sin, f32);
  p = problem_of(*a.dy, a.dx, *a.cos);
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
  bool interleaved;
  bool inverse;
};

template <class T>
void turn(const rotation& r, const rotary_problem& p,
          const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const std::int64_t* size = p.sizes;
  if (product(size, 4) == 0) return;
  const float* cos = widened(r.cos, on);
  const float* sin = widened(r.sin, on);
  const auto half_bytes = p.table.rotated / 2 * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = p.dense && half_bytes % 64 == 0 &&
                      bypass_cache(data<T>(&r.to), size[0] * size[1] * size[2], 2 * half_bytes, on);
  const std::int64_t chunks = core::ceil_div(size[2], rows_per_slice);
  const std::int64_t amount = slice_rows(size[0] * size[1] * size[2], 2 * half_bytes).tasks();
  on.threads.slices(amount, size[0] * size[1] * chunks, [&](std::int64_t task, int) {
    const std::int64_t plane = task / chunks;
    const std::int64_t i = plane / size[1], j = plane % size[1], k = task % chunks * rows_per_slice;
    const std::int64_t at = p.table.offset(i, j, k);
    kernels.rotate(rotary_slice<T>{
        data<const T>(&r.from) + p.from.offset(i, j, k), data<T>(&r.to) + p.to.offset(i, j, k),
        cos + at, sin + at, std::min(rows_per_slice, size[2] - k), p.from.at[2], p.to.at[2],
        p.table.at[2], size[3], p.table.rotated, r.interleaved, r.inverse, bypass});
  });
}

// dcos and dsin: each table row gathers from the rows of x that used it.
template <class T>
void gather_tables(const velo_rotary_position_embedding_backward_args& a, const rotary_problem& p,
                   const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const std::int64_t* size = p.sizes;
  const std::int64_t* kept = a.cos->shape;
  const strides4 x(*a.x);
  const std::int64_t rotated = kept[3];
  if (rotated == 0) return;
  const bool empty = product(size, 4) == 0;  // and then sizes may be anything
  on.threads(kept[0] * kept[1] * kept[2], [&](std::int64_t row, int) {
    float* dcos = data<float>(a.dcos) + row * rotated;
    float* dsin = data<float>(a.dsin) + row * rotated;
    std::memset(dcos, 0, sizeof(float) * static_cast<std::size_t>(rotated));
    std::memset(dsin, 0, sizeof(float) * static_cast<std::size_t>(rotated));
    const std::int64_t at[3] = {row / (kept[1] * kept[2]), row / kept[2] % kept[1], row % kept[2]};
    std::int64_t first[3], last[3];
    for (int d = 0; d < 3; ++d) {
      first[d] = kept[d] == 1 ? 0 : at[d];
      last[d] = empty ? first[d] : kept[d] == 1 ? size[d] : at[d] + 1;
    }
    for (std::int64_t i = first[0]; i < last[0]; ++i) {
      for (std::int64_t j = first[1]; j < last[1]; ++j) {
        for (std::int64_t k = first[2]; k < last[2]; ++k) {
          kernels.add_to_tables(rotary_table_row<T>{
              data<const T>(a.dy) + p.from.offset(i, j, k), data<const T>(a.x) + x.offset(i, j, k),
              dcos, dsin, rotated, a.mode == VELO_ROTARY_MODE_INTERLEAVED});
        }
      }
    }
  });
}

void run(const velo_rotary_position_embedding_args& a, const rotary_problem& p,
         const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const rotation r{*a.x, *a.y, *a.cos, *a.sin, a.mode == VELO_ROTARY_MODE_INTERLEAVED, false};
  with_element_type(a.x->dtype, [&](auto element) { turn<decltype(element)>(r, p, kernels, on); });
}

void run_backward(const velo_rotary_position_embedding_backward_args& a, const rotary_problem& p,
                  const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const rotation r{*a.dy, *a.dx, *a.cos, *a.sin, a.mode == VELO_ROTARY_MODE_INTERLEAVED, true};
  with_element_type(a.dy->dtype, [&](auto element) {
    using T = decltype(element);
    if (a.dcos != nullptr) gather_tables<T>(a, p, kernels, on);  // before dx may overwrite dy
    turn<T>(r, p, kernels, on);
  });
}

}  // namespace

extern const operator_def rotary_position_embedding_operator =
    define<infer, run>(rotary_position_embedding_kernel_list);
extern const operator_def rotary_position_embedding_backward_operator =
    define<infer_backward, run_backward>(rotary_position_embedding_kernel_list);

}  // namespace velo::ops
