// Lookup by name. velo's operators come first, so that no foreign kernel can replace one.
#include "ops/by_name/callee.hpp"

#include "core/failure.hpp"

namespace velo::ops {

using core::fail;
using core::text;

callee::callee(const core::context& context, const char* name) {
  if (name == nullptr) fail(VELO_ERR_NULL, "op", "an operator's name", "NULL");
  if (find_op(name, op_)) return;
  foreign_ = foreign_kernels::of(context).find(name);
  if (foreign_ == nullptr)
    fail(VELO_ERR_NOT_FOUND, "op", "an operator's name; velo_op_name lists them",
         text("\"%s\"", name));
}

op_id callee::own() const {
  if (foreign_ != nullptr)
    fail(VELO_ERR_UNSUPPORTED, "op", "an operator of velo",
         text("%s, a foreign kernel, which declares no shapes", foreign_->name()));
  return op_;
}

}  // namespace velo::ops
