// The steps that a plan of sublayers has, and the steps that each needs, whatever their order is.
//
// A forward layer is A_F -> D_F -> E_F -> C_F with S_F beside them, a backward one C_B -> E_B ->
// D_B -> A_B with S_B, E_W and A_W; a layer without messages has neither C, D nor S. A slice needs
// its own slice; attention, whose keys are whole, needs all slices of the layer before it, forward
// and backward. Cost: not hot; a step's needs are worked out where they are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/sublayers.h"

namespace velo::sched {

constexpr int sublayer_kinds = VELO_SUBLAYER_SEND_B + 1;

constexpr bool is_message(velo_sublayer_kind kind) {
  return kind == VELO_SUBLAYER_DISPATCH_F || kind == VELO_SUBLAYER_COMBINE_F ||
         kind == VELO_SUBLAYER_COMBINE_B || kind == VELO_SUBLAYER_DISPATCH_B ||
         kind == VELO_SUBLAYER_SEND_B;
}
constexpr bool is_forward(velo_sublayer_kind kind) {
  return kind >= VELO_SUBLAYER_ATTENTION_F && kind <= VELO_SUBLAYER_SHARED_F;
}

struct sublayer_layout {
  std::vector<char> forward_dense, backward_dense;  // by layer; 1: it has no messages
  bool has_shared, sends;
  velo_sublayer_slicing slicing;
  std::int32_t slices;

  std::int32_t layers(bool forward) const {
    return static_cast<std::int32_t>((forward ? forward_dense : backward_dense).size());
  }
  bool is_dense(bool forward, std::int32_t layer) const;
  // The slices of a step of this kind and layer; 0: the plan has no such step.
  std::int32_t slices_of(velo_sublayer_kind kind, std::int32_t layer) const;
  // The steps that a step of the plan needs, in the order of their parts.
  std::vector<velo_sublayer_step> needs_of(const velo_sublayer_step& step) const;
  std::vector<velo_sublayer_step> all_steps() const;

 private:
  void add_all(std::vector<velo_sublayer_step>& to, velo_sublayer_kind kind,
               std::int32_t layer) const;
  void add_like(std::vector<velo_sublayer_step>& to, velo_sublayer_kind kind,
                const velo_sublayer_step& step) const;
  void add_input(std::vector<velo_sublayer_step>& to, const velo_sublayer_step& step) const;
};

inline velo_sublayer_step make_step(velo_sublayer_kind kind, std::int32_t layer,
                                    std::int32_t slice) {
  return {kind, layer, slice, is_message(kind) ? 1 : 0};
}

}  // namespace velo::sched
