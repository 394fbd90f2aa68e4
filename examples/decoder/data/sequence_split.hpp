// The cut of sequences into splits of consecutive rows, which go through a model one after another
// (Seq1F1B).
//
// Splits are equally long; where they cannot be, the first ones have a row more, since the rows of
// later ones attend to more keys. Cost: a few numbers, once a micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/decoder/data/window_writer.hpp"

namespace decoder {

// Rows [begin, end) of each sequence.
struct sequence_split {
  std::int64_t number, begin, end;
  held_rows rows;  // the same rows, for copies

  std::int64_t count() const { return end - begin; }
  std::int64_t sequence() const { return rows.sequence(); }
};

// At most as many splits as rows.
std::vector<sequence_split> cut_sequence(std::int64_t rows, std::int64_t splits);

// The split's rows of all windows of a micro-batch, which is one sequence.
held_rows rows_in_windows(const sequence_split& of, std::int64_t windows);

// The documents of a micro-batch as runs of queries and keys for attention: `queries` and `keys`
// hold the end of each run. A run's queries are its last keys. A run without queries holds keys
// that no query of the split sees.
struct document_runs {
  std::vector<std::int64_t> queries, keys;
};

// ends: of the documents in the micro-batch, each in one window.
document_runs document_runs_of(const sequence_split& of, const std::vector<std::int64_t>& ends);

}  // namespace decoder
