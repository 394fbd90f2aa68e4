/* A plugin built with headers whose kernel description had no `function` yet: its kernels are
 * shorter, lie closer together, and are named by symbol. */
#include "plugin.h"

typedef struct old_kernel_desc {
  uint32_t struct_size;
  uint32_t reserved;
  const char *op, *library, *symbol, *signature, *binding, *tensors;
} old_kernel_desc;

void old_double(int64_t n, float* y);
void old_halve(int64_t n, float* y);

void old_double(int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] *= 2;
}
void old_halve(int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] /= 2;
}

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  static const old_kernel_desc kernels[2] = {
      {sizeof(old_kernel_desc), 0, "old_double", 0, "old_double", "v(lp)", "y.numel, y.data",
       "inout y f32"},
      {sizeof(old_kernel_desc), 0, "old_halve", 0, "old_halve", "v(lp)", "y.numel, y.data",
       "inout y f32"}};
  static const velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 100, "old 1.0",
                                          (const velo_kernel_desc*)(const void*)kernels, 2};
  (void)host_abi;
  *desc = &plugin;
  return VELO_OK;
}
