// An operation: one collective as plain data, after its checks, in the form that transports take.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/operation/terms.hpp"
#include "comm/reduction/reduction.hpp"
#include "core/index.hpp"
#include "velo/group.h"

namespace velo::comm {

// The part that every call has, for the group's order, its history and its faults.
struct request {
  comm::terms terms;
  const char* function = "";  // static: the name of the C function that was called
  std::int64_t bytes = 0;     // moved by this rank, for the history

  // Whether the call concerns no other rank: messages to itself.
  bool is_local() const noexcept {
    return !terms.kind.is_collective() && terms.counts == terms::of_own_messages;
  }
};

// How elements are combined: by a kernel, or by the caller's function.
struct reducer {
  reduce_fn kernel = nullptr;
  velo_reduce_fn custom = nullptr;
  void* user = nullptr;  // of custom
  int shares = 0;        // the divisor of an average; 0: the number of sources

  bool reduces() const noexcept { return kernel != nullptr || custom != nullptr; }
};

// The order of the members matters: pairs that are written together share 16 aligned bytes. If a
// pair crosses a cache line, an all_reduce of 8 bytes takes 8 ns more.
struct operation : request {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;        // elements of `in`, of `out`, or of an even block
  std::int64_t out_count = 0;    // elements of all of `out`
  blocks in_blocks, out_blocks;  // one for each rank; empty: `count` elements each
  comm::reducer reducer;

  bool reduces() const noexcept { return reducer.reduces(); }
  std::int64_t in_size() const noexcept { return terms.in_bits / 8; }
  std::int64_t out_size() const noexcept { return terms.out_bits / 8; }
  std::int64_t in_bytes() const noexcept { return count * in_size(); }
  std::int64_t out_bytes() const noexcept { return count * out_size(); }
  void set_count(std::int64_t elements) noexcept {
    count = elements;
    bytes = in_bytes();
  }
  // The input block for a rank, and the output block from a rank.
  block in_block(int rank) const noexcept {
    return in_blocks.empty() ? block{rank * count, count} : in_blocks[core::at(rank)];
  }
  block out_block(int rank) const noexcept {
    return out_blocks.empty() ? block{rank * count, count} : out_blocks[core::at(rank)];
  }
  bool is_large(std::int64_t cache) const noexcept { return out_count * out_size() > cache; }

  const collective_traits& traits() const noexcept { return terms.kind.traits(); }
  // The pattern of `rank` in a group of `size` ranks.
  comm::pattern pattern(int rank, int size) const noexcept {
    return {traits(),
            rank,
            size,
            terms.root,
            count,
            in_blocks.empty() ? nullptr : in_blocks.data(),
            out_blocks.empty() ? nullptr : out_blocks.data()};
  }
  void combine(const reduction_slice& slice) const;
};

// The kernel for a reduction's dtypes; nullptr for a custom reduction. Throws VELO_ERR_DTYPE, and
// VELO_ERR_ARGUMENT for a scale other than 1 if the elements are not floating-point or the
// reduction is no sum.
reduce_fn kernel_for(const terms& what, const reduction_kernels& kernels);

}  // namespace velo::comm
