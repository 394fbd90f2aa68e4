// The cut of sequences into splits of consecutive rows, which go through a model one after another
// (Seq1F1B).
//
// Splits are equally long; where they cannot be, the first ones have a row more, since the rows of
// later ones attend to more keys. Ranks that share sequences have parts of each split
// (shared_splits.hpp). Cost: a few numbers, once a micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/decoder/data/window_writer.hpp"

namespace decoder {

// Consecutive rows [begin, end) of a sequence, whose last row sees all rows up to it.
struct row_run {
  std::int64_t begin, end;
  std::int64_t first;  // rows of the runs before it in a list
  std::int64_t count() const { return end - begin; }
};

// Rows [begin, end) of each sequence.
struct sequence_split {
  std::int64_t number, begin, end;
  std::int64_t before;                  // rows that this rank has of the splits before
  held_rows rows;                       // those that it has of this one, for copies
  std::vector<held_rows> parts;         // those of each rank that shares the split, in their order
  std::vector<row_run> runs;            // of the queries that this rank computes in attention
  std::vector<held_rows> along_y = {};  // of each rank along y; empty: there is one

  std::int64_t all_rows() const { return end - begin; }
  std::int64_t count() const { return rows.count(); }
  std::int64_t sequence() const { return rows.sequence(); }
  // The rows that all tensor ranks of this rank have.
  std::int64_t rows_of_tensor_ranks() const {
    std::int64_t sum = along_y.empty() ? count() : 0;
    for (const held_rows& each : along_y) sum += each.count();
    return sum;
  }
};

// The splits of a rank that has whole sequences; at most as many as rows.
std::vector<sequence_split> cut_sequence(std::int64_t rows, std::int64_t splits);

// The runs of a list of rows.
void add_runs(const held_rows& of, std::vector<row_run>& to);

// Rows of each window, in all windows of a micro-batch, which is one sequence: run by run, so that
// those of a run lie together.
held_rows rows_in_windows(const held_rows& of, std::int64_t windows);

// The documents of a micro-batch as runs of queries and keys for attention: `queries` and `keys`
// hold the end of each run. A run's queries are its last keys. A run without queries holds keys
// that no query sees.
struct document_runs {
  std::vector<std::int64_t> queries, keys;
};

// The queries are rows `of` windows of `sequence` rows. ends: of the documents in the micro-batch,
// each in one window.
document_runs document_runs_of(const row_run& of, std::int64_t sequence,
                               const std::vector<std::int64_t>& ends);

}  // namespace decoder
