// The messages of a rendezvous (shm/rendezvous.hpp), one struct for each: a rank's greeting, rank
// 0's answer, and the headers of registered files. Processes of one host exchange their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/transport/transport.hpp"

namespace velo::comm {

// A rank's greeting. New fields go to the end. The fields before `layout`, and those of a welcome
// up to `got`, keep their offsets, so that any two releases can tell each other apart.
struct hello {
  char magic[8];
  char release[24];
  std::int32_t rank, size;
  std::uint64_t layout;  // of the shared area: sizes of its structs
  std::uint64_t files;   // registered; their descriptors follow the one of the process
};
inline constexpr std::size_t least_hello = offsetof(hello, layout);

enum : std::int32_t {
  has_terms = 0,   // the terms of the area, unless rank 0 has given up
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
  rank_set missing;  // ranks for which rank 0 waited until it gave up
};
inline constexpr std::size_t least_welcome = offsetof(welcome, missing);
static_assert(std::is_trivially_copyable_v<rank_set>);

// The header of a message with the registered files of a rank; rank -1: no more files follow.
struct files_header {
  std::int32_t rank, files;
};

}  // namespace velo::comm
