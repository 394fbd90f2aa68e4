// Memory of a rank in which peers read what it sent: a first-fit allocator whose blocks are freed
// by their readers.
//
// A sender copies a message into a block and goes on; the reader computes with it there and then
// frees the block, by a word in front of it, so that a message is copied once. Only the owner
// allocates, and a block is not used again before its word is 0: owner and readers share nothing
// else. The lowest gap is taken, so that memory once touched is touched again. Where there is none
// a message goes another way; nobody waits for a block. Cost: to allocate, linear in the blocks
// that are out; to free, one store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace velo::comm {

class lending {
 public:
  static constexpr std::size_t alignment = 128;

  // memory: `size` bytes that all ranks see. nullptr: no room.
  char* take(char* memory, std::size_t size, std::size_t bytes);
  // Whether a block of so many bytes may lie `offset` behind the beginning of memory of `size`
  // bytes.
  static bool is_block(std::uint64_t offset, std::int64_t bytes, std::size_t size) noexcept {
    return offset >= alignment && offset % alignment == 0 && offset <= size &&
           static_cast<std::uint64_t>(bytes) <= size - offset;
  }
  static void give_back(char* block) noexcept;  // by the reader, or the owner

 private:
  struct block {
    char* begin;  // of its word; what take gave lies a line behind
    std::size_t size;
  };
  std::vector<block> out_;  // by address
};

}  // namespace velo::comm
