/* A plugin of this release, kept as it was: one kernel, described through velo_plugin_query. */
#include "velo/velo.h"

static void negate(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = -x[i];
}

static velo_kernel_desc kernels[1] = {VELO_KERNEL_DESC_INIT};
static velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 100, "client_plugin", kernels,
                                  1};

__attribute__((visibility("default"))) velo_status velo_plugin_query(uint32_t host_abi,
                                                                     const velo_plugin_desc** desc);

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  if (host_abi < 100) return VELO_ERR_ABI;
  kernels[0].op = "plugin_negate";
  kernels[0].signature = "v(lpp)";
  kernels[0].binding = "x.numel, x.data, y.data";
  kernels[0].tensors = "in x f32, out y f32";
  kernels[0].function = (void*)(uintptr_t)negate;
  *desc = &plugin;
  return VELO_OK;
}
