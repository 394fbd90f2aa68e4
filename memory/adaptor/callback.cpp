// Tells the host of each call, and asks it for help when there is no memory. Cost: the host's.
#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

class callback final : public adaptor {
 public:
  callback(const velo_allocator& upstream, velo_memory_event_fn event, void* user)
      : adaptor(upstream), event_(event), user_(user) {}

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    while (memory == nullptr &&
           event_(user_, VELO_MEMORY_FAILED, nullptr, what.bytes, what.stream) != 0)
      memory = ask(what);
    if (memory != nullptr) event_(user_, VELO_MEMORY_ALLOCATED, memory, what.bytes, what.stream);
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    event_(user_, VELO_MEMORY_FREED, memory, what.bytes, what.stream);
    give(memory, what);
  }

 private:
  velo_memory_event_fn event_;
  void* user_;
};

}  // namespace

std::unique_ptr<adaptor> make_callback(const velo_allocator& upstream, velo_memory_event_fn event,
                                       void* user) {
  return std::make_unique<callback>(upstream, event, user);
}

}  // namespace velo::memory
