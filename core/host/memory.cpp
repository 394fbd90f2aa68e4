// The system's allocator behind the struct that a host also fills in, so that one path serves both.
#include "core/host/memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"
#include "core/round_up.hpp"

namespace velo::core {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t huge = std::uint64_t{2} << 20;
constexpr velo_device cpu{VELO_DEVICE_CPU, 0};

// Maps one huge page more than needed, and unmaps the excess on both sides.
void* map_huge(std::uint64_t bytes) {
  const std::uint64_t wanted = round_up(bytes, huge), mapped = wanted + huge;
  if (mapped < bytes) return nullptr;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(start);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(first);
  const std::uint64_t head = round_up(address, huge) - address, tail = huge - head;
  if (head > 0) munmap(first, head);
  if (tail > 0) munmap(first + head + wanted, tail);
  madvise(first + head, wanted, MADV_HUGEPAGE);  // only advice: small pages work, too
  return first + head;
}

void* system_allocate(void*, std::uint64_t bytes, std::uint64_t, const velo_device*, void*) {
  if (bytes >= huge) return map_huge(bytes);
  return std::aligned_alloc(alignment, round_up(bytes, alignment));
}

void system_deallocate(void*, void* memory, std::uint64_t bytes, const velo_device*, void*) {
  if (bytes >= huge) {
    munmap(memory, round_up(bytes, huge));
  } else {
    std::free(memory);
  }
}

constexpr velo_allocator system_allocator = {sizeof(velo_allocator), 0, nullptr, system_allocate,
                                             system_deallocate};

// An exception of a host's deallocate cannot be reported; the memory counts as freed.
void deallocate(const velo_allocator& to, const void* owner, void* memory,
                std::uint64_t bytes) noexcept {
  const uncancelled here;
  const inside_scope mine(owner, part::given);
  try {
    to.deallocate(to.user, memory, bytes, &cpu, nullptr);
  } catch (...) {
    return;
  }
}

// A host's allocator in C++ may throw bad_alloc where others return NULL.
void* ask(const velo_allocator& from, const void* owner, std::uint64_t bytes) {
  const inside_scope mine(owner, part::given);
  return call_host("allocator.allocate", [&]() -> void* {
    try {
      return from.allocate(from.user, bytes, alignment, &cpu, nullptr);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  });
}

void* allocate(const velo_allocator& from, const void* owner, std::uint64_t bytes) {
  void* memory = ask(from, owner, bytes);
  if (memory == nullptr) fail(VELO_ERR_MEMORY, "", concat(bytes, " bytes"), "none");
  if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) {
    deallocate(from, owner, memory, bytes);
    fail(VELO_ERR_FOREIGN, "allocator.allocate", "memory aligned to 64 bytes", text("%p", memory));
  }
  return memory;
}

}  // namespace

memory_source* memory_source::create(const velo_allocator* host) {
  const velo_allocator& from = host != nullptr ? *host : system_allocator;
  auto* source = new (allocate(from, nullptr, sizeof(memory_source))) memory_source(from);
  source->count_taken(sizeof(memory_source));
  return source;
}

void memory_source::retain() noexcept {
  references_.fetch_add(1, std::memory_order_relaxed);
}

void memory_source::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const velo_allocator from = allocator_;
  const void* const owner = owner_;
  this->~memory_source();
  deallocate(from, owner, this, sizeof(memory_source));
}

bool heap_answers() noexcept {
  // Volatile, since the compiler may otherwise remove the pair.
  void* volatile probe = std::malloc(4096);
  std::free(probe);
  return probe != nullptr;
}

void* memory_source::take(std::size_t bytes) {
  void* memory = allocate(allocator_, owner_, bytes);
  count_taken(bytes);
  return memory;
}

void memory_source::give(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  deallocate(allocator_, owner_, memory, bytes);
  live_.fetch_sub(bytes, std::memory_order_relaxed);
}

void memory_source::count_taken(std::size_t bytes) noexcept {
  count_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

}  // namespace velo::core
