// What the groups of one communicator of MPI share: its messages, and the notices by which ranks
// tell each other of faults and of leaving.
//
// One hub for each communicator that a host has named, made with its first group and kept until MPI
// or the communicator ends. Groups are numbered in the order in which they are made, the same on
// all ranks; a group's messages have tags of its own. One receive for notices is always posted:
// whoever waits, in whatever group, reads what came and hands it to the group that is meant, or
// keeps it for a group that is not made yet. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/group/fault.hpp"
#include "comm/transport/mpi/load.hpp"
#include "comm/transport/shm/packet.hpp"

namespace velo::comm {

// What one rank tells all others of a group.
struct notice {
  enum class what : std::int32_t {
    left,
    ended,   // the group: why
    waits,   // has waited half its deadline for why.culprits
    goes_on  // what it waited for has come
  };
  std::uint64_t group = 0;
  std::int32_t from = 0;
  what kind = what::left;
  fault why;
};

class notice_reader {
 public:
  virtual ~notice_reader() = default;
  virtual void read(const notice& one) noexcept = 0;  // under the hub's lock
};

class mpi_hub {
 public:
  // Meets nobody yet. Throws PEER (not all came to make the communicator), UNSUPPORTED, IO, and
  // what load_mpi does.
  static std::shared_ptr<mpi_hub> open(const std::string& folders, std::int64_t communicator,
                                       std::int64_t timeout_ns);
  ~mpi_hub();
  mpi_hub(const mpi_hub&) = delete;
  mpi_hub& operator=(const mpi_hub&) = delete;

  int rank() const noexcept { return line_->rank; }
  int size() const noexcept { return line_->size; }
  const mpi_plugin& mpi() const noexcept { return *plugin_.table; }
  mpi_line* line() const noexcept { return line_; }

  // A number for a group that is being made; what came for it is read at once.
  // Throws UNSUPPORTED when there are no more.
  std::uint64_t add(notice_reader& reader);
  // Of a part of a group, whose ranks alone agree on its number: at least what each of them has
  // left.
  std::uint64_t next_part() const;
  void add_part(std::uint64_t number, notice_reader& reader);
  void remove(std::uint64_t group) noexcept;
  static int tag(std::uint64_t group, int kind) noexcept;

  void poll() noexcept;  // reads what came
  void tell(const notice& one, const std::vector<int>& ranks) noexcept;

  // Memory that MPI may still read or write, and the requests that say so.
  struct remains {
    std::vector<mpi_request> requests;
    std::shared_ptr<void> memory;
  };
  void bury(remains all) noexcept;

  // Descriptors of ranks' processes, as far as they are of this host; -1: none. Of all groups.
  void watch(const std::vector<int>& processes);
  bool find_gone(rank_set& gone) const noexcept;

 private:
  mpi_hub(loaded_plugin plugin, mpi_line* line);
  static bool make(mpi_line* line, void* plugin) noexcept;
  void read_early(std::uint64_t number, notice_reader& reader);
  void read_notice() noexcept;
  void expect_notice() noexcept;
  void sweep() noexcept;

  const loaded_plugin plugin_;
  mpi_line* const line_;
  mutable std::mutex lock_;
  std::uint64_t next_ = 0, next_part_;
  std::map<std::uint64_t, notice_reader*> readers_;
  std::vector<notice> early_;
  std::unique_ptr<notice> incoming_;
  mpi_request receiving_;
  std::vector<remains> buried_;
  std::vector<descriptor> processes_;
};

}  // namespace velo::comm
