// The checks of a tensor before its bytes are used.
#include "comm/group/buffer.hpp"

#include <algorithm>
#include <utility>

#include "core/context.hpp"
#include "core/handle/failure.hpp"
#include "core/tensor/tensor.hpp"

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

// Masks take half the time of single comparisons.
constexpr bool is_whole_bytes(velo_dtype t) {
  constexpr unsigned codes = 1u << VELO_DTYPE_INT | 1u << VELO_DTYPE_UINT | 1u << VELO_DTYPE_FLOAT |
                             1u << VELO_DTYPE_BFLOAT | 1u << VELO_DTYPE_BOOL;
  constexpr std::uint64_t sizes = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8;  // bytes
  return t.lanes == 1 && t.bits % 8 == 0 && t.bits <= 64 && (sizes >> t.bits / 8 & 1) != 0 &&
         t.code < 32 && (codes >> t.code & 1) != 0;
}

// The number of elements of a tensor that needs no further check; 0: check it in full.
std::int64_t plain_count(const velo_tensor& t, velo_device on) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  const auto size = static_cast<std::uintptr_t>(t.dtype.bits / 8);
  const auto at = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
  if (t.data == nullptr || !is_whole_bytes(t.dtype) || (at & (size - 1)) != 0 ||
      t.device.type != on.type || t.device.id != on.id || t.strides != nullptr || t.ndim < 0 ||
      t.ndim > core::max_tensor_rank || t.shape == nullptr)
    return 0;
  std::int64_t count = 1;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] <= 0 || __builtin_mul_overflow(count, t.shape[i], &count)) return 0;
  }
  return count <= most ? count : 0;
}

}  // namespace

buffer buffer_of(const core::context& owner, const velo_tensor* given, const char* argument) {
  if (given == nullptr) fail(VELO_ERR_NULL, argument, "a tensor", "NULL");
  const velo_tensor& t = *given;
  if (const std::int64_t count = plain_count(t, owner.device()); count > 0)
    return {static_cast<char*>(t.data) + t.byte_offset, count, t.dtype};
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

blocks blocks_of(const caller& by, const std::int64_t* counts, const std::int64_t* offsets,
                 const block_names& names, const buffer& of, bool apart) {
  if (counts == nullptr) fail(VELO_ERR_NULL, names.counts, text("%d numbers", by.size), "NULL");
  blocks all;
  std::int64_t end = 0;
  for (int rank = 0; rank < by.size; ++rank) {
    const block one{offsets == nullptr ? end : offsets[rank], counts[rank]};
    if (one.count < 0 || one.count > of.count)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", names.counts, rank),
           text("0 to the %lld elements of the tensor", static_cast<long long>(of.count)),
           text("%lld", static_cast<long long>(one.count)));
    if (one.begin < 0 || one.begin > of.count - one.count)
      fail(VELO_ERR_ARGUMENT,
           text("%s[%d]", offsets == nullptr ? names.counts : names.offsets, rank),
           text("elements within the %lld of the tensor", static_cast<long long>(of.count)),
           text("%lld from %lld on", static_cast<long long>(one.count),
                static_cast<long long>(one.begin)));
    end = one.begin + one.count;
    all.push_back(one);
  }
  if (!apart || offsets == nullptr) return all;
  std::vector<int> order(all.size());
  for (int rank = 0; rank < by.size; ++rank) order[static_cast<std::size_t>(rank)] = rank;
  const auto block_at = [&](int rank) { return all[static_cast<std::size_t>(rank)]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(block_at(a).begin, block_at(a).count) <
           std::make_pair(block_at(b).begin, block_at(b).count);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const block before = block_at(order[i - 1]), next = block_at(order[i]);
    if (before.begin + before.count > next.begin && next.count > 0)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", names.offsets, order[i]),
           "elements of its own for each rank", text("some of rank %d's", order[i - 1]));
  }
  return all;
}

void refuse_shared(const char* name, const char* other) {
  fail(VELO_ERR_OVERLAP, name, text("memory of its own, or exactly that of %s", other),
       text("memory shared with %s", other));
}

void refuse_count(const buffer& of, const char* argument, std::int64_t count, const char* why) {
  fail(VELO_ERR_SHAPE, argument, text("%lld elements, %s", static_cast<long long>(count), why),
       text("%lld", static_cast<long long>(of.count)));
}

}  // namespace velo::comm
