// Adaptors over an allocator struct, each of which holds a copy of the allocator below it.
//
// Each kind has one class and one file; other code includes only this header. An adaptor passes its
// request on unchanged, so adaptors work in any order. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/failure.hpp"
#include "core/handle/guard.hpp"
#include "core/handle/handle_kinds.hpp"
#include "velo/adaptor.h"

namespace velo::memory {

// One call of an allocator.
struct memory_request {
  std::uint64_t bytes;
  std::uint64_t alignment;  // 0 at a free
  const velo_device* device;
  void* stream;
};

class adaptor {
 public:
  explicit adaptor(const velo_allocator& upstream) : upstream_(upstream) {}
  virtual ~adaptor() = default;
  adaptor(const adaptor&) = delete;
  adaptor& operator=(const adaptor&) = delete;

  // As the functions of velo_allocator.
  virtual void* allocate(const memory_request& what) = 0;
  virtual void deallocate(void* memory, const memory_request& what) = 0;

  virtual void fill(velo_adaptor_stats&) const {
    core::fail(VELO_ERR_UNSUPPORTED, "adaptor", "a limit or statistics",
               "an adaptor of another kind");
  }
  virtual void flush() {}  // throws IO

 protected:
  // Allocates from upstream. If upstream throws, the result is nullptr and the error record says
  // FOREIGN.
  void* ask(const memory_request& what) {
    void* memory = nullptr;
    of_host("upstream.allocate", [&] {
      memory =
          upstream_.allocate(upstream_.user, what.bytes, what.alignment, what.device, what.stream);
    });
    return memory;
  }
  void give(void* memory, const memory_request& what) {
    of_host("upstream.deallocate", [&] {
      upstream_.deallocate(upstream_.user, memory, what.bytes, what.device, what.stream);
    });
  }
  // Returns whether function() returned. An exception goes into the error record as FOREIGN.
  template <class F>
  static bool of_host(const char* name, F&& function) noexcept {
    return core::guard(
               "velo_allocator",
               [&] {
                 try {
                   function();
                 } catch (...) {
                   core::fail_foreign(name, "the host");
                 }
               },
               core::of_operator{}) == VELO_OK;
  }

 private:
  velo_allocator upstream_;
};

// The counters of an adaptor, exact with any number of threads.
struct adaptor_counters {
  std::atomic<std::uint64_t> live{0}, peak{0}, allocations{0}, frees{0}, failures{0};

  void raise_peak(std::uint64_t now) {
    std::uint64_t highest = peak;
    while (now > highest && !peak.compare_exchange_weak(highest, now)) {
    }
  }
  // Never below 0, whatever sizes a caller frees.
  void lower(std::uint64_t bytes) {
    std::uint64_t now = live;
    while (!live.compare_exchange_weak(now, now - std::min(now, bytes))) {
    }
  }
  void fill(velo_adaptor_stats& stats) const {
    stats.bytes_live = live;
    stats.bytes_peak = peak;
    stats.allocations = allocations;
    stats.frees = frees;
    stats.failures = failures;
  }
};

std::unique_ptr<adaptor> make_limit(const velo_allocator& upstream, std::uint64_t bytes);
std::unique_ptr<adaptor> make_statistics(const velo_allocator& upstream);
std::unique_ptr<adaptor> make_trace(const velo_allocator& upstream, const char* path);  // throws IO
std::unique_ptr<adaptor> make_callback(const velo_allocator& upstream, velo_memory_event_fn event,
                                       void* user);

// The object behind a handle.
struct held_adaptor {
  std::unique_ptr<adaptor> what;
  bool calls_host;  // as far as is known: not where it calls velo's own functions
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::held_adaptor> {
  using handle = velo_adaptor;
  static constexpr handle_kind& kind = kinds::adaptor;
};
