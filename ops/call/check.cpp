// The checks every operator gets for nothing: fields one by one, outputs against the inferred
// shapes, overlap of memory.
//
// A failure names the field as the caller spells it ("args.gamma"). Nothing here reads a tensor's
// elements.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/handle.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

text path_of(const char* field, const char* part = "") {
  return text("args.%s%s", field, part);
}

// Sizes are non-negative and the extent in bytes fits an int64.
void check_sizes(const velo_tensor& t, const field& f) {
  std::int64_t all = 1;
  bool empty = false;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) {
      fail(VELO_ERR_SHAPE, path_of(f.name, ".shape"), "sizes of 0 or more",
           shape_name(t.ndim, t.shape));
    }
    empty = empty || t.shape[i] == 0;
  }
  for (int i = 0; i < t.ndim && !empty; ++i) {
    if (__builtin_mul_overflow(all, t.shape[i], &all) || all > INT64_MAX / 64) {
      fail(VELO_ERR_SHAPE, path_of(f.name, ".shape"), "fewer than 2^57 elements",
           shape_name(t.ndim, t.shape));
    }
  }
}

// With positive strides the last element must still be addressable.
void check_strides(const velo_tensor& t, const field& f) {
  if (!f.strided && !is_compact(t)) {
    fail(VELO_ERR_LAYOUT, path_of(f.name, ".strides"), "compact row-major strides (or NULL)",
         shape_name(t.ndim, t.strides));
  }
  if (t.strides == nullptr) return;
  std::int64_t last = 0;
  for (int i = 0; i < t.ndim; ++i) {
    std::int64_t reach = 0;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.strides[i], t.shape[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > INT64_MAX / 64) {
      fail(VELO_ERR_LAYOUT, path_of(f.name, ".strides"),
           "non-negative strides within the address space", shape_name(t.ndim, t.strides));
    }
  }
}

void check_data(const velo_tensor& t, const field& f) {
  if (numel(t) == 0) return;
  if (t.data == nullptr)
    fail(VELO_ERR_NULL, path_of(f.name, ".data"), "a pointer to the elements", "NULL");
  const auto address = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
  if (address % static_cast<std::uintptr_t>(element_bytes(t.dtype)) != 0) {
    fail(VELO_ERR_LAYOUT, path_of(f.name, ".data"),
         text("%s aligned to its size", dtype_name(t.dtype).buffer),
         text("address %#llx", static_cast<unsigned long long>(address)));
  }
}

void check_tensor(const velo_tensor& t, const field& f, const core::context& context, purpose why) {
  if (t.ndim < 0 || t.ndim > max_rank) {
    fail(VELO_ERR_RANK, path_of(f.name, ".ndim"), text("0 to %d dimensions", max_rank),
         text("%d", t.ndim));
  }
  if (t.ndim > 0 && t.shape == nullptr)
    fail(VELO_ERR_NULL, path_of(f.name, ".shape"), "ndim sizes", "NULL");
  const std::uint32_t bit = dtype_bit_of(t.dtype);
  if (bit == 0 || (f.dtypes != 0 && (bit & f.dtypes) == 0)) {
    fail(VELO_ERR_DTYPE, path_of(f.name, ".dtype"),
         f.dtypes != 0 ? dtype_names(f.dtypes) : text("a dtype velo knows"), dtype_name(t.dtype));
  }
  const velo_device device = context.device();
  if (t.device.type != device.type || t.device.id != device.id) {
    fail(VELO_ERR_DEVICE, path_of(f.name, ".device"),
         text("device {%d, %d} of the context", device.type, device.id),
         text("device {%d, %d}", t.device.type, t.device.id));
  }
  check_sizes(t, f);
  check_strides(t, f);
  if (why == purpose::run) check_data(t, f);
}

void check_ints(const velo_ints& list, const field& f) {
  if (list.count < 0 || list.count > (std::int64_t{1} << 40)) {
    fail(VELO_ERR_ARGUMENT, path_of(f.name, ".count"), "0 or more",
         text("%lld", static_cast<long long>(list.count)));
  }
  if (list.count > 0 && list.data == nullptr)
    fail(VELO_ERR_NULL, path_of(f.name, ".data"), "count integers", "NULL");
}

void check_number(const args_block::slot& slot, const field& f) {
  if (f.kind == field_kind::f64) {
    if (!(slot.f >= f.minimum && slot.f <= f.maximum) || !std::isfinite(slot.f)) {
      fail(VELO_ERR_ARGUMENT, path_of(f.name),
           text("a finite number in [%g, %g]", f.minimum, f.maximum), text("%g", slot.f));
    }
    return;
  }
  const auto got = static_cast<double>(slot.i);
  if (f.kind == field_kind::boolean ? (slot.i != 0 && slot.i != 1)
                                    : !(got >= f.minimum && got <= f.maximum)) {
    fail(VELO_ERR_ARGUMENT, path_of(f.name),
         f.kind == field_kind::boolean ? text("0 or 1")
                                       : text("an integer in [%.0f, %.0f]", f.minimum, f.maximum),
         text("%lld", static_cast<long long>(slot.i)));
  }
}

void check_enumerator(std::int64_t value, const field& f) {
  for (int i = 0; i < f.enumerator_count; ++i) {
    if (f.enumerators[i].value == value) return;
  }
  text names("%s", "one of");
  std::size_t used = std::strlen(names.buffer);
  for (int i = 0; i < f.enumerator_count && used + 40 < sizeof names.buffer; ++i) {
    used += static_cast<std::size_t>(std::snprintf(names.buffer + used, sizeof names.buffer - used,
                                                   " %s (%lld)", f.enumerators[i].name,
                                                   static_cast<long long>(f.enumerators[i].value)));
  }
  fail(VELO_ERR_ARGUMENT, path_of(f.name), names, text("%lld", static_cast<long long>(value)));
}

void check_field(const args_block::slot& slot, const field& f, const core::context& context,
                 purpose why) {
  switch (f.kind) {
    case field_kind::tensor:
    case field_kind::ints:
    case field_kind::pack: {
      if (slot.pointer == nullptr) {
        if (f.optional || (f.output && why == purpose::shapes_only)) return;
        fail(VELO_ERR_NULL, path_of(f.name),
             f.kind == field_kind::tensor ? "a tensor" : "a value that is not NULL", "NULL");
      }
      if (f.kind == field_kind::tensor) return check_tensor(*slot.tensor, f, context, why);
      if (f.kind == field_kind::ints) return check_ints(*slot.ints, f);
      core::find_slot(slot.pack, core::kind::pack, path_of(f.name));
      return;
    }
    case field_kind::i64:
    case field_kind::f64:
    case field_kind::boolean:
      return check_number(slot, f);
    case field_kind::enumeration:
      return check_enumerator(slot.i, f);
  }
}

void check_output(const velo_tensor& t, const field& f, const output_shapes::shape& expected) {
  if (!expected.set) return;
  const bool same =
      t.ndim == expected.rank &&
      (t.ndim == 0 || std::memcmp(t.shape, expected.sizes,
                                  sizeof(std::int64_t) * static_cast<std::size_t>(t.ndim)) == 0);
  if (!same) {
    fail(t.ndim == expected.rank ? VELO_ERR_SHAPE : VELO_ERR_RANK, path_of(f.name, ".shape"),
         shape_name(expected.rank, expected.sizes), shape_name(t.ndim, t.shape));
  }
  if (!(t.dtype == expected.dtype)) {
    fail(VELO_ERR_DTYPE, path_of(f.name, ".dtype"), dtype_name(expected.dtype),
         dtype_name(t.dtype));
  }
}

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

}  // namespace

void check_fields(const op_spec& spec, const args_block& block, const core::context& context,
                  purpose why) {
  for (int i = 0; i < spec.field_count; ++i)
    check_field(block.slots[i], spec.fields[i], context, why);
}

// No output may share memory with another tensor, except exactly with a field its doc allows.
void check_overlap(const op_spec& spec, const args_block& block) {
  for (int o = 0; o < spec.field_count; ++o) {
    const field& out = spec.fields[o];
    if (!out.output || block.slots[o].tensor == nullptr) continue;
    const velo_tensor& written = *block.slots[o].tensor;
    const extent w = extent_of(written);
    for (int i = 0; i < spec.field_count; ++i) {
      const field& other = spec.fields[i];
      if (i == o || other.kind != field_kind::tensor || block.slots[i].tensor == nullptr) continue;
      const velo_tensor& t = *block.slots[i].tensor;
      const extent e = extent_of(t);
      if (w.begin >= e.end || e.begin >= w.end) continue;
      if (side_by_side(written, t) || side_by_side(t, written)) continue;
      const bool allowed =
          ((out.may_alias >> i) & 1) != 0 || (other.output && ((other.may_alias >> o) & 1) != 0);
      if (allowed && same_view(written, t)) continue;
      fail(VELO_ERR_OVERLAP, path_of(out.name),
           allowed ? text("memory of its own, or exactly that of args.%s", other.name)
                   : text("memory of its own"),
           text("memory shared with args.%s", other.name));
    }
  }
}

void check(op_id op, const args_block& block, const core::context& context, purpose why,
           output_shapes& outputs) {
  const op_spec& spec = spec_of(op);
  check_fields(spec, block, context, why);
  definition_of(op).infer(&block, outputs);
  for (int i = 0; i < spec.field_count; ++i) {
    if (spec.fields[i].output && block.slots[i].tensor != nullptr) {
      check_output(*block.slots[i].tensor, spec.fields[i], outputs[i]);
    }
  }
  if (why == purpose::run) check_overlap(spec, block);
}

void output_shapes::set(const char* field, velo_dtype dtype, int rank, const std::int64_t* sizes) {
  for (int i = 0; i < spec_.field_count; ++i) {
    if (std::strcmp(spec_.fields[i].name, field) != 0) continue;
    shape& s = shapes_[i];
    s.set = true;
    s.rank = rank;
    s.dtype = dtype;
    for (int d = 0; d < rank; ++d) s.sizes[d] = sizes[d];
    return;
  }
  fail(VELO_ERR_INTERNAL, field, "an output of the operator", "no such field");
}

void require_shape(const velo_tensor& t, const char* field, int rank, const std::int64_t* sizes) {
  if (t.ndim == rank &&
      (rank == 0 ||
       std::memcmp(t.shape, sizes, sizeof(std::int64_t) * static_cast<std::size_t>(rank)) == 0)) {
    return;
  }
  fail(t.ndim == rank ? VELO_ERR_SHAPE : VELO_ERR_RANK, path_of(field, ".shape"),
       shape_name(rank, sizes), shape_name(t.ndim, t.shape));
}

void require_like(const velo_tensor& t, const char* field, const velo_tensor& model,
                  const char* model_field) {
  if (!same_shape(t, model)) {
    fail(t.ndim == model.ndim ? VELO_ERR_SHAPE : VELO_ERR_RANK, path_of(field, ".shape"),
         text("%s as args.%s", shape_name(model.ndim, model.shape).buffer, model_field),
         shape_name(t.ndim, t.shape));
  }
  if (!(t.dtype == model.dtype)) {
    fail(VELO_ERR_DTYPE, path_of(field, ".dtype"),
         text("%s as args.%s", dtype_name(model.dtype).buffer, model_field), dtype_name(t.dtype));
  }
}

void require_dtype(const velo_tensor& t, const char* field, velo_dtype dtype) {
  if (!(t.dtype == dtype)) {
    fail(VELO_ERR_DTYPE, path_of(field, ".dtype"), dtype_name(dtype), dtype_name(t.dtype));
  }
}

void require_rank(const velo_tensor& t, const char* field, int lowest, int highest) {
  if (t.ndim >= lowest && t.ndim <= highest) return;
  fail(VELO_ERR_RANK, path_of(field, ".ndim"),
       lowest == highest ? text("%d dimensions", lowest)
                         : text("%d to %d dimensions", lowest, highest),
       text("%d", t.ndim));
}

}  // namespace velo::ops
