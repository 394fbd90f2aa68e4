// The page that a fork wipes. The page and the count of epochs belong to the slabs' process-wide
// state (handle.hpp): one page, never freed.
#include "core/handle/process.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "core/failure.hpp"

namespace velo::core {
namespace {

using epoch_number = std::atomic<std::uint32_t>;

epoch_number none{0};
// Survives a fork: a child's epoch differs from those of all its ancestors.
epoch_number last_epoch{0};

}  // namespace

std::atomic<epoch_number*> epoch_word{&none};

namespace {

void wipe() {
  epoch_number* current = epoch_word.load(std::memory_order_acquire);
  if (current != &none) current->store(0);
}

epoch_number& shared_page() {
  epoch_number* known = epoch_word.load(std::memory_order_acquire);
  if (known != &none) return *known;
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const bool wiped = madvise(memory, bytes, MADV_WIPEONFORK) == 0;
  epoch_number* mine = new (memory) epoch_number(0);
  if (!epoch_word.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) {
    munmap(memory, bytes);
    return *known;
  }
  if (!wiped) pthread_atfork(nullptr, nullptr, &wipe);
  return *mine;
}

}  // namespace

std::uint32_t start_process_epoch() {
  epoch_number& current = shared_page();
  std::uint32_t epoch = current.load(std::memory_order_acquire);
  if (epoch != 0) return epoch;
  const std::uint32_t next = last_epoch.fetch_add(1, std::memory_order_relaxed) + 1;
  return current.compare_exchange_strong(epoch, next, std::memory_order_acq_rel) ? next : epoch;
}

// Every holder releases the lock soon, so yielding suffices.
bool process_lock::lock() {
  const std::uint32_t mine = start_process_epoch();
  while (true) {
    std::uint32_t holder = 0;
    if (holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire)) return false;
    if (holder != 0 && holder != mine &&
        holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire))
      return true;
    sched_yield();
  }
}

void process_lock::unlock() noexcept {
  holder_.store(0, std::memory_order_release);
}

}  // namespace velo::core
