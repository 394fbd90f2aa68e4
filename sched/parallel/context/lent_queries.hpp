// Rows of queries that go to another rank, to be computed there, with numbers behind each row and
// head.
//
// The gradient of an output row goes with the maximum and sum of its softmax and its product with
// the output; what was computed returns as a float32 part, of outputs with maximum and sum. The
// owner merges parts of outputs in the order of the plan. Cost: one read and one write of the rows.
#pragma once

#include "core/stream/execution.hpp"
#include "sched/parallel/context/partial_attention.hpp"
#include "sched/parallel/context/row_store.hpp"

namespace velo::sched {

// The numbers behind a row: of a part of outputs, and of the gradient of outputs.
constexpr std::int64_t numbers_of_part = 2, numbers_of_gradient = 3;

// Maxima, sums and, of a gradient, products, apart from the rows that they came with.
struct row_numbers {
  softmax_sums sums;
  float* dots;
};

// Writes the numbers of `from`, which a rank's own queries have, and the products of dout and out
// behind the rows of `to`. queries: the places of these numbers.
struct lent_gradient {
  row_store dout, out, to;  // to: without numbers
  const row_places& queries;
  const softmax_sums& sums;
};
void write_numbers(const lent_gradient& of, const rows_of_heads& which, core::execution& turn);

// Between the rows of a store and numbers apart.
void write_numbers(const row_numbers& from, const row_store& to, std::int64_t batch);
void read_numbers(const row_store& from, const row_numbers& to, std::int64_t batch);

// Merges a part, with numbers behind its rows, into float32 outputs and their statistics.
struct merged_outputs {
  row_store part, out;
  const row_places& queries;  // of the statistics
  softmax_sums sums;
};
void merge(const merged_outputs& of, const rows_of_heads& which, core::execution& turn);

}  // namespace velo::sched
