// The checks that several collectives share.
#include "comm/collective/calls.hpp"

#include "core/context.hpp"
#include "core/tensor/check.hpp"

namespace velo::comm {

operation call_of(collective kind, const char* function, const buffer& in, const buffer& out) {
  operation what;
  what.function = function;
  what.terms.kind = kind;
  what.terms.in_code = in.dtype.code;
  what.terms.in_bits = in.dtype.bits;
  what.terms.out_code = out.dtype.code;
  what.terms.out_bits = out.dtype.bits;
  what.in = in.data;
  what.out = out.data;
  what.out_count = out.count;
  return what;
}

void set_reduction(operation& what, const caller& by, const velo_reduction& how) {
  what.terms.reduction = static_cast<std::uint8_t>(how.op);
  what.terms.scale = how.scale;
  what.reducer.custom = how.op == VELO_REDUCE_CUSTOM ? how.fn : nullptr;
  what.reducer.user = how.user;
  what.reducer.kernel = kernel_for(what.terms, reductions_for(by.owner.isa()));
}

void set_root(operation& what, const caller& by, std::int32_t root) {
  if (root < 0 || root >= by.size)
    core::fail(VELO_ERR_ARGUMENT, "root", core::text("0 to %d", by.size - 1),
               core::text("%d", root));
  what.terms.root = static_cast<std::uint16_t>(root);
}

void refuse_dtype(const buffer& of, const char* argument, const buffer& other) {
  core::refuse_dtype(of.dtype, core::dtype_name(other.dtype), argument);
}

}  // namespace velo::comm
