// Dispatchers: tokens to the experts that they chose, on whatever rank, and back.
#pragma once

#include <utility>

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/dispatcher.h"
#include "velo/stream.hpp"
#include "velo/tensor.hpp"

VELO_CPP_BEGIN

namespace detail {
struct destroy_dispatcher {
  static void call(velo_dispatcher dispatcher) noexcept { VELO_FN(dispatcher_destroy)(dispatcher); }
};
struct destroy_routing {
  static void call(velo_routing routing) noexcept { VELO_FN(routing_destroy)(routing); }
};
}  // namespace detail

// Owns the choices of one micro-batch.
class routing : public detail::owner<velo_routing, detail::destroy_routing> {
 public:
  static outcome<routing> create(velo_dispatcher dispatcher) {
    velo_routing handle = nullptr;
    const velo_status status = VELO_FN(routing_create)(dispatcher, &handle);
    routing made;
    made.reset(handle);
    return detail::finish<routing>(status, std::move(made));
  }

  operator velo_routing() const noexcept { return get(); }

  // choices: int32, [tokens, top_k]. scores: float32, like choices, where the largest are kept.
  // places: int64, [tokens], the order of tokens for a capacity of the micro-batch. All ranks call
  // it.
  outcome<> set(stream_ref stream, const velo_tensor& choices, const velo_tensor* scores = nullptr,
                const velo_tensor* places = nullptr) const {
    return detail::check(VELO_FN(routing_set)(get(), stream.get(), &choices, scores, places));
  }
  // Waits for the rows of this rank's experts.
  outcome<int64_t> rows() const { return rows_of(nullptr, 0); }
  // counts: receives the rows of each of the first `capacity` experts. Returns the rows of all.
  outcome<int64_t> rows_of(int64_t* counts, int64_t capacity) const {
    int64_t all = 0;
    const velo_status status = VELO_FN(routing_get_rows)(get(), counts, capacity, &all);
    return detail::finish<int64_t>(status, all);
  }
  // Forgets the choices of a routing that needs no backward pass.
  outcome<> forget() const { return detail::check(VELO_FN(routing_reset)(get())); }
};

// Owns the dispatcher of a layer's experts.
class dispatcher : public detail::owner<velo_dispatcher, detail::destroy_dispatcher> {
 public:
  static outcome<dispatcher> create(velo_group group, const velo_dispatcher_desc& desc) {
    velo_dispatcher handle = nullptr;
    const velo_status status = VELO_FN(dispatcher_create)(group, &desc, &handle);
    dispatcher made;
    made.reset(handle);
    return detail::finish<dispatcher>(status, std::move(made));
  }

  operator velo_dispatcher() const noexcept { return get(); }

  outcome<velo_dispatcher_info> info() const {
    velo_dispatcher_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(dispatcher_get_info)(get(), &info);
    return detail::finish<velo_dispatcher_info>(status, info);
  }

  outcome<> dispatch(stream_ref stream, velo_routing by, const velo_tensor& tokens,
                     const velo_tensor& rows) const {
    return detail::check(VELO_FN(dispatcher_dispatch)(get(), stream.get(), by, &tokens, &rows));
  }
  // weights: nullptr: 1 each.
  outcome<> combine(stream_ref stream, velo_routing by, const velo_tensor& rows,
                    const velo_tensor* weights, const velo_tensor& tokens) const {
    return detail::check(
        VELO_FN(dispatcher_combine)(get(), stream.get(), by, &rows, weights, &tokens));
  }
  // rows, weights: of the forward call.
  outcome<> combine_backward(stream_ref stream, velo_routing by, const velo_tensor& dtokens,
                             const velo_tensor& rows, const velo_tensor& weights,
                             const velo_tensor& drows, const velo_tensor& dweights) const {
    return detail::check(VELO_FN(dispatcher_combine_backward)(get(), stream.get(), by, &dtokens,
                                                              &rows, &weights, &drows, &dweights));
  }
  outcome<> combine_backward(stream_ref stream, velo_routing by, const velo_tensor& dtokens,
                             const velo_tensor& drows) const {
    return detail::check(VELO_FN(dispatcher_combine_backward)(get(), stream.get(), by, &dtokens,
                                                              nullptr, nullptr, &drows, nullptr));
  }
  // Frees the routing.
  outcome<> dispatch_backward(stream_ref stream, velo_routing by, const velo_tensor& drows,
                              const velo_tensor& dtokens) const {
    return detail::check(
        VELO_FN(dispatcher_dispatch_backward)(get(), stream.get(), by, &drows, &dtokens));
  }
};

static_assert(sizeof(dispatcher) == sizeof(void*) && sizeof(routing) == sizeof(void*));

VELO_CPP_END
