// Mapped memory of peers: the files of their shared pools, mapped read-only, so that a tensor is
// read in place instead of being staged.
//
// A rank registers the files of its pool when it joins the group; from then on one word locates a
// tensor in them. A peer's file is mapped up to the last byte that a location has reached, at least
// doubling each time, so that the address space follows use instead of a pool's limit. Invariant:
// peers' memory is never written, and is read only between the two barriers of an operation. One
// operation of one rank uses the mappings at a time. A location costs two comparisons; a new
// mapping costs a system call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/packet.hpp"

namespace velo::comm {

// A file of a pool, and the address of its bytes in this process.
struct registered_file {
  descriptor file;
  const char* begin;
  std::uint64_t bytes;
  // The pool's handle: once the pool is destroyed, its memory may be reused. nullptr: the memory
  // stays valid.
  const void* pool = nullptr;
};
using registered_files = std::vector<registered_file>;  // at most max_registered_files

inline constexpr std::size_t max_registered_files = 2;

class peer_mappings {
 public:
  // A tensor's file and its offset there. unmapped: peers cannot read it; unread: no peer needs to.
  using location = std::uint64_t;
  static constexpr location unmapped = 0, unread = 2;

  // own: nullptr if this rank registers nothing. peers: each rank's files; this rank's entry is
  // empty.
  peer_mappings(std::shared_ptr<const registered_files> own,
                std::vector<std::vector<descriptor>> peers);
  ~peer_mappings();
  peer_mappings(const peer_mappings&) = delete;
  peer_mappings& operator=(const peer_mappings&) = delete;

  location find(const void* data, std::int64_t bytes) const noexcept;
  // nullptr: the location is not within a file of that rank. Throws std::bad_alloc.
  const char* address(int peer, location where, std::int64_t bytes);

 private:
  struct mapping {
    descriptor file;
    char* begin = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t file_bytes = 0;  // as of the last check
  };

  const std::shared_ptr<const registered_files> own_;
  std::vector<std::vector<mapping>> peers_;
};

}  // namespace velo::comm
