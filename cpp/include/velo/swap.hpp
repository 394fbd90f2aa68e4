// Swap: memory whose contents are stored in other memory or in files while they are not needed.
#pragma once

#include <type_traits>
#include <utility>

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/stream.hpp"
#include "velo/swap.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_swap {
  static void call(velo_swap swap) noexcept { VELO_FN(swap_destroy)(swap); }
};
}  // namespace detail

// Owns a swap manager, whose objects are known by numbers. The class is not named swap because of
// std::swap.
class swap_space : public detail::owner<velo_swap, detail::destroy_swap> {
 public:
  // A swap manager with all defaults, which uses memory of the host, or as described.
  static outcome<swap_space> create(velo_context context) { return create_from(context, nullptr); }
  static outcome<swap_space> create(velo_context context, const velo_swap_desc& desc) {
    return create_from(context, &desc);
  }

  operator velo_swap() const noexcept { return get(); }

  // Adds a resident object in the caller's memory; returns its number.
  outcome<uint64_t> add(void* memory, uint64_t bytes, velo_swap_use use = VELO_SWAP_WARM) const {
    uint64_t object = 0;
    const velo_status status = VELO_FN(swap_add)(get(), memory, bytes, use, &object);
    return detail::finish<uint64_t>(status, object);
  }
  // The same, in memory of the swap's pool.
  outcome<uint64_t> add(uint64_t bytes, velo_swap_use use = VELO_SWAP_WARM) const {
    return add(nullptr, bytes, use);
  }

  // Forgets an object. stream: the stream whose queued work may still use its memory; none: no
  // stream.
  outcome<> drop(uint64_t object, stream_ref stream = {}) const {
    return detail::check(VELO_FN(swap_drop)(get(), object, stream.get()));
  }

  // Copies an object to the tier after the stream's work so far. end: an event recorded after the
  // copy, or NULL.
  outcome<> out(uint64_t object, stream_ref stream, velo_event end = nullptr) const {
    return detail::check(VELO_FN(swap_out)(get(), object, stream.get(), end));
  }

  // Copies an object back. memory: the target; NULL: the object's own memory.
  outcome<> in(uint64_t object, stream_ref stream, void* memory = nullptr,
               velo_event end = nullptr) const {
    return detail::check(VELO_FN(swap_in)(get(), object, memory, stream.get(), end));
  }

  // Makes later work of the stream wait for the object's copies; on the inline stream the call
  // waits.
  outcome<> wait(uint64_t object, stream_ref stream) const {
    return detail::check(VELO_FN(swap_wait)(get(), object, stream.get()));
  }

  // The state of an object.
  outcome<velo_swap_object> object(uint64_t object) const {
    velo_swap_object info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(swap_get_object)(get(), object, &info);
    return detail::finish<velo_swap_object>(status, info);
  }

  // Buckets of layers: they go out after the forward pass and come back for the backward pass, one
  // layer ahead.
  outcome<> assign(uint64_t object, int64_t layer) const {
    return detail::check(VELO_FN(swap_assign)(get(), object, layer));
  }
  outcome<> forward(int64_t layer, stream_ref stream) const {
    return detail::check(VELO_FN(swap_forward)(get(), layer, stream.get()));
  }
  outcome<> backward(int64_t layer, stream_ref stream) const {
    return detail::check(VELO_FN(swap_backward)(get(), layer, stream.get()));
  }

  // Updates objects that are out, in `slices` slices. function(offset, bytes, slices) updates a
  // slice of each object in place; an exception ends the update.
  template <class F>
  outcome<> update(const uint64_t* objects, int64_t count, int64_t slices, F&& function) const {
    return detail::check(VELO_FN(swap_update)(get(), objects, count, slices, &call<F>, &function));
  }

  // Begins a step of a plan's placed swaps. memory: the caller's; nullptr: memory of the swap's
  // pool.
  outcome<> begin_step(velo_plan plan, stream_ref stream, void* memory = nullptr) const {
    return detail::check(VELO_FN(swap_begin_step)(get(), plan, memory, stream.get()));
  }
  // Begins the next stage; returns the time of the plan at which it ends.
  outcome<int64_t> begin_stage() const {
    int64_t time = 0;
    const velo_status status = VELO_FN(swap_begin_stage)(get(), &time);
    return detail::finish<int64_t>(status, time);
  }
  // The address of a buffer that the stage uses.
  outcome<void*> buffer(int64_t index) const {
    void* memory = nullptr;
    const velo_status status = VELO_FN(swap_get_buffer)(get(), index, &memory);
    return detail::finish<void*>(status, memory);
  }
  outcome<> end_step() const { return detail::check(VELO_FN(swap_end_step)(get())); }

  // Counters.
  outcome<velo_swap_stats> stats() const {
    velo_swap_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(swap_get_stats)(get(), &stats);
    return detail::finish<velo_swap_stats>(status, stats);
  }

 private:
  template <class F>
  static int32_t call(void* function, uint64_t offset, uint64_t bytes, void* const* slices) {
    (*static_cast<std::remove_reference_t<F>*>(function))(offset, bytes, slices);
    return 0;
  }

  static outcome<swap_space> create_from(velo_context context, const velo_swap_desc* desc) {
    velo_swap handle = nullptr;
    const velo_status status = VELO_FN(swap_create)(context, desc, &handle);
    swap_space made;
    made.reset(handle);
    return detail::finish<swap_space>(status, std::move(made));
  }
};

static_assert(sizeof(swap_space) == sizeof(void*));

VELO_CPP_END
