// Values of calls by name, and the texts that functions write into a caller's buffer.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/context.hpp"
#include "tests/record.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

inline velo_value none() {
  return velo_value{VELO_VALUE_NONE, 0, {0}};
}
inline velo_value integer(std::int64_t i) {
  velo_value v{VELO_VALUE_INT, 0, {0}};
  v.as.i = i;
  return v;
}
inline velo_value real(double f) {
  velo_value v{VELO_VALUE_FLOAT, 0, {0}};
  v.as.f = f;
  return v;
}
inline velo_value string(const char* s) {
  velo_value v{VELO_VALUE_STRING, 0, {0}};
  v.as.s = s;
  return v;
}
inline velo_value of(const velo_tensor& t) {
  velo_value v{VELO_VALUE_TENSOR, 0, {0}};
  v.as.tensor = &t;
  return v;
}
inline velo_value of(const float_tensor& t) {
  return of(t.view);
}
inline velo_value of(const velo_ints& list) {
  velo_value v{VELO_VALUE_INTS, 0, {0}};
  v.as.ints = &list;
  return v;
}
inline velo_value handle(void* p) {
  velo_value v{VELO_VALUE_HANDLE, 0, {0}};
  v.as.p = p;
  return v;
}
inline velo_value pointer(void* p) {
  velo_value v{VELO_VALUE_POINTER, 0, {0}};
  v.as.p = p;
  return v;
}

using named = std::vector<velo_named_value>;

inline velo_status op_call(velo_stream stream, const char* op, const named& values) {
  return velo_op_call(stream, op, values.data(), static_cast<std::int64_t>(values.size()));
}

inline velo_status op_call(const live_context& context, const char* op, const named& values) {
  return op_call(context.inline_stream(), op, values);
}

// The whole text that function(arguments.., buffer, capacity, &needed) writes.
template <class Function, class... Arguments>
std::string text(const Function& function, const Arguments&... arguments) {
  std::uint64_t needed = 0;
  REQUIRE(function(arguments..., nullptr, 0, &needed) == VELO_OK);
  std::string all(needed, '?');
  REQUIRE(function(arguments..., all.data(), needed, &needed) == VELO_OK);
  all.resize(needed - 1);
  return all;
}

}  // namespace velo::testing
