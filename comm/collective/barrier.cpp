// barrier: no rank goes on before all have come.
#include "comm/collective/calls.hpp"
#include "comm/transport/shared/meeting.hpp"

namespace velo::comm {

operation barrier_call() {
  operation what;
  what.function = "velo_group_barrier";
  return what;
}

void barrier(meeting& m) {
  m.arrive();
  m.meet();
}

}  // namespace velo::comm
