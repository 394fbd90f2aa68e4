// Entries of velo/tensor.h.
#include "velo/tensor.h"

#include "capi/src/boundary.hpp"
#include "core/context.hpp"
#include "core/handle/guard.hpp"
#include "core/tensor/check.hpp"
#include "core/tensor/managed.hpp"

using namespace velo;
using core::fail;
using core::text;

extern "C" {

velo_status velo_tensor_create(velo_context context, const velo_dtype* dtype, int32_t ndim,
                               const int64_t* shape, velo_managed_tensor** tensor) {
  return core::guard("velo_tensor_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    capi::required(tensor, "tensor");
    *tensor = core::make_tensor(owner.memory(), capi::required(dtype, "dtype"), ndim, shape);
  });
}

velo_status velo_tensor_import(velo_context context, velo_managed_tensor* managed,
                               velo_tensor* view) {
  return core::guard("velo_tensor_import", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const velo_managed_tensor& given = capi::required(managed, "managed");
    capi::required(view, "view");
    if (given.version.major != 1) {
      fail(VELO_ERR_ABI, "managed.version", "DLPack 1.x",
           text("DLPack %u.%u", given.version.major, given.version.minor));
    }
    core::check_device(given.tensor.device, owner.device(), "managed.tensor");
    core::check_sizes(given.tensor, "managed.tensor");
    *view = given.tensor;
  });
}

void velo_tensor_release(velo_managed_tensor* managed) {
  core::guard("velo_tensor_release", [&] {
    if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  });
}

velo_status velo_tensor_extent(const velo_tensor* tensor, uint64_t* bytes) {
  return core::guard("velo_tensor_extent", [&] {
    const velo_tensor& given = capi::required(tensor, "tensor");
    capi::required(bytes, "bytes");
    core::check_sizes(given, "tensor");
    *bytes = core::tensor_extent(given, "tensor");
  });
}
}
