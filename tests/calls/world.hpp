// Objects of velo for a test: what calls of the C API work on, and what is left of them at the end.
//
// A world starts empty; a test fills in the handles that it needs. Closing it destroys whatever is
// left, in an order that velo allows, so a test may stop anywhere. A handle that the test destroyed
// itself may stay: velo ignores it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "velo/velo.h"

namespace velo::testing {

class example_call;  // tests/ops/example_call.hpp

// Ends the test by an exception: set-up that fails would make the test prove nothing.
void must(velo_status status);

struct world {
  explicit world(const velo_allocator* allocator = nullptr) : allocator_(allocator) {}
  ~world() { close(); }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  const velo_allocator* allocator() const { return allocator_; }
  void open();  // a context of two threads, and its inline stream
  void open(const velo_context_desc& desc);
  void close();  // destroys all that is left

  // Handles by the name of their kind, such as "velo_pool".
  void* handle_of(const std::string& kind) const;
  void destroy(const std::string& kind);

  velo_context context = nullptr;
  velo_stream now = nullptr, queue = nullptr;
  velo_event event = nullptr;
  velo_pack pack = nullptr;
  velo_kernel kernel = nullptr;
  velo_closure closure = nullptr;
  velo_profiler profiler = nullptr;
  velo_pool pool = nullptr;
  velo_adaptor adaptor = nullptr;
  velo_plan plan = nullptr;
  void* memory = nullptr;  // 1 MiB of the plan, or of the pool if there is no plan
  velo_recompute recompute = nullptr;
  std::int64_t region = -1;  // of it
  velo_recompute_plan recompute_plan = nullptr;
  velo_swap swap = nullptr;
  std::uint64_t object = 0;          // of the swap
  velo_context peer = nullptr;       // of the second rank
  velo_stream peer_queue = nullptr;  // its calls wait there
  velo_group groups[3] = {};
  velo_collective collective = nullptr;
  velo_buckets buckets = nullptr;
  velo_dispatcher dispatcher = nullptr;
  velo_routing routing = nullptr;
  velo_expert_plan expert_plan = nullptr;
  velo_sublayers sublayers = nullptr;
  velo_topology topology = nullptr;
  velo_sharding sharding = nullptr;
  velo_sequence_plan sequence_plan = nullptr;
  velo_schedule schedule = nullptr;
  velo_timeline timeline = nullptr;
  velo_mailbox mailbox = nullptr;
  velo_executor executor = nullptr;
  velo_tuning tuning = nullptr;
  velo_managed_tensor* managed = nullptr;
  const example_call* example = nullptr;  // of the row, if it is an operator's
  std::vector<velo_named_value> values;   // of its call by name

 private:
  const velo_allocator* allocator_;
};

// The names of all kinds of handles in the spec.
const std::vector<std::string>& handle_kinds();

}  // namespace velo::testing
