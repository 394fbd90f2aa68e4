// embedding as an operator: its shapes and its tasks.
#include "ops/embedding/embedding.hpp"

#include <cstring>

#include "core/round_up.hpp"
#include "ops/embedding/token_rows.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
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
  const auto* table = data<const char>(a.table);
  copy_rows([&](std::int64_t t) { return table + ids[t] * bytes; }, p.tokens, bytes,
            data<char>(a.y), kernels, on);
}

// The tokens of each row of dtable, in order: those of row r are order[start[r]] to
// order[start[r + 1] - 1]. Tokens with an id below 0 are of no row.
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
    for (std::int64_t t = 0; t < tokens; ++t)
      if (ids[t] >= 0) most = std::max(most, ++start[ids[t] + 2]);
    for (std::int64_t r = 2; r < rows + 2; ++r) start[r] += start[r - 1];
    for (std::int64_t t = 0; t < tokens; ++t)
      if (ids[t] >= 0) order[start[ids[t] + 1]++] = t;
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
void add_rows_of(const token_gradient& of, const embedding_kernels& kernels, core::execution& on) {
  const std::int64_t n = of.n, rows = of.rows;
  const tokens_by_row tokens(of.ids, rows, on.scratch);
  const std::int64_t parts = std::min<std::int64_t>(rows, 16), all = tokens.start[rows];
  const bool uneven = tokens.most > all / parts;
  const std::int64_t block = uneven ? std::max<std::int64_t>(core::ceil_div(n, 256) * 64, 256) : n;
  const auto* dy = static_cast<const T*>(of.dy);
  const bool bypass =
      !of.accumulate &&
      bypass_cache(of.table, rows, n * static_cast<std::int64_t>(sizeof(float)), on);
  on.threads(core::ceil_div(n, block) * parts, [&](std::int64_t task, int) {
    const std::int64_t column = task / parts * block;
    const std::int64_t width = std::min(block, n - column);
    const std::int64_t last = tokens.boundary(task % parts + 1, parts);
    for (std::int64_t r = tokens.boundary(task % parts, parts); r < last; ++r) {
      float* row = of.table + r * n + column;
      const std::int64_t first = tokens.start[r], end = tokens.start[r + 1];
      if (first == end && !of.accumulate)
        std::memset(row, 0, sizeof(float) * static_cast<std::size_t>(width));
      for (std::int64_t t = first; t < end; ++t) {
        const std::int64_t next = tokens.order[std::min(t + 1, all - 1)];
        const float* next_row =
            of.accumulate && t + 1 == end ? of.table + tokens.ids[next] * n + column : nullptr;
        kernels.add_row(embedding_row<T>{dy + tokens.order[t] * n + column, dy + next * n + column,
                                         next_row, row, width, of.accumulate || t > first,
                                         bypass && end - first == 1});
      }
    }
  });
}

void run_backward(const velo_embedding_backward_args& a, const embedding_problem& p,
                  const embedding_kernels& kernels, core::execution& on) {
  require_indices(*a.ids, "ids", a.rows);
  add_rows({*a.ids, a.dy->dtype, data<const void>(a.dy), data<float>(a.dtable), a.rows, p.n,
            a.accumulate != 0},
           kernels, on);
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

void add_rows(const token_gradient& of, const embedding_kernels& kernels, core::execution& on) {
  with_element_type(of.dtype, [&](auto type) { add_rows_of<decltype(type)>(of, kernels, on); });
}

extern const operator_def embedding_operator =
    with_cost<cost_of>(define<infer, run>(embedding_kernel_list));
extern const operator_def embedding_backward_operator =
    with_cost<cost_of_backward>(define<infer_backward, run_backward>(embedding_kernel_list));

}  // namespace velo::ops
