// Shared by the tests of the C entries: a context that cleans up, tensors over vectors, and the
// record of the last failure as strings.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "velo/velo.h"

namespace fixture {

struct context {
  velo_context handle = nullptr;
  velo_stream stream = nullptr;  // the inline one
  explicit context(const char* json = nullptr) {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.config_json = json;
    REQUIRE(velo_context_create(&desc, &handle) == VELO_OK);
    REQUIRE(velo_context_stream(handle, &stream) == VELO_OK);
  }
  ~context() { velo_context_destroy(handle); }
  context(const context&) = delete;
  context& operator=(const context&) = delete;
};

// A float32 tensor with its own elements; view is what the C functions take.
struct tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
  velo_tensor view{};
  explicit tensor(std::initializer_list<std::int64_t> sizes, float value = 0) : shape(sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    data.assign(static_cast<std::size_t>(count), value);
    view = {data.data(),
            {VELO_DEVICE_CPU, 0},
            static_cast<std::int32_t>(shape.size()),
            {VELO_DTYPE_FLOAT, 32, 1},
            shape.data(),
            nullptr,
            0};
  }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
};

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
inline velo_value of(const tensor& t) {
  velo_value v{VELO_VALUE_TENSOR, 0, {0}};
  v.as.tensor = &t.view;
  return v;
}
inline velo_value tensor_value(const velo_tensor* t) {
  velo_value v{VELO_VALUE_TENSOR, 0, {0}};
  v.as.tensor = t;
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
inline velo_value none() {
  return velo_value{VELO_VALUE_NONE, 0, {0}};
}

using named = std::vector<velo_named_value>;

inline velo_status op_call(velo_stream stream, const char* op, const named& values) {
  return velo_op_call(stream, op, values.data(), static_cast<std::int64_t>(values.size()));
}

struct failure {
  std::string function, argument, expected, got, cause;
  velo_status code;
};
inline failure last() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  REQUIRE(velo_last_error(&info) == VELO_OK);
  return {info.function, info.argument, info.expected, info.got, info.cause, info.code};
}

// The whole text of a caller-buffer call: text([&](char* b, uint64_t c, uint64_t* n) {..}).
template <class Call>
std::string text(Call&& call) {
  std::uint64_t needed = 0;
  REQUIRE(call(nullptr, 0, &needed) == VELO_OK);
  std::string all(needed, '?');
  REQUIRE(call(&all[0], needed, &needed) == VELO_OK);
  all.resize(needed - 1);
  return all;
}

}  // namespace fixture
