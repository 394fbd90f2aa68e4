// The checks that all operators share: fields one by one, then `infer`, then overlap of memory
// (overlap.cpp).
//
// A failure names the field as the caller spells it ("args.gamma"). Nothing here reads a tensor's
// elements.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/handle/handle_kinds.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

text path_of(const char* field, const char* part = "") {
  return text("args.%s%s", field, part);
}

// A field, or one tensor of a list: "args.params[3]".
struct place {
  const field& f;
  std::int64_t index = -1;
  text path(const char* part = "") const {
    if (index < 0) return path_of(f.name, part);
    return text("args.%s[%lld]%s", f.name, static_cast<long long>(index), part);
  }
};

// Whether strides certainly give every element a place of its own: each steps over all that the
// smaller ones reach.
bool apart(const velo_tensor& t) {
  int by_stride[max_rank];
  int count = 0;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 1) continue;
    int at = count++;
    for (; at > 0 && t.strides[by_stride[at - 1]] > t.strides[i]; --at)
      by_stride[at] = by_stride[at - 1];
    by_stride[at] = i;
  }
  std::int64_t reach = 0;
  for (int k = 0; k < count; ++k) {
    const std::int64_t stride = t.strides[by_stride[k]];
    if (stride <= reach) return false;
    reach += stride * (t.shape[by_stride[k]] - 1);
  }
  return true;
}

// With positive strides the last element must still be addressable.
void check_strides(const velo_tensor& t, const place& at) {
  if (!at.f.strided && !is_compact(t)) {
    fail(VELO_ERR_LAYOUT, at.path(".strides"), "compact row-major strides (or NULL)",
         shape_name(t.ndim, t.strides));
  }
  if (t.strides == nullptr) return;
  std::int64_t last = 0;
  for (int i = 0; i < t.ndim; ++i) {
    std::int64_t reach = 0;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.strides[i], t.shape[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > INT64_MAX / 64) {
      fail(VELO_ERR_LAYOUT, at.path(".strides"), "non-negative strides within the address space",
           shape_name(t.ndim, t.strides));
    }
  }
  if (at.f.output && at.f.strided && numel(t) > 0 && !apart(t)) {
    fail(VELO_ERR_LAYOUT, at.path(".strides"),
         "strides of an output: each larger than what the smaller ones reach together",
         shape_name(t.ndim, t.strides));
  }
}

void check_data(const velo_tensor& t, const place& at) {
  const auto address = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
  const auto below = static_cast<std::uintptr_t>(element_bytes(t.dtype) - 1);  // powers of two
  const bool aligned = (address & below) == 0;
  if ((t.data != nullptr && aligned) || numel(t) == 0) return;
  if (t.data == nullptr) fail(VELO_ERR_NULL, at.path(".data"), "a pointer to the elements", "NULL");
  fail(VELO_ERR_LAYOUT, at.path(".data"),
       text("%s aligned to its size", dtype_name(t.dtype).buffer),
       text("address %#llx", static_cast<unsigned long long>(address)));
}

// Two elements a byte: rows begin at whole bytes, so the tensor is compact and rows are even.
void check_pairs(const velo_tensor& t, const place& at) {
  if (t.ndim == 0 || t.shape[t.ndim - 1] % 2 != 0)
    fail(VELO_ERR_SHAPE, at.path(".shape"), "an even last size, for int4",
         shape_name(t.ndim, t.shape));
  if (!is_compact(t))
    fail(VELO_ERR_LAYOUT, at.path(".strides"), "compact row-major strides (or NULL), for int4",
         shape_name(t.ndim, t.strides));
}

void check_tensor(const velo_tensor& t, const place& at, const core::context& context,
                  purpose why) {
  if (t.ndim < 0 || t.ndim > max_rank) {
    fail(VELO_ERR_RANK, at.path(".ndim"), text("0 to %d dimensions", max_rank), text("%d", t.ndim));
  }
  if (t.ndim > 0 && t.shape == nullptr)
    fail(VELO_ERR_NULL, at.path(".shape"), "ndim sizes", "NULL");
  const std::uint32_t bit = dtype_bit_of(t.dtype);
  if (bit == 0 || (at.f.dtypes != 0 && (bit & at.f.dtypes) == 0)) {
    fail(VELO_ERR_DTYPE, at.path(".dtype"),
         at.f.dtypes != 0 ? dtype_names(at.f.dtypes) : text("a dtype velo knows"),
         dtype_name(t.dtype));
  }
  const velo_device device = context.device();
  if (t.device.type != device.type || t.device.id != device.id) {
    fail(VELO_ERR_DEVICE, at.path(".device"),
         text("device {%d, %d} of the context", device.type, device.id),
         text("device {%d, %d}", t.device.type, t.device.id));
  }
  if (!countable(t.ndim, t.shape)) refuse_sizes(t.ndim, t.shape, at.path(".shape"));
  check_strides(t, at);
  if (t.dtype.bits < 8) check_pairs(t, at);
  if (why == purpose::run) check_data(t, at);
}

void check_handle(const void* handle, const field& f) {
  if (core::live_slot(handle, *f.handle) == nullptr)
    core::refuse_handle(handle, *f.handle, path_of(f.name));
}

void check_count(std::int64_t count, const void* data, const field& f, const char* expected) {
  if (count < 0 || count > (std::int64_t{1} << 40)) {
    fail(VELO_ERR_ARGUMENT, path_of(f.name, ".count"), "0 or more",
         text("%lld", static_cast<long long>(count)));
  }
  if (count > 0 && data == nullptr) fail(VELO_ERR_NULL, path_of(f.name, ".data"), expected, "NULL");
}

void check_number(const args_block::field_value& value, const field& f) {
  if (f.kind == field_kind::f64) {
    if (!(value.f >= f.minimum && value.f <= f.maximum) || !std::isfinite(value.f)) {
      fail(VELO_ERR_ARGUMENT, path_of(f.name),
           text("a finite number in [%g, %g]", f.minimum, f.maximum), text("%g", value.f));
    }
    return;
  }
  const auto got = static_cast<double>(value.i);
  if (f.kind == field_kind::boolean ? (value.i != 0 && value.i != 1)
                                    : !(got >= f.minimum && got <= f.maximum)) {
    fail(VELO_ERR_ARGUMENT, path_of(f.name),
         f.kind == field_kind::boolean ? text("0 or 1")
                                       : text("an integer in [%.0f, %.0f]", f.minimum, f.maximum),
         text("%lld", static_cast<long long>(value.i)));
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

// Whether a pointer was left out, which is refused where the field does not allow it.
bool absent(const args_block::field_value& value, const field& f, purpose why,
            const char* expected) {
  if (value.pointer != nullptr) return false;
  if (!f.optional && !(f.output && why == purpose::shapes_only))
    fail(VELO_ERR_NULL, path_of(f.name), expected, "NULL");
  return true;
}

void check_field(const args_block::field_value& value, const field& f, const core::context& context,
                 purpose why) {
  switch (f.kind) {
    case field_kind::tensor:
      if (!absent(value, f, why, "a tensor")) check_tensor(*value.tensor, {f}, context, why);
      return;
    case field_kind::tensors:
      if (absent(value, f, why, "a list of tensors")) return;
      check_count(value.tensors->count, value.tensors->data, f, "count tensors");
      for (std::int64_t i = 0; i < value.tensors->count; ++i)
        check_tensor(value.tensors->data[i], {f, i}, context, why);
      return;
    case field_kind::ints:
      if (!absent(value, f, why, "a list of integers"))
        check_count(value.ints->count, value.ints->data, f, "count integers");
      return;
    case field_kind::handle:
      if (!absent(value, f, why, f.handle->live())) check_handle(value.pointer, f);
      return;
    case field_kind::text:
      absent(value, f, why, "a text");
      return;
    case field_kind::i64:
    case field_kind::f64:
    case field_kind::boolean:
      return check_number(value, f);
    case field_kind::enumeration:
      return check_enumerator(value.i, f);
  }
}

}  // namespace

void check_fields(const op_spec& spec, const void* args, const core::context& context,
                  purpose why) {
  const args_block::field_value* values = values_of(args);
  for (int i = 0; i < spec.field_count; ++i) check_field(values[i], spec.fields[i], context, why);
}

void check(op_id op, const void* args, const core::context& context, purpose why,
           problem_storage& problem, output_shape* kept) {
  const op_spec& spec = spec_of(op);
  check_fields(spec, args, context, why);
  output_shapes outputs(spec, args, kept);
  definition_of(op).infer(args, problem.bytes, outputs);
  if (why == purpose::run) problem.writes = check_overlap(spec, args);
}

}  // namespace velo::ops
