// The choice of a collective's algorithm in shared memory, shared by the round that runs it and by
// explain(), which states it in advance.
#pragma once

#include "comm/pattern/slices.hpp"
#include "comm/transport/shared/shared_round.hpp"

namespace velo::comm {

// Whether all blocks have the same number of elements, as all ranks know from the terms.
inline bool is_even(const operation& op) noexcept {
  if (has_root_blocks(op.traits())) return op.terms.counts == 0;
  return op.in_blocks.empty() && op.out_blocks.empty();
}

// The bytes that each rank posts in its mailbox, if they fit there; -1 if the collective never uses
// mailboxes.
inline std::int64_t mailbox_bytes(const operation& op, int ranks) noexcept {
  const collective_traits& traits = op.traits();
  if (!is_even(op) || !(traits.reduces || all_take_alike(traits))) return -1;
  return (traits.in == layout::blocks ? ranks : 1) * op.in_bytes();
}

// The bytes of the longest block that peers may read in place, equal on every rank; 0 if the
// collective never reads in place. If blocks differ in size, a peer finds its block in an input
// only if the terms give its offset.
inline std::int64_t in_place_bytes(const operation& op, const pattern& pattern) noexcept {
  const collective_traits& traits = pattern.traits;
  if (traits.reduces ? traits.root != root_role::none : !all_take_alike(traits)) return 0;
  if (traits.in == layout::blocks && !traits.reduces && !is_even(op)) return 0;
  return pattern.longest() * op.in_size();
}

// Whether the blocks of the output overwrite those of the input, so that peers cannot read the
// input in place.
inline bool is_overwritten_by_blocks(const operation& op) noexcept {
  return op.traits().in == layout::blocks && !op.reduces() && op.in == op.out;
}

// A shorter block is staged, which costs no time beside the wait for the peers.
inline constexpr std::int64_t least_in_place_bytes = 16 << 10;
// Whether to try exchange_locations. bytes: the size of the longest block, equal on every rank.
inline bool may_read_in_place(const shared_round& round, std::int64_t bytes) noexcept {
  return round.has_registered_memory() && bytes >= least_in_place_bytes;
}
inline constexpr std::int64_t in_place_share_bytes = 1 << 20;  // of a result reduced in place

// The part of this rank's input that peers read.
inline shared_round::tensor_bytes read_by_peers(const operation& op,
                                                const pattern& pattern) noexcept {
  if (!pattern.gives_others()) return {op.in, 0};
  const block last = pattern.gives(pattern.size - 1);
  return {op.in, (last.begin + last.count) * op.in_size()};
}

// Whether every rank stages all its elements and each rank that gets the result combines them all,
// as between two ranks and for short data.
inline constexpr std::int64_t most_unshared_bytes = 16 << 10;
inline bool reduces_unshared(int ranks, std::int64_t bytes) {
  return ranks <= 2 || bytes <= most_unshared_bytes;
}

// Longer data is cut into chunks, and each rank combines its share of one. Shares begin at whole
// cache lines for any dtype.
inline constexpr std::int64_t share_unit = 128;
inline std::int64_t chunk_elements(std::int64_t slot_bytes, int ranks, std::int64_t in_size,
                                   std::int64_t out_size) {
  return slot_bytes * ranks / (in_size * ranks + out_size) / (share_unit * ranks) * share_unit *
         ranks;
}

}  // namespace velo::comm
