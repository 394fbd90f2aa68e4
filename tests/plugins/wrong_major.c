/* A plugin of a major version that this library is not. */
#include "plugin.h"

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  static velo_kernel_desc kernels[1];
  static velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 200, "far ahead", kernels,
                                    1};
  (void)host_abi;
  kernels[0] = plugin_kernel("far_scale", plugin_scale);
  *desc = &plugin;
  return VELO_OK;
}
