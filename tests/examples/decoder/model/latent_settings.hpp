// Attention like DeepSeek-V3's, of heads whose widths are all uneven multiples of two.
#pragma once

#include "examples/decoder/settings.hpp"

inline void set_latent_attention(decoder::model_settings& m, bool has_query_rank = true) {
  m.attention = "latent", m.kv_heads = m.heads;
  m.q_lora_rank = has_query_rank ? 20 : 0, m.kv_lora_rank = 12;
  m.qk_nope_head_dim = 10, m.qk_rope_head_dim = 6, m.v_head_dim = 14;
}
