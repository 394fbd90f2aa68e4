// Entries of velo/pack.h.
#include "velo/pack.h"

#include <cstddef>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "ops/matmul/pack.hpp"

using namespace velo;

extern "C" {

velo_status velo_pack_create(velo_context context, const velo_pack_desc* desc, velo_pack* pack) {
  return core::guard("velo_pack_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    const velo_pack_desc given = capi::read_struct<velo_pack_desc>(
        desc, offsetof(velo_pack_desc, count), "desc", VELO_PACK_DESC_INIT);
    capi::required(pack, "pack");
    *pack = core::handle_of(core::make_object<ops::weight_pack>(&owner, owner, given));
  });
}

void velo_pack_destroy(velo_pack pack) {
  capi::destroy<ops::weight_pack>("velo_pack_destroy", pack, "pack");
}

velo_status velo_pack_update(velo_stream stream, velo_pack pack, const velo_tensor* weight) {
  return core::guard("velo_pack_update", [&] {
    core::stream& on = core::use<core::stream>(stream, "stream");
    ops::weight_pack& given = core::use<ops::weight_pack>(pack, "pack");
    given.update(on, capi::required(weight, "weight"));
  });
}
}
