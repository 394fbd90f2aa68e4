// Entries of velo/adaptor.h.
#include "velo/adaptor.h"

#include "capi/src/allocator.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/pool_of.hpp"
#include "core/handle/guard.hpp"
#include "memory/adaptor/adaptor.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 48;
constexpr std::uint32_t stats_size = 48;
static_assert(sizeof(velo_adaptor_desc) >= desc_size && sizeof(velo_adaptor_stats) >= stats_size);

memory::adaptor& adaptor_of(velo_adaptor handle) {
  return *core::use<memory::held_adaptor>(handle, "adaptor").what;
}

std::unique_ptr<memory::adaptor> make(const velo_adaptor_desc& desc, const velo_allocator& below) {
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

// Calls f(adaptor) for a function of velo_adaptor_allocator. user: the handle, so that calls after
// the end of the adaptor are refused.
template <class F>
void call(const char* function, void* user, bool allocates, F&& f) {
  core::guard(
      function,
      [&] {
        auto& held = core::resolve<memory::held_adaptor>(static_cast<velo_adaptor>(user), "user");
        if (allocates && held.calls_host && core::is_inside(user, core::part::carries))
          fail(VELO_ERR_STATE, "user", "an adaptor that does not call the host on this thread",
               "one whose call runs the function that makes this one");
        const core::inside_scope mine(user, core::part::carries);
        if (!held.calls_host) return f(*held.what);
        const core::uncancelled here;
        f(*held.what);
      },
      core::of_operator{});
}

void* allocate_through(void* user, uint64_t bytes, uint64_t alignment, const velo_device* device,
                       void* stream) {
  void* memory = nullptr;
  call("velo_allocator.allocate", user, true, [&](memory::adaptor& through) {
    memory = through.allocate({bytes, alignment, device, stream});
  });
  return memory;
}

void deallocate_through(void* user, void* memory, uint64_t bytes, const velo_device* device,
                        void* stream) {
  if (memory == nullptr) return;
  call("velo_allocator.deallocate", user, false, [&](memory::adaptor& through) {
    through.deallocate(memory, {bytes, 0, device, stream});
  });
}

bool is_own(const velo_allocator& given) noexcept {
  return capi::is_of_pool(given) ||
         (given.allocate == &allocate_through && given.deallocate == &deallocate_through);
}

}  // namespace

extern "C" {

velo_status velo_adaptor_create(const velo_adaptor_desc* desc, velo_adaptor* adaptor) {
  return core::guard("velo_adaptor_create", [&] {
    capi::required(adaptor, "adaptor");
    const velo_adaptor_desc read = capi::read_struct(desc, desc_size, "desc", {});
    const velo_allocator below = capi::read_allocator(read.upstream, "desc.upstream");
    const bool calls_host = read.kind == VELO_ADAPTOR_CALLBACK || !is_own(below);
    *adaptor = core::handle_of(core::make_object<memory::held_adaptor>(
        nullptr, memory::held_adaptor{make(read, below), calls_host}));
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
