// Reads forms from the host's tensors, and makes tensors of forms.
#include "sched/executor/message.hpp"

#include <cstring>

#include "core/handle/failure.hpp"
#include "core/tensor/tensor.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;  // of a tensor
constexpr std::uint64_t alignment = 64;

void require_compact(const velo_tensor& of, const char* name) {
  if (of.strides == nullptr) return;
  std::int64_t expected = 1;
  for (std::int32_t i = of.ndim; i-- > 0;) {
    if (of.shape[i] != 1 && of.strides[i] != expected)
      fail(VELO_ERR_LAYOUT, name, "a compact tensor",
           text("stride %lld in dimension %d", static_cast<long long>(of.strides[i]), i));
    expected *= of.shape[i];
  }
}

// Returns false for sizes that no tensor has, and for more than most_bytes.
bool count_bytes(const tensor_form& of, std::uint64_t& bytes) {
  std::uint64_t bits = std::uint64_t{of.dtype.bits} * of.dtype.lanes;
  bool fits = of.ndim >= 0 && of.ndim <= most_dims;
  for (std::int32_t d = 0; fits && d < of.ndim; ++d) {
    if (of.shape[d] == 0) return bytes = 0, true;
    fits = of.shape[d] > 0 &&
           !__builtin_mul_overflow(bits, static_cast<std::uint64_t>(of.shape[d]), &bits);
  }
  bytes = bits / 8 + (bits % 8 != 0 ? 1 : 0);
  return fits && bits / 8 <= most_bytes;
}

}  // namespace

bool same(const form& a, const form& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(tensor_form)) == 0);
}

form form_of(const velo_tensor* tensors, std::int64_t count) {
  form result;
  for (std::int64_t i = 0; i < count; ++i) {
    const text name("outputs[%lld]", static_cast<long long>(i));
    const velo_tensor& from = tensors[i];
    core::check_tensor(from, name);
    if (from.device.type != VELO_DEVICE_CPU)
      fail(VELO_ERR_DEVICE, name, "the cpu", text("device type %d", from.device.type));
    if (from.dtype.bits == 0 || from.dtype.lanes == 0)
      fail(VELO_ERR_DTYPE, name, "a dtype", "one of 0 bits");
    require_compact(from, name);
    if (from.data == nullptr && core::tensor_extent(from, name) > 0)
      fail(VELO_ERR_NULL, text("%s.data", static_cast<const char*>(name)), "a pointer", "NULL");
    tensor_form one{from.dtype, from.ndim, {}};
    for (std::int32_t d = 0; d < from.ndim; ++d) one.shape[d] = from.shape[d];
    std::uint64_t bytes = 0;
    if (!count_bytes(one, bytes))
      fail(VELO_ERR_SHAPE, name, "a tensor of at most 2^40 bytes", "a larger one");
    result.push_back(one);
  }
  return result;
}

std::uint64_t bytes_of(const tensor_form& of) {
  std::uint64_t bytes = 0;
  if (!count_bytes(of, bytes))
    fail(VELO_ERR_PEER, "link", "sizes of a tensor", "others: ranks disagree on their messages");
  return bytes;
}

message_ptr message_of_host(const velo_tensor* tensors, std::int64_t count, const action& from) {
  if (count == 0) return nullptr;
  auto result = std::make_unique<message>();
  result->common_form = std::make_shared<const form>(form_of(tensors, count));
  result->from = from;
  for (std::int64_t i = 0; i < count; ++i) {
    velo_tensor one = tensors[i];
    one.shape = (*result->common_form)[static_cast<std::size_t>(i)].shape;
    one.strides = nullptr;
    result->tensors.push_back(one);
  }
  return result;
}

message_ptr empty_message(std::shared_ptr<const form> common_form) {
  alignas(alignment) static char nothing[alignment];  // where tensors without bytes are
  auto result = std::make_unique<message>();
  result->common_form = std::move(common_form);
  result->received = true;
  for (const tensor_form& of : *result->common_form) {
    velo_tensor one{};
    one.data = nothing;
    one.device.type = VELO_DEVICE_CPU;
    one.ndim = of.ndim;
    one.dtype = of.dtype;
    one.shape = of.shape;
    result->tensors.push_back(one);
  }
  return result;
}

}  // namespace velo::sched
