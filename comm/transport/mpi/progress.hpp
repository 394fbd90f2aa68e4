// The progress engine of one MPI communicator, which all its groups share. It receives the notices
// by which ranks announce faults and departures, and keeps requests that outlive their group.
//
// Each communicator that a host passes has one engine. It is made with the first group and kept
// until MPI or the communicator ends. Groups are numbered in the order in which they are made,
// which is the same on all ranks, and each group's messages have tags of their own. One receive for
// notices is always posted. A thread that waits in any group reads the notices that arrive, and
// passes each to its group or keeps it for a group that is not made yet. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/operation/fault.hpp"
#include "comm/transport/mpi/load.hpp"
#include "comm/transport/packet.hpp"

namespace velo::comm {

// An announcement of one rank to all others of a group, or a note of a wait (sent_notes.hpp).
struct notice {
  enum class what : std::int32_t {
    left,
    ended,   // the group has ended because of `why`
    waits,   // a note: the rank waits for why.culprits
    resumed  // the note is void
  };
  std::uint64_t group = 0;
  std::int32_t from = 0;
  what kind = what::left;
  std::int32_t note = 0;
  fault why;
};

class notice_reader {
 public:
  virtual ~notice_reader() = default;
  virtual void read(const notice& one) noexcept = 0;  // under the engine's lock
};

class mpi_progress {
 public:
  // Waits for other ranks only to initialize MPI and to duplicate the communicator. Throws PEER if
  // some do not take part, UNSUPPORTED, IO, and as load_mpi does.
  static std::shared_ptr<mpi_progress> open(const std::string& folders, std::int64_t communicator,
                                            std::int64_t timeout_ns);
  ~mpi_progress();
  mpi_progress(const mpi_progress&) = delete;
  mpi_progress& operator=(const mpi_progress&) = delete;

  int rank() const noexcept { return duplicate_->rank; }
  int size() const noexcept { return duplicate_->size; }
  const mpi_plugin& mpi() const noexcept { return *plugin_.table; }
  mpi_duplicate* duplicate() const noexcept { return duplicate_; }

  // Returns the number of a new group, and reads the notices that arrived early for it. Throws
  // UNSUPPORTED if no number is left.
  std::uint64_t add(notice_reader& reader);
  // The ranks of a subgroup alone agree on its number: the largest next_part() among them.
  std::uint64_t next_part() const;
  void add_part(std::uint64_t number, notice_reader& reader);
  // Notes have a number of their own, by the outermost group. Reads the notes of faults that
  // arrived while the group was being made; early notes of waits are not kept.
  static std::uint64_t number_of_notes(std::uint64_t group) noexcept { return group | notes_bit; }
  void add_notes(std::uint64_t number, notice_reader& reader);
  void remove(std::uint64_t group) noexcept;
  static int tag(std::uint64_t group, int kind) noexcept;

  void poll() noexcept;  // reads the notices that have arrived
  void notify(const notice& one, const std::vector<int>& ranks) noexcept;

  // Requests whose group is gone, and the memory that MPI may still read or write for them.
  struct orphan {
    std::vector<mpi_request> requests;
    std::shared_ptr<void> memory;
  };
  void adopt(orphan all) noexcept;

  // Stores the pidfds of the ranks on this host, for all groups; -1: a rank on another host.
  void watch(const std::vector<int>& processes);
  bool find_gone(rank_set& gone) const noexcept;

 private:
  static constexpr std::uint64_t notes_bit = std::uint64_t{1} << 63;
  mpi_progress(loaded_plugin plugin, mpi_duplicate* duplicate);
  static bool make(mpi_duplicate* duplicate, void* plugin) noexcept;
  void read_early(std::uint64_t number, notice_reader& reader);
  void drop_early(std::uint64_t number) noexcept;
  bool is_early(const notice& one) const noexcept;
  void read_notice() noexcept;
  void expect_notice() noexcept;
  void free_completed() noexcept;

  const loaded_plugin plugin_;
  mpi_duplicate* const duplicate_;
  mutable std::mutex lock_;
  std::uint64_t next_ = 0, next_part_;
  std::map<std::uint64_t, notice_reader*> readers_;
  std::vector<notice> early_;
  std::unique_ptr<notice> incoming_;
  mpi_request receiving_;
  std::vector<orphan> orphans_;
  std::vector<descriptor> processes_;
};

}  // namespace velo::comm
