// Functions of the host in which velo's objects are destroyed: what the rows of inside_rows.cpp and
// the test share.
//
// A row lets velo call one of the host's functions, by a call that works with some of the scene's
// objects. The function calls meddle(), which destroys one object. Those that the row names as
// `kept` are in use by the call: they must be there afterwards, and the call must end as if nothing
// had happened.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/calls/scene.hpp"

namespace velo::testing {

struct inside_row {
  std::string callback;  // the spec's name: "velo_reduce_fn", "velo_allocator.allocate"
  std::string how;
  std::set<std::string> kept;
  velo_status (*run)(scene&);
  velo_status status = VELO_OK;  // of the call, whatever is kept
};

const std::vector<inside_row>& inside_rows();

}  // namespace velo::testing
