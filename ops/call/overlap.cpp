// Overlap of memory: no output may share bytes with another tensor, except exactly with a field its
// doc allows.
//
// Extents nearly always decide; strides are read only where extents overlap. Cost: outputs times
// fields; with a list among the fields, sorting all tensors by their first byte.
#include <algorithm>
#include <tuple>
#include <vector>

#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// First byte and one past the last byte a view can reach.
struct extent {
  std::uintptr_t begin, end;
};

std::uintptr_t first_byte(const velo_tensor& t) {
  return reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
}

// The bytes from the first to past the last of `elements` elements, at least one.
std::uintptr_t bytes_reached(const velo_tensor& t, std::int64_t elements) {
  std::int64_t last = elements - 1;
  if (t.strides != nullptr) {
    last = 0;
    for (int i = 0; i < t.ndim; ++i) last += t.strides[i] * (t.shape[i] - 1);
  }
  return static_cast<std::uintptr_t>(bytes_of(t.dtype, last + 1));
}

// Whether both views have the same element at every index.
bool same_view(const velo_tensor& a, const velo_tensor& b) {
  if (first_byte(a) != first_byte(b) || a.dtype.bits != b.dtype.bits || !same_shape(a, b))
    return false;
  std::int64_t compact = 1;
  for (int i = a.ndim - 1; i >= 0; --i) {
    const std::int64_t stride_a = a.strides == nullptr ? compact : a.strides[i];
    const std::int64_t stride_b = b.strides == nullptr ? compact : b.strides[i];
    if (a.shape[i] > 1 && stride_a != stride_b) return false;
    compact *= a.shape[i];
  }
  return true;
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
  if (a.strides == nullptr || a.dtype.bits < 8 || b.dtype.bits < 8) return false;
  const std::uintptr_t first_a = first_byte(a), first_b = first_byte(b);
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

// One tensor of a call and the bytes it reaches. index: in a list, else -1.
struct view {
  const velo_tensor* tensor;
  extent at;
  int field;
  std::int64_t index;
};

text path_of(const op_spec& spec, const view& v, const char* part = "") {
  if (v.index < 0) return text("args.%s%s", spec.fields[v.field].name, part);
  return text("args.%s[%lld]%s", spec.fields[v.field].name, static_cast<long long>(v.index), part);
}

[[noreturn]] void refuse_address(const op_spec& spec, const view& v) {
  const auto data = reinterpret_cast<std::uintptr_t>(v.tensor->data);
  fail(VELO_ERR_LAYOUT, path_of(spec, v, ".data"), "elements within the address space",
       text("address %#llx and %llu bytes on", static_cast<unsigned long long>(data),
            static_cast<unsigned long long>(v.at.end - data)));
}

// Describes a tensor of `elements` elements, at least one. It fills `v` in place, since a copy
// would stall on the words just stored.
inline void set_view(view& v, const op_spec& spec, const velo_tensor& t, std::int64_t elements,
                     int field, std::int64_t index = -1) {
  v.tensor = &t;
  v.at.begin = first_byte(t);
  v.at.end = v.at.begin + bytes_reached(t, elements);
  v.field = field;
  v.index = index;
  if (v.at.begin < reinterpret_cast<std::uintptr_t>(t.data) || v.at.end < v.at.begin)
    refuse_address(spec, v);
}

// Checks an output and a tensor whose extents overlap: their elements must differ, or they are one
// tensor and the spec allows that, in lists at the same index.
void check_apart(const op_spec& spec, const view& written, const view& other) {
  const velo_tensor &w = *written.tensor, &t = *other.tensor;
  if (side_by_side(w, t) || side_by_side(t, w)) return;
  const field &out = spec.fields[written.field], &in = spec.fields[other.field];
  const bool allowed =
      written.index == other.index && (((out.may_alias >> other.field) & 1) != 0 ||
                                       (in.output && ((in.may_alias >> written.field) & 1) != 0));
  if (allowed && same_view(w, t)) return;
  const text shared = path_of(spec, other);
  fail(VELO_ERR_OVERLAP, path_of(spec, written),
       allowed ? text("memory of its own, or exactly that of %s", shared.buffer)
               : text("memory of its own"),
       text("memory shared with %s", shared.buffer));
}

bool check_lists(const op_spec& spec, const args_block::field_value* values) {
  std::vector<view> all;
  bool writes = false;
  const auto add = [&](const velo_tensor& t, int field, std::int64_t index) {
    const std::int64_t elements = numel(t);
    if (elements == 0) return;
    writes = writes || spec.fields[field].output;
    all.emplace_back();
    set_view(all.back(), spec, t, elements, field, index);
  };
  for (int i = 0; i < spec.field_count; ++i) {
    if (values[i].pointer == nullptr) continue;
    if (spec.fields[i].kind == field_kind::tensor) add(*values[i].tensor, i, -1);
    if (spec.fields[i].kind != field_kind::tensors) continue;
    for (std::int64_t k = 0; k < values[i].tensors->count; ++k)
      add(values[i].tensors->data[k], i, k);
  }
  std::sort(all.begin(), all.end(),
            [](const view& a, const view& b) { return a.at.begin < b.at.begin; });
  for (auto a = all.begin(); a != all.end(); ++a) {
    for (auto b = a + 1; b != all.end() && b->at.begin < a->at.end; ++b) {
      const bool first = std::tie(a->field, a->index) < std::tie(b->field, b->index);
      const bool a_written = spec.fields[a->field].output, b_written = spec.fields[b->field].output;
      if (a_written && (first || !b_written))
        check_apart(spec, *a, *b);
      else if (b_written)
        check_apart(spec, *b, *a);
    }
  }
  return writes;
}

}  // namespace

bool check_overlap(const op_spec& spec, const void* args) {
  const args_block::field_value* values = values_of(args);
  view given[max_fields];  // that have elements, in field order
  int count = 0;
  bool writes = false;
  for (int i = 0; i < spec.field_count; ++i) {
    if (values[i].pointer == nullptr) continue;
    if (spec.fields[i].kind == field_kind::tensors) return check_lists(spec, values);
    if (spec.fields[i].kind != field_kind::tensor) continue;
    const std::int64_t elements = numel(*values[i].tensor);
    if (elements == 0) continue;
    writes = writes || spec.fields[i].output;
    set_view(given[count++], spec, *values[i].tensor, elements, i);
  }
  for (const view* o = given; o < given + count; ++o) {
    if (!spec.fields[o->field].output) continue;
    for (const view* other = given; other < given + count; ++other) {
      if (o == other || o->at.begin >= other->at.end || other->at.begin >= o->at.end) continue;
      check_apart(spec, *o, *other);
    }
  }
  return writes;
}

}  // namespace velo::ops
