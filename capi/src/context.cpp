// Entries of velo/context.h.
#include "velo/context.h"

#include "capi/src/allocator.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/context.hpp"
#include "core/handle/guard.hpp"
#include "core/stream/stream.hpp"
#include "core/tensor/dtype.hpp"
#include "ops/operator/registry.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 56;
constexpr std::uint32_t parallel_for_size = 24;
constexpr std::uint32_t stats_size = 40;
static_assert(sizeof(velo_context_desc) >= desc_size &&
              sizeof(velo_parallel_for) >= parallel_for_size &&
              sizeof(velo_context_stats) >= stats_size);

// Aliases are not accepted, since a key would then have two spellings and two values.
std::string kernel_names(const char* name) {
  ops::op_id op{};
  if (!ops::find_op(name, op) || std::strcmp(ops::spec_of(op).name, name) != 0) return "";
  const ops::kernel_list& kernels = *ops::definition_of(op).kernels;
  std::string all;
  for (int i = 0; i < kernels.count; ++i)
    all += (i == 0 ? "" : ", ") + std::string(kernels.entries[i].name);
  return all;
}

velo_parallel_for read_parallel_for(const velo_parallel_for* given) {
  const velo_parallel_for host =
      capi::read_struct(given, parallel_for_size, "desc.parallel_for", {});
  if (host.run == nullptr) fail(VELO_ERR_NULL, "desc.parallel_for.run", "a function", "NULL");
  if (host.threads < 1)
    fail(VELO_ERR_ARGUMENT, "desc.parallel_for.threads", "at least 1", text("%d", host.threads));
  return host;
}

void create(const velo_context_desc* given, velo_context* made) {
  capi::required(made, "context");
  const velo_context_desc defaults = VELO_CONTEXT_DESC_INIT;
  const velo_context_desc desc =
      given == nullptr ? defaults : capi::read_struct(given, desc_size, "desc", defaults);
  if (desc.device.type != VELO_DEVICE_CPU || desc.device.id != 0) {
    fail(VELO_ERR_DEVICE, "desc.device", "device cpu:0, the processor",
         core::device_name(desc.device));
  }
  core::context_options options;
  velo_allocator allocator;
  velo_parallel_for parallel_for;
  if (desc.allocator != nullptr) {
    allocator = capi::read_allocator(desc.allocator, "desc.allocator");
    options.allocator = &allocator;
  }
  if (desc.parallel_for != nullptr) {
    parallel_for = read_parallel_for(desc.parallel_for);
    options.parallel_for = &parallel_for;
  }
  options.threads = desc.threads;
  options.device = desc.device;
  options.log = desc.log;
  options.log_user = desc.log_user;
  options.config_json = desc.config_json;
  options.kernel_names = &kernel_names;
  *made = core::handle_of(core::make_context(options));
}

}  // namespace

extern "C" {

velo_status velo_context_create(const velo_context_desc* desc, velo_context* context) {
  return core::guard("velo_context_create", [&] { create(desc, context); });
}

void velo_context_destroy(velo_context context) {
  capi::destroy<core::context>(
      "velo_context_destroy", context, "context", [](const core::context& given) {
        if (given.working_here())
          fail(VELO_ERR_STATE, "context", "a call from outside of the context's work",
               "one from within");
      });
}

velo_status velo_context_stream(velo_context context, velo_stream* stream) {
  return core::guard("velo_context_stream", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    capi::required(stream, "stream") = core::handle_of(owner.inline_stream());
  });
}

velo_status velo_config_set(velo_context context, const char* key, const char* value) {
  return core::guard("velo_config_set", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    owner.configure(&capi::required(key, "key"), &capi::required(value, "value"));
  });
}

velo_status velo_config_get(velo_context context, const char* key, char* buffer, uint64_t capacity,
                            uint64_t* needed, const char** origin) {
  return core::guard("velo_config_get", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    const core::config::value found = owner.configuration().get(&capi::required(key, "key"));
    capi::write_text(found.text.c_str(), buffer, capacity, needed);
    if (origin != nullptr) *origin = core::origin_name(found.from);
  });
}

velo_status velo_config_list(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed) {
  return core::guard("velo_config_list", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    capi::write_text(owner.configuration().list().c_str(), buffer, capacity, needed);
  });
}

velo_status velo_context_get_stats(velo_context context, velo_context_stats* stats) {
  return core::guard("velo_context_get_stats", [&] {
    const core::context& owner = core::use<core::context>(context, "context");
    velo_context_stats now{};
    owner.fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
