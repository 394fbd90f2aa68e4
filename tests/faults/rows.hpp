// What the rows of every module are made of: set-up that they share, and each module's table.
#pragma once

#include <vector>

#include "tests/faults/every_entry.hpp"

namespace velo::testing {

// Set-up that fails would make a row prove nothing: it ends the test.
void must(velo_status status);

// Preparations, and what undoes them.
void nothing(world&);
void open(world& w);  // a context
void open_with_queue(world& w);
void close(world& w);

// Of a call on a handle that was destroyed: VELO_OK when the call was told so.
velo_status gone(velo_status of_a_call);

extern char text[1 << 20];

std::vector<entry> memory_rows();
std::vector<entry> plan_rows();
std::vector<entry> comm_rows();
std::vector<entry> topology_rows();
std::vector<entry> sched_rows();
std::vector<entry> executor_rows();
std::vector<entry> tune_rows();

}  // namespace velo::testing
