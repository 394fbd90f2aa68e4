// Shared by the tests of foreign kernels: descriptions of functions in tests/plugins, and the words
// of refusals.
#pragma once

#include <string>

#include "tests/capi/values.hpp"

namespace velo::testing {

inline std::string module(const char* name) {
  return std::string(VELO_TEST_PLUGINS) + "/plugin_" + name + ".so";
}
inline const std::string kernels_library = module("kernels");

inline velo_kernel_desc describe(const char* op, const char* symbol, const char* signature,
                                 const char* binding, const char* tensors) {
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = op;
  desc.library = kernels_library.c_str();
  desc.symbol = symbol;
  desc.signature = signature;
  desc.binding = binding;
  desc.tensors = tensors;
  return desc;
}

inline velo_kernel_desc axpy() {
  return describe("axpy", "axpy", "v(lfplpl)", "x.numel, attr.alpha, x.data, 1, y.data, 1",
                  "in x f32, inout y f32");
}

inline velo_kernel made(const live_context& c, const velo_kernel_desc& desc) {
  velo_kernel kernel = nullptr;
  REQUIRE(velo_kernel_register(c, &desc, &kernel) == VELO_OK);
  return kernel;
}

inline std::string listed(const live_context& c) {
  return text(velo_kernel_list, c);
}

struct wrong {
  velo_status code;
  const char* argument;
  const char* got;  // part of it
};

inline void expect(velo_status status, const wrong& w, const char* function) {
  const call_record f = record_of(status);
  CHECK(f.code == w.code);
  CHECK(f.function == function);
  CHECK(f.argument == w.argument);
  CHECK_THAT(f.got, Catch::Contains(w.got));
}

}  // namespace velo::testing
