// One setter per field kind; every failure names the field as a typed call would: "args.gamma".
#include "ops/by_name/by_name.hpp"

#include <cstdio>
#include <cstring>

#include "core/failure.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

text path_of(const field& f) {
  return text("args.%s", f.name);
}

[[noreturn]] void wrong_kind(const field& f, const char* expected, const velo_value& value) {
  fail(VELO_ERR_ARGUMENT, path_of(f), expected, value_kind_name(value.kind));
}

// The known names, separated by commas, as many as fit into a message.
template <class Name>
text list_names(const char* lead, int count, Name&& name) {
  text all("%s", lead);
  std::size_t used = std::strlen(all.buffer);
  for (int i = 0; i < count && used + 1 < sizeof all.buffer; ++i) {
    const int wrote = std::snprintf(all.buffer + used, sizeof all.buffer - used, "%s%s",
                                    i == 0 ? "" : ", ", name(i));
    used += static_cast<std::size_t>(wrote);
  }
  return all;
}

std::int64_t enumerator_value(const field& f, const char* name) {
  if (name == nullptr) fail(VELO_ERR_NULL, path_of(f), "an enumerator's name", "NULL");
  for (int i = 0; i < f.enumerator_count; ++i) {
    if (std::strcmp(f.enumerators[i].name, name) == 0) return f.enumerators[i].value;
  }
  fail(VELO_ERR_ARGUMENT, path_of(f),
       list_names("one of ", f.enumerator_count, [&](int i) { return f.enumerators[i].name; }),
       text("\"%s\"", name));
}

double real_value(const field& f, const velo_value& value) {
  if (value.kind == VELO_VALUE_FLOAT) return value.as.f;
  if (value.kind != VELO_VALUE_INT) wrong_kind(f, "a real number", value);
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (value.as.i < -exact || value.as.i > exact) {
    fail(VELO_ERR_ARGUMENT, path_of(f), "a real number, or an integer that a double holds exactly",
         core::number(value.as.i));
  }
  return static_cast<double>(value.as.i);
}

void set_field(const field& f, const velo_value& value, args_block::field_value& to) {
  switch (f.kind) {
    case field_kind::tensor:
      if (value.kind != VELO_VALUE_TENSOR) wrong_kind(f, "a tensor", value);
      to.tensor = value.as.tensor;
      return;
    case field_kind::tensors:
      if (value.kind != VELO_VALUE_TENSORS) wrong_kind(f, "a list of tensors", value);
      to.tensors = value.as.tensors;
      return;
    case field_kind::handle:
      if (value.kind != VELO_VALUE_HANDLE)
        wrong_kind(f, text("the handle of %s", f.handle->live()), value);
      to.pointer = value.as.p;
      return;
    case field_kind::text:
      if (value.kind != VELO_VALUE_STRING) wrong_kind(f, "a string", value);
      to.text = value.as.s;
      return;
    case field_kind::ints:
      if (value.kind != VELO_VALUE_INTS) wrong_kind(f, "a list of integers", value);
      to.ints = value.as.ints;
      return;
    case field_kind::i64:
    case field_kind::boolean:
      if (value.kind != VELO_VALUE_INT) wrong_kind(f, "an integer", value);
      to.i = value.as.i;
      return;
    case field_kind::enumeration:
      if (value.kind == VELO_VALUE_STRING) {
        to.i = enumerator_value(f, value.as.s);
      } else if (value.kind == VELO_VALUE_INT) {
        to.i = value.as.i;
      } else {
        wrong_kind(f, "an enumerator, by name or number", value);
      }
      return;
    case field_kind::f64:
      to.f = real_value(f, value);
      return;
  }
}

}  // namespace

const char* value_kind_name(velo_value_kind kind) {
  switch (kind) {
    case VELO_VALUE_NONE:
      return "no value";
    case VELO_VALUE_INT:
      return "an integer";
    case VELO_VALUE_FLOAT:
      return "a real number";
    case VELO_VALUE_STRING:
      return "a string";
    case VELO_VALUE_TENSOR:
      return "a tensor";
    case VELO_VALUE_INTS:
      return "a list of integers";
    case VELO_VALUE_HANDLE:
      return "a handle";
    case VELO_VALUE_POINTER:
      return "a pointer";
    case VELO_VALUE_TENSORS:
      return "a list of tensors";
    default:
      return "a value of unknown kind";
  }
}

int find_field(const op_spec& spec, const char* name, std::size_t length) {
  for (int i = 0; i < spec.field_count; ++i) {
    if (std::strlen(spec.fields[i].name) == length &&
        std::memcmp(spec.fields[i].name, name, length) == 0)
      return i;
  }
  return -1;
}

field_set assign(const op_spec& spec, const velo_named_value* values, std::int64_t count,
                 args_block& block) {
  if (count < 0 || count > max_fields) {
    fail(VELO_ERR_ARGUMENT, "count", text("0 to %d values", max_fields), core::number(count));
  }
  if (values == nullptr && count > 0) fail(VELO_ERR_NULL, "values", "count named values", "NULL");
  set_defaults(spec, block);
  field_set seen = 0, given = 0;
  for (int v = 0; v < count; ++v) {
    const velo_named_value& named = values[v];
    if (named.name == nullptr)
      fail(VELO_ERR_NULL, text("values[%d].name", v), "the name of a field", "NULL");
    const int i = find_field(spec, named.name, std::strlen(named.name));
    if (i < 0) {
      fail(VELO_ERR_NOT_FOUND, text("args.%s", named.name),
           list_names("one of ", spec.field_count, [&](int n) { return spec.fields[n].name; }),
           text("values[%d], no field of %s", v, spec.name));
    }
    const field_set bit = field_set{1} << i;
    if ((seen & bit) != 0)
      fail(VELO_ERR_ARGUMENT, path_of(spec.fields[i]), "one value",
           text("another in values[%d]", v));
    if (named.value.reserved != 0)
      fail(VELO_ERR_ARGUMENT, path_of(spec.fields[i]), "a value with 0 in its reserved field",
           text("%d", named.value.reserved));
    seen |= bit;
    if (named.value.kind == VELO_VALUE_NONE) continue;
    set_field(spec.fields[i], named.value, block.values[i]);
    given |= bit;
  }
  return given;
}

}  // namespace velo::ops
