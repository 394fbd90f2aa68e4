// Overlap of memory: no output may share bytes with another tensor, except exactly with a field its
// doc allows.
//
// Extents nearly always decide; strides are read only where extents overlap. Cost: outputs times
// fields; with a list among the fields, ordering all tensors by their first byte: tensors of a list
// mostly lie in its order, so that fields are merged, and sorted only where one is out of order.
#include <algorithm>
#include <tuple>
#include <vector>

#include "core/tensor/check.hpp"
#include "core/tensor/overlap.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// First byte and one past the last byte a view can reach.
struct extent {
  std::uintptr_t begin, end;
};

// One tensor of a call and the bytes it reaches. index: in a list, else -1.
struct view {
  const velo_tensor* tensor;
  extent at;
  int field;
  std::int64_t index;
};

text path_of(const op_spec& spec, const view& v, const char* part = "") {
  return core::tensor_path("args.", spec.fields[v.field].name, v.index).member(part);
}

[[noreturn]] void refuse_address(const op_spec& spec, const view& v) {
  const auto data = reinterpret_cast<std::uintptr_t>(v.tensor->data);
  fail(VELO_ERR_LAYOUT, path_of(spec, v, ".data"), "elements within the address space",
       text("address %#zx and %zu bytes on", data, v.at.end - data));
}

// Describes a tensor of `elements` elements, at least one. It fills `v` in place, since a copy
// would stall on the words just stored.
inline void set_view(view& v, const op_spec& spec, const velo_tensor& t, std::int64_t elements,
                     int field, std::int64_t index = -1) {
  v.tensor = &t;
  v.at.begin = core::first_byte(t);
  v.at.end = v.at.begin + core::bytes_reached(t, elements);
  v.field = field;
  v.index = index;
  if (v.at.begin < reinterpret_cast<std::uintptr_t>(t.data) || v.at.end < v.at.begin)
    refuse_address(spec, v);
}

// Checks an output and a tensor whose extents overlap: their elements must differ, or they are one
// tensor and the spec allows that, in lists at the same index.
void check_apart(const op_spec& spec, const view& written, const view& other) {
  const velo_tensor &w = *written.tensor, &t = *other.tensor;
  if (core::side_by_side(w, t)) return;
  const field &out = spec.fields[written.field], &in = spec.fields[other.field];
  const bool allowed =
      written.index == other.index && (((out.may_alias >> other.field) & 1) != 0 ||
                                       (in.output && ((in.may_alias >> written.field) & 1) != 0));
  if (allowed && core::same_view(w, t)) return;
  core::refuse_overlap(path_of(spec, written), path_of(spec, other), allowed);
}

// Orders all views, of which those before `ordered` are in order and those behind are a field's.
void order_by_address(std::vector<view>& all, std::size_t ordered) {
  const auto before = [](const view& a, const view& b) { return a.at.begin < b.at.begin; };
  const auto field = all.begin() + static_cast<std::ptrdiff_t>(ordered);
  if (!std::is_sorted(field, all.end(), before)) std::sort(field, all.end(), before);
  std::inplace_merge(all.begin(), field, all.end(), before);
}

// At least as many as the call has tensors.
std::size_t tensors_at_most(const op_spec& spec, const args_block::field_value* values) {
  auto count = static_cast<std::size_t>(spec.field_count);
  for (int i = 0; i < spec.field_count; ++i) {
    if (spec.fields[i].kind == field_kind::tensors && values[i].pointer != nullptr)
      count += static_cast<std::size_t>(values[i].tensors->count);
  }
  return count;
}

bool check_lists(const op_spec& spec, const args_block::field_value* values) {
  std::vector<view> all;
  all.reserve(tensors_at_most(spec, values));
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
    const std::size_t ordered = all.size();
    if (spec.fields[i].kind == field_kind::tensor) add(*values[i].tensor, i, -1);
    if (spec.fields[i].kind == field_kind::tensors) {
      const velo_tensors& list = *values[i].tensors;
      for (std::int64_t k = 0; k < list.count; ++k) add(list.data[k], i, k);
    }
    order_by_address(all, ordered);
  }
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
