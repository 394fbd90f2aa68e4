// Remote queries: rows that another rank computes for their owner, with numbers behind each row and
// head.
//
// Behind a row of the outputs' gradient go the maximum and sum of its softmax and its product with
// the output; behind a returned row of outputs, which is float32, maximum and sum. The owner merges
// such rows in the order of the plan. Cost: one read and one write of the rows.
#pragma once

#include "core/stream/execution.hpp"
#include "sched/parallel/context/carried/partial_attention.hpp"
#include "sched/parallel/context/carried/row_store.hpp"

namespace velo::sched {

// The numbers behind a row: of a part of outputs, and of the gradient of outputs.
constexpr std::int64_t numbers_of_part = 2, numbers_of_gradient = 3;

// Maxima, sums and, of a gradient, products, apart from the rows that they came with.
struct row_numbers {
  softmax_sums sums;
  float* dots;
};

// Writes the numbers of a rank's own queries, and the products of dout and out, behind rows of
// dout.
struct remote_gradient {
  row_store dout, out, to;    // `to`: the rows without their numbers
  const row_places& queries;  // of `sums`
  const softmax_sums& sums;
};
void write_numbers(const remote_gradient& of, const rows_of_heads& which, core::execution& turn);

// Copies numbers to behind the rows of `to`, or from behind those of `from`. Both stores are the
// rows without their numbers.
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
