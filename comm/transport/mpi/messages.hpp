// Messages over MPI: what one rank has for another, several at once, in any direction.
//
// As in shared memory (comm/collective/messages.cpp) a message begins with its terms, and a call
// ends when the last of its bytes is in a slot, though it may not be sent yet; here each pair of
// ranks has two slots in either direction, and no message is started or lent. What one call leaves
// on its way the next ones see to, and whoever leaves the group.
#pragma once

#include <array>
#include <vector>

#include "comm/transport/mpi/link.hpp"
#include "core/stream/execution.hpp"

namespace velo::comm {

class mpi_messages {
 public:
  explicit mpi_messages(mpi_link& link);

  void run(const operation& what);  // throws PEER
  void finish();                    // what is on its way, as long as anybody waits for it
  void abandon() noexcept;

 private:
  static constexpr int slots = 2;
  struct chunk {
    std::size_t of;  // the message
    std::int64_t from, bytes;
  };
  struct lane {
    std::array<mpi_request, slots> requests;
    std::array<chunk, slots> chunks;     // of what comes
    std::uint64_t begun = 0, ended = 0;  // slots in use: from `ended` on
    std::size_t next = 0;                // of what comes: the message that more is to come of
    std::int64_t wanted = 0;             // and how much of it has a slot
    bool is_full() const noexcept { return begun - ended == slots; }
  };

  mpi_link::motion move(const operation& what);
  bool put(const message& m);
  bool expect(const operation& what, int from);
  bool take(const operation& what, int from);
  bool sweep();
  mpi_link::awaited awaited_of(const operation& what) const;
  [[noreturn]] void disagree(const message& m, const terms& theirs);

  mpi_link& link_;
  const std::int64_t room_;  // of a slot
  std::vector<lane> out_, in_;
  std::vector<char> blocked_;  // a place for each rank
};

}  // namespace velo::comm
