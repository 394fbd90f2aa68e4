// Every function of the C API called once as its header says, and every operator on its example:
// what the faults of this folder are planted into.
//
// A row makes what its call needs, calls once, and puts everything back. A world has a context of
// its own, so a row can be repeated, in a child of a fork too. The test "every function of the spec
// has a row" (allocation_test.cpp) fails for one without.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/example_call.hpp"
#include "velo/velo.h"

namespace velo::testing {

// What the rows work on: made by `prepare`, used by `call`, gone after `undo`.
struct entry;
struct world {
  explicit world(const velo_allocator* allocator = nullptr) : allocator_(allocator) {}

  const velo_allocator* allocator() const { return allocator_; }
  void open();  // a context of two threads, and its inline stream
  void open(const velo_context_desc& desc);
  void close();  // destroys it, with all that is left in it
  void begin(const velo_context_desc& desc,
             const entry& row);  // of an operator, instead of its own

  velo_context context = nullptr;
  velo_stream now = nullptr, queue = nullptr;
  velo_event event = nullptr;
  velo_pack pack = nullptr;
  velo_kernel kernel = nullptr;
  velo_closure closure = nullptr;
  velo_pool pool = nullptr;
  velo_adaptor adaptor = nullptr;
  void* memory = nullptr;  // of the pool
  velo_plan plan = nullptr;
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
  velo_topology topology = nullptr;
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

struct entry {
  std::string name;
  void (*prepare)(world&);
  velo_status (*call)(world&);  // destroys: VELO_OK when the handle is gone
  void (*undo)(world&);
  const example_call* example = nullptr;

  void begin(world& w) const {
    w.example = example;
    prepare(w);
  }
};

// In the order of the spec; then every operator inline, on a queue, and by name. Made once.
const std::vector<entry>& every_entry();

// The names of functions that have no row.
std::vector<std::string> functions_without_a_row();

}  // namespace velo::testing
