// A rendezvous: ranks that are processes of one host find each other by a name. Each rank leaves it
// with the shared memory, a pidfd of every rank's process, and the files that ranks registered.
//
// Rank 0 listens on a socket in a folder that belongs to this user alone (rendezvous_folder.hpp).
// The other ranks connect and send their numbers and pidfds. When all have joined, rank 0 makes an
// anonymous file in memory and passes its descriptor to all. The socket is removed before any rank
// leaves; the next rank 0 removes what a killed one has left (rendezvous_socket.hpp).
//
// Rank 0 reads greetings concurrently and allows each one second, so that a silent process blocks
// nobody. It answers each greeting at once with a receipt. A rank without a receipt disconnects if
// another socket replaces the path. Nobody waits beyond the deadline. The failure names the ranks
// that did not join or that gave up before all had; these may call again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport/shared/peer_mappings.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

struct rendezvous_options {
  std::string name;  // of letters, digits, '.', '-' and '_'
  int rank, size;
  std::int64_t timeout_ns;
  std::uint64_t slot_bytes;          // rank 0's counts for all
  std::function<void()> check = {};  // as deadline's
  std::shared_ptr<const registered_files> files = {};
  // Called while ranks are missing, 5 s after the wait began and every 30 s from then on. A rank
  // stops calling it once rank 0 has answered, since rank 0 then reports the missing ranks.
  std::function<void(const rank_set& missing, std::int64_t waited_ns)> remind = {};
};

struct rendezvous_result {
  descriptor memory;  // of shared_area::bytes_for
  std::uint64_t slot_bytes = 0;
  std::uint64_t identity = 0;                       // unique to this rendezvous
  std::vector<descriptor> processes;                // one pidfd for each rank
  std::vector<std::vector<descriptor>> peer_files;  // of each rank; this rank's entry is empty
  bool any_files = false;                           // some rank registered files
};

// Throws missing_ranks, PEER (ranks with other terms), STATE (a rendezvous of this name is under
// way), IO, MEMORY.
rendezvous_result rendezvous(const rendezvous_options& at);

// For a rank that cannot use the result: its peers find that it has left the group.
void leave(const rendezvous_result& of, const rendezvous_options& at) noexcept;

}  // namespace velo::comm
