// What a rank may do before it knows that the optimizer step before was right.
//
// The forwards that its row begins with, as far as what they need comes from such forwards of other
// ranks: so everybody can do these, whatever anyone finds out. Behind them a rank asks, having
// received all that others send ahead of their own questions; then no send of that kind is under
// way any more, and what is void can be dropped, on links that wait, too. One pass over all rows,
// some more over their beginnings.
#pragma once

#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

struct ahead {
  struct input {
    std::int32_t stage, unit;
  };
  std::int64_t cut = 0;         // so many actions of the row
  std::vector<input> arriving;  // needed behind them, sent ahead; in the order of the row
};

ahead ahead_of(const schedule& what, std::int32_t rank);

}  // namespace velo::sched
