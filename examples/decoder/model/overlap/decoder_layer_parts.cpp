// The parts of a layer's passes: the same operators as in `forward` and `backward`, with the same
// arguments, so results have the same bits.
#include "examples/decoder/model/decoder_layer.hpp"
#include "examples/decoder/model/gradients.hpp"

namespace decoder {

void decoder_layer::start(velo_sublayer_kind part, const pass& now, const buffer& input,
                          layer_activations& kept) const {
  switch (part) {
    case VELO_SUBLAYER_ATTENTION_F:
      make_middle(now, input, kept);
      if (experts_) experts_->choose(now, kept);
      return;
    case VELO_SUBLAYER_DISPATCH_F:
      return experts_->send(now, kept);
    case VELO_SUBLAYER_EXPERTS_F:
      return experts_ ? experts_->compute(now, kept) : make_feed_forward(now, input, kept);
    case VELO_SUBLAYER_COMBINE_F:
      return experts_->send_back(now, kept);
    default:
      return;  // no part of this model's layers
  }
}

void decoder_layer::finish(const pass& now, const buffer& input, layer_activations& kept,
                           buffer& output) const {
  if (!experts_) return forward(now, input, kept, output);
  add_output(now, kept, experts_->sent_back(now, kept), output);
  kept.expert.branch = {};
  kept.expert.own_branch = {};
}

void decoder_layer::start_backward(velo_sublayer_kind part, const pass& now, buffer& gradient,
                                   const buffer& input, layer_activations& kept) const {
  switch (part) {
    case VELO_SUBLAYER_COMBINE_B:
      return experts_->send_gradient(now, stream(now, gradient), kept);
    case VELO_SUBLAYER_EXPERTS_B:
      if (experts_) return experts_->compute_gradient(now, kept);
      kept.expert.branch = workspace(now, stream_bytes(now));
      return feed_forward_backward(now, stream(now, gradient), stream(now, kept.expert.branch),
                                   kept, false);
    case VELO_SUBLAYER_DISPATCH_B:
      return experts_->send_gradient_back(now, kept);
    case VELO_SUBLAYER_EXPERTS_W:
      if (experts_) experts_->expert_gradients(now, kept);
      return;
    case VELO_SUBLAYER_ATTENTION_B:
      break;
    default:
      return;  // attention computes both gradients at once
  }
  if (experts_) {
    norm_backward(now, stream(now, kept.middle), feed_forward_gain_, kept.feed_forward_rstd,
                  experts_->finish_gradient(now, kept), feed_forward_gain_gradient_);
  }
  const buffer added = std::move(kept.expert.branch);
  add_branch(now, gradient, stream(now, added), nullptr);
  attention_to_input(now, gradient, stream(now, added), input, kept, false);
}

}  // namespace decoder
