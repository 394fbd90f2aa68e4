// The visibility between parts of a sequence: whose queries see whose keys under a mask.
//
// Part i sees part j if a query of i sees a key of j. The parts are a coarse cut of the sequence,
// where rows are put in order, or the blocks of ranks, where each pair that sees is a task.
// Cost: a byte for each pair of parts; a cut reads the mask once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

class visibility {
 public:
  explicit visibility(std::int64_t parts) : parts_(parts), sees_(core::at(parts * parts)) {}
  std::int64_t parts() const { return parts_; }
  bool at(std::int64_t i, std::int64_t j) const { return sees_[core::at(i * parts_ + j)] != 0; }
  void set(std::int64_t i, std::int64_t j) { sees_[core::at(i * parts_ + j)] = 1; }
  void clear(std::int64_t i, std::int64_t j) { sees_[core::at(i * parts_ + j)] = 0; }
  std::int64_t pairs() const;  // that see

 private:
  std::int64_t parts_;
  std::vector<std::uint8_t> sees_;
};

// The sequence in contiguous parts, at most `most`.
visibility coarse_visibility(const sequence_shape& of, std::int64_t most);

// Blocks of the sequence, with the rows and the number of cells of each pair that sees.
class seen_blocks {
 public:
  // blocks: lists of rows in ascending order that make up the sequence.
  seen_blocks(const sequence_shape& of, std::vector<rows> blocks);
  const std::vector<rows>& blocks() const { return blocks_; }
  const visibility& pairs() const { return pairs_; }
  // Visible cells of queries of block i and keys of block j.
  std::int64_t visible(std::int64_t i, std::int64_t j) const { return at(i, j).all; }
  // Queries of block i that see a key of block j, and keys of j that a query of i sees.
  rows queries(std::int64_t i, std::int64_t j) const;
  rows keys(std::int64_t i, std::int64_t j) const;
  // How a task of these queries and keys finds its cells: by a formula where one gives them.
  cells cells_of(std::int64_t i, std::int64_t j) const;

 private:
  struct cell_counts {
    std::int64_t all = 0, causal = 0;  // causal: of keys up to the query
  };
  const cell_counts& at(std::int64_t i, std::int64_t j) const {
    return counts_[core::at(i * count_ + j)];
  }
  void read(std::int64_t query, std::int64_t block);
  rows marked(const rows& block, const std::uint8_t* marks) const;

  const sequence_shape& of_;
  std::vector<rows> blocks_;
  std::int64_t count_;
  visibility pairs_;
  std::vector<cell_counts> counts_;        // [queries' block][keys' block]
  std::vector<std::uint8_t> sees_, seen_;  // [other block][row]
};

}  // namespace velo::sched
