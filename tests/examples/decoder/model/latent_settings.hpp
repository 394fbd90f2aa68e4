// Attention like DeepSeek-V3's, of heads whose widths are all uneven multiples of two, and norms
// with an odd number of elements, so that files in bf16 have half a word.
#pragma once

#include "examples/decoder/settings.hpp"

inline void set_latent_attention(decoder::model_settings& m, bool has_query_rank = true) {
  m.attention = "latent", m.kv_heads = m.heads;
  m.q_lora_rank = has_query_rank ? 21 : 0, m.kv_lora_rank = 11;
  m.qk_nope_head_dim = 10, m.qk_rope_head_dim = 6, m.v_head_dim = 14;
}
