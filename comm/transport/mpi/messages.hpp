// Point-to-point messages over MPI, several at once, in any direction.
//
// A message begins with its terms, as in shared memory (shared/messages/message_progress.cpp). A
// send ends when its last bytes are in a slot, though MPI may not have sent them yet. Each pair of
// ranks has two slots in either direction. No message can be started or borrowed. The next calls
// complete the slots that a call leaves under way; leaving the group completes the last ones.
#pragma once

#include <array>
#include <vector>

#include "comm/transport/mpi/link.hpp"
#include "core/stream/execution.hpp"

namespace velo::comm {

class mpi_messages {
 public:
  explicit mpi_messages(mpi_link& link);

  void run(const message_batch& what);  // throws PEER
  void finish();                        // completes the slots that a peer still waits for
  void abandon() noexcept;

 private:
  static constexpr int slots = 2;
  struct chunk {
    std::size_t of;  // the message
    std::int64_t from, bytes;
  };
  struct lane {
    std::array<mpi_request, slots> requests;
    std::array<chunk, slots> chunks;     // to receive
    std::uint64_t begun = 0, ended = 0;  // slots in use: from `ended` on
    std::size_t next = 0;                // the message to receive that still needs slots
    std::int64_t wanted = 0;             // bytes of message `next` that have a slot; -1: none
    bool is_full() const noexcept { return begun - ended == slots; }
  };

  mpi_link::motion move(const message_batch& what);
  bool put(const message& m);
  bool expect(const message_batch& what, int from);
  bool take(const message_batch& what, int from);
  bool free_sent();
  mpi_link::awaited awaited_of(const message_batch& what) const;
  [[noreturn]] void disagree(const message& m, const terms& theirs);

  mpi_link& link_;
  const std::int64_t room_;  // of a slot
  std::vector<lane> out_, in_;
  std::vector<char> blocked_;  // of each rank
};

}  // namespace velo::comm
