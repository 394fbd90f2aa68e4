// Memory of zeros that goes with the last rank that uses it.
#include "comm/transport/local.hpp"

#include <sys/mman.h>

#include <new>

#include "comm/transport/shared_transport.hpp"

namespace velo::comm {

std::vector<std::unique_ptr<transport>> make_local(int ranks, std::size_t slot_bytes,
                                                   std::int64_t timeout_ns) {
  const std::size_t bytes = shared_area::bytes_for(ranks, slot_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<void> kept(memory, [bytes](void* p) { munmap(p, bytes); });
  const shared_area area(memory, ranks, slot_bytes, core::sleepers::of_process);
  std::vector<std::unique_ptr<transport>> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<shared_transport>(
        shared_transport::setting{VELO_TRANSPORT_LOCAL, rank, timeout_ns}, area, kept, nullptr));
  return all;
}

}  // namespace velo::comm
