// Converting text and tagged values for a C function: the signature parser, and strict conversions
// for velo's own functions.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/failure.hpp"
#include "core/invoke.hpp"

namespace velo::core {
namespace {

constexpr const char* letters = "p pointer, i int32, l int64, f float, d double";

[[noreturn]] void bad_signature(const char* argument, const char* signature, const char* at,
                                const char* expected) {
  if (*at == 0)
    fail(VELO_ERR_PARSE, argument, expected,
         text("the end, line 1, column %d", static_cast<int>(at - signature) + 1));
  fail(VELO_ERR_PARSE, argument, expected,
       text("'%c', line 1, column %d", *at, static_cast<int>(at - signature) + 1));
}

bool passing_of(char letter, passing& how) {
  switch (letter) {
    case 'p':
      how = passing::pointer;
      return true;
    case 'i':
      how = passing::i32;
      return true;
    case 'l':
      how = passing::i64;
      return true;
    case 'f':
      how = passing::f32;
      return true;
    case 'd':
      how = passing::f64;
      return true;
    default:
      return false;
  }
}

passing passing_of(value_type type) {
  switch (type) {
    case value_type::nothing:
      return passing::nothing;
    case value_type::i32:
      return passing::i32;
    case value_type::u32:
      return passing::u32;
    case value_type::i64:
      return passing::i64;
    case value_type::u64:
      return passing::u64;
    case value_type::f64:
      return passing::f64;
    case value_type::string:
    case value_type::handle:
    case value_type::tensor:
    case value_type::ints:
    case value_type::pointer:
      return passing::pointer;
  }
  return passing::nothing;
}

// Converts one value for one parameter.
struct conversion {
  const parameter_info& to;
  const velo_value& from;
  int index;

  [[noreturn]] void refuse(const char* expected) const {
    fail(VELO_ERR_ARGUMENT, to.name, text("%s for %s", expected, to.type),
         text("kind %d in values[%d]", from.kind, index));
  }
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const {
    if (from.kind != VELO_VALUE_INT) refuse("VELO_VALUE_INT");
    if (from.as.i < lowest || from.as.i > highest)
      fail(VELO_ERR_ARGUMENT, to.name, concat("an integer in [", lowest, ", ", highest, "]"),
           number(from.as.i));
    return from.as.i;
  }
  double real() const {
    if (from.kind == VELO_VALUE_FLOAT) return from.as.f;
    if (from.kind != VELO_VALUE_INT) refuse("VELO_VALUE_FLOAT");
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    return static_cast<double>(integer(-exact, exact));
  }
  void* pointer(velo_value_kind kind, const char* expected) const {
    if (from.kind == kind) return from.as.p;
    if (from.kind != VELO_VALUE_NONE) refuse(expected);
    if (!to.nullable) fail(VELO_ERR_NULL, to.name, expected, text("no value in values[%d]", index));
    return nullptr;
  }
  word convert() const;
};

word conversion::convert() const {
  if (from.reserved != 0)
    fail(VELO_ERR_ARGUMENT, to.name, "a value with 0 in its reserved field",
         text("%d in values[%d]", from.reserved, index));
  using limit32 = std::numeric_limits<std::int32_t>;
  using limit64 = std::numeric_limits<std::int64_t>;
  word w{};
  switch (to.kind) {
    case value_type::i32:
      w.i32 = static_cast<std::int32_t>(integer(limit32::min(), limit32::max()));
      break;
    case value_type::u32:
      w.u32 = static_cast<std::uint32_t>(integer(0, std::numeric_limits<std::uint32_t>::max()));
      break;
    case value_type::i64:
      w.i64 = integer(limit64::min(), limit64::max());
      break;
    case value_type::u64:
      w.u64 = static_cast<std::uint64_t>(integer(0, limit64::max()));
      break;
    case value_type::f64:
      w.f64 = real();
      break;
    case value_type::string:
      w.pointer = pointer(VELO_VALUE_STRING, "VELO_VALUE_STRING");
      break;
    case value_type::handle:
      w.pointer = pointer(VELO_VALUE_HANDLE, "VELO_VALUE_HANDLE");
      break;
    case value_type::tensor:
      w.pointer = pointer(VELO_VALUE_TENSOR, "VELO_VALUE_TENSOR");
      break;
    case value_type::ints:
      w.pointer = pointer(VELO_VALUE_INTS, "VELO_VALUE_INTS");
      break;
    case value_type::pointer:
      w.pointer = pointer(VELO_VALUE_POINTER, "VELO_VALUE_POINTER");
      break;
    case value_type::nothing:
      break;
  }
  return w;
}

}  // namespace

signature parse_signature(const char* source, const char* argument) {
  signature read;
  const char* at = source;
  if (*at == 's') {
    read.result = passing::i32;
    read.returns_status = true;
  } else if (*at != 'v' && !passing_of(*at, read.result)) {
    bad_signature(argument, source, at, text("a result: v void, s status, %s", letters));
  }
  if (*++at != '(') bad_signature(argument, source, at, "'(' after the result");
  for (++at; *at != ')'; ++at) {
    if (read.count == signature::max_parameters)
      bad_signature(argument, source, at, text("at most %d parameters", signature::max_parameters));
    if (!passing_of(*at, read.parameters[read.count]))
      bad_signature(argument, source, at, text("a parameter: %s; or ')'", letters));
    ++read.count;
  }
  if (*++at != 0) bad_signature(argument, source, at, "nothing after ')'");
  return read;
}

velo_status invoke(const function_info& function, any_function address, const velo_value* values,
                   std::int64_t count, velo_value* result) {
  if (count != function.parameter_count)
    fail(VELO_ERR_ARGUMENT, "count",
         text("%d, as %s has parameters", function.parameter_count, function.name), number(count));
  if (values == nullptr && count > 0) fail(VELO_ERR_NULL, "values", "count values", "NULL");
  signature shape;
  shape.result = passing_of(function.result);
  word arguments[signature::max_parameters];
  for (; shape.count < count; ++shape.count) {
    const parameter_info& to = function.parameters[shape.count];
    shape.parameters[shape.count] = passing_of(to.kind);
    arguments[shape.count] = conversion{to, values[shape.count], shape.count}.convert();
  }
  const word returned = call(prepare(shape), address, arguments);
  const bool status = function.result != value_type::nothing;
  if (result != nullptr) {
    *result = velo_value{};
    result->kind = status ? VELO_VALUE_INT : VELO_VALUE_NONE;
    result->as.i = status ? returned.i32 : 0;
  }
  return status ? returned.i32 : VELO_OK;
}

}  // namespace velo::core
