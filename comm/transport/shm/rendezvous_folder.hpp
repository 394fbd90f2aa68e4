// The folders in which ranks of one host find each other's sockets. Each belongs to this user alone
// (mode 0700, no link), so that no other user can take a name in it.
//
// Rank 0 uses the first folder that it can have: `velo` in $XDG_RUNTIME_DIR or in /run/user/UID, if
// these are private; then /tmp/velo-UID; then, if another user has taken that name, a new
// /tmp/velo-UID-XXXXXX. The other ranks search all existing folders, since their environments may
// differ and the other user may remove the folder after rank 0 has chosen. Invariant: a folder that
// another user can write to is never used. Cost: a few system calls, and scans of /tmp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::comm {

// Makes and returns rank 0's folder. Throws IO, which lists the findings at each path.
std::string rendezvous_folder();

// A search for rank 0 through all folders of this user.
class rendezvous_folders {
 public:
  std::vector<std::string> find();  // the existing folders, in rank 0's order of preference

 private:
  std::vector<std::string> others_;  // found by the last scan of /tmp
  std::int64_t next_scan_ns_ = 0;
};

}  // namespace velo::comm
