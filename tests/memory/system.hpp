// The system's calls for memory and files, counted and refused on demand: the linker puts these in
// the place of the pool's calls (tests/memory/CMakeLists.txt).
#pragma once

#include <cstdint>
#include <string>

namespace velo::testing {

struct system_calls {
  int remaining = -1;         // calls until one is refused; -1: none is
  bool all_later = false;     // and every later one
  bool refused = false;       // one was
  std::int64_t mapped = 0;    // bytes mapped and not unmapped
  bool only_commits = false;  // refuse mprotect alone
  bool no_release = false;    // refuse to let memory go
  bool no_keys = false;       // refuse thread keys
  bool no_moves = false;      // of an older system, which cannot move pages
  bool no_mover = false;      // or each by a call of its own alone
  bool busy_pages = false;    // pages that cannot be moved without their mappings
  int moves = 0;              // calls that moved pages
  int moves_alone = 0;        // without mappings
  int write_error = 0, close_error = 0, rename_error = 0;  // of files; 0: none
  bool write_short = false;                                // write no more than 1000 bytes a call
  std::string groups;  // folder of the files of control groups; empty: the system's
};
system_calls& calls();

}  // namespace velo::testing
