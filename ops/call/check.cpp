// The checks that all operators share: fields one by one, then `infer`, then overlap of memory
// (overlap.cpp).
//
// A failure names the field as the caller spells it ("args.gamma"). Nothing here reads a tensor's
// elements.
#include <cmath>
#include <cstring>

#include "core/handle/handle_kinds.hpp"
#include "core/tensor/check.hpp"
#include "ops/call/call.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

text path_of(const char* field, const char* part = "") {
  return text("args.%s%s", field, part);
}

// A field, or one tensor of its list.
void check_tensor(const velo_tensor& t, const field& f, std::int64_t index,
                  const core::context& context, purpose why) {
  const core::tensor_rule rule{context.device(), f.dtypes, f.strided, f.output && f.strided,
                               why == purpose::run};
  if (!core::is_usual(t, rule)) core::check_tensor(t, {"args.", f.name, index}, rule);
}

void check_handle(const void* handle, const field& f) {
  if (core::live_slot(handle, *f.handle) == nullptr)
    core::refuse_handle(handle, *f.handle, path_of(f.name));
}

void check_count(std::int64_t count, const void* data, const field& f, const char* expected) {
  if (count < 0 || count > (std::int64_t{1} << 40)) {
    fail(VELO_ERR_ARGUMENT, path_of(f.name, ".count"), "0 or more", core::number(count));
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
         core::number(value.i));
  }
}

void check_enumerator(std::int64_t value, const field& f) {
  for (int i = 0; i < f.enumerator_count; ++i) {
    if (f.enumerators[i].value == value) return;
  }
  text names("%s", "one of");
  for (int i = 0; i < f.enumerator_count && std::strlen(names) + 40 < sizeof names.buffer; ++i)
    names = core::concat(names, " ", f.enumerators[i].name, " (", f.enumerators[i].value, ")");
  fail(VELO_ERR_ARGUMENT, path_of(f.name), names, core::number(value));
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
      if (!absent(value, f, why, "a tensor")) check_tensor(*value.tensor, f, -1, context, why);
      return;
    case field_kind::tensors:
      if (absent(value, f, why, "a list of tensors")) return;
      check_count(value.tensors->count, value.tensors->data, f, "count tensors");
      for (std::int64_t i = 0; i < value.tensors->count; ++i)
        check_tensor(value.tensors->data[i], f, i, context, why);
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
