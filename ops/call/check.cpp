// The checks every operator gets for nothing: fields one by one, then what `infer` says, then
// overlap of memory (overlap.cpp).
//
// A failure names the field as the caller spells it ("args.gamma"). Nothing here reads a tensor's
// elements.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/handle_kinds.hpp"
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

void check_handle(const void* handle, const core::handle_kind& kind, const field& f) {
  if (core::live_slot(handle, kind) == nullptr) core::refuse_handle(handle, kind, path_of(f.name));
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
      check_handle(slot.pack, core::kinds::pack, f);
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

}  // namespace

void check_fields(const op_spec& spec, const void* args, const core::context& context,
                  purpose why) {
  const args_block::slot* slots = slots_of(args);
  for (int i = 0; i < spec.field_count; ++i) check_field(slots[i], spec.fields[i], context, why);
}

void check(op_id op, const void* args, const core::context& context, purpose why,
           problem_storage& problem, output_shape* kept) {
  const op_spec& spec = spec_of(op);
  check_fields(spec, args, context, why);
  output_shapes outputs(spec, args, kept);
  definition_of(op).infer(args, problem.bytes, outputs);
  if (why == purpose::run) check_overlap(spec, args);
}

}  // namespace velo::ops
