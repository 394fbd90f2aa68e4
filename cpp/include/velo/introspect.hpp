// The library's capabilities, and operators by name.
//
// Named values are written in braces:
//   velo::op_call(stream, "rms_norm", {{"x", x}, {"gamma", gamma}, {"y", y}, {"epsilon", 1e-6}});
// Text comes as a string of the caller's type: velo::describe<std::string>().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/introspect.h"
#include "velo/stream.hpp"
#include "velo/tensor.hpp"

VELO_CPP_BEGIN

// A tagged value, a C velo_value made from a C++ value. It borrows strings, tensors and lists.
struct value : velo_value {
  value() noexcept : velo_value{VELO_VALUE_NONE, 0, {0}} {}
  template <class T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, int> = 0>
  value(T number) noexcept : velo_value{VELO_VALUE_INT, 0, {0}} {
    as.i = static_cast<int64_t>(number);
  }
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, long> = 0>
  value(T number) noexcept : velo_value{VELO_VALUE_FLOAT, 0, {0}} {
    as.f = static_cast<double>(number);
  }
  value(const char* text) noexcept : velo_value{VELO_VALUE_STRING, 0, {0}} { as.s = text; }
  value(const velo_tensor& tensor) noexcept : velo_value{VELO_VALUE_TENSOR, 0, {0}} {
    as.tensor = &tensor;
  }
  value(const tensor_view& tensor) noexcept : value(static_cast<const velo_tensor&>(tensor)) {}
  value(const velo_tensors& list) noexcept : velo_value{VELO_VALUE_TENSORS, 0, {0}} {
    as.tensors = &list;
  }
  value(const velo_ints& list) noexcept : velo_value{VELO_VALUE_INTS, 0, {0}} { as.ints = &list; }
  template <class Handle, class Release>
  value(const detail::owner<Handle, Release>& owner) noexcept
      : velo_value{VELO_VALUE_HANDLE, 0, {0}} {
    as.p = owner.get();
  }
  value(stream_ref stream) noexcept : velo_value{VELO_VALUE_HANDLE, 0, {0}} { as.p = stream.get(); }

  // A struct, buffer or out-parameter, for invoke.
  static value pointer(const void* address) noexcept {
    value made;
    made.kind = VELO_VALUE_POINTER;
    made.as.p = const_cast<void*>(address);
    return made;
  }
};

struct named_value : velo_named_value {
  named_value(const char* field, const velo::value& what) noexcept
      : velo_named_value{field, what} {}
};

static_assert(sizeof(value) == sizeof(velo_value) &&
              sizeof(named_value) == sizeof(velo_named_value));

using named_values = std::initializer_list<named_value>;

// Release numbers, and the offered ABI as major * 100 + minor.
struct library_version {
  int32_t major_number;
  int32_t minor_number;
  int32_t patch_number;
  uint32_t abi;
};

inline outcome<library_version> version() {
  library_version v = {};
  const velo_status status =
      VELO_FN(version)(&v.major_number, &v.minor_number, &v.patch_number, &v.abi);
  return detail::finish<library_version>(status, v);
}

// Whether a capability (VELO_CAP_*) is available in this process.
inline outcome<bool> has(velo_capability capability) {
  int32_t available = 0;
  const velo_status status = VELO_FN(capability_query)(capability, &available);
  return detail::finish<bool>(status, available != 0);
}

// The number of operators, and the name of each.
inline outcome<int64_t> op_count() {
  int64_t count = 0;
  const velo_status status = VELO_FN(op_count)(&count);
  return detail::finish<int64_t>(status, count);
}
inline outcome<const char*> op_name(int64_t index) {
  const char* name = nullptr;
  const velo_status status = VELO_FN(op_name)(index, &name);
  return detail::finish<const char*>(status, name);
}

// The description as JSON of the whole library, and of one operator (op_describe).
template <class String>
outcome<String> describe() {
  return detail::text<String>([](char* buffer, uint64_t capacity, uint64_t* needed) {
    return VELO_FN(describe)(buffer, capacity, needed);
  });
}
template <class String>
outcome<String> op_describe(const char* op) {
  return detail::text<String>([op](char* buffer, uint64_t capacity, uint64_t* needed) {
    return VELO_FN(op_describe)(op, buffer, capacity, needed);
  });
}

// Runs an operator, or a registered foreign kernel, by name.
inline outcome<> op_call(stream_ref stream, const char* op, named_values values) {
  return detail::check(
      VELO_FN(op_call)(stream.get(), op, values.begin(), static_cast<int64_t>(values.size())));
}

// Computes the shapes and dtypes of the outputs from the inputs. Returns the number of outputs;
// `shapes` holds `capacity` entries.
inline outcome<int64_t> op_infer(velo_context context, const char* op, named_values values,
                                 velo_shape* shapes, int64_t capacity) {
  int64_t outputs = 0;
  if (capacity > 0) shapes[0].struct_size = sizeof(velo_shape);
  const velo_status status = VELO_FN(op_infer)(
      context, op, values.begin(), static_cast<int64_t>(values.size()), shapes, capacity, &outputs);
  return detail::finish<int64_t>(status, outputs);
}

// The kernel that would run, and why the others would not, as JSON.
template <class String>
outcome<String> op_explain(velo_context context, const char* op, named_values values) {
  return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
    return VELO_FN(op_explain)(context, op, values.begin(), static_cast<int64_t>(values.size()),
                               buffer, capacity, needed);
  });
}

// The work of a call, and the time that the configured limits allow.
inline outcome<velo_cost> op_cost(velo_context context, const char* op, named_values values) {
  velo_cost cost = {};
  cost.struct_size = sizeof(velo_cost);
  const velo_status status =
      VELO_FN(op_cost)(context, op, values.begin(), static_cast<int64_t>(values.size()), &cost);
  return detail::finish<velo_cost>(status, cost);
}

// The work of the calls that a context has counted: of an operator, or of all with nullptr; and the
// counts set to 0.
inline outcome<velo_op_counts> op_counts(velo_context context, const char* op = nullptr) {
  velo_op_counts counts = {};
  counts.struct_size = sizeof(velo_op_counts);
  const velo_status status = VELO_FN(op_get_counts)(context, op, &counts);
  return detail::finish<velo_op_counts>(status, counts);
}
inline outcome<> op_reset_counts(velo_context context) {
  return detail::check(VELO_FN(op_reset_counts)(context));
}

// Calls any exported function by name, with one value for each parameter; returns its result.
inline outcome<velo_value> invoke(const char* function, std::initializer_list<value> values) {
  velo_value returned = {VELO_VALUE_NONE, 0, {0}};
  const velo_status status =
      VELO_FN(invoke)(function, values.begin(), static_cast<int64_t>(values.size()), &returned);
  return detail::finish<velo_value>(status, returned);
}

VELO_CPP_END
