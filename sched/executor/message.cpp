// Reading forms from the host's tensors, and making tensors of forms.
#include "sched/executor/message.hpp"

#include <cstring>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/tensor/check.hpp"

namespace velo::sched {

using core::fail;

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;  // of a tensor
constexpr std::uint64_t alignment = 64;

// Returns false for impossible sizes, and for more than most_bytes.
bool count_bytes(const tensor_form& of, std::uint64_t& bytes) {
  std::uint64_t bits = std::uint64_t{of.dtype.bits} * of.dtype.lanes;
  bool fits = of.ndim >= 0 && of.ndim <= core::max_rank;
  for (std::int32_t d = 0; fits && d < of.ndim; ++d) {
    if (of.shape[d] == 0) {
      bytes = 0;
      return true;
    }
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
    const core::tensor_path name("", "outputs", i);
    const velo_tensor& from = tensors[i];
    core::check_sizes(from, name);
    core::check_device(from.device, {VELO_DEVICE_CPU, from.device.id}, name);
    if (from.dtype.bits == 0 || from.dtype.lanes == 0)
      core::refuse_dtype(from.dtype, "a dtype of 1 bit or more", name);
    tensor_form one{from.dtype, from.ndim, {}};
    for (std::int32_t d = 0; d < from.ndim; ++d) one.shape[d] = from.shape[d];
    std::uint64_t bytes = 0;
    if (!count_bytes(one, bytes))
      fail(VELO_ERR_SHAPE, name.member(".shape"), "a tensor of at most 2^40 bytes",
           core::shape_name(from.ndim, from.shape));
    core::check_compact(from, name);
    if (from.data == nullptr && bytes > 0)
      fail(VELO_ERR_NULL, name.member(".data"), "a pointer to the elements", "NULL");
    result.push_back(one);
  }
  return result;
}

std::uint64_t form_bytes(const tensor_form& of) {
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
    one.shape = (*result->common_form)[core::at(i)].shape;
    one.strides = nullptr;
    result->tensors.push_back(one);
  }
  return result;
}

message_ptr empty_message(std::shared_ptr<const form> common_form) {
  alignas(alignment) static char nothing[alignment];  // address of tensors without bytes
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
