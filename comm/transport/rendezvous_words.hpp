// The messages of a rendezvous (rendezvous.hpp), one struct for each: a rank's greeting, rank 0's
// answer, and the files that a rank lends. They are copied byte by byte between processes of one
// host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/transport/transport.hpp"

namespace velo::comm {

// A rank's greeting. Fields may be added at the end. Those up to the size keep their places, and so
// do a welcome's up to `got`: any two releases can tell each other apart.
struct hello {
  char magic[8];
  char release[24];
  std::int32_t rank, size;
  std::uint64_t layout;  // of the area: sizes of what lies in it
  std::uint64_t lends;   // files, whose descriptors follow that of the process
};
inline constexpr std::size_t least_hello = offsetof(hello, layout);

enum : std::int32_t {
  is_terms = 0,    // of the area, or that rank 0 gave up
  is_refusal = 1,  // with a text
  is_receipt = 2   // the greeting was read; the terms follow
};

// Rank 0's answer.
struct welcome {
  std::int32_t kind;
  std::int32_t rank;  // at fault
  std::uint64_t slot_bytes;
  std::uint64_t identity;
  char expected[96], got[96];
  rank_set missing;  // of ranks that rank 0 waited for until it gave up
};
inline constexpr std::size_t least_welcome = offsetof(welcome, missing);
static_assert(std::is_trivially_copyable_v<rank_set>);

// A rank whose files come with this message; rank -1: no more files come.
struct lender {
  std::int32_t rank, files;
};

}  // namespace velo::comm
