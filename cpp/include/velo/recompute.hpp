// Recomputation: regions whose outputs are recomputed when needed, rules for layers, and the choice
// of modules at a budget.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/recompute.h"

VELO_CPP_BEGIN

// Fills `layers`, with room for `capacity`, by a rule; returns the number of layers of the stage.
inline outcome<int64_t> recompute_layers(const velo_recompute_rule& rule,
                                         velo_recompute_layer* layers, int64_t capacity) {
  int64_t count = 0;
  const velo_status status = VELO_FN(recompute_layers)(&rule, layers, capacity, &count);
  return detail::finish<int64_t>(status, count);
}

// Sets chosen[i] to 1 for each of the `count` modules to recompute. Returns the cost of that choice
// and the next budget to try.
inline outcome<velo_recompute_choice> recompute_choose(const velo_recompute_rule& rule,
                                                       const velo_recompute_budget& budget,
                                                       const velo_recompute_module* modules,
                                                       int64_t count, int32_t* chosen) {
  velo_recompute_choice choice = {};
  choice.struct_size = sizeof choice;
  const velo_status status =
      VELO_FN(recompute_choose)(&rule, &budget, modules, count, chosen, &choice);
  return detail::finish<velo_recompute_choice>(status, choice);
}

namespace detail {
struct destroy_recompute {
  static void call(velo_recompute recompute) noexcept { VELO_FN(recompute_destroy)(recompute); }
};
}  // namespace detail

// Owns regions of the forward pass and the memory of their outputs.
class recompute : public detail::owner<velo_recompute, detail::destroy_recompute> {
 public:
  // Starts without regions. The allocator provides the memory of outputs.
  static outcome<recompute> create(const velo_allocator& allocator) {
    velo_recompute_desc desc = {};
    desc.struct_size = sizeof desc;
    desc.allocator = &allocator;
    velo_recompute handle = nullptr;
    const velo_status status = VELO_FN(recompute_create)(&desc, &handle);
    recompute made;
    made.reset(handle);
    return detail::finish<recompute>(status, std::move(made));
  }

  operator velo_recompute() const noexcept { return get(); }

  // Declares a region and allocates its outputs on the stream; returns its index.
  outcome<int64_t> add(const velo_recompute_region& region, velo_stream stream = nullptr) const {
    int64_t index = -1;
    const velo_status status = VELO_FN(recompute_add)(get(), &region, stream, &index);
    return detail::finish<int64_t>(status, index);
  }

  // The memory of a present output.
  outcome<void*> output(int64_t region, int64_t which = 0) const {
    void* memory = nullptr;
    const velo_status status = VELO_FN(recompute_get_output)(get(), region, which, &memory);
    return detail::finish<void*>(status, memory);
  }

  // release: frees the memory of the outputs. restore: recomputes the outputs. end: ends the
  // region.
  outcome<> release(int64_t region, velo_stream stream = nullptr) const {
    return detail::check(VELO_FN(recompute_release)(get(), region, stream));
  }
  outcome<> restore(int64_t region, velo_stream stream = nullptr) const {
    return detail::check(VELO_FN(recompute_restore)(get(), region, stream));
  }
  outcome<> end(int64_t region, velo_stream stream = nullptr) const {
    return detail::check(VELO_FN(recompute_end)(get(), region, stream));
  }

  // Bytes present, and the number of recomputations.
  outcome<velo_recompute_stats> stats() const {
    velo_recompute_stats stats = {};
    stats.struct_size = sizeof stats;
    const velo_status status = VELO_FN(recompute_get_stats)(get(), &stats);
    return detail::finish<velo_recompute_stats>(status, stats);
  }
};

static_assert(sizeof(recompute) == sizeof(void*));

VELO_CPP_END
