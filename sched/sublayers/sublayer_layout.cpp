// Which steps there are, and what they need.
#include "sched/sublayers/sublayer_layout.hpp"

#include "core/index.hpp"

namespace velo::sched {

using core::at;

bool sublayer_layout::is_dense(bool forward, std::int32_t layer) const {
  return (forward ? forward_dense : backward_dense)[at(layer)] != 0;
}

std::int32_t sublayer_layout::slices_of(velo_sublayer_kind kind, std::int32_t layer) const {
  const bool forward = is_forward(kind);
  if (layer < 0 || layer >= layers(forward)) return 0;
  if (kind == VELO_SUBLAYER_SEND_B) return sends && layer == 0 ? 1 : 0;
  const bool dense = is_dense(forward, layer);
  const bool is_experts = kind == VELO_SUBLAYER_EXPERTS_F || kind == VELO_SUBLAYER_EXPERTS_B ||
                          kind == VELO_SUBLAYER_EXPERTS_W;
  const bool is_shared = kind == VELO_SUBLAYER_SHARED_F || kind == VELO_SUBLAYER_SHARED_B;
  if (is_message(kind) && dense) return 0;
  if (is_shared && (dense || !has_shared)) return 0;
  if (slicing == VELO_SUBLAYER_BY_SEQUENCE) return slices;
  return is_message(kind) || (is_experts && !dense) ? slices : 1;
}

void sublayer_layout::add_all(std::vector<velo_sublayer_step>& to, velo_sublayer_kind kind,
                              std::int32_t layer) const {
  for (std::int32_t i = 0; i < slices_of(kind, layer); ++i) to.push_back(make_step(kind, layer, i));
}

// Adds the step of another kind with the same slice; its only one or all, if it is cut otherwise.
void sublayer_layout::add_like(std::vector<velo_sublayer_step>& to, velo_sublayer_kind kind,
                               const velo_sublayer_step& step) const {
  if (slices_of(kind, step.layer) == slices_of(step.kind, step.layer))
    to.push_back(make_step(kind, step.layer, step.slice));
  else
    add_all(to, kind, step.layer);
}

// Adds what a layer's first steps need: all that the layer before ends with.
void sublayer_layout::add_input(std::vector<velo_sublayer_step>& to,
                                const velo_sublayer_step& step) const {
  if (!is_forward(step.kind)) return add_all(to, VELO_SUBLAYER_ATTENTION_B, step.layer + 1);
  const std::int32_t before = step.layer - 1;
  if (before < 0) return;
  const bool dense = is_dense(true, before);
  add_all(to, dense ? VELO_SUBLAYER_EXPERTS_F : VELO_SUBLAYER_COMBINE_F, before);
  add_all(to, VELO_SUBLAYER_SHARED_F, before);
}

std::vector<velo_sublayer_step> sublayer_layout::needs_of(const velo_sublayer_step& step) const {
  std::vector<velo_sublayer_step> all;
  const bool dense = is_dense(is_forward(step.kind), step.layer);
  switch (step.kind) {
    case VELO_SUBLAYER_ATTENTION_F:
    case VELO_SUBLAYER_COMBINE_B:
    case VELO_SUBLAYER_SHARED_B:
      add_input(all, step);
      break;
    case VELO_SUBLAYER_DISPATCH_F:
    case VELO_SUBLAYER_SHARED_F:
      add_like(all, VELO_SUBLAYER_ATTENTION_F, step);
      break;
    case VELO_SUBLAYER_EXPERTS_F:
      add_like(all, dense ? VELO_SUBLAYER_ATTENTION_F : VELO_SUBLAYER_DISPATCH_F, step);
      break;
    case VELO_SUBLAYER_COMBINE_F:
      add_like(all, VELO_SUBLAYER_EXPERTS_F, step);
      break;
    case VELO_SUBLAYER_EXPERTS_B:
      if (dense)
        add_input(all, step);
      else
        add_like(all, VELO_SUBLAYER_COMBINE_B, step);
      break;
    case VELO_SUBLAYER_DISPATCH_B:
    case VELO_SUBLAYER_EXPERTS_W:
      add_like(all, VELO_SUBLAYER_EXPERTS_B, step);
      break;
    case VELO_SUBLAYER_ATTENTION_B:
      add_like(all, dense ? VELO_SUBLAYER_EXPERTS_B : VELO_SUBLAYER_DISPATCH_B, step);
      if (slices_of(VELO_SUBLAYER_SHARED_B, step.layer) > 0)
        add_like(all, VELO_SUBLAYER_SHARED_B, step);
      break;
    case VELO_SUBLAYER_ATTENTION_W:
      add_like(all, VELO_SUBLAYER_ATTENTION_B, step);
      break;
    default:  // SEND_B
      add_all(all, VELO_SUBLAYER_ATTENTION_B, 0);
  }
  return all;
}

std::vector<velo_sublayer_step> sublayer_layout::all_steps() const {
  std::vector<velo_sublayer_step> all;
  for (velo_sublayer_kind kind = VELO_SUBLAYER_ATTENTION_F; kind < sublayer_kinds; ++kind)
    for (std::int32_t layer = 0; layer < layers(is_forward(kind)); ++layer)
      add_all(all, kind, layer);
  return all;
}

}  // namespace velo::sched
