// Which cells of a sequence a description of a plan lets see, and whether tasks compute each of
// them once: a list of all cells, without the plan's own rows, spans or counts.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/sched/parallel/context/described_plan.hpp"

namespace velo::testing {

// Returns whether the query of each cell sees its key, row by row of the queries.
inline std::vector<std::uint8_t> visible_cells(const velo_sequence_desc& of) {
  const std::int64_t rows = of.sequence;
  std::vector<std::uint8_t> all;
  all.reserve(static_cast<std::size_t>(rows * rows));
  std::int64_t begin = 0, document = 0;
  for (std::int64_t q = 0; q < rows; ++q) {
    for (; document < of.document_count && of.document_ends[document] <= q; ++document)
      begin = of.document_ends[document];
    const std::int64_t end = of.document_count > 0 ? of.document_ends[document] : rows;
    for (std::int64_t k = 0; k < rows; ++k)
      all.push_back(of.mask != nullptr ? of.mask[q * rows + k] == 0
                                       : k >= begin && k < end && (of.causal == 0 || k <= q));
  }
  return all;
}

// Whether tasks compute each visible cell of a head once, and nothing else.
inline bool compute_each_once(const std::vector<described_task>& tasks, std::int64_t head,
                              const std::vector<std::uint8_t>& visible, std::int64_t sequence) {
  std::vector<std::uint8_t> left = visible;
  for (const described_task& task : tasks) {
    if (head < task.is.heads_begin || head >= task.is.heads_end) continue;
    for (const std::int64_t q : task.queries)
      for (const std::int64_t k : task.keys) {
        const auto cell = static_cast<std::size_t>(q * sequence + k);
        if (task.is.cells == VELO_SEQUENCE_CELLS_CAUSAL && k > q) continue;
        if (task.is.cells == VELO_SEQUENCE_CELLS_MASKED && visible[cell] == 0) continue;
        if (left[cell] != 1) return false;
        left[cell] = 0;
      }
  }
  return std::count(left.begin(), left.end(), 1) == 0;
}

}  // namespace velo::testing
