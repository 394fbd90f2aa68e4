// Counts what goes through, exactly, whatever threads do. Cost: two atomic additions a call, and one
// more while a new peak is set.
#include <atomic>

#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class statistics final : public adaptor {
 public:
  using adaptor::adaptor;

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    if (memory == nullptr) return ++failures_, nullptr;
    ++allocations_;
    const std::uint64_t live = live_.fetch_add(what.bytes) + what.bytes;
    std::uint64_t peak = peak_;
    while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
    }
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    live_ -= what.bytes;  // before others can have the memory: the peak holds no byte twice
    ++frees_;
    give(memory, what);
  }
  void fill(velo_adaptor_stats& stats) const override {
    stats.bytes_live = live_;
    stats.bytes_peak = peak_;
    stats.allocations = allocations_;
    stats.frees = frees_;
    stats.failures = failures_;
  }

 private:
  std::atomic<std::uint64_t> live_{0}, peak_{0}, allocations_{0}, frees_{0}, failures_{0};
};

}  // namespace

std::unique_ptr<adaptor> make_statistics(const velo_allocator& upstream) {
  return std::make_unique<statistics>(upstream);
}

}  // namespace velo::memory
