// A call on a queue stream: the args, the problem, and copies of the descriptors behind it in the
// same block of memory; tensors' elements are not copied.
//
// The copied args point at the copied descriptors, so the object must not move. Cost: one block of
// memory, a few hundred bytes.
#pragma once

#include <memory>

#include "core/stream.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {

class queued_call final : public core::work {
 public:
  static std::unique_ptr<core::work> make(op_id op, const kernel_entry& kernel, const void* args,
                                          const problem_storage& problem);
  void run(core::execution& on) override;

  static void operator delete(void* memory) { ::operator delete(memory); }

 private:
  queued_call(op_id op, const kernel_entry& kernel, const void* args,
              const problem_storage& problem, char* behind);
  static void* operator new(std::size_t, void* memory) { return memory; }

  op_id op_;
  const kernel_entry& kernel_;
  args_block block_;
  problem_storage problem_;
};

}  // namespace velo::ops
