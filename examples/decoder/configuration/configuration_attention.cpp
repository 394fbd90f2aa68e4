// Refuses settings of heads that contradict each other, and those that latent attention does not
// have.
#include <string>

#include "examples/decoder/configuration/configuration.hpp"

namespace decoder {

void configuration::check_attention() const {
  const auto& m = values.model;
  const auto& p = values.parallel;
  if (m.attention != "grouped" && m.attention != "latent")
    refuse("attention", "must be grouped or latent");
  if (!m.is_latent()) {
    for (const char* name :
         {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
      require_unset(name, "is of latent attention, not with", "attention");
    if (m.hidden % m.heads) refuse("hidden", "must be a multiple of", "heads");
    if (m.heads % m.kv_heads) refuse("heads", "must be a multiple of", "kv_heads");
    if (m.head_dim() % 2)
      refuse("hidden", "divided by heads must be even for the rotary embedding;", "heads");
    return;
  }
  if (m.kv_heads != m.heads)
    refuse("kv_heads", "must be as many as the heads of latent attention,", "heads");
  const std::pair<const char*, std::int64_t> sizes[] = {{"kv_lora_rank", m.kv_lora_rank},
                                                        {"qk_nope_head_dim", m.qk_nope_head_dim},
                                                        {"qk_rope_head_dim", m.qk_rope_head_dim},
                                                        {"v_head_dim", m.v_head_dim}};
  for (const auto& [name, size] : sizes)
    if (size == 0) refuse(name, "must be 1 or more with", "attention");
  if (m.qk_rope_head_dim % 2) refuse("qk_rope_head_dim", "must be even for the rotary embedding");
  if (m.kv_share != 0)
    refuse("kv_share", "is of heads with keys of their own, not with", "attention");
  if (p.in_two())
    refuse("tp_x", "cuts the columns of rows, which matrices of low rank need whole, so not with",
           "attention");
  if (p.pp > 1 && p.pipeline == "seq1f1b")
    refuse("pipeline", "keeps keys and values of one width, so not with", "attention");
}

}  // namespace decoder
