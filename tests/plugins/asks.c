/* A plugin whose query first calls what the program set. */
#include "plugin.h"

VELO_API void (*plugin_asked)(void);

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  static velo_kernel_desc kernels[1];
  static velo_plugin_desc plugin = {(uint32_t)sizeof(velo_plugin_desc), 100, "asks", kernels, 1};
  (void)host_abi;
  if (plugin_asked != 0) plugin_asked();
  kernels[0] = plugin_kernel("asks_scale", plugin_scale);
  *desc = &plugin;
  return VELO_OK;
}
