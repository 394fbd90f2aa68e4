/* A plugin of two kernels, as plugin.h asks for it. */
#include "plugin.h"

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  static velo_kernel_desc kernels[2];
  static velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 100, "good 2.1", kernels,
                                    2};
  if (host_abi < 100) return VELO_ERR_ABI;
  kernels[0] = plugin_kernel("good_scale", plugin_scale);
  kernels[1] = plugin_kernel("good_shift", plugin_shift);
  *desc = &plugin;
  return VELO_OK;
}
