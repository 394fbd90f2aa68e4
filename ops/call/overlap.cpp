// Overlap of memory: no output may share bytes with another tensor, except exactly with a field its
// doc allows.
//
// Extents decide nearly always; only where they meet are strides looked at. Cost: outputs times
// fields.
#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// First byte and one past the last byte a view can reach.
struct extent {
  std::uintptr_t begin = 0, end = 0;
};

extent extent_of(const velo_tensor& t) {
  if (numel(t) == 0) return {};
  std::int64_t last = 0;
  if (t.strides == nullptr) {
    last = numel(t) - 1;
  } else {
    for (int i = 0; i < t.ndim; ++i) last += t.strides[i] * (t.shape[i] - 1);
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
  return {begin, begin + static_cast<std::uintptr_t>((last + 1) * element_bytes(t.dtype))};
}

bool same_view(const velo_tensor& a, const velo_tensor& b) {
  return extent_of(a).begin == extent_of(b).begin && numel(a) == numel(b) &&
         element_bytes(a.dtype) == element_bytes(b.dtype) && is_compact(a) == is_compact(b);
}

// Bytes from the first to past the last element that a view reaches inside one period, or 0 where
// some dimension steps beyond a period without being a multiple of it.
std::int64_t reach_in_period(const velo_tensor& t, std::int64_t period) {
  const std::int64_t bytes = element_bytes(t.dtype);
  std::int64_t reach = bytes, compact = bytes;
  for (int i = t.ndim - 1; i >= 0; --i) {
    const std::int64_t stride = t.strides == nullptr ? compact : t.strides[i] * bytes;
    compact *= t.shape[i];
    if (t.shape[i] == 1 || stride % period == 0) continue;
    if (stride > period) return 0;
    reach += stride * (t.shape[i] - 1);
  }
  return reach <= period ? reach : 0;
}

// Whether two views lie side by side in common rows, like queries, keys and values in a fused
// projection: their extents overlap, their elements do not. Every stride of `a` is tried as the
// row.
bool side_by_side(const velo_tensor& a, const velo_tensor& b) {
  if (a.strides == nullptr) return false;
  const std::uintptr_t first_a = extent_of(a).begin, first_b = extent_of(b).begin;
  for (int i = 0; i < a.ndim; ++i) {
    const std::int64_t period = a.strides[i] * element_bytes(a.dtype);
    if (a.shape[i] == 1 || period == 0) continue;
    const std::int64_t in_a = reach_in_period(a, period), in_b = reach_in_period(b, period);
    const auto p = static_cast<std::uintptr_t>(period);
    const auto ahead = static_cast<std::int64_t>(((first_b % p) + p - first_a % p) % p);
    if (in_a > 0 && in_b > 0 && in_a <= ahead && ahead + in_b <= period) return true;
  }
  return false;
}

[[noreturn]] void refuse(const field& out, const field& other, bool allowed) {
  fail(VELO_ERR_OVERLAP, text("args.%s", out.name),
       allowed ? text("memory of its own, or exactly that of args.%s", other.name)
               : text("memory of its own"),
       text("memory shared with args.%s", other.name));
}

}  // namespace

void check_overlap(const op_spec& spec, const void* args) {
  const args_block::slot* slots = slots_of(args);
  extent extents[max_fields];
  for (int i = 0; i < spec.field_count; ++i) {
    const bool given = spec.fields[i].kind == field_kind::tensor && slots[i].tensor != nullptr;
    if (given) extents[i] = extent_of(*slots[i].tensor);
  }
  for (int o = 0; o < spec.field_count; ++o) {
    const field& out = spec.fields[o];
    const extent w = extents[o];
    if (!out.output || w.begin == w.end) continue;
    for (int i = 0; i < spec.field_count; ++i) {
      const extent e = extents[i];
      if (i == o || w.begin >= e.end || e.begin >= w.end) continue;
      const field& other = spec.fields[i];
      const velo_tensor &written = *slots[o].tensor, &t = *slots[i].tensor;
      if (side_by_side(written, t) || side_by_side(t, written)) continue;
      const bool allowed =
          ((out.may_alias >> i) & 1) != 0 || (other.output && ((other.may_alias >> o) & 1) != 0);
      if (!allowed || !same_view(written, t)) refuse(out, other, allowed);
    }
  }
}

}  // namespace velo::ops
