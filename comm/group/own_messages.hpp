// Messages of a rank to itself, which no transport carries.
//
// Messages keep their order, as those between two ranks do. A receive takes the first message that
// was sent and not yet received: of an earlier call, or of the same exchange. Calls of a group are
// carried out in the order of their calls, so a receive without such a send can never end and fails
// at once. Cost: a copy within an exchange; two copies, and memory for the message, between calls.
// Used by one call at a time.
#pragma once

#include <deque>
#include <vector>

#include "comm/group/fault.hpp"
#include "comm/group/operation.hpp"

namespace velo::comm {

class own_messages {
 public:
  static bool has(const operation& what, int rank) noexcept;
  static bool has_others(const operation& what, int rank) noexcept;

  // Moves the messages of `what` from `rank` to itself. Throws fault, bad_alloc.
  void run(const operation& what, int rank);

 private:
  struct kept {
    comm::terms terms;
    std::vector<char> bytes;
  };
  std::deque<kept> sent_;  // and not received
};

}  // namespace velo::comm
