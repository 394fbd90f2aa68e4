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
    default:  // SHARED_F
      kept.expert.shared_branch = workspace(now, stream_bytes(now));
      gated_->make(now, gated_of(kept));
      gated_->finish(now, gated_of(kept), stream(now, kept.expert.shared_branch));
  }
}

void decoder_layer::finish(const pass& now, const buffer& input, layer_activations& kept,
                           buffer& output) const {
  if (!experts_) return forward(now, input, kept, output);
  const velo::tensor_view branch = experts_->sent_back(now, kept);
  if (gated_) add_to(now, branch, kept.expert.shared_branch);
  add_output(now, kept, branch, output);
  kept.expert.shared_branch = {};
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
    case VELO_SUBLAYER_SHARED_B:
      return shared_backward(now, stream(now, gradient), kept);
    case VELO_SUBLAYER_ATTENTION_B:
      break;
    default:
      return;  // attention computes both gradients at once
  }
  if (experts_) {
    const velo::tensor_view branch = experts_->finish_gradient(now, kept);
    if (gated_) add_to(now, branch, kept.expert.shared_branch);
    kept.expert.shared_branch = {};
    norm_backward(now, stream(now, kept.middle), feed_forward_gain_, kept.feed_forward_rstd, branch,
                  feed_forward_gain_gradient_);
  }
  const buffer added = std::move(kept.expert.branch);
  add_branch(now, gradient, stream(now, added), nullptr);
  attention_to_input(now, gradient, stream(now, added), input, kept, false);
}

// The router still reads the input, so a borrowed buffer is given away in its place.
void decoder_layer::shared_backward(const pass& now, const velo::tensor_view& gradient,
                                    layer_activations& kept) const {
  expert_activations& e = kept.expert;
  buffer input = buffer::borrowed(kept.feed_forward_input.data(), kept.feed_forward_input.bytes());
  e.shared_branch = workspace(now, stream_bytes(now));
  gated_->backward(now, gradient, stream(now, e.shared_branch),
                   {input, e.shared_gates, e.shared_gated}, false);
}

}  // namespace decoder
