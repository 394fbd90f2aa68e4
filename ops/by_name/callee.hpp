// An operator found by its name in a context: one of velo's own, or a foreign kernel. Callers by
// name and closures hold one.
#pragma once

#include <memory>
#include <string>

#include "core/stream/stream.hpp"
#include "ops/call/inspect.hpp"
#include "ops/foreign/foreign.hpp"

namespace velo::ops {

class callee {
 public:
  callee(const core::context& context, const char* name);  // throws NULL, NOT_FOUND for "op"

  const op_spec& spec() const { return foreign_ != nullptr ? foreign_->spec() : spec_of(op_); }

  // given: the fields that were set. Checks, and runs or queues.
  void execute(const args_block& block, field_set given, velo_stream stream) const {
    if (foreign_ != nullptr) return foreign_kernel::execute(foreign_, block, given, stream);
    ops::execute(op_, &block, core::resolve<core::stream>(stream, "stream"));
  }
  std::string explain(const args_block& block, const core::context& context) const {
    return foreign_ != nullptr ? foreign_->explain(block, context)
                               : ops::explain(op_, block, context);
  }
  op_id own() const;  // throws UNSUPPORTED for a foreign kernel, which declares no shapes

 private:
  op_id op_{};
  std::shared_ptr<foreign_kernel> foreign_;
};

}  // namespace velo::ops
