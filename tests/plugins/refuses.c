/* A plugin that finds the library too old for it. */
#include "plugin.h"

velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc) {
  (void)desc;
  return host_abi < 900 ? VELO_ERR_ABI : VELO_OK;
}
