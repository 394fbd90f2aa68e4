// Memory of a rank in which peers read what it sent, for as long as they like.
//
// A sender puts a message into a block and goes on; the reader computes with it there, and then gives
// the block back, by a word in front of it. So a message is copied once. Only its owner looks for room:
// first it takes back what was given back, then the lowest gap that suffices, so that memory once touched
// is touched again. Where there is none a message goes another way; nobody waits for a block. Cost: linear
// in the blocks that are out, one line for each of them.
#pragma once

#include <cstddef>
#include <vector>

namespace velo::comm {

class lending {
 public:
  static constexpr std::size_t alignment = 128;

  // memory: `size` bytes that all ranks see. nullptr: no room.
  char* take(char* memory, std::size_t size, std::size_t bytes);
  static void give_back(char* block) noexcept;  // by the reader, or the owner

 private:
  struct block {
    char* begin;  // of its word; what take gave lies a line behind
    std::size_t size;
  };
  std::vector<block> out_;  // by address
};

}  // namespace velo::comm
