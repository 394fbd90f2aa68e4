// The folders in which ranks of one host find each other's sockets: each is this user's alone (0700, no
// link), so that nobody else can take a name in it.
//
// Rank 0 takes the first that it can have: `velo` in $XDG_RUNTIME_DIR, then in /run/user/UID, where the
// system made these for the user alone; then /tmp/velo-UID; and where another user has taken that name,
// /tmp/velo-UID-XXXXXX, one of its own. The other ranks look in all that are there, since ranks may
// differ in environment. Invariant: a folder that another user can write to is never used. Cost: a few
// system calls; a walk through /tmp where a name was taken.
#pragma once

#include <string>
#include <vector>

namespace velo::comm {

// Rank 0's; it is made. Throws IO with what was found at each place.
std::string rendezvous_folder();

// All of this user that are there, rank 0's first.
std::vector<std::string> rendezvous_folders();

}  // namespace velo::comm
