// Matrices first, norms behind them.
#include "layout.hpp"

namespace pretrain {

std::int64_t weight_slice::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::int64_t weight_layout::add(const std::string& name, std::vector<std::int64_t> shape) {
  slices.push_back({name, std::move(shape), total});
  total += slices.back().elements();
  return slices.back().offset;
}

weight_layout::weight_layout(const model_settings& m) {
  const auto of_layer = [](std::int64_t layer) {
    return "model.layers." + std::to_string(layer) + ".";
  };
  const std::int64_t kv = m.kv_heads * m.head_dim();

  embedding = head = add("model.embed_tokens.weight", {m.vocab, m.hidden});
  align();
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string name = of_layer(layer);
    layer_layout at{};
    at.qkv = add(name + "self_attn.q_proj.weight", {m.hidden, m.hidden});
    add(name + "self_attn.k_proj.weight", {kv, m.hidden});
    add(name + "self_attn.v_proj.weight", {kv, m.hidden});
    align();
    at.out = add(name + "self_attn.o_proj.weight", {m.hidden, m.hidden});
    align();
    at.gate_up = add(name + "mlp.gate_proj.weight", {m.inner, m.hidden});
    add(name + "mlp.up_proj.weight", {m.inner, m.hidden});
    align();
    at.down = add(name + "mlp.down_proj.weight", {m.hidden, m.inner});
    align();
    layers.push_back(at);
  }
  if (!m.tied) {
    head = add("lm_head.weight", {m.vocab, m.hidden});
    align();
  }
  decayed = total;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string name = of_layer(layer);
    auto& at = layers[static_cast<std::size_t>(layer)];
    at.attention_norm = add(name + "input_layernorm.weight", {m.hidden});
    align();
    at.feed_forward_norm = add(name + "post_attention_layernorm.weight", {m.hidden});
    align();
  }
  final_norm = add("model.norm.weight", {m.hidden});
  align();
}

}  // namespace pretrain
