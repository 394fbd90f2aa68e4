// Norms come first, routers and matrices after them, experts last.
#include "examples/decoder/weights/layout.hpp"

#include <utility>
#include <velo/velo.hpp>

namespace decoder {

std::int64_t weight_slice::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// The part of a tensor rank of each kind of weight, by its name in a layer or in the model.
class weight_layout::tensor_cuts {
 public:
  struct part {
    std::vector<std::int64_t> whole, shape, begin;
  };

  tensor_cuts(const model_settings& m, const holding& held)
      : all_(velo::sharding::create(topology_of(held))),
        rank_(held.tensor_rank),
        in_two_(held.tensor_x > 0) {
    const std::int64_t same = m.ranks_of_key(held.ranks_x()), groups = m.kv_heads * same;
    const std::int64_t kv = m.kv_heads * m.head_dim(), queries = m.heads * m.head_dim();
    if (m.is_latent()) add_latent(m);
    add("q_proj.weight", {queries, m.hidden}, {0, groups});
    add("k_proj.weight", {kv, m.hidden}, {0, groups, same});
    add("v_proj.weight", {kv, m.hidden}, {0, groups, same});
    add("o_proj.weight", {m.hidden, m.heads * m.value_dim()}, {1, groups});
    add("gate_proj.weight", {m.inner, m.hidden}, {0, m.inner});
    add("up_proj.weight", {m.inner, m.hidden}, {0, m.inner});
    add("down_proj.weight", {m.hidden, m.inner}, {1, m.inner});
    add("embed_tokens.weight", {m.vocab, m.hidden}, {0, m.vocab});
    add("lm_head.weight", {m.vocab, m.hidden}, {0, m.vocab});
    add("norm.weight", {m.hidden}, {});
    if (!m.has_experts()) return;
    const std::int64_t width = m.expert_width();
    add_whole("router", {m.experts, m.hidden});
    if (held.cuts_experts) {
      add("expert up", {width, m.hidden}, {0, width});
      add("expert down", {m.hidden, width}, {1, width});
    } else {
      add_whole("expert up", {width, m.hidden});
      add_whole("expert down", {m.hidden, width});
    }
    if (m.shared_experts == 0) return;
    const std::int64_t shared = m.shared_width();
    add("shared up", {shared, m.hidden}, {0, shared});
    add("shared down", {m.hidden, shared}, {1, shared});
  }

  // Norms share an entry: their names end with "norm.weight".
  const part& of(const std::string& name) const {
    for (const auto& [end, part] : parts_)
      if (name.size() >= end.size() &&
          name.compare(name.size() - end.size(), std::string::npos, end) == 0)
        return part;
    std::abort();
  }

 private:
  // A dimension, cut between units of the same size, of which `same` neighbors are one part of the
  // weight; without units: of no cut. In two dimensions ranks along x cut it, and those along y the
  // other one, or a norm's only one.
  struct cut {
    std::int64_t dimension = 0, units = 0, same = 1;
  };

  void add_latent(const model_settings& m) {
    const std::int64_t key = m.qk_nope_head_dim + m.v_head_dim;
    if (m.q_lora_rank > 0) {
      add_whole("q_a_proj.weight", {m.q_lora_rank, m.hidden});
      add_whole("q_a_layernorm.weight", {m.q_lora_rank});
      add("q_b_proj.weight", {m.heads * m.head_dim(), m.q_lora_rank}, {0, m.heads});
    }
    add_whole("kv_a_proj_with_mqa.weight", {m.kv_lora_rank + m.qk_rope_head_dim, m.hidden});
    add_whole("kv_a_layernorm.weight", {m.kv_lora_rank});
    add("kv_b_proj.weight", {m.heads * key, m.kv_lora_rank}, {0, m.heads});
  }

  static velo::topology topology_of(const holding& held) {
    velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
    desc.tp = held.tensor_ranks;
    desc.tp_x = held.tensor_x;
    return velo::topology::create(desc);
  }

  void add(const char* name, std::vector<std::int64_t> whole, cut along) {
    const bool norm = along.units == 0;
    const std::int64_t other = norm ? 0 : 1 - along.dimension;
    const auto size = [&](std::int64_t i) { return whole[static_cast<std::size_t>(i)]; };
    const velo_sharding_block block = {size(along.dimension), along.units, along.same},
                              across = {size(other), size(other), 1};
    std::vector<velo_sharding_cut> all;
    if (!norm) all.push_back({in_two_ ? "tp_x" : "tp", along.dimension, &block, 1, nullptr, 0});
    if (in_two_) all.push_back({"tp_y", other, &across, 1, nullptr, 0});
    velo_sharding_parameter weight = VELO_SHARDING_PARAMETER_INIT;
    weight.name = name;
    weight.ndim = static_cast<std::int32_t>(whole.size());
    weight.shape = whole.data();
    weight.cuts = all.data();
    weight.cut_count = static_cast<std::int64_t>(all.size());
    const std::int64_t index = all_.add(weight);
    part made{std::move(whole), {}, {}};
    const velo_sharding_piece piece = all_.piece(index, rank_, 0);
    for (std::size_t i = 0; i < made.whole.size(); ++i) {
      made.begin.push_back(piece.begin[i]);
      made.shape.push_back(piece.end[i] - piece.begin[i]);
    }
    parts_.emplace_back(name, std::move(made));
  }

  void add_whole(const char* name, const std::vector<std::int64_t>& shape) {
    parts_.emplace_back(name, part{shape, shape, std::vector<std::int64_t>(shape.size())});
  }

  velo::sharding all_;
  std::int64_t rank_;
  bool in_two_;
  std::vector<std::pair<std::string, part>> parts_;
};

std::int64_t weight_layout::add(bool held, const std::string& name, const tensor_cuts& cuts,
                                bool repeated, const char* part) {
  const std::size_t number = numbered_++;
  if (!held) return -1;
  const tensor_cuts::part& of = cuts.of(part != nullptr ? part : name);
  slices.push_back({name, of.shape, of.whole, of.begin, total, number, repeated});
  total += slices.back().elements();
  return slices.back().offset;
}

namespace {

std::string in_layer(std::size_t layer, const char* name) {
  return "model.layers." + std::to_string(layer) + "." + name;
}

// The beginning of the names of a layer's router and experts.
const char* experts_in(const model_settings& m) {
  return m.has_mixtrals_layers() ? "block_sparse_moe." : "mlp.";
}

}  // namespace

weight_layout::weight_layout(const model_settings& m, const holding& held)
    : layers(static_cast<std::size_t>(m.layers)) {
  const tensor_cuts cuts(m, held);
  const auto rows_of = [&](const char* name) { return cuts.of(name).shape[0]; };
  widths = {rows_of("q_proj.weight") / m.head_dim(),
            rows_of("k_proj.weight") / m.head_dim(),
            m.head_dim(),
            m.value_dim(),
            rows_of("gate_proj.weight"),
            m.shared_experts > 0 ? rows_of("shared up") : 0,
            cuts.of("lm_head.weight").begin[0],
            rows_of("lm_head.weight"),
            cuts.of("norm.weight").shape[0],
            m.experts / held.expert_ranks,
            m.has_experts() ? rows_of("expert up") : 0};
  const auto with_experts = static_cast<std::size_t>(m.expert_layers()),
             blocks = m.shared_experts > 0 ? layers.size() : layers.size() - with_experts;
  const std::size_t of_attention = m.is_latent() ? 3 : 4;
  numbered_ = of_attention * layers.size() + 3 * blocks + (m.tied ? 1 : 2);
  add_norms(m, held, cuts);  // numbered behind the matrices
  add_low_ranks(m, held, cuts);
  add_routers(m, held, cuts);
  const std::size_t before_experts = std::exchange(numbered_, 0);
  add_matrices(m, held, cuts);
  numbered_ = before_experts;
  add_experts(m, held, cuts);
  if (total == 0) total = decayed = low_end = routers_end = experts = 16;
}

void weight_layout::add_norms(const model_settings& m, const holding& held,
                              const tensor_cuts& cuts) {
  const bool copy = held.place_x() > 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const bool here = held.layers[layer];
    layer_layout& at = layers[layer];
    at.attention_norm = add(here, in_layer(layer, "input_layernorm.weight"), cuts, copy);
    align();
    at.feed_forward_norm =
        add(here, in_layer(layer, "post_attention_layernorm.weight"), cuts, copy);
    align();
    const auto add_low = [&](const char* name) {
      const std::int64_t offset = add(here, in_layer(layer, name), cuts, copy);
      align();
      return offset;
    };
    if (m.is_latent() && m.q_lora_rank > 0)
      at.query_norm = add_low("self_attn.q_a_layernorm.weight");
    if (m.is_latent()) at.key_norm = add_low("self_attn.kv_a_layernorm.weight");
  }
  final_norm = add(held.head, "model.norm.weight", cuts, copy);
  align();
  decayed = total;
}

void weight_layout::add_low_ranks(const model_settings& m, const holding& held,
                                  const tensor_cuts& cuts) {
  const auto add_one = [&](std::size_t layer, const char* name) {
    const std::int64_t offset =
        add(held.layers[layer], in_layer(layer, name), cuts, held.place_x() > 0);
    align();
    return offset;
  };
  for (std::size_t layer = 0; m.is_latent() && layer < layers.size(); ++layer) {
    if (m.q_lora_rank > 0) layers[layer].query_low = add_one(layer, "self_attn.q_a_proj.weight");
    layers[layer].key_low = add_one(layer, "self_attn.kv_a_proj_with_mqa.weight");
  }
  low_end = total;
}

void weight_layout::add_routers(const model_settings& m, const holding& held,
                                const tensor_cuts& cuts) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!m.has_experts(layer)) continue;
    const std::string name = in_layer(layer, experts_in(m)) + "gate.";
    layers[layer].router =
        add(held.layers[layer], name + "weight", cuts, held.place_x() > 0, "router");
    if (m.router_bias) biases.push_back({name + "e_score_correction_bias", layer});
    align();
  }
  routers_end = total;
}

void weight_layout::add_matrices(const model_settings& m, const holding& held,
                                 const tensor_cuts& cuts) {
  const bool ties = m.tied && held.head;
  embedding = add(held.embedding || ties, "model.embed_tokens.weight", cuts, !held.embedding);
  align();
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    add_attention(m, held, layer, cuts);
    const bool is_shared = m.has_experts(layer);
    if (!is_shared || m.shared_experts > 0)
      add_feed_forward(is_shared, held.layers[layer], layer, cuts);
  }
  head = m.tied ? embedding : add(held.head, "lm_head.weight", cuts);
  align();
}

void weight_layout::add_attention(const model_settings& m, const holding& held, std::size_t layer,
                                  const tensor_cuts& cuts) {
  const bool copies_keys = held.place_x() % m.ranks_of_key(held.ranks_x()) > 0;
  const auto name = [&](const char* of) { return in_layer(layer, "self_attn.") + of; };
  const bool here = held.layers[layer];
  layer_layout& at = layers[layer];
  at.owns_keys = !m.shares_keys(layer);
  if (m.is_latent()) {
    const char* const queries = m.q_lora_rank > 0 ? "q_b_proj.weight" : "q_proj.weight";
    at.qkv = add(here, name(queries), cuts);
    align();
    at.expand = add(here, name("kv_b_proj.weight"), cuts);
  } else {
    at.qkv = add(here, name("q_proj.weight"), cuts);
    add(here && at.owns_keys, name("k_proj.weight"), cuts, copies_keys);
    add(here && at.owns_keys, name("v_proj.weight"), cuts, copies_keys);
  }
  align();
  at.out = add(here, name("o_proj.weight"), cuts);
  align();
}

void weight_layout::add_feed_forward(bool is_shared, bool held, std::size_t layer,
                                     const tensor_cuts& cuts) {
  const auto add_one = [&](const char* of, const char* part) {
    const std::string in = in_layer(layer, is_shared ? "mlp.shared_experts." : "mlp.");
    return add(held, in + of, cuts, false, is_shared ? part : nullptr);
  };
  layers[layer].gate_up = add_one("gate_proj.weight", "shared up");
  add_one("up_proj.weight", "shared up");
  align();
  layers[layer].down = add_one("down_proj.weight", "shared down");
  align();
}

// Expert by expert in files, and in their numbers; gate and up of all come before down of all.
void weight_layout::add_experts(const model_settings& m, const holding& held,
                                const tensor_cuts& cuts) {
  experts = total;
  const std::int64_t first = held.expert_rank * widths.experts, last = first + widths.experts;
  const bool is_mixtral = m.has_mixtrals_layers();
  const char* const names[] = {is_mixtral ? "w1" : "gate_proj", is_mixtral ? "w2" : "down_proj",
                               is_mixtral ? "w3" : "up_proj"};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!m.has_experts(layer)) continue;
    layer_layout& at = layers[layer];
    const bool here = held.layers[layer];
    const std::size_t before = numbered_;
    const auto add_one = [&](std::int64_t expert, std::size_t place, const char* part) {
      numbered_ = before + 3 * static_cast<std::size_t>(expert) + place;
      const std::string name = in_layer(layer, experts_in(m)) + "experts." +
                               std::to_string(expert) + "." + names[place] + ".weight";
      const std::int64_t offset = add(here, name, cuts, false, part);
      if (here) slices.back().of_expert = true;
      return offset;
    };
    for (std::int64_t e = first; e < last; ++e) {
      const std::int64_t gate = add_one(e, 0, "expert up");
      add_one(e, 2, "expert up");
      if (e == first) at.experts_up = gate;
    }
    align();
    for (std::int64_t e = first; e < last; ++e) {
      const std::int64_t down = add_one(e, 1, "expert down");
      if (e == first) at.experts_down = down;
    }
    align();
    numbered_ = before + 3 * static_cast<std::size_t>(m.experts);
  }
}

}  // namespace decoder
