// Counts allocations, frees and bytes exactly, with any number of threads. Cost: two atomic
// additions a call, and one more while a new peak is set.
#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class statistics final : public adaptor {
 public:
  using adaptor::adaptor;

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    if (memory == nullptr) {
      ++counters_.failures;
      return nullptr;
    }
    ++counters_.allocations;
    counters_.raise_peak(counters_.live += what.bytes);
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    // Lowered before another thread can get the memory, so that the peak counts no byte twice.
    counters_.lower(what.bytes);
    ++counters_.frees;
    give(memory, what);
  }
  void fill(velo_adaptor_stats& stats) const override { counters_.fill(stats); }

 private:
  adaptor_counters counters_;
};

}  // namespace

std::unique_ptr<adaptor> make_statistics(const velo_allocator& upstream) {
  return std::make_unique<statistics>(upstream);
}

}  // namespace velo::memory
