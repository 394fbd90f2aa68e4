// Messages between two ranks: those of one call, which move together.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group/operation.hpp"

namespace velo::comm {

// Elements that one rank sends another, or expects from it.
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

// The messages that a call waits for: its own; none, when its message goes on with later calls; or
// all that were started.
enum class awaited : std::uint8_t { own, nothing, all };

struct message_batch : request {
  std::vector<message> messages;
  comm::awaited awaited = comm::awaited::own;

  // Begins again with nothing moved, for a batch that is carried out more than once.
  void restart() const noexcept {
    for (const message& one : messages) one.moved = -1;
  }
  std::int64_t longest() const noexcept;  // bytes of the longest message
};

inline std::int64_t message_batch::longest() const noexcept {
  std::int64_t most = 0;
  for (const message& one : messages)
    if (one.bytes > most) most = one.bytes;
  return most;
}

}  // namespace velo::comm
