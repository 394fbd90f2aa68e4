// Entries of velo/pool.h. The entries that allocate and free check their arguments and continue
// inline in memory/pool/allocate.hpp and free.hpp.
#include "velo/pool.h"

#include <cstring>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "capi/src/pool_of.hpp"
#include "capi/src/pool_request.hpp"
#include "core/handle/guard.hpp"
#include "memory/pool/allocate.hpp"
#include "memory/pool/free.hpp"

using namespace velo;
using capi::pool_of;
using core::fail;
using core::text;
using memory::likely;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 56;
constexpr std::uint32_t stats_size = 248;
constexpr std::uint32_t allocator_size = 32;
static_assert(sizeof(velo_pool_desc) >= desc_size && sizeof(velo_pool_stats) >= stats_size &&
              sizeof(velo_allocator) >= allocator_size);
static_assert(offsetof(velo_pool_request, lifetime) == 4 &&
              offsetof(velo_pool_request, zero) == offsetof(velo_pool_request, purpose) + 4);

velo_pool_desc read_desc(const velo_pool_desc* given) {
  const velo_pool_desc defaults = VELO_POOL_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_pool_desc desc = capi::read_struct(given, desc_size, "desc", defaults);
  capi::require_range(desc.kind, VELO_POOL_LOCKED, "desc.kind");
  capi::require_range(desc.checked, 1, "desc.checked");
  return desc;
}

// Frees a block. The last block of a closed pool also destroys the pool.
void free_in(velo_pool handle, memory::pool& from, void* memory, std::uint64_t bytes,
             velo_stream stream) {
  if (from.free(memory, bytes, stream)) core::destroy_handle<memory::pool>(handle, "pool");
}

// Loads a field and the next one at once; the next field is the upper half.
template <class T>
__attribute__((always_inline)) inline std::uint64_t pair_at(const T& first) {
  static_assert(sizeof first == 4);
  std::uint64_t both = 0;
  std::memcpy(&both, &first, sizeof both);
  return both;
}

// Whether a request is of this release and sets only bytes and a purpose. The purpose is read only
// if the struct is known to have it.
__attribute__((always_inline)) inline bool is_plain(const velo_pool_request& r,
                                                    std::uint64_t& purpose) {
  if (!likely(r.struct_size == sizeof r)) return false;
  purpose = pair_at(r.purpose);
  const std::uint64_t others = (r.alignment & ~memory::unit) |
                               static_cast<std::uint32_t>(r.lifetime) |
                               reinterpret_cast<std::uintptr_t>(r.stream);
  return likely(purpose <= VELO_PURPOSE_INPUT) && likely(others == 0);
}

// The slow path of the two functions, for every kind of request and for wrong arguments.
__attribute__((noinline)) velo_status allocate_generally(velo_pool pool,
                                                         const velo_pool_request* request,
                                                         void** memory) {
  return core::guard(
      "velo_pool_allocate",
      [&] {
        memory::pool& from = pool_of(pool);
        const memory::pool_request checked = capi::read_request(request);
        capi::required(memory, "memory");
        *memory = from.allocate(checked);
      },
      core::of_operator{});
}

__attribute__((noinline)) velo_status free_generally(velo_pool pool, void* memory,
                                                     std::uint64_t bytes, velo_stream stream) {
  return core::guard(
      "velo_pool_free",
      [&] {
        memory::pool& from = pool_of(pool);
        if (memory != nullptr) free_in(pool, from, memory, bytes, stream);
      },
      core::of_operator{});
}

// The deallocate function of velo_pool_allocator. user: the handle, so that calls after the end of
// the pool are refused.
void deallocate_for_context(void* user, void* memory, uint64_t bytes, const velo_device*,
                            void* stream) {
  const auto handle = static_cast<velo_pool>(user);
  core::guard(
      "velo_allocator.deallocate",
      [&] {
        if (memory == nullptr) return;
        auto& from = core::resolve<memory::pool>(handle, "user");
        from.require_not_logging();
        free_in(handle, from, memory, bytes, static_cast<velo_stream>(stream));
      },
      core::of_operator{});
}

}  // namespace

bool capi::is_of_pool(const velo_allocator& given) noexcept {
  return given.allocate == &capi::allocate_for_context<velo_pool, velo_pool_allocate> &&
         given.deallocate == &deallocate_for_context;
}

extern "C" {

velo_status velo_pool_create(const velo_pool_desc* desc, velo_pool* pool) {
  return core::guard("velo_pool_create", [&] {
    capi::required(pool, "pool");
    auto& made = core::make_object<memory::pool>(nullptr, read_desc(desc));
    *pool = core::handle_of(made);
    made.set_handle(*pool);
  });
}

void velo_pool_destroy(velo_pool pool) {
  if (pool == nullptr) return;
  const velo_status status = core::guard("velo_pool_destroy", [&] {
    pool_of(pool);
    core::claim<memory::pool> mine(pool, "pool");
    core::require_outside(pool, "pool");
    if (mine.object().close()) mine.destroy();
  });
  if (status != VELO_OK) core::log_misuse(pool);
}

// Both functions begin at a cache line, so that their speed does not depend on preceding code.
__attribute__((aligned(64))) velo_status velo_pool_allocate(velo_pool pool,
                                                            const velo_pool_request* request,
                                                            void** memory) {
  std::uint64_t purpose = 0;
  if (likely(memory != nullptr) && likely(request != nullptr) && is_plain(*request, purpose))
    return memory::allocate_plain<&allocate_generally>(pool, request, purpose, memory);
  return allocate_generally(pool, request, memory);
}

__attribute__((aligned(64))) velo_status velo_pool_free(velo_pool pool, void* memory,
                                                        uint64_t bytes, velo_stream stream) {
  if (likely(stream == nullptr)) return memory::free_plain<&free_generally>(pool, memory, bytes);
  return free_generally(pool, memory, bytes, stream);
}

velo_status velo_pool_trim(velo_pool pool, uint64_t keep, uint64_t* released) {
  return core::guard("velo_pool_trim", [&] {
    const std::uint64_t done = pool_of(pool).trim(keep);
    if (released != nullptr) *released = done;
  });
}

velo_status velo_pool_set_limit(velo_pool pool, uint64_t limit) {
  return core::guard("velo_pool_set_limit", [&] { pool_of(pool).set_limit(limit); });
}

velo_status velo_pool_allocator(velo_pool pool, velo_allocator* allocator) {
  return core::guard("velo_pool_allocator", [&] {
    pool_of(pool);
    velo_allocator made = VELO_ALLOCATOR_INIT;
    made.user = pool;
    made.allocate = &capi::allocate_for_context<velo_pool, velo_pool_allocate>;
    made.deallocate = &deallocate_for_context;
    capi::write_struct(allocator, allocator_size, "allocator", made);
  });
}

velo_status velo_pool_functions(velo_pool pool, void** allocate, void** deallocate) {
  return core::guard("velo_pool_functions", [&] {
    memory::pool& from = pool_of(pool);
    capi::required(allocate, "allocate");
    capi::required(deallocate, "deallocate");
    const memory::plain_functions& made = from.functions();
    *allocate = made.allocate();
    *deallocate = made.deallocate();
  });
}

velo_status velo_pool_check(velo_pool pool) {
  return core::guard("velo_pool_check", [&] { pool_of(pool).check(); });
}

velo_status velo_pool_locate(velo_pool pool, const void* memory, int32_t* file, uint64_t* offset) {
  return core::guard("velo_pool_locate", [&] {
    const memory::pool& from = pool_of(pool);
    if (memory == nullptr) fail(VELO_ERR_NULL, "memory", "a pointer", "NULL");
    capi::required(file, "file");
    capi::required(offset, "offset");
    from.locate(memory, *file, *offset);
  });
}

velo_status velo_pool_get_stats(velo_pool pool, velo_pool_stats* stats) {
  return core::guard("velo_pool_get_stats", [&] {
    memory::pool& from = pool_of(pool);
    velo_pool_stats now{};
    from.fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
