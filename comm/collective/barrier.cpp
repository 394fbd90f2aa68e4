// barrier: no rank goes on before all have called it. It has nothing to check.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation barrier_call() {
  operation what;
  what.function = "velo_group_barrier";
  return what;
}

}  // namespace velo::comm
