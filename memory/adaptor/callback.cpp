// Calls the host for each allocation and free, and if there is no memory. If the host's function
// throws after an allocation, the block is freed, so no memory leaks. Cost: the host's.
#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class callback final : public adaptor {
 public:
  callback(const velo_allocator& upstream, velo_memory_event_fn event, void* user)
      : adaptor(upstream), event_(event), user_(user) {}

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    while (memory == nullptr && helped(what)) memory = ask(what);
    if (memory == nullptr || tell(VELO_MEMORY_ALLOCATED, memory, what)) return memory;
    give(memory, what);
    return nullptr;
  }
  void deallocate(void* memory, const memory_request& what) override {
    tell(VELO_MEMORY_FREED, memory, what);
    give(memory, what);
  }

 private:
  bool tell(velo_memory_event event, void* memory, const memory_request& what) {
    return of_host("desc.event", [&] { event_(user_, event, memory, what.bytes, what.stream); });
  }
  bool helped(const memory_request& what) {
    std::int32_t answer = 0;
    of_host("desc.event",
            [&] { answer = event_(user_, VELO_MEMORY_FAILED, nullptr, what.bytes, what.stream); });
    return answer != 0;
  }

  velo_memory_event_fn event_;
  void* user_;
};

}  // namespace

std::unique_ptr<adaptor> make_callback(const velo_allocator& upstream, velo_memory_event_fn event,
                                       void* user) {
  return std::make_unique<callback>(upstream, event, user);
}

}  // namespace velo::memory
