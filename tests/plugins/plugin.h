/* Shared by the test plugins: the exported declaration, and kernels to describe. */
#ifndef VELO_TEST_PLUGIN_H
#define VELO_TEST_PLUGIN_H

#include "velo/plugin.h"

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc);

static inline void plugin_scale(int64_t n, float by, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] *= by;
}
static inline void plugin_shift(int64_t n, float by, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += by;
}
typedef void (*plugin_function)(int64_t n, float by, float* y);

static inline velo_kernel_desc plugin_kernel(const char* op, plugin_function function) {
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = op;
  desc.signature = "v(lfp)";
  desc.binding = "y.numel, attr.by, y.data";
  desc.tensors = "inout y f32";
  desc.function = (void*)(uintptr_t)function;
  return desc;
}

#endif
