// Mapping what the rendezvous handed out, and whether peers still live.
#include "comm/transport/shm/shm.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "comm/transport/shared/shared_transport.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"

namespace velo::comm {
namespace {

constexpr std::size_t most_populated = std::size_t{32} << 20;  // a few milliseconds

std::unique_ptr<transport> join(const meeting_place& at, outside* beside = nullptr);

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

// By a name that follows from the group and the ranks.
class names_hall final : public hall {
 public:
  names_hall(std::uint64_t identity, std::shared_ptr<const lent_files> lends)
      : identity_(identity), lends_(std::move(lends)) {}

  std::unique_ptr<transport> meet(const part_terms& of,
                                  const std::function<void()>& glance) override {
    std::vector<part> numbers{{0, static_cast<std::int64_t>(of.round)}};
    for (const int rank : of.ranks) numbers.push_back({0, rank});
    const std::uint64_t hash = hash_of(numbers);
    const core::text name("part-%016llx-%016llx", static_cast<unsigned long long>(identity_),
                          static_cast<unsigned long long>(hash));
    return join({name.buffer, of.place, static_cast<int>(of.ranks.size()), of.timeout_ns,
                 of.slot_bytes, glance, lends_});
  }

 private:
  const std::uint64_t identity_;
  const std::shared_ptr<const lent_files> lends_;  // to the parts, too
};

std::unique_ptr<transport> join(const meeting_place& at, outside* beside) {
  company all = rendezvous(at);
  const auto slot = static_cast<std::size_t>(all.slot_bytes);
  const std::size_t bytes = shared_area::bytes_for(at.size, slot);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all.memory.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  madvise(memory, bytes, MADV_DONTFORK);  // a child is no rank
#ifdef MADV_POPULATE_WRITE
  // A slot's first writing would take as long as if ranks were far from each other
  // (peer_writer.hpp).
  const std::size_t needed = shared_area::needed_for(at.size, slot);
  if (needed <= most_populated) madvise(memory, needed, MADV_POPULATE_WRITE);
#endif
  const shared_area area(memory, at.size, slot, core::sleepers::of_any_process);
  auto watch = std::make_unique<process_watch>(std::move(all.processes), area, at.rank);
  std::unique_ptr<windows> lent;
  if (all.lends) lent = std::make_unique<windows>(at.lends, std::move(all.lent));
  return std::make_unique<shared_transport>(
      shared_transport::setting{VELO_TRANSPORT_SHM, at.rank, at.timeout_ns, beside}, area,
      std::move(kept), std::move(watch), std::make_shared<names_hall>(all.identity, at.lends),
      std::move(lent));
}

}  // namespace

std::unique_ptr<transport> make_shm(const meeting_place& at, outside* beside) {
  try {
    return join(at, beside);
  } catch (const not_there& missing) {
    core::failure f;
    f.code = VELO_ERR_PEER;
    f.rank = missing.places.lowest();
    core::copy_text(f.argument, sizeof f.argument, "desc.name");
    core::copy_text(f.expected, sizeof f.expected,
                    core::text("%d ranks at '%s' within %.6g ms", at.size, at.name.c_str(),
                               static_cast<double>(at.timeout_ns) / 1e6));
    core::copy_text(f.got, sizeof f.got, (missing.places.text() + " not there").c_str());
    throw f;
  }
}

void require_shm() {
  rendezvous_folder();
  const descriptor memory(memfd_create("velo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const descriptor process(memory ? open_process(getpid()) : -1);
  if (!process)
    core::fail(VELO_ERR_IO, "transport", "a file in memory and a descriptor of a process",
               "refused", std::strerror(errno));
}

}  // namespace velo::comm
