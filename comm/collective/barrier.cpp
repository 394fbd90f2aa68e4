// barrier: no rank goes on before all have come.
#include "comm/collective/calls.hpp"
#include "comm/transport/shared/shared_round.hpp"

namespace velo::comm {

operation barrier_call() {
  operation what;
  what.function = "velo_group_barrier";
  return what;
}

void barrier(shared_round& round) {
  round.post();
  round.wait_all();
}

}  // namespace velo::comm
