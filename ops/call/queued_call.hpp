// A call on a queue stream: the args, the problem, and, in the same block of the stream's memory,
// copies of the descriptors, lists and texts. Tensors' elements are not copied.
//
// The copied args point at the copied descriptors, so the object must not move. Cost: copying a few
// hundred bytes.
#pragma once

#include "core/stream/stream.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {

class queued_call final : public core::work {
 public:
  static core::work_ptr<queued_call> make(core::stream& on, op_id op, const kernel_entry& kernel,
                                          const void* args, const problem_storage& problem);
  // The block must have room after this object for the descriptors.
  queued_call(op_id op, const kernel_entry& kernel, const void* args,
              const problem_storage& problem);
  void run(core::execution& on) override;
  void skip() noexcept override;
  void observe(observing how) noexcept { how_ = how; }

  const void* args() const { return &block_; }
  void* problem() { return problem_.bytes; }

 private:
  op_id op_;
  const kernel_entry& kernel_;
  args_block block_;
  problem_storage problem_;
  observing how_ = observing::nothing;
};

}  // namespace velo::ops
