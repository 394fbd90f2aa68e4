// A rendezvous: ranks that are processes of one host find each other by a name, and leave with
// memory that all of them see, a descriptor of each other's process, and the files that ranks lend.
//
// Rank 0 listens on a socket in a folder that is this user's alone (rendezvous_folder.hpp). The
// others connect, say who they are and hand over a descriptor of their process. When all have come,
// rank 0 makes a file in memory that has no name and hands its descriptor to all. Nothing is left
// behind: the socket goes before anybody leaves. What an earlier rank 0 left when it was killed is
// taken away by the next, which a lock tells from one that lives.
//
// Rank 0 reads greetings side by side, each within a second: a process that connects and says
// nothing holds nobody. Rank 0 answers each greeting at once with a receipt: a rank without one
// leaves a process that listens there when another socket takes the path. Nobody waits beyond the
// deadline. A rank that does not come, or has given up before all had come, is named; it may come
// again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport/shared/windows.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

struct meeting_place {
  std::string name;  // of letters, digits, '.', '-' and '_'
  int rank, size;
  std::int64_t timeout_ns;
  std::uint64_t slot_bytes;           // rank 0's holds for all
  std::function<void()> glance = {};  // as of a deadline
  std::shared_ptr<const lent_files> lends = {};
  // Called while ranks are missing, 5 s after the wait began and every 30 s from then on. A rank
  // that has met rank 0 calls it no more: rank 0 knows of the others.
  std::function<void(const rank_set& missing, std::int64_t waited_ns)> remind = {};
};

struct company {
  descriptor memory;  // of shared_area::bytes_for
  std::uint64_t slot_bytes = 0;
  std::uint64_t identity = 0;                 // another one at each rendezvous
  std::vector<descriptor> processes;          // of each rank
  std::vector<std::vector<descriptor>> lent;  // files of each rank; of oneself none
  bool lends = false;                         // some rank does
};

// Throws not_there, PEER (ranks with other terms), STATE (a rendezvous of that name is under way),
// IO, MEMORY.
company rendezvous(const meeting_place& at);

}  // namespace velo::comm
