// The messages of one call, between pairs of ranks, which progress together.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/operation/operation.hpp"

namespace velo::comm {

// Elements that this rank sends to a peer or expects from it.
struct message {
  char* data = nullptr;
  std::int64_t bytes = 0;
  int peer = 0;
  bool receives = false;
  // If set, the receiver takes `block` in place of a copy. `block` stays nullptr if the message
  // does not lie in the sender's heap; the message is then still to be received.
  bool borrows = false;
  comm::terms terms;
  // Bytes moved so far; -1: not begun. It is a member so that a run allocates nothing.
  mutable std::int64_t moved = -1;
  mutable char* block = nullptr;  // in the sender's message heap
};

// The messages that a call waits for: its own; none, if its message continues during later calls;
// or all started ones.
enum class awaited : std::uint8_t { own, nothing, all };

struct message_batch : request {
  std::vector<message> messages;
  comm::awaited awaited = comm::awaited::own;

  // Marks all messages as not begun, for a batch that runs more than once.
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
