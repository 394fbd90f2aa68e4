// Limits the bytes in use. Bytes are claimed before the allocator below is called, so that threads
// together never exceed the limit. Cost: an atomic addition a call.
#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class limit final : public adaptor {
 public:
  limit(const velo_allocator& upstream, std::uint64_t bytes) : adaptor(upstream), most_(bytes) {}

  void* allocate(const memory_request& what) override {
    if (!claim(what.bytes)) {
      ++counters_.failures;
      return nullptr;
    }
    void* memory = ask(what);
    if (memory == nullptr) {
      counters_.lower(what.bytes);
      ++counters_.failures;
      return nullptr;
    }
    ++counters_.allocations;
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    give(memory, what);
    counters_.lower(what.bytes);
    ++counters_.frees;
  }
  void fill(velo_adaptor_stats& stats) const override { counters_.fill(stats); }

 private:
  bool claim(std::uint64_t bytes) {
    std::uint64_t live = counters_.live;
    do {
      if (bytes > most_ || live > most_ - bytes) return false;
    } while (!counters_.live.compare_exchange_weak(live, live + bytes));
    counters_.raise_peak(live + bytes);
    return true;
  }

  const std::uint64_t most_;
  adaptor_counters counters_;
};

}  // namespace

std::unique_ptr<adaptor> make_limit(const velo_allocator& upstream, std::uint64_t bytes) {
  return std::make_unique<limit>(upstream, bytes);
}

}  // namespace velo::memory
