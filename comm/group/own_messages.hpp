// Messages of a rank to itself, which no transport carries.
//
// Messages keep their order, as those between two ranks do. A receive takes the first message that
// was sent and not yet received, by an earlier call or in the same exchange. The calls of a group
// run in order, so a receive without such a send could never end, and fails at once. A message
// within an exchange costs one copy. A message that a later call receives is buffered: two copies.
// Used by one call at a time.
#pragma once

#include <deque>
#include <vector>

#include "comm/operation/fault.hpp"
#include "comm/operation/message.hpp"

namespace velo::comm {

class own_messages {
 public:
  static bool has(const message_batch& what, int rank) noexcept;
  static bool has_others(const message_batch& what, int rank) noexcept;

  // Moves the messages of `what` from `rank` to itself. Throws fault, bad_alloc.
  void run(const message_batch& what, int rank);

 private:
  struct kept {
    comm::terms terms;
    std::vector<char> bytes;
  };
  std::deque<kept> sent_;  // but not yet received
};

}  // namespace velo::comm
