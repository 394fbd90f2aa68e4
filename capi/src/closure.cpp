// Entries of velo/plugin.h that provide operators as function pointers.
#include "ops/by_name/closure.hpp"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/stream/stream.hpp"
#include "velo/plugin.h"

using namespace velo;

extern "C" {

velo_status velo_closure_create(velo_stream stream, const char* op, const char* fields,
                                void** function, velo_closure* closure) {
  return core::guard("velo_closure_create", [&] {
    core::context& owner = core::use<core::stream>(stream, "stream").owner();
    capi::required(function, "function");
    capi::required(closure, "closure");
    const ops::closure& made = core::make_object<ops::closure>(&owner, owner, stream, op, fields);
    *function = made.function();
    *closure = core::handle_of(made);
  });
}

void velo_closure_destroy(velo_closure closure) {
  capi::destroy<ops::closure>("velo_closure_destroy", closure, "closure");
}
}
