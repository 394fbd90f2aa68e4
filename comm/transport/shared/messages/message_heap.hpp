// A rank's heap in shared memory for messages that it has sent: a first-fit allocator whose blocks
// are freed by their receivers.
//
// A sender copies a message into a block and continues; the receiver computes on it in place and
// then frees the block by a flag in front of it, so that a message is copied once. Only the owner
// allocates, and a block is reused only after its flag is 0; owner and receivers share nothing
// else. First fit keeps the touched memory small. If no gap is large enough, the message goes
// through its channel instead; no sender waits for a block. An allocation takes time linear in the
// live blocks; a free is one store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace velo::comm {

class message_heap {
 public:
  static constexpr std::size_t alignment = 128;

  // memory: `size` bytes that all ranks see. nullptr: there is no room.
  char* allocate(char* memory, std::size_t size, std::size_t bytes);
  // Whether a block of `bytes` bytes may begin at `offset` in a heap of `size` bytes.
  static bool is_block(std::uint64_t offset, std::int64_t bytes, std::size_t size) noexcept {
    return offset >= alignment && offset % alignment == 0 && offset <= size &&
           static_cast<std::uint64_t>(bytes) <= size - offset;
  }
  static void free_block(char* block) noexcept;  // by the receiver or the owner

 private:
  struct block {
    char* begin;  // of its flag; the memory that allocate returned follows one line later
    std::size_t size;
  };
  std::vector<block> live_;  // by address
};

}  // namespace velo::comm
