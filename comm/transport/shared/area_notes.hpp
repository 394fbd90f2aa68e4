// Notes of waits in the area of an outermost group, which all its ranks see.
//
// A rank renews its note at each wake-up from a sleep of at most 50 ms. A note has room for four
// awaited ranks; more are not noted. Readers take no lock: a count that is odd during a write tells
// them to read again. Cost: some words before a system call; nothing for waits that do not sleep.
#pragma once

#include <memory>

#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/wait_board.hpp"

namespace velo::comm {

class area_notes final : public wait_notes {
 public:
  // memory: keeps the area mapped.
  area_notes(const shared_area& area, std::shared_ptr<void> memory, int rank);

  void write(int note, const fault& what) noexcept override;
  void erase(int note) noexcept override;
  rank_set read(int of, int note, std::int64_t timeout_ns, fault& what) const noexcept override;

 private:
  const shared_area area_;
  const std::shared_ptr<void> memory_;
};

}  // namespace velo::comm
