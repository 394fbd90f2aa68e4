// The texts of placement problems.
//
//   placement CSV   id,lower,upper,size         a buffer a row, alive in [lower, upper)
//   RMM's log       Thread,Time,Action,Pointer,Size,Stream
//                                               an event a row: allocate, free, allocate failure
//
// Columns are found by their names, in any order; a log needs only Action, Pointer and Size, and
// the number of a row is its time. Lines end in LF or CRLF; empty lines are skipped. Invalid text
// is refused as VELO_ERR_ARGUMENT with line and column, counted from 1 in lines and bytes. O(text).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/plan/solver/placement.hpp"

namespace velo::memory {

struct plan_table {
  std::vector<std::string> names;  // the id column; of a log the pointer; unique in the first
  std::vector<lifetime> buffers;
};

// Adds the rows of a placement CSV. Each size is 1 to `most`, and the sum with the existing sizes
// fits 63 bits. A column `offset` is accepted and ignored, so that results can be read again.
void read_placement(std::string_view text, std::int64_t most, plan_table& table);

// Adds a buffer for every allocation of a log, in the order of allocation. It is alive from its
// event to that of its free (positions among the rows, from 0), or to the number of rows if there
// is no free. Rows of size 0 and failed allocations have no buffer.
void read_rmm_log(std::string_view text, std::int64_t most, plan_table& table);

// The placement CSV with a column `offset`, rows in order.
std::string write_placement(const plan_table& table, const std::vector<std::int64_t>& offsets);

}  // namespace velo::memory
