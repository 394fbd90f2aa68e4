// Windows onto the memory of peers: files of their shared pools, mapped for reading, so that a
// tensor is read where it lies instead of being staged.
//
// A rank lends the files of a pool when it joins; from then on one word says where in them a tensor
// lies. What a peer reads is mapped when a word first reaches so far, twice as much as before, so
// that addresses are taken by what is in use and not by what a pool could become. Invariant:
// nothing of a peer is ever written, and nothing is read but between two meetings of an operation.
// One rank's, used by one operation at a time. Cost: of a word two comparisons, of a new window a
// call of the system.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/shm/packet.hpp"

namespace velo::comm {

// A file of a pool, and where its bytes lie in this process.
struct lent_file {
  descriptor file;
  const char* begin;
  std::uint64_t bytes;
  const void* pool =
      nullptr;  // its handle: when that ends, the bytes are others'; nullptr: they stay
};
using lent_files = std::vector<lent_file>;  // at most most_lent_files

inline constexpr std::size_t most_lent_files = 2;

class windows {
 public:
  // Where a tensor lies, as its rank says it: nowhere to be read, or in a file; `unread` is what
  // nobody wants to read.
  using place = std::uint64_t;
  static constexpr place nowhere = 0, unread = 2;

  // own: nullptr: of a rank that lends nothing. peers: each rank's files, of this rank none.
  windows(std::shared_ptr<const lent_files> own, std::vector<std::vector<descriptor>> peers);
  ~windows();
  windows(const windows&) = delete;
  windows& operator=(const windows&) = delete;

  place find(const void* data, std::int64_t bytes) const noexcept;
  // nullptr: no bytes of a file that the rank lends. Throws std::bad_alloc.
  const char* at(int peer, place where, std::int64_t bytes);

 private:
  struct window {
    descriptor file;
    char* begin = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t there = 0;  // bytes of the file, when last looked
  };

  const std::shared_ptr<const lent_files> own_;
  std::vector<std::vector<window>> peers_;
};

}  // namespace velo::comm
