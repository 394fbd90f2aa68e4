// Entries of velo/swap.h.
#include "velo/swap.h"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "memory/plan/plan.hpp"
#include "memory/pool/pool.hpp"
#include "memory/swap/swap.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 72;
constexpr std::uint32_t object_size = 40;
constexpr std::uint32_t stats_size = 296;
static_assert(sizeof(velo_swap_desc) >= desc_size && sizeof(velo_swap_object) >= object_size &&
              sizeof(velo_swap_stats) >= stats_size);

constexpr std::uint64_t least_block = std::uint64_t{4} << 10, most_block = std::uint64_t{64} << 20;
constexpr int most_depth = 64;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;  // of addresses

memory::swap& swap_of(velo_swap handle) {
  return core::use<memory::swap>(handle, "swap");
}

core::stream& stream_of(velo_stream handle) {
  return core::use<core::stream>(handle, "stream");
}

core::event* event_of(velo_event handle) {
  return handle == nullptr ? nullptr : &core::use<core::event>(handle, "event");
}

void require_range(std::int64_t value, int first, int last, const char* argument) {
  if (value < first || value > last)
    fail(VELO_ERR_ARGUMENT, argument, text("%d to %d", first, last), core::number(value));
}

void require_layer(std::int64_t layer) {
  if (layer < 0) fail(VELO_ERR_ARGUMENT, "layer", "0 or more", core::number(layer));
}

void require_open(velo_pool pool, const char* argument) {
  if (pool == nullptr) return;
  if (core::use<memory::pool>(pool, argument).is_closed())
    fail(VELO_ERR_HANDLE, argument, "a pool", "a destroyed pool");
}

velo_swap_desc read_desc(const velo_swap_desc* given) {
  const velo_swap_desc defaults = VELO_SWAP_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_swap_desc desc = capi::read_struct(given, desc_size, "desc", defaults);
  require_range(desc.tier, VELO_SWAP_HOST, VELO_SWAP_DISK, "desc.tier");
  require_range(desc.depth, 1, most_depth, "desc.depth");
  require_range(desc.checksums, 0, 1, "desc.checksums");
  require_range(desc.direct, 0, 1, "desc.direct");
  require_range(desc.engine, VELO_SWAP_ENGINE_AUTO, VELO_SWAP_ENGINE_THREADS, "desc.engine");
  if (desc.block < least_block || desc.block > most_block || (desc.block & (desc.block - 1)) != 0)
    fail(VELO_ERR_ARGUMENT, "desc.block", "a power of two from 4096 to 67108864",
         core::number(desc.block));
  if (desc.tier == VELO_SWAP_DISK && desc.directories == nullptr)
    fail(VELO_ERR_NULL, "desc.directories", "names of directories, separated by ':'", "NULL");
  require_open(desc.memory, "desc.memory");
  require_open(desc.pool, "desc.pool");
  return desc;
}

}  // namespace

extern "C" {

velo_status velo_swap_create(velo_context context, const velo_swap_desc* desc, velo_swap* swap) {
  return core::guard("velo_swap_create", [&] {
    core::context& owner = core::use<core::context>(context, "context");
    const velo_swap_desc given = read_desc(desc);
    capi::required(swap, "swap");
    *swap = core::handle_of(core::make_object<memory::swap>(&owner, owner, given));
  });
}

void velo_swap_destroy(velo_swap swap) {
  capi::destroy<memory::swap>("velo_swap_destroy", swap, "swap", [](memory::swap& ending) {
    ending.require_idle();
    ending.owner().require_can_wait("swap");
  });
}

velo_status velo_swap_add(velo_swap swap, void* memory, uint64_t bytes, velo_swap_use use,
                          uint64_t* object) {
  return core::guard("velo_swap_add", [&] {
    memory::swap& to = swap_of(swap);
    if (bytes == 0 || bytes > most_bytes)
      fail(VELO_ERR_ARGUMENT, "bytes", "1 to 2^47", core::number(bytes));
    require_range(use, VELO_SWAP_WARM, VELO_SWAP_COLD, "use");
    capi::required(object, "object");
    *object = to.add(memory, bytes, use == VELO_SWAP_COLD);
  });
}

velo_status velo_swap_drop(velo_swap swap, uint64_t object, velo_stream stream) {
  return core::guard("velo_swap_drop", [&] {
    memory::swap& from = swap_of(swap);
    if (stream != nullptr) stream_of(stream);
    from.drop(object, stream);
  });
}

velo_status velo_swap_out(velo_swap swap, uint64_t object, velo_stream stream, velo_event event) {
  return core::guard("velo_swap_out", [&] {
    memory::swap& to = swap_of(swap);
    core::stream& after = stream_of(stream);
    to.out(object, after, event_of(event));
  });
}

velo_status velo_swap_in(velo_swap swap, uint64_t object, void* memory, velo_stream stream,
                         velo_event event) {
  return core::guard("velo_swap_in", [&] {
    memory::swap& from = swap_of(swap);
    core::stream& after = stream_of(stream);
    from.in(object, memory, after, event_of(event));
  });
}

velo_status velo_swap_wait(velo_swap swap, uint64_t object, velo_stream stream) {
  return core::guard("velo_swap_wait", [&] {
    memory::swap& of = swap_of(swap);
    of.wait(object, stream_of(stream));
  });
}

velo_status velo_swap_get_object(velo_swap swap, uint64_t object, velo_swap_object* info) {
  return core::guard("velo_swap_get_object", [&] {
    velo_swap_object found{};
    swap_of(swap).fill(object, found);
    capi::write_struct(info, object_size, "info", found);
  });
}

velo_status velo_swap_assign(velo_swap swap, uint64_t object, int64_t layer) {
  return core::guard("velo_swap_assign", [&] {
    memory::swap& of = swap_of(swap);
    require_layer(layer);
    of.assign(object, layer);
  });
}

velo_status velo_swap_forward(velo_swap swap, int64_t layer, velo_stream stream) {
  return core::guard("velo_swap_forward", [&] {
    memory::swap& of = swap_of(swap);
    require_layer(layer);
    of.forward(layer, stream_of(stream));
  });
}

velo_status velo_swap_backward(velo_swap swap, int64_t layer, velo_stream stream) {
  return core::guard("velo_swap_backward", [&] {
    memory::swap& of = swap_of(swap);
    require_layer(layer);
    of.backward(layer, stream_of(stream));
  });
}

velo_status velo_swap_update(velo_swap swap, const uint64_t* objects, int64_t count, int64_t slices,
                             velo_swap_update_fn update, void* user) {
  return core::guard("velo_swap_update", [&] {
    memory::swap& of = swap_of(swap);
    if (objects == nullptr) fail(VELO_ERR_NULL, "objects", "numbers of objects", "NULL");
    if (count < 1) fail(VELO_ERR_ARGUMENT, "count", "1 or more", core::number(count));
    if (slices < 1) fail(VELO_ERR_ARGUMENT, "slices", "1 or more", core::number(slices));
    if (update == nullptr) fail(VELO_ERR_NULL, "update", "a function", "NULL");
    of.update(objects, count, slices, update, user);
  });
}

velo_status velo_swap_begin_step(velo_swap swap, velo_plan plan, void* memory, velo_stream stream) {
  return core::guard("velo_swap_begin_step", [&] {
    memory::swap& to = swap_of(swap);
    const memory::plan& of = core::resolve<memory::plan>(plan, "plan");
    stream_of(stream);
    to.begin_step(of.placed_swaps(), memory, stream);
  });
}

velo_status velo_swap_begin_stage(velo_swap swap, int64_t* time) {
  return core::guard("velo_swap_begin_stage", [&] {
    const std::int64_t ends = swap_of(swap).begin_stage();
    if (time != nullptr) *time = ends;
  });
}

velo_status velo_swap_get_buffer(velo_swap swap, int64_t buffer, void** memory) {
  return core::guard("velo_swap_get_buffer", [&] {
    const memory::swap& of = swap_of(swap);
    capi::required(memory, "memory");
    *memory = of.buffer_of_step(buffer);
  });
}

velo_status velo_swap_end_step(velo_swap swap) {
  return core::guard("velo_swap_end_step", [&] { swap_of(swap).end_step(); });
}

velo_status velo_swap_get_stats(velo_swap swap, velo_swap_stats* stats) {
  return core::guard("velo_swap_get_stats", [&] {
    velo_swap_stats now{};
    swap_of(swap).fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
