// Entries of velo/plugin.h that register foreign code: kernels and plugins.
#include "velo/plugin.h"

#include <cstddef>

#include "capi/src/api_table.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/handle/handle.hpp"
#include "core/invoke.hpp"
#include "core/library.hpp"
#include "core/text/utf8.hpp"
#include "ops/foreign/foreign.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// A kernel's description may end before `function`; the kernel's symbol is then looked up.
constexpr std::uint32_t kernel_desc_size = offsetof(velo_kernel_desc, function);
constexpr std::uint32_t plugin_desc_size = 32;
static_assert(sizeof(velo_plugin_desc) >= plugin_desc_size);

velo_kernel_desc read_kernel(const velo_kernel_desc* given, const char* argument) {
  const velo_kernel_desc defaults = VELO_KERNEL_DESC_INIT;
  return capi::read_struct(given, kernel_desc_size, argument, defaults);
}

// Calls the plugin's query function, as any foreign code is called.
const velo_plugin_desc* query(core::any_function function, const char* path) {
  const velo_plugin_desc* answer = nullptr;
  core::word arguments[2] = {};
  arguments[0].u32 = capi::api_table().abi;
  arguments[1].pointer = &answer;
  core::signature shape;
  shape.result = core::passing::i32;
  shape.count = 2;
  shape.parameters[0] = core::passing::u32;
  shape.parameters[1] = core::passing::pointer;
  const text who("velo_plugin_query of %s", path);
  const velo_status status = core::call_foreign(core::prepare(shape), function, arguments, who).i32;
  if (status != VELO_OK)
    fail(status == VELO_ERR_ABI ? VELO_ERR_ABI : VELO_ERR_FOREIGN, "path",
         text("a plugin for ABI %u.%u", capi::api_table().abi / 100, capi::api_table().abi % 100),
         text("status %d from %s", status, who.buffer));
  if (answer == nullptr)
    fail(VELO_ERR_FOREIGN, "path", "a description", text("NULL from %s", who.buffer));
  return answer;
}

// The distance between kernels is their size in the plugin's headers, which the first kernel
// states.
std::vector<velo_kernel_desc> read_kernels(const velo_plugin_desc& plugin) {
  if (plugin.kernel_count < 1 || plugin.kernel_count > 4096)
    fail(VELO_ERR_ARGUMENT, "desc.kernel_count", "1 to 4096", core::number(plugin.kernel_count));
  std::vector<velo_kernel_desc> all;
  const std::uint32_t stride = capi::struct_size(plugin.kernels, kernel_desc_size, "kernels[0]");
  const auto* at = reinterpret_cast<const char*>(plugin.kernels);
  for (std::int64_t i = 0; i < plugin.kernel_count; ++i, at += stride) {
    const text argument = core::concat("kernels[", i, "]");
    const auto* given = reinterpret_cast<const velo_kernel_desc*>(at);
    if (capi::struct_size(given, kernel_desc_size, argument) != stride)
      fail(VELO_ERR_STRUCT, text("%s.struct_size", argument.buffer),
           text("%u, as kernels[0]", stride), text("%u", given->struct_size));
    all.push_back(read_kernel(given, argument));
  }
  return all;
}

void load(core::context& context, const char* path) {
  const auto library = core::library::open(path, "path");
  const velo_plugin_desc* given = query(library->symbol("velo_plugin_query", "path"), path);
  const velo_plugin_desc plugin =
      capi::read_struct(given, plugin_desc_size, "desc", velo_plugin_desc{});
  if (plugin.abi / 100 != capi::api_table().abi / 100)
    fail(VELO_ERR_ABI, "path",
         text("a plugin for ABI %u.%u", capi::api_table().abi / 100, capi::api_table().abi % 100),
         text("one for ABI %u.%u", plugin.abi / 100, plugin.abi % 100), path);
  if (plugin.name != nullptr) core::require_text(plugin.name, "desc.name");
  ops::register_plugin(context, library, plugin.name == nullptr ? path : plugin.name,
                       read_kernels(plugin));
}

}  // namespace

extern "C" {

velo_status velo_kernel_register(velo_context context, const velo_kernel_desc* desc,
                                 velo_kernel* kernel) {
  return core::guard("velo_kernel_register", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    const velo_kernel_desc complete = read_kernel(desc, "desc");
    capi::required(kernel, "kernel");
    *kernel = core::handle_of(core::make_object<ops::kernel_registration>(&owner, owner, complete));
  });
}

void velo_kernel_destroy(velo_kernel kernel) {
  capi::destroy<ops::kernel_registration>("velo_kernel_destroy", kernel, "kernel",
                                          [](ops::kernel_registration& given) { given.retire(); });
}

velo_status velo_plugin_load(velo_context context, const char* path) {
  return core::guard("velo_plugin_load", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    load(owner, &capi::required(path, "path"));
  });
}

velo_status velo_kernel_list(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed) {
  return core::guard("velo_kernel_list", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    capi::write_text(ops::describe_kernels(owner).c_str(), buffer, capacity, needed);
  });
}
}
