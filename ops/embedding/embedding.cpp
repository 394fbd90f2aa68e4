// embedding as an operator: its shapes, its tasks, its kernels.
#include "ops/embedding/embedding.hpp"

#include <cstring>

#include "ops/indices.hpp"
#include "ops/op.hpp"
#include "ops/rows.hpp"
#include "velo/ops_embedding.h"

namespace velo::ops {
namespace {

using simd::bf16;

// The shape of y: that of ids with the row size appended.
struct rows_shape {
  int rank;
  std::int64_t sizes[max_rank];
  rows_shape(const velo_tensor& ids, std::int64_t n) : rank(ids.ndim + 1) {
    for (int i = 0; i < ids.ndim; ++i) sizes[i] = ids.shape[i];
    sizes[ids.ndim] = n;
  }
};

void infer(const velo_embedding_args& a, output_shapes& outputs) {
  require_rank(*a.ids, "ids", 0, max_rank - 1);
  require_rank(*a.table, "table", 2, 2);
  const rows_shape y(*a.ids, a.table->shape[1]);
  outputs.set("y", a.table->dtype, y.rank, y.sizes);
}

void infer_backward(const velo_embedding_backward_args& a, output_shapes& outputs) {
  require_rank(*a.ids, "ids", 0, max_rank - 1);
  require_rank(*a.dy, "dy", a.ids->ndim + 1, a.ids->ndim + 1);
  const std::int64_t n = a.dy->shape[a.ids->ndim];
  require_shape(*a.dy, "dy", a.dy->ndim, rows_shape(*a.ids, n).sizes);
  const std::int64_t table[] = {a.rows, n};
  outputs.set("dtable", f32, 2, table);
}

void run(const velo_embedding_args& a, core::execution& on) {
  require_indices(*a.ids, "ids", a.table->shape[0]);
  const index_reader ids(*a.ids);
  const std::int64_t bytes = a.table->shape[1] * element_bytes(a.table->dtype);
  const row_slices slices = slice_rows(numel(*a.ids), bytes);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      std::memcpy(data<char>(a.y) + t * bytes, data<const char>(a.table) + ids[t] * bytes,
                  static_cast<std::size_t>(bytes));
    }
  });
}

template <class T>
void add_rows(const velo_embedding_backward_args& a, core::execution& on,
              void (*kernel)(const embedding_row<T>&)) {
  constexpr std::int64_t block = 256;  // columns of a task: 1 KiB of a row
  require_indices(*a.ids, "ids", a.rows);
  const index_reader ids(*a.ids);
  const std::int64_t tokens = numel(*a.ids);
  const std::int64_t n = row_size(*a.dy);
  auto* table = data<float>(a.dtable);
  on.threads((n + block - 1) / block, [&](std::int64_t task, int) {
    const std::int64_t column = task * block;
    const std::int64_t width = std::min(block, n - column);
    for (std::int64_t r = 0; r < a.rows && a.accumulate == 0; ++r) {
      std::memset(table + r * n + column, 0, sizeof(float) * static_cast<std::size_t>(width));
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      kernel({data<const T>(a.dy) + t * n + column, table + ids[t] * n + column, width});
    }
  });
}

template <void (*F32)(const embedding_row<float>&), void (*BF16)(const embedding_row<bf16>&)>
void run_backward(const velo_embedding_backward_args& a, core::execution& on) {
  a.dy->dtype == f32 ? add_rows<float>(a, on, F32) : add_rows<bf16>(a, on, BF16);
}

using backward_args = velo_embedding_backward_args;

// Copying rows is memcpy on every processor.
constexpr candidate forward_kernels[] = {
    kernel<velo_embedding_args, run>("reference", core::isa::scalar),
};
constexpr candidate backward_kernels[] = {
    kernel<backward_args, run_backward<avx512::embedding_add, avx512::embedding_add>>(
        "avx512", core::isa::avx512),
    kernel<backward_args, run_backward<avx2::embedding_add, avx2::embedding_add>>("avx2",
                                                                                  core::isa::avx2),
    kernel<backward_args, run_backward<reference::embedding_add, reference::embedding_add>>(
        "reference", core::isa::scalar),
};

}  // namespace

extern const operator_def embedding_operator = define<velo_embedding_args, infer>(forward_kernels);
extern const operator_def embedding_backward_operator =
    define<backward_args, infer_backward>(backward_kernels);

}  // namespace velo::ops
