// The arithmetic of a training step, counted the way the field counts it.
//
// Each matrix parameter costs 6 floating-point operations a token (multiply and add; forward, input
// gradient, weight gradient). Causal attention adds 12 x layers x B x S x S x H / 2: two products,
// forward and twice backward, half of them masked; H is the width of all heads, of keys and values
// the mean. Of experts those count that a token goes to, the
// shared one among them.
// Recomputation inside an operator is not counted, so the rate is one of useful work.
#pragma once

#include "examples/decoder/settings.hpp"

namespace decoder {

inline double latent_parameters(const model_settings& m) {
  const std::int64_t queries = m.heads * m.head_dim(), values = m.heads * m.v_head_dim;
  const std::int64_t by_queries =
      m.q_lora_rank > 0 ? m.q_lora_rank * (m.hidden + queries) : m.hidden * queries;
  const std::int64_t by_keys = m.hidden * (m.kv_lora_rank + m.qk_rope_head_dim) +
                               m.kv_lora_rank * (m.heads * m.qk_nope_head_dim + values);
  return static_cast<double>(by_queries + by_keys + values * m.hidden);
}

inline double matrix_parameters(const model_settings& m) {
  const auto h = static_cast<double>(m.hidden), inner = static_cast<double>(m.inner);
  const auto kv = static_cast<double>(m.kv_heads * m.head_dim());
  const auto queries = static_cast<double>(m.heads * m.head_dim()),
             values = static_cast<double>(m.heads * m.value_dim());
  const double attention = m.is_latent() ? latent_parameters(m) : h * queries + h * values,
               keys = m.is_latent() ? 0 : h * 2 * kv;
  const auto width = static_cast<double>(m.experts_per_token * m.expert_width() + m.shared_width());
  const double dense = 3 * h * inner, experts = 3 * h * width + static_cast<double>(m.experts) * h;
  const double head = static_cast<double>(m.vocab) * h;  // the embedding is a lookup, no product
  const auto layers = static_cast<double>(m.layers),
             with_keys = static_cast<double>(m.layers - m.sharing_layers()),
             with_experts = static_cast<double>(m.expert_layers());
  return layers * attention + (layers - with_experts) * dense + with_experts * experts +
         with_keys * keys + head;
}

inline double step_flops(const model_settings& m, const data_settings& d) {
  const auto sequences = static_cast<double>(d.batch * d.accumulation);
  const auto length = static_cast<double>(d.sequence);
  const double products = 6 * matrix_parameters(m) * sequences * length;
  const double attention = 12 * static_cast<double>(m.layers) * sequences * length * length *
                           static_cast<double>(m.heads * (m.head_dim() + m.value_dim())) / 4;
  return products + attention;
}

}  // namespace decoder
