// The layers of the backward come from the last to the first.
#include "sched/schedule/sublayers.hpp"

#include <algorithm>

namespace velo::sched {
namespace {

class step_list {
 public:
  void pair(std::int32_t forward, std::int32_t backward) {
    step(VELO_SUBLAYER_ATTENTION_F, forward, VELO_SUBLAYER_COMBINE_B, backward);
    step(VELO_SUBLAYER_EXPERTS_B, backward, VELO_SUBLAYER_DISPATCH_F, forward);
    step(VELO_SUBLAYER_EXPERTS_F, forward, VELO_SUBLAYER_DISPATCH_B, backward);
    step(VELO_SUBLAYER_EXPERTS_W, backward);
    step(VELO_SUBLAYER_SHARED_F, forward);
    step(VELO_SUBLAYER_SHARED_B, backward);
    step(VELO_SUBLAYER_ATTENTION_B, backward, VELO_SUBLAYER_COMBINE_F, forward);
    weights(backward);
  }
  void forward(std::int32_t layer) {
    step(VELO_SUBLAYER_ATTENTION_F, layer);
    step(VELO_SUBLAYER_SHARED_F, layer, VELO_SUBLAYER_DISPATCH_F, layer);
    step(VELO_SUBLAYER_EXPERTS_F, layer);
    step(0, -1, VELO_SUBLAYER_COMBINE_F, layer);
  }
  void backward(std::int32_t layer) {
    step(VELO_SUBLAYER_SHARED_B, layer, VELO_SUBLAYER_COMBINE_B, layer);
    step(VELO_SUBLAYER_EXPERTS_B, layer);
    step(VELO_SUBLAYER_EXPERTS_W, layer, VELO_SUBLAYER_DISPATCH_B, layer);
    step(VELO_SUBLAYER_ATTENTION_B, layer);
    weights(layer);
  }

  std::vector<velo_sublayer_step> steps;

 private:
  void step(velo_sublayer_kind compute, std::int32_t layer, velo_sublayer_kind message = 0,
            std::int32_t of = -1) {
    steps.push_back({compute, layer, message, of});
  }
  // Adds the weights of attention. The chunk's gradient is complete with its first layer.
  void weights(std::int32_t layer) {
    if (layer == 0)
      step(VELO_SUBLAYER_ATTENTION_W, layer, VELO_SUBLAYER_SEND_B, -1);
    else
      step(VELO_SUBLAYER_ATTENTION_W, layer);
  }
};

}  // namespace

std::vector<velo_sublayer_step> sublayer_plan(std::int32_t forward_layers,
                                              std::int32_t backward_layers) {
  step_list result;
  const std::int32_t pairs = std::min(forward_layers, backward_layers);
  for (std::int32_t i = 0; i < pairs; ++i) result.pair(i, backward_layers - 1 - i);
  for (std::int32_t i = pairs; i < forward_layers; ++i) result.forward(i);
  for (std::int32_t i = pairs; i < backward_layers; ++i) result.backward(backward_layers - 1 - i);
  return std::move(result.steps);
}

}  // namespace velo::sched
