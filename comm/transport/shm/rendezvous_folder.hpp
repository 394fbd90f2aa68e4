// The folders in which ranks of one host find each other's sockets: each is this user's alone
// (0700, no link), so that nobody else can take a name in it.
//
// Rank 0 takes the first that it can have: `velo` in $XDG_RUNTIME_DIR, then in /run/user/UID, where
// the system made these for the user alone; then /tmp/velo-UID; and where another user has taken
// that name, /tmp/velo-UID-XXXXXX, one of its own. The other ranks look in all that are there:
// ranks may differ in environment, and the other user may give the name back after rank 0 came.
// Invariant: a folder that another user can write to is never used. Cost: a few system calls, and
// walks through /tmp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::comm {

// Rank 0's; it is made. Throws IO with what was found at each place.
std::string rendezvous_folder();

// A search for rank 0 through all folders of this user.
class rendezvous_folders {
 public:
  std::vector<std::string> look();  // those that are there now, rank 0's first choice first

 private:
  std::vector<std::string> others_;  // of the last walk through /tmp
  std::int64_t next_walk_ns_ = 0;
};

}  // namespace velo::comm
