// Notes of waits over MPI: each rank sends its own to all ranks of the outermost group, and keeps
// the notes that the others sent.
//
// A note travels as a notice of the progress engine (progress.hpp), which every thread that waits
// in any group reads. A rank sends the note of a wait after half of its timeout, and renews it from
// then on. A rank that has received such a note sends its own waits early, since their deadlines
// may be later: whoever names culprits has known the waits of all others for some time. A note
// lapses without renewal, by its own timeout. Where memory is short a note is not kept. Cost: no
// message unless a rank has waited for half of its timeout; then one to each rank for a renewal.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport/mpi/progress.hpp"
#include "comm/transport/wait_board.hpp"

namespace velo::comm {

class sent_notes final : public wait_notes, public notice_reader {
 public:
  sent_notes(std::shared_ptr<mpi_progress> progress, std::uint64_t outermost_group);
  ~sent_notes() override;

  // How often a wait with this timeout has to be renewed.
  static std::int64_t renewal_ns(std::int64_t timeout_ns) noexcept;

  void write(int note, const fault& what) noexcept override;
  void erase(int note) noexcept override;
  rank_set read(int of, int note, std::int64_t timeout_ns, fault& what) const noexcept override;
  bool others_are_late() const noexcept override;
  void read(const notice& one) noexcept override;

 private:
  struct kept {
    fault what;
    std::int64_t since_ns;  // its arrival
  };
  static int place(int rank, int note) noexcept { return rank * count + note; }
  bool keep(int rank, int note, const fault& what) noexcept;

  const std::shared_ptr<mpi_progress> progress_;
  const std::uint64_t number_;  // of the notices
  std::vector<int> all_;        // ranks of the communicator, which the outermost group has
  mutable std::mutex lock_;     // guards notes_
  std::map<int, kept> notes_;   // by place, those of this rank, too
  std::atomic<std::int64_t> late_until_ns_{0};
};

}  // namespace velo::comm
