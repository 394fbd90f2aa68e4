// Mapping what the rendezvous handed out, and whether peers still live.
#include "comm/transport/shm.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <new>
#include <utility>

#include "comm/transport/shared_transport.hpp"

namespace velo::comm {
namespace {

// A process that ended without having left the group.
class process_watch final : public peer_watch {
 public:
  process_watch(std::vector<descriptor> processes, const shared_area& area, int rank)
      : processes_(std::move(processes)), area_(area), rank_(rank) {}

  bool find_gone(rank_set& gone, char (&cause)[128]) noexcept override {
    bool any = false;
    for (int peer = 0; peer < area_.ranks(); ++peer) {
      if (peer == rank_ || !has_ended(processes_[static_cast<std::size_t>(peer)].get())) continue;
      if (area_.state(peer).left.load(std::memory_order_acquire) != 0) continue;
      gone.add(peer);
      if (!any)
        std::snprintf(cause, sizeof cause, "the process of rank %d ended in the group", peer);
      any = true;
    }
    return any;
  }

 private:
  const std::vector<descriptor> processes_;
  const shared_area area_;
  const int rank_;
};

}  // namespace

std::unique_ptr<transport> make_shm(const meeting_place& at) {
  company all = rendezvous(at);
  const auto slot = static_cast<std::size_t>(all.slot_bytes);
  const std::size_t bytes = shared_area::bytes_for(at.size, slot);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all.memory.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  madvise(memory, bytes, MADV_DONTFORK);  // a child is no rank
  const shared_area area(memory, at.size, slot, core::sleepers::of_any_process);
  auto watch = std::make_unique<process_watch>(std::move(all.processes), area, at.rank);
  return std::make_unique<shared_transport>(
      shared_transport::setting{VELO_TRANSPORT_SHM, at.rank, at.timeout_ns}, area, std::move(kept),
      std::move(watch));
}

}  // namespace velo::comm
