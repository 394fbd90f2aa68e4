// all_reduce and reduce: the same elements of all ranks combined, for all ranks or for one.
#pragma once

#include "comm/transport/shared/shared_round.hpp"

namespace velo::comm {

inline constexpr std::int64_t short_bytes = 16
                                            << 10;  // up to here nothing is cut, however many ranks

// Whether each rank stages all its elements, and combines those of all ranks.
inline bool combines_whole(int ranks, std::int64_t bytes) {
  return ranks <= 2 || bytes <= short_bytes;
}
// Of a chunk that is cut into parts: parts begin at whole lines of any dtype.
inline constexpr std::int64_t part_unit = 128;
inline std::int64_t chunk_elements(std::int64_t slot_bytes, int ranks, std::int64_t in_size,
                                   std::int64_t out_size) {
  return slot_bytes * ranks / (in_size * ranks + out_size) / (part_unit * ranks) * part_unit *
         ranks;
}

// for_rank: who gets the result, -1: all.
void combine_for(shared_round& round, int for_rank);

}  // namespace velo::comm
