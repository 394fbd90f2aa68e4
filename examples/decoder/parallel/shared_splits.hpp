// The splits of sequences that ranks share (context ranks, and those along y).
//
// Each rank has a part of every split: the rows that a velo::sequence_plan over a sequence as long
// as the split gives it. So with all_gather the ranks see as many cells in each split, and with
// ulysses a part is consecutive. Cost: a plan for each split, once a run.
//
//   all_gather  attention has this rank's queries with all of its heads; keys and values of all
//               ranks are gathered
//   ulysses     attention has the queries of all ranks, keys and values with this rank's share of
//               the heads
//
// Other algorithms send keys between ranks that hold parts of the whole sequence, and have no
// splits.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/decoder/data/sequence_split.hpp"
#include "examples/decoder/weights/layout.hpp"

namespace decoder {

class member;

// The heads that each rank has in attention where ranks exchange rows for heads: begin and end,
// rank by rank. Ranks may need the same head of keys.
struct head_cuts {
  std::vector<std::int64_t> queries, keys;
  bool are_whole() const { return queries.empty(); }  // nothing is exchanged
};
head_cuts cut_heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t ranks);

// Heads of queries and the heads of keys that they read, as many of the one for each of the other.
struct head_range {
  std::int64_t query, queries, key, keys;  // first and count, among the rank's own
};
// The heads of a rank as such ranges: more than one where the cut goes through the queries of a
// head of keys.
std::vector<head_range> ranges_of(const head_cuts& cuts, int rank, std::int64_t heads,
                                  std::int64_t kv_heads);

// The splits as this rank has them.
std::vector<sequence_split> cut_shared_sequence(const member& rank, const settings& values,
                                                const part_widths& widths);

}  // namespace decoder
