// Matrices come first, norms after them.
#include "examples/decoder/model/layout.hpp"

namespace decoder {

std::int64_t weight_slice::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::int64_t weight_layout::add(bool held, const std::string& name,
                                std::vector<std::int64_t> shape) {
  const std::size_t number = numbered_++;
  if (!held) return -1;
  slices.push_back({name, std::move(shape), total, number});
  total += slices.back().elements();
  return slices.back().offset;
}

weight_layout::weight_layout(const model_settings& m, const holding& held)
    : layers(static_cast<std::size_t>(m.layers)) {
  const auto of_layer = [](std::size_t layer) {
    return "model.layers." + std::to_string(layer) + ".";
  };
  const std::int64_t kv = m.kv_heads * m.head_dim();

  embedding = add(held.embedding, "model.embed_tokens.weight", {m.vocab, m.hidden});
  align();
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string name = of_layer(layer);
    const bool here = held.layers[layer];
    layer_layout& at = layers[layer];
    at.qkv = add(here, name + "self_attn.q_proj.weight", {m.hidden, m.hidden});
    add(here, name + "self_attn.k_proj.weight", {kv, m.hidden});
    add(here, name + "self_attn.v_proj.weight", {kv, m.hidden});
    align();
    at.out = add(here, name + "self_attn.o_proj.weight", {m.hidden, m.hidden});
    align();
    at.gate_up = add(here, name + "mlp.gate_proj.weight", {m.inner, m.hidden});
    add(here, name + "mlp.up_proj.weight", {m.inner, m.hidden});
    align();
    at.down = add(here, name + "mlp.down_proj.weight", {m.hidden, m.inner});
    align();
  }
  head = m.tied ? embedding : add(held.head, "lm_head.weight", {m.vocab, m.hidden});
  align();
  decayed = total;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string name = of_layer(layer);
    const bool here = held.layers[layer];
    layer_layout& at = layers[layer];
    at.attention_norm = add(here, name + "input_layernorm.weight", {m.hidden});
    align();
    at.feed_forward_norm = add(here, name + "post_attention_layernorm.weight", {m.hidden});
    align();
  }
  final_norm = add(held.head, "model.norm.weight", {m.hidden});
  align();
}

}  // namespace decoder
