// An operation: one collective as plain data, checked, as a transport is given it.
//
// What must be the same on every rank is `terms`: 32 bytes that ranks compare by their signature,
// and show when they differ. Two ranks whose terms have the same signature are about to do the
// same, but for one chance in 2^64.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "comm/pattern/pattern.hpp"
#include "comm/reduction/reduction.hpp"
#include "velo/group.h"

namespace velo::comm {

// Every bit of a word into every bit of the result (splitmix64's end).
inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// What all ranks of an operation must agree on; what a kind does not use is 0.
struct terms {
  collective kind = collective::barrier;
  std::uint8_t reduction = 0;                                         // velo_reduce_op
  std::uint8_t in_code = 0, in_bits = 0, out_code = 0, out_bits = 0;  // of dtypes
  // Of messages: the other rank; of an all_to_all that is a step of another call: of which
  // (step_of).
  std::uint16_t root = 0;
  std::int64_t count = 0;    // elements
  double scale = 0;          // of a reduction
  std::uint64_t counts = 0;  // of each rank, hashed, where they differ; of a step: rows.cpp
  static constexpr std::uint64_t of_measure = 2;  // of the barrier that begins a measurement

  std::uint64_t signature() const noexcept;                 // never 0
  std::string text() const;                                 // "all_reduce of 1024 float32, sum"
  bool has_elements_of(const terms& sent) const noexcept {  // the two sides of a message
    return count == sent.count && in_code == sent.in_code && in_bits == sent.in_bits;
  }
};
static_assert(sizeof(terms) == 32);

inline std::uint64_t terms::signature() const noexcept {
  std::uint64_t words[4];
  std::memcpy(words, this, sizeof words);
  const std::uint64_t all =
      mixed(mixed(words[0] + 1) + words[1]) + mixed(mixed(words[2] + 2) + words[3]);
  return all != 0 ? all : 1;
}

using part = block;

// What one rank has for another, or expects of it.
struct message {
  char* data = nullptr;
  std::int64_t bytes = 0;
  int peer = 0;
  bool receives = false;
  // The receiver takes `block` instead of a copy. nullptr: the message is in no block and stays.
  bool borrows = false;
  comm::terms terms;
  mutable std::int64_t moved = -1;  // bytes so far, -1: none; here, so that run needs no memory
  mutable char* block = nullptr;    // in the sender's message heap
};

// Which messages a call waits for: its own; none, when its message goes on with later calls; or all
// that were started.
enum class awaited : std::uint8_t { own, nothing, all };

struct operation {
  comm::terms terms;
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;                 // elements of what is one piece: of `in`, `out`, or both
  std::int64_t out_count = 0;             // elements of all of `out`
  std::vector<part> in_parts, out_parts;  // of each rank; empty: `count` elements for each
  std::vector<message> messages;          // of an exchange
  comm::awaited awaited = comm::awaited::own;
  int shares = 0;  // of sums in `in`: what their average divides by; 0: as many as there are
  reduce_fn kernel = nullptr;       // of a reduction that is not custom
  velo_reduce_fn custom = nullptr;  // of one that is
  void* user = nullptr;
  const char* function = "";  // static: the C function that asked for it

  std::int64_t in_size() const noexcept { return terms.in_bits / 8; }
  std::int64_t out_size() const noexcept { return terms.out_bits / 8; }
  std::int64_t in_bytes() const noexcept { return count * in_size(); }
  std::int64_t bytes() const noexcept;  // of this rank, as histories have it
  std::int64_t out_bytes() const noexcept { return count * out_size(); }
  bool reduces() const noexcept { return kernel != nullptr || custom != nullptr; }
  // Of a collective, as the given rank of `size` ranks sees it.
  comm::pattern pattern(int rank, int size) const noexcept {
    return {traits_of(terms.kind),
            rank,
            size,
            terms.root,
            count,
            in_parts.empty() ? nullptr : in_parts.data(),
            out_parts.empty() ? nullptr : out_parts.data()};
  }
  void combine(const reduction_slice& slice) const;
  bool is_large(std::int64_t cache) const noexcept { return out_count * out_size() > cache; }
  part in_part(int rank) const {
    return in_parts.empty() ? part{rank * count, count} : in_parts[static_cast<std::size_t>(rank)];
  }
  part out_part(int rank) const {
    return out_parts.empty() ? part{rank * count, count}
                             : out_parts[static_cast<std::size_t>(rank)];
  }
};

const char* name_of(collective kind) noexcept;
// What terms say of a step of a call that is no operation itself: dispatch, or combine.
std::uint16_t step_of(collective whole, bool weighted) noexcept;
std::uint64_t hash_of(const std::vector<part>& parts) noexcept;  // of their counts
std::string name_of_dtype(std::uint8_t code, std::uint8_t bits);

// The kernel for a reduction's dtypes; nullptr: custom. Throws VELO_ERR_DTYPE, and
// VELO_ERR_ARGUMENT for a scale other than 1 where elements are no floating-point numbers or where
// nothing is added.
reduce_fn kernel_for(const terms& what, const reduction_kernels& kernels);

}  // namespace velo::comm
