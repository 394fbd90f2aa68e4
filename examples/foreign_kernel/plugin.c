/* A plugin: a library that describes its kernels itself, so that a program needs nothing but its
 * path. It includes velo's headers for the description and links nothing of velo.
 */
#include <stdint.h>
#include <velo/plugin.h>

/* y = x where x > 0, else slope * x */
static void leaky(int64_t count, double slope, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i];
}

/* y = bound where x > bound */
static void bounded(int64_t count, float bound, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > bound ? bound : x[i];
}

__attribute__((visibility("default"))) velo_status velo_plugin_query(
    uint32_t host_abi, const velo_plugin_desc** desc) {
  static velo_kernel_desc kernels[2] = {VELO_KERNEL_DESC_INIT, VELO_KERNEL_DESC_INIT};
  static const velo_plugin_desc plugin = {sizeof(velo_plugin_desc), 100, "activations 1.0", kernels,
                                          2};
  if (host_abi < 100) return VELO_ERR_ABI;
  kernels[0].op = "leaky";
  kernels[0].signature = "v(ldpp)";
  kernels[0].binding = "x.numel, attr.slope, x.data, y.data";
  kernels[0].tensors = "in x f32, out y f32";
  kernels[0].function = (void*)(uintptr_t)leaky;
  kernels[1].op = "bounded";
  kernels[1].signature = "v(lfpp)";
  kernels[1].binding = "x.numel, attr.bound, x.data, y.data";
  kernels[1].tensors = "in x f32, out y f32";
  kernels[1].function = (void*)(uintptr_t)bounded;
  *desc = &plugin;
  return VELO_OK;
}
