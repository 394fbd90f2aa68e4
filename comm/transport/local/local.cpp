// The shared memory, which is freed with the last rank, and the rendezvous of subgroups.
#include "comm/transport/local/local.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "comm/transport/packet.hpp"
#include "comm/transport/shared/shared_transport.hpp"

namespace velo::comm {
namespace {

using links = std::vector<std::unique_ptr<transport>>;

// The last rank that joins makes the subgroup for all. At most one subgroup of the same ranks, or
// of the same shrink attempt, forms at a time, since no rank returns before all have joined.
class thread_subgroups final : public subgroup_rendezvous {
 public:
  std::unique_ptr<transport> join(const subgroup_terms& of,
                                  const std::function<void()>& check) override {
    const deadline until = deadline::after(of.timeout_ns);
    std::unique_lock<std::mutex> lock(lock_);
    std::shared_ptr<forming>& found = forming_[key_of(of)];
    if (found == nullptr) found = std::make_shared<forming>(of.ranks.size());
    const std::shared_ptr<forming> group = found;
    add(*group, of);
    try {
      while (group->transports.empty()) {
        if (group->late.lowest() >= 0) throw missing_ranks{group->late};
        check();
        if (until.is_over()) {
          give_up(*group, of);
        } else {
          joined_.wait_for(lock,
                           std::min(poll_interval, std::chrono::nanoseconds(until.left_ns())));
        }
      }
    } catch (...) {
      group->waiting[rank_of(of)] = false;
      throw;
    }
    return std::move(group->transports[rank_of(of)]);
  }

 private:
  static constexpr std::chrono::nanoseconds poll_interval{50000000};

  struct forming {
    explicit forming(std::size_t size) : waiting(size) {}
    rank_set missing() const {
      rank_set all;
      for (std::size_t rank = 0; rank < waiting.size(); ++rank)
        if (!waiting[rank]) all.add(static_cast<int>(rank));
      return all;
    }

    std::vector<bool> waiting;
    std::size_t slot_bytes = 0;
    std::int64_t timeout_ns = 0;
    links transports;
    rank_set late;  // set when the first deadline has passed
  };

  using key = std::pair<std::uint64_t, std::vector<int>>;
  static key key_of(const subgroup_terms& of) { return {of.round, of.ranks}; }
  static std::size_t rank_of(const subgroup_terms& of) { return static_cast<std::size_t>(of.rank); }

  void add(forming& group, const subgroup_terms& of) {
    if (of.rank == 0) {
      group.slot_bytes = of.slot_bytes;
      group.timeout_ns = of.timeout_ns;
    }
    group.waiting[rank_of(of)] = true;
    if (group.missing().lowest() >= 0) return;
    try {
      group.transports =
          make_local(static_cast<int>(of.ranks.size()), group.slot_bytes, group.timeout_ns);
    } catch (...) {
      group.waiting[rank_of(of)] = false;
      throw;
    }
    forming_.erase(key_of(of));
    joined_.notify_all();
  }

  // Ends the wait of all joined ranks, so that they all report the same missing ranks.
  void give_up(forming& group, const subgroup_terms& of) {
    group.late = group.missing();
    forming_.erase(key_of(of));
    joined_.notify_all();
  }

  std::mutex lock_;  // guards the members below
  std::condition_variable joined_;
  std::map<key, std::shared_ptr<forming>> forming_;
};

}  // namespace

std::vector<std::unique_ptr<transport>> make_local(int ranks, std::size_t slot_bytes,
                                                   std::int64_t timeout_ns) {
  const std::size_t bytes = shared_area::bytes_for(ranks, slot_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  const shared_area area(memory, ranks, slot_bytes, core::sleepers::of_process);
  const auto subgroups = std::make_shared<thread_subgroups>();
  links all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<shared_transport>(
        shared_transport::setting{VELO_TRANSPORT_LOCAL, rank, timeout_ns}, area, kept, nullptr,
        subgroups));
  return all;
}

}  // namespace velo::comm
