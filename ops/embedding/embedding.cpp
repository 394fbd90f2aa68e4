// embedding as an operator: its shapes and its tasks.
#include "ops/embedding/embedding.hpp"

#include <cstring>

#include "core/round_up.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_embedding.h"

namespace velo::ops {
namespace {

// The shape of y: that of ids with the row size appended.
struct rows_shape {
  int rank;
  std::int64_t sizes[max_rank];
  rows_shape(const velo_tensor& ids, std::int64_t n) : rank(ids.ndim + 1) {
    for (int i = 0; i < ids.ndim; ++i) sizes[i] = ids.shape[i];
    sizes[ids.ndim] = n;
  }
};

struct embedding_problem {
  std::int64_t tokens, n;  // rows of n elements
};

void infer(const velo_embedding_args& a, embedding_problem& p, output_shapes& outputs) {
  require_rank(*a.ids, "ids", 0, max_rank - 1);
  require_rank(*a.table, "table", 2, 2);
  p = {numel(*a.ids), a.table->shape[1]};
  const rows_shape y(*a.ids, p.n);
  outputs.set(a.y, a.table->dtype, y.rank, y.sizes);
}

void infer_backward(const velo_embedding_backward_args& a, embedding_problem& p,
                    output_shapes& outputs) {
  require_rank(*a.ids, "ids", 0, max_rank - 1);
  require_rank(*a.dy, "dy", a.ids->ndim + 1, a.ids->ndim + 1);
  p = {numel(*a.ids), a.dy->shape[a.ids->ndim]};
  require_shape(*a.dy, "dy", a.dy->ndim, rows_shape(*a.ids, p.n).sizes);
  const std::int64_t table[] = {a.rows, p.n};
  outputs.set(a.dtable, f32, 2, table);
}

void run(const velo_embedding_args& a, const embedding_problem& p, const embedding_kernels& kernels,
         core::execution& on) {
  require_indices(*a.ids, "ids", a.table->shape[0]);
  const index_reader ids(*a.ids);
  const std::int64_t bytes = p.n * element_bytes(a.table->dtype);
  const row_slices slices = slice_rows(p.tokens, bytes);
  const auto* table = data<const char>(a.table);
  auto* y = data<char>(a.y);
  const bool bypass = bypass_cache(y, p.tokens, bytes, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const char* row = table + ids[t] * bytes;
      if (bypass) {
        const char* next = table + ids[std::min(t + 1, p.tokens - 1)] * bytes;
        kernels.copy_row({row, next, y + t * bytes, bytes});
      } else {
        std::memcpy(y + t * bytes, row, static_cast<std::size_t>(bytes));
      }
    }
  });
}

// The tokens of each row of dtable, in order: those of row r are order[start[r]] to
// order[start[r + 1] - 1].
struct tokens_by_row {
  index_reader ids;
  std::int64_t rows;
  std::int64_t* start;
  std::int64_t* order;
  std::int64_t most = 0;  // tokens of the row that has most

  tokens_by_row(const velo_tensor& tensor, std::int64_t all_rows, core::arena& scratch)
      : ids(tensor),
        rows(all_rows),
        start(scratch.take<std::int64_t>(static_cast<std::size_t>(all_rows) + 2)),
        order(scratch.take<std::int64_t>(static_cast<std::size_t>(numel(tensor)))) {
    const std::int64_t tokens = numel(tensor);
    std::memset(start, 0, sizeof(std::int64_t) * (static_cast<std::size_t>(rows) + 2));
    // Counts are stored one element ahead, so that filling `order` advances each to its final
    // index.
    for (std::int64_t t = 0; t < tokens; ++t) most = std::max(most, ++start[ids[t] + 2]);
    for (std::int64_t r = 2; r < rows + 2; ++r) start[r] += start[r - 1];
    for (std::int64_t t = 0; t < tokens; ++t) order[start[ids[t] + 1]++] = t;
  }

  // The first row of part `part` of `parts` that cost the same: a row's own cost is one, and two
  // for each of its tokens.
  std::int64_t boundary(std::int64_t part, std::int64_t parts) const {
    const auto cost = [this](std::int64_t r) { return r + 2 * start[r]; };
    const std::int64_t wanted = cost(rows) / parts * part + cost(rows) % parts * part / parts;
    std::int64_t low = 0, high = rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      cost(middle) < wanted ? low = middle + 1 : high = middle;
    }
    return part == parts ? rows : low;
  }
};

// A task is a sixteenth of the work in whole rows; where one row alone is as much, it is also a
// quarter of the columns, so that no thread is left with that row. Which task adds a number does
// not change it.
template <class T>
void add_rows(const velo_embedding_backward_args& a, const embedding_problem& p,
              const embedding_kernels& kernels, core::execution& on) {
  require_indices(*a.ids, "ids", a.rows);
  const std::int64_t n = p.n;
  const tokens_by_row tokens(*a.ids, a.rows, on.scratch);
  const std::int64_t parts = std::min<std::int64_t>(a.rows, 16);
  const bool uneven = tokens.most > p.tokens / parts;
  const std::int64_t block = uneven ? std::max<std::int64_t>(core::ceil_div(n, 256) * 64, 256) : n;
  auto* table = data<float>(a.dtable);
  const auto* dy = data<const T>(a.dy);
  const bool accumulate = a.accumulate != 0;
  const bool bypass =
      !accumulate && bypass_cache(table, a.rows, n * static_cast<std::int64_t>(sizeof(float)), on);
  on.threads(core::ceil_div(n, block) * parts, [&](std::int64_t task, int) {
    const std::int64_t column = task / parts * block;
    const std::int64_t width = std::min(block, n - column);
    const std::int64_t last = tokens.boundary(task % parts + 1, parts);
    for (std::int64_t r = tokens.boundary(task % parts, parts); r < last; ++r) {
      float* row = table + r * n + column;
      const std::int64_t first = tokens.start[r], end = tokens.start[r + 1];
      if (first == end && !accumulate)
        std::memset(row, 0, sizeof(float) * static_cast<std::size_t>(width));
      for (std::int64_t t = first; t < end; ++t) {
        const std::int64_t next = tokens.order[std::min(t + 1, tokens.start[a.rows] - 1)];
        const float* next_row =
            accumulate && t + 1 == end ? table + tokens.ids[next] * n + column : nullptr;
        kernels.add_row(embedding_row<T>{dy + tokens.order[t] * n + column, dy + next * n + column,
                                         next_row, row, width, accumulate || t > first,
                                         bypass && end - first == 1});
      }
    }
  });
}

// The table is read at the rows that tokens name.
void cost_of(const velo_embedding_args& a, const embedding_problem& p, op_cost& cost) {
  cost.bytes_read = bytes_of(a.ids) + bytes_of_rows(p.tokens, p.n, a.table->dtype);
}

// A call that accumulates reads and writes one row for each token at most.
void cost_of_backward(const velo_embedding_backward_args& a, const embedding_problem& p,
                      op_cost& cost) {
  if (a.accumulate == 0) return;
  cost.bytes_written = bytes_of_rows(std::min(p.tokens, a.rows), p.n, f32);
  cost.bytes_read += cost.bytes_written;
}

}  // namespace

extern const operator_def embedding_operator =
    with_cost<cost_of>(define<infer, run>(embedding_kernel_list));
extern const operator_def embedding_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, by_dtype<&velo_embedding_backward_args::dy, add_rows<float>,
                                    add_rows<simd::bf16>, add_rows<simd::f16>>>(
        embedding_kernel_list));

}  // namespace velo::ops
