/* A plugin whose second kernel is malformed: none of its kernels may appear. */
#include "plugin.h"

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  static velo_kernel_desc kernels[2];
  static velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 100, "one bad", kernels, 2};
  (void)host_abi;
  kernels[0] = plugin_kernel("bad_scale", plugin_scale);
  kernels[1] = plugin_kernel("bad_shift", plugin_shift);
  kernels[1].signature = "v(lfq)";
  *desc = &plugin;
  return VELO_OK;
}
