// Entries of velo/adaptor.h.
#include "velo/adaptor.h"

#include "capi/src/allocator.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/guard.hpp"
#include "memory/adaptor/adaptor.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 48;
constexpr std::uint32_t stats_size = 48;
static_assert(sizeof(velo_adaptor_desc) >= desc_size && sizeof(velo_adaptor_stats) >= stats_size);

memory::adaptor& adaptor_of(velo_adaptor handle, const char* argument = "adaptor") {
  return *core::resolve<memory::held_adaptor>(handle, argument).what;
}

std::unique_ptr<memory::adaptor> make(const velo_adaptor_desc& desc) {
  const velo_allocator below = capi::read_allocator(desc.upstream, "desc.upstream");
  switch (desc.kind) {
    case VELO_ADAPTOR_LIMIT:
      return memory::make_limit(below, desc.limit);
    case VELO_ADAPTOR_STATISTICS:
      return memory::make_statistics(below);
    case VELO_ADAPTOR_TRACE:
      return memory::make_trace(below, &capi::required(desc.path, "desc.path"));
    case VELO_ADAPTOR_CALLBACK:
      if (desc.event == nullptr) fail(VELO_ERR_NULL, "desc.event", "a function", "NULL");
      return memory::make_callback(below, desc.event, desc.event_user);
    default:
      fail(VELO_ERR_ARGUMENT, "desc.kind", text("0 to %d", VELO_ADAPTOR_CALLBACK),
           text("%d", desc.kind));
  }
}

// What velo_adaptor_allocator gives out. user: the handle, so that calls after the adaptor's end are
// seen.
void* allocate_through(void* user, uint64_t bytes, uint64_t alignment, const velo_device* device,
                       void* stream) {
  void* memory = nullptr;
  core::guard("velo_allocator.allocate", [&] {
    memory = adaptor_of(static_cast<velo_adaptor>(user), "user")
                 .allocate({bytes, alignment, device, stream});
  });
  return memory;
}

void deallocate_through(void* user, void* memory, uint64_t bytes, const velo_device* device,
                        void* stream) {
  if (memory == nullptr) return;
  core::guard("velo_allocator.deallocate", [&] {
    adaptor_of(static_cast<velo_adaptor>(user), "user")
        .deallocate(memory, {bytes, 0, device, stream});
  });
}

}  // namespace

extern "C" {

velo_status velo_adaptor_create(const velo_adaptor_desc* desc, velo_adaptor* adaptor) {
  return core::guard("velo_adaptor_create", [&] {
    capi::required(adaptor, "adaptor");
    std::unique_ptr<memory::adaptor> made = make(capi::read_struct(desc, desc_size, "desc", {}));
    *adaptor = core::handle_of(
        core::make_object<memory::held_adaptor>(nullptr, memory::held_adaptor{std::move(made)}));
  });
}

void velo_adaptor_destroy(velo_adaptor adaptor) {
  capi::destroy<memory::held_adaptor>("velo_adaptor_destroy", adaptor, "adaptor");
}

velo_status velo_adaptor_allocator(velo_adaptor adaptor, velo_allocator* allocator) {
  return core::guard("velo_adaptor_allocator", [&] {
    adaptor_of(adaptor);
    velo_allocator made = VELO_ALLOCATOR_INIT;
    made.user = adaptor;
    made.allocate = &allocate_through;
    made.deallocate = &deallocate_through;
    capi::write_struct(allocator, capi::allocator_size, "allocator", made);
  });
}

velo_status velo_adaptor_get_stats(velo_adaptor adaptor, velo_adaptor_stats* stats) {
  return core::guard("velo_adaptor_get_stats", [&] {
    const memory::adaptor& from = adaptor_of(adaptor);
    capi::struct_size(stats, stats_size, "stats");
    velo_adaptor_stats now{};
    from.fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}

velo_status velo_adaptor_flush(velo_adaptor adaptor) {
  return core::guard("velo_adaptor_flush", [&] { adaptor_of(adaptor).flush(); });
}
}
