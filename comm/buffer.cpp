// What is asked of a tensor before its bytes go anywhere.
#include "comm/buffer.hpp"

#include "core/context.hpp"
#include "core/failure.hpp"
#include "core/tensor.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

bool is_compact(const velo_tensor& t) {
  if (t.strides == nullptr) return true;
  std::int64_t next = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] > 1 && t.strides[i] != next) return false;
    next *= t.shape[i];
  }
  return true;
}

bool is_whole_bytes(velo_dtype t) {
  return t.lanes == 1 && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64) &&
         (t.code <= VELO_DTYPE_FLOAT || t.code == VELO_DTYPE_BFLOAT || t.code == VELO_DTYPE_BOOL);
}

}  // namespace

buffer buffer_of(const core::context& owner, const velo_tensor* given, const char* argument) {
  if (given == nullptr) fail(VELO_ERR_NULL, argument, "a tensor", "NULL");
  const velo_tensor& t = *given;
  core::check_tensor(t, argument);
  if (!is_whole_bytes(t.dtype))
    fail(VELO_ERR_DTYPE, argument, "elements of 1, 2, 4 or 8 bytes",
         text("code %d, %d bits, %d lanes", t.dtype.code, t.dtype.bits, t.dtype.lanes));
  if (t.device.type != owner.device().type || t.device.id != owner.device().id)
    fail(VELO_ERR_DEVICE, argument, "the device of the group's context",
         text("device %d:%d", t.device.type, t.device.id));
  const std::uint64_t extent = core::tensor_extent(t, argument);
  if (extent == 0) return {nullptr, 0, t.dtype};
  if (t.data == nullptr) fail(VELO_ERR_NULL, text("%s.data", argument), "elements", "NULL");
  if (!is_compact(t)) fail(VELO_ERR_LAYOUT, argument, "a compact tensor", "one with strides");
  const buffer made{static_cast<char*>(t.data) + t.byte_offset,
                    static_cast<std::int64_t>(extent) / (t.dtype.bits / 8), t.dtype};
  if (reinterpret_cast<std::uintptr_t>(made.data) % (t.dtype.bits / 8) != 0)
    fail(VELO_ERR_LAYOUT, argument, text("elements at multiples of %d bytes", t.dtype.bits / 8),
         "others");
  return made;
}

void require_apart(const buffer& out, const char* name, const buffer& in, const char* other) {
  if (out.count == 0 || in.count == 0) return;
  if (out.data < in.data + in.bytes() && in.data < out.data + out.bytes())
    fail(VELO_ERR_OVERLAP, name, text("memory of its own, or exactly that of %s", other),
         text("memory shared with %s", other));
}

void require_count(const buffer& of, const char* argument, std::int64_t count, const char* why) {
  if (of.count == count) return;
  fail(VELO_ERR_SHAPE, argument, text("%lld elements, %s", static_cast<long long>(count), why),
       text("%lld", static_cast<long long>(of.count)));
}

}  // namespace velo::comm
