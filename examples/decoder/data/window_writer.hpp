// A micro-batch of windows as symbols, as far as a rank holds their rows.
//
// All windows are written aside first, since a row's input is the byte before it, which another
// rank may hold. Each piece of a window begins with `bos` at position 0. Behind the last one
// follows padding, whose targets do not count. Cost: a copy of the micro-batch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "examples/decoder/data/packing.hpp"

namespace decoder {

// The rows of a sequence that a rank holds, in their order: all of them, or where ranks share
// sequences some runs.
class held_rows {
 public:
  explicit held_rows(std::int64_t sequence) : held_rows(sequence, {0, sequence}) {}
  // runs: begin and end of each.
  held_rows(std::int64_t sequence, std::vector<std::int64_t> runs);

  std::int64_t sequence() const { return sequence_; }  // rows of all ranks
  std::int64_t count() const { return count_; }
  const std::vector<std::int64_t>& runs() const { return runs_; }  // begin and end of each
  // The position in the sequence of each row.
  std::vector<std::int64_t> positions() const;
  // Copies the rows of a sequence; returns the end of the copies.
  std::int32_t* copy(const std::int32_t* sequence, std::int32_t* rows) const;

 private:
  std::int64_t sequence_, count_ = 0;
  std::vector<std::int64_t> runs_;
};

// Writes a piece: inputs are `bos` and all bytes but the last, targets are the bytes; with `eos`
// behind them where the document ends.
void write_piece(const piece& from, std::int32_t* inputs, std::int32_t* targets);

class window_writer {
 public:
  explicit window_writer(std::int64_t rows) : rows_(rows) {}  // of a window

  void begin();
  void add(const window& from);

  std::int64_t windows() const { return static_cast<std::int64_t>(inputs_.size()) / rows_; }
  // The ends of all pieces in the micro-batch; padding belongs to the piece before it.
  const std::vector<std::int64_t>& ends() const { return ends_; }

  // Copies the rows that a rank holds, of one sequence after another: of each window, or of the
  // micro-batch as one.
  void copy_symbols(const held_rows& held, std::int32_t* inputs, std::int32_t* targets) const;
  std::int32_t* copy_inputs(const held_rows& held,
                            std::int32_t* inputs) const;  // returns their end
  void copy_targets(const held_rows& held, std::int32_t* targets) const;
  void copy_positions(const held_rows& held, std::int32_t* positions) const;

 private:
  void add(const piece& from, std::int64_t at);

  std::int64_t rows_;
  std::vector<std::int32_t> inputs_, targets_, positions_;
  std::vector<std::int64_t> ends_;
};

}  // namespace decoder
