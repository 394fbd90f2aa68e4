// The mapping of the shared memory, and the liveness of peers.
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
#include "core/index.hpp"

namespace velo::comm {
namespace {

constexpr std::size_t most_populated = std::size_t{32} << 20;  // a few milliseconds

std::unique_ptr<transport> join_group(const rendezvous_options& at,
                                      progress_hook* progress = nullptr);

// Finds processes that ended without leaving the group.
class process_watch final : public liveness_watch {
 public:
  process_watch(std::vector<descriptor> processes, const shared_area& area, int rank)
      : processes_(std::move(processes)), area_(area), rank_(rank) {}

  bool find_gone(rank_set& gone, char (&cause)[128]) noexcept override {
    bool any = false;
    for (int peer = 0; peer < area_.ranks(); ++peer) {
      if (peer == rank_ || !has_ended(processes_[core::at(peer)].get())) continue;
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

// The ranks of a subgroup meet at a rendezvous whose name is derived from the group and the ranks.
class named_subgroups final : public subgroup_rendezvous {
 public:
  named_subgroups(std::uint64_t identity, std::shared_ptr<const registered_files> files)
      : identity_(identity), files_(std::move(files)) {}

  std::unique_ptr<transport> join(const subgroup_terms& of,
                                  const std::function<void()>& check) override {
    blocks numbers{{0, static_cast<std::int64_t>(of.round)}};
    for (const int rank : of.ranks) numbers.push_back({0, rank});
    const std::uint64_t hash = hash_of(numbers);
    const core::text name("part-%016llx-%016llx", static_cast<unsigned long long>(identity_),
                          static_cast<unsigned long long>(hash));
    return join_group({name.buffer, of.rank, static_cast<int>(of.ranks.size()), of.timeout_ns,
                       of.slot_bytes, check, files_});
  }

 private:
  const std::uint64_t identity_;
  const std::shared_ptr<const registered_files> files_;  // registered also with subgroups
};

// all: what the transport takes over of it is moved out.
std::unique_ptr<transport> map_group(const rendezvous_options& at, rendezvous_result& all,
                                     progress_hook* progress) {
  const auto slot = static_cast<std::size_t>(all.slot_bytes);
  const std::size_t bytes = shared_area::bytes_for(at.size, slot);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all.memory.get(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  madvise(memory, bytes, MADV_DONTFORK);  // a forked child is no rank
#ifdef MADV_POPULATE_WRITE
  // A page fault on a first write would look like a rank that shares no cache (peer_writer.hpp).
  const std::size_t needed = shared_area::needed_for(at.size, slot);
  if (needed <= most_populated) madvise(memory, needed, MADV_POPULATE_WRITE);
#endif
  const shared_area area(memory, at.size, slot, core::sleepers::of_any_process);
  auto watch = std::make_unique<process_watch>(std::move(all.processes), area, at.rank);
  std::unique_ptr<peer_mappings> mappings;
  if (all.any_files)
    mappings = std::make_unique<peer_mappings>(at.files, std::move(all.peer_files));
  return std::make_unique<shared_transport>(
      shared_transport::setting{VELO_TRANSPORT_SHM, at.rank, at.timeout_ns, progress}, area,
      std::move(kept), std::move(watch), std::make_shared<named_subgroups>(all.identity, at.files),
      std::move(mappings));
}

std::unique_ptr<transport> join_group(const rendezvous_options& at, progress_hook* progress) {
  rendezvous_result all = rendezvous(at);
  try {
    return map_group(at, all, progress);
  } catch (...) {
    leave(all, at);
    throw;
  }
}

}  // namespace

std::unique_ptr<transport> make_shm(const rendezvous_options& at, progress_hook* progress) {
  try {
    return join_group(at, progress);
  } catch (const missing_ranks& missing) {
    core::failure f;
    f.code = VELO_ERR_PEER;
    f.rank = missing.ranks.lowest();
    core::copy_text(f.argument, sizeof f.argument, "desc.name");
    core::copy_text(f.expected, sizeof f.expected,
                    core::text("%d ranks at '%s' within %.6g ms", at.size, at.name.c_str(),
                               static_cast<double>(at.timeout_ns) / 1e6));
    core::copy_text(f.got, sizeof f.got, (missing.ranks.text() + " not there").c_str());
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
