// The job of a tuning: the model, the training, the hardware and the space of layouts, read from
// the two JSON texts of velo_tune and checked, with defaults filled in.
//
// Every key is one line of a table in job.cpp: its path, its member here, its bounds. Unknown keys
// are refused, so that a misspelled one is not taken for its default. Keys name their units;
// members hold bytes, seconds and operations per second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/round_up.hpp"
#include "sched/tune/full_layout.hpp"
#include "velo/sequence_plan.h"
#include "velo/tune.h"

namespace velo::sched::tune {

inline constexpr std::int64_t most_accelerators = 1 << 16, most_kept = 10000;

struct model {
  std::string name = "model";
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t ffn_hidden = 0, vocabulary = 0;
  bool gated = true;             // feed-forwards of three matrices (SwiGLU), else of two
  bool tied_embeddings = false;  // the output shares the embedding's matrix
  bool dropout = false;          // masks are kept
  bool flash_attention = true;   // scores are never stored
  // Multi-head latent attention; kv_rank 0: none. head_dim is then the part without rotation.
  std::int64_t q_rank = 0, kv_rank = 0, rope_dim = 0, value_dim = 0;
  // Mixture of experts; experts 0: none. Layers before first_moe are dense.
  std::int64_t experts = 0, active = 0, expert_hidden = 0, shared_hidden = 0, first_moe = 0;

  bool has_experts(std::int64_t layer) const { return experts > 0 && layer >= first_moe; }
  // Whether sizes must divide. Else ranks have parts of different sizes, and the largest counts.
  bool has_equal_parts() const { return experts > 0 || kv_rank > 0; }

  // Ranks that share the heads have whole heads of keys and all queries of each, or, where they
  // are more than the heads of keys, one of these and as many queries each.
  std::int64_t most_keys(std::int64_t ranks) const { return core::ceil_div(kv_heads, ranks); }
  std::int64_t most_heads(std::int64_t ranks) const {
    return ranks > kv_heads ? heads / ranks : most_keys(ranks) * (heads / kv_heads);
  }
  std::int64_t fewest_heads(std::int64_t ranks) const {
    return ranks > kv_heads ? heads / ranks : kv_heads / ranks * (heads / kv_heads);
  }
};

struct training {
  std::int64_t global_batch = 0, sequence = 0;
  // ZeRO stage. 0: every rank has all optimizer states; 1: they are sharded; 2: gradients, too.
  std::int64_t zero = 1;
  bool fp8 = false;  // products and their kept inputs in 8 bits
  bool sequence_parallel = true;
  std::int64_t parameter_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12;
  double imbalance = 1;  // tokens of the rank with most, over their average, at experts

  std::int64_t zero_of(const full_layout& layout) const {
    return layout.zero < 0 ? zero : layout.zero;
  }
  // Whether the rows between matrices are cut over tensor ranks.
  bool cuts_rows(const full_layout& layout) const {
    if (layout.in_two() || layout.sequence_parallel < 0)
      return layout.in_two() || sequence_parallel;
    return layout.sequence_parallel == 1;
  }
};

struct profile {
  std::string name = "defaults";
  double memory_bytes = 0;  // that a rank may use
  double workspace_bytes = 0, bucket_bytes = 0, group_bytes = 0;
  double matmul_flops = 0, fp8_flops = 0, attention_flops = 0, peak_flops = 0;  // a second
  double memory_rate = 0, intra_rate = 0, inter_rate = 0;                       // bytes a second
  double intra_latency = 0, inter_latency = 0, layer_seconds = 0;
  double tp_overlap = 0, cp_overlap = 1, dp_overlap = 0, fused_overlap = 1;
  std::int64_t per_node = 8;
};

struct space {
  std::vector<std::int32_t> tp, pp, vpp, cp, ep, micro_batch;
  std::vector<std::int32_t> tp_x = {0};                // 0: matrices cut one way
  std::vector<std::int32_t> sequence_splits = {2, 4};  // of SEQ1F1B
  std::vector<std::int32_t> dp;                        // empty: whatever is left
  std::vector<velo_tuning_recompute> recompute;
  std::vector<velo_schedule_kind> kinds;
  std::vector<velo_tuning_split> splits;
  std::vector<velo_sequence_kind> cp_algorithms;
  std::vector<std::int32_t> tp_slices = {1};
  std::vector<std::int32_t> sequence_parallel, zero;  // the training's, if not listed
  std::vector<rearrange> rearranges = {rearrange::index};
  std::int64_t keep = 20;
};

// A key with its value, given or default.
struct assumption {
  std::string path, json;  // "profile.memory_gib", "80"
};

struct job {
  tune::model model;
  tune::training training;
  tune::profile profile;
  tune::space space;
  std::int64_t accelerators = 0;
  std::vector<assumption> assumptions;  // every key, in the order of reading
};

// Throws PARSE, or ARGUMENT naming the member.
job read_job(const velo_tune_desc& desc);

// Names as in the JSON texts.
const char* recompute_name(velo_tuning_recompute recompute);
const char* split_name(velo_tuning_split split);
const char* cp_algorithm_name(velo_sequence_kind algorithm);
const char* rearrange_name(rearrange how);

}  // namespace velo::sched::tune
