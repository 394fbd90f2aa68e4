// No more than so many bytes at a time. Bytes are claimed before what is below is asked, so that
// threads together never pass the limit. Cost: an atomic addition a call.
#include <atomic>

#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class limit final : public adaptor {
 public:
  limit(const velo_allocator& upstream, std::uint64_t bytes) : adaptor(upstream), most_(bytes) {}

  void* allocate(const memory_request& what) override {
    if (!claim(what.bytes)) return ++failures_, nullptr;
    void* memory = nullptr;
    try {
      memory = ask(what);
    } catch (...) {
      live_ -= what.bytes;
      throw;
    }
    if (memory == nullptr) return live_ -= what.bytes, ++failures_, nullptr;
    ++allocations_;
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    give(memory, what);
    live_ -= what.bytes;
    ++frees_;
  }
  void fill(velo_adaptor_stats& stats) const override {
    stats.bytes_live = live_;
    stats.bytes_peak = peak_;
    stats.allocations = allocations_;
    stats.frees = frees_;
    stats.failures = failures_;
  }

 private:
  bool claim(std::uint64_t bytes) {
    std::uint64_t live = live_;
    do {
      if (bytes > most_ || live > most_ - bytes) return false;
    } while (!live_.compare_exchange_weak(live, live + bytes));
    std::uint64_t peak = peak_;
    while (live + bytes > peak && !peak_.compare_exchange_weak(peak, live + bytes)) {
    }
    return true;
  }

  const std::uint64_t most_;
  std::atomic<std::uint64_t> live_{0}, peak_{0}, allocations_{0}, frees_{0}, failures_{0};
};

}  // namespace

std::unique_ptr<adaptor> make_limit(const velo_allocator& upstream, std::uint64_t bytes) {
  return std::make_unique<limit>(upstream, bytes);
}

}  // namespace velo::memory
