// An operation: one collective as plain data, checked, as a transport is given it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group/terms.hpp"
#include "comm/reduction/reduction.hpp"
#include "velo/group.h"

namespace velo::comm {

// The part of every call that the group uses: for its order, its history and its faults.
struct request {
  comm::terms terms;
  const char* function = "";  // static: the C function that was called
  std::int64_t bytes = 0;     // that this rank moves, as histories show them

  // Whether it concerns no other rank, as messages to itself.
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

// Its members lie so that pairs that are written together share 16 aligned bytes: where a pair
// crosses a cache line, an all_reduce of 8 bytes takes 8 ns more.
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
  // The block for a rank, and the block from a rank.
  block in_block(int rank) const noexcept {
    return in_blocks.empty() ? block{rank * count, count}
                             : in_blocks[static_cast<std::size_t>(rank)];
  }
  block out_block(int rank) const noexcept {
    return out_blocks.empty() ? block{rank * count, count}
                              : out_blocks[static_cast<std::size_t>(rank)];
  }
  bool is_large(std::int64_t cache) const noexcept { return out_count * out_size() > cache; }

  const collective_traits& traits() const noexcept { return terms.kind.traits(); }
  // The pattern of the given rank of `size` ranks.
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

// The kernel for a reduction's dtypes; nullptr: custom. Throws VELO_ERR_DTYPE, and
// VELO_ERR_ARGUMENT for a scale other than 1 where elements are no floating-point numbers or where
// nothing is added.
reduce_fn kernel_for(const terms& what, const reduction_kernels& kernels);

}  // namespace velo::comm
