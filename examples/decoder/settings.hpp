// All settings of a run with their defaults: the model's shape, the data, the optimizer, the
// schedule, the memory, the stages, and the run itself.
//
// The defaults train 3.3 million parameters for 200 steps of 4096 bytes: about two minutes on two
// ordinary cores. option_table.cpp names, explains and bounds each of them, once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

struct model_settings {
  std::int64_t hidden = 256;  // width of the residual stream
  std::int64_t layers = 4;
  std::int64_t heads = 4;     // query heads; head width = hidden / heads, unless latent
  std::int64_t kv_heads = 2;  // key and value heads, each shared by heads / kv_heads query heads
  // grouped, or latent: queries, keys and values from rows of q_lora_rank and kv_lora_rank
  // elements; a head of queries and keys has elements that are rotated, of keys the same in all
  // heads, and others that are not. q_lora_rank 0: queries from the rows of the stream.
  std::string attention = "grouped";
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  std::int64_t inner = 768;  // width inside the feed-forward block
  std::int64_t vocab = 260;  // 256 bytes and the specials of vocabulary.hpp, padded
  // F: a layer whose number, from 1, is a multiple of F has no keys and values of its own, and
  // attends to those of the layer before it, which has: of two neighbors F >= 2 divides at most one
  // number. 0: each layer has its own.
  std::int64_t kv_share = 0;
  // Experts of each layer, in place of its feed-forward block; 0: none. A token goes to those that
  // the router chooses for it. The first dense_layers layers have a feed-forward block in any case.
  std::int64_t experts = 0;
  std::int64_t dense_layers = 0;
  std::int64_t experts_per_token = 2;
  std::int64_t expert_inner = 0;   // width inside an expert; 0: inner
  std::string router = "softmax";  // the scores by which experts are chosen and weighted
  bool router_normalize = true;    // the weights of a token's experts sum to 1
  double router_scale = 1;         // of these weights
  bool router_bias = false;        // experts are chosen by score + bias, which no gradient changes
  std::int64_t router_groups = 1;  // groups of as many experts, the best of which are chosen from
  std::int64_t router_groups_kept = 1;
  // A feed-forward block for all tokens beside the experts, so many times as wide as one; 0: none.
  std::int64_t shared_experts = 0;
  double balance_loss = 0.01;  // coefficient of each layer's balance loss
  // An expert takes this much times the mean of the choices in training; 0: no choice is dropped.
  double capacity_factor = 0;
  std::string capacity_drop = "probability";  // which choices it keeps; or "position"
  bool capacity_pad = false;                  // it gets exactly as many rows
  bool capacity_by_rank = false;              // each rank has a capacity for its own tokens
  bool tied = false;                          // the head uses the embedding's weights
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  std::string dtype = "bf16";  // of weights and activations

  bool is_latent() const { return attention == "latent"; }
  // Elements of a head of queries and keys, of them those that are rotated, and those of values.
  std::int64_t head_dim() const {
    return is_latent() ? qk_nope_head_dim + qk_rope_head_dim : hidden / heads;
  }
  std::int64_t rotated_dim() const { return is_latent() ? qk_rope_head_dim : head_dim(); }
  std::int64_t value_dim() const { return is_latent() ? v_head_dim : head_dim(); }
  bool has_experts() const { return experts > 0; }
  bool has_capacity() const { return capacity_factor > 0; }
  // Whether a layer, counted from 0, has experts; how many layers have.
  bool has_experts(std::size_t layer) const {
    return has_experts() && static_cast<std::int64_t>(layer) >= dense_layers;
  }
  std::int64_t expert_layers() const { return has_experts() ? layers - dense_layers : 0; }
  std::int64_t expert_width() const { return expert_inner > 0 ? expert_inner : inner; }
  std::int64_t shared_width() const { return shared_experts * expert_width(); }
  // Whether files have the names of Mixtral's weights: its layers are all alike, and have neither a
  // bias nor a shared expert, nor latent attention. Others have the names of GLM-4's and
  // DeepSeek's.
  bool has_mixtrals_layers() const {
    return dense_layers == 0 && shared_experts == 0 && !router_bias && !is_latent();
  }
  // How many of `ranks` that cut the heads have the same head of keys and values.
  std::int64_t ranks_of_key(std::int64_t ranks) const {
    return std::max<std::int64_t>(1, ranks / kv_heads);
  }
  // Whether a layer, counted from 0, attends to the keys and values of the one before it.
  bool shares_keys(std::size_t layer) const {
    return kv_share > 0 && (static_cast<std::int64_t>(layer) + 1) % kv_share == 0;
  }
  std::int64_t sharing_layers() const { return kv_share > 0 ? layers / kv_share : 0; }
  double attention_scale() const { return 1 / std::sqrt(static_cast<double>(head_dim())); }
};

struct data_settings {
  std::vector<std::string> paths = {"/usr/share/common-licenses"};
  std::int64_t sequence = 256;    // bytes a window
  std::int64_t batch = 16;        // windows a micro-batch, of all ranks together
  std::int64_t accumulation = 1;  // micro-batches a step
  std::int64_t validation_bytes = 262144;
  std::string documents = "false";  // "true": files, or "lines"; windows are packed from them

  bool has_documents() const { return documents != "false"; }
  std::int64_t step_tokens() const { return sequence * batch * accumulation; }
};

// The state that a bf16 model keeps in 16 bits, too; each part is f32 without its setting.
struct narrow_settings {
  bool masters = false;    // as residuals of the weights, without loss
  bool moments = false;    // bf16
  bool gradients = false;  // bf16
};

struct optimizer_settings {
  double learning_rate = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices; norms are not decayed
  double clip = 1.0;          // bound of the global gradient norm; 0: none
  narrow_settings narrow;
};

struct schedule_settings {
  std::int64_t steps = 200;
  std::int64_t warmup = 20;
  double final_fraction = 0.05;  // of the learning rate, reached at the last step
};

struct memory_settings {
  std::string recompute = "none";  // the activations that the backward pass recomputes
  std::int64_t recompute_layers = 0;
  bool recompute_layers_per_rank = false;  // counted over all stages of a rank
  std::int64_t recompute_level = 1;  // 2: attention's sum over tensor ranks is kept, not repeated
  // Ranks recompute what experts compute if one of theirs has more rows than so many times the
  // mean; 0: all ranks do.
  double recompute_load = 0;
  bool distribute_saved = false;   // over tensor ranks: the inputs that layers are recomputed from
  std::int64_t memory_budget = 0;  // bytes; 0: none
  std::string swap_activations = "off", swap_optimizer = "off";
  std::string swap_modules = "input_norm,self_attention,post_attention_norm,mlp";
  std::string swap_dir;
  bool plan = false;  // activations lie at the addresses of a memory plan
  std::string memory_trace, memory_snapshot;

  // Rows that are dispatched again come from inputs that wait elsewhere.
  std::string activations_wait_in() const {
    return recompute == "dispatch" && swap_activations == "off" ? "host" : swap_activations;
  }
};

struct parallel_settings {
  std::int64_t tp = 1;             // ranks that each matrix of a layer is cut over
  std::int64_t tp_x = 0;           // of these, in two dimensions; 0: in one
  bool sequence_parallel = false;  // these ranks also share the rows between the matrices
  std::int64_t tp_slices = 0;      // of products beside their exchanges; 0: velo's choice
  std::int64_t cp = 1;             // ranks that each window's rows are cut over
  std::string cp_algorithm = "ring";
  std::int64_t cp_window = 1;        // ranks of an inner window of the ring
  std::int64_t cp_ulysses = 1;       // neighbors of a hybrid that exchange heads
  std::string cp_kv_cache = "none";  // cache of keys and values: none, half or full
  std::int64_t cp_kv_interval = 0;   // layers without that cache between two with it
  bool cp_kv_gather = false;         // ranks that exchange heads get all heads of keys
  std::int64_t ep = 1;   // ranks that a layer's experts are dealt out to, of tp * cp * copies
  std::int64_t etp = 1;  // ranks that each expert is cut over: 1, or tp; 0: tp
  std::string dispatcher = "all_to_all";  // the way of rows to them
  std::int64_t pp = 1;                    // ranks that the layers are dealt out to
  std::string pipeline = "1f1b";          // the kind of schedule
  std::string stage_layers;               // layers of each stage, "0,1,1,3"; empty: evenly
  std::string noop_layers;                // places of this division that hold no layer: "0,7"
  std::int64_t vpp = 0;                   // stages of a rank; 0: as the kind has it
  std::int64_t sequence_splits = 1;       // parts of a window, whose passes seq1f1b orders apart
  std::string timeline;
  bool in_advance = false;       // ripipe recomputes all activations
  bool dw_detach = true;         // dualpipe and dualpipev have I and W apart at the end
  bool nanopipe_swap = false;    // inputs of nanopipe's late W wait in other memory
  bool post_validation = false;  // no step waits for the norm of all ranks' gradients
  // Messages to experts travel beside what is computed: none, shared (of the same pass), or fused
  // (of a forward and a backward pass at once, too).
  std::string expert_overlap = "none";

  std::int64_t ranks_of_copy() const { return tp * cp * pp; }
  bool cuts_experts() const { return etp != 1 && tp > 1; }  // over tensor ranks
  std::int64_t ranks_of_expert() const { return cuts_experts() ? tp : 1; }
  bool in_two() const { return tp_x > 0; }  // tensor parallel in two dimensions
  std::int64_t tp_y() const { return in_two() ? tp / tp_x : 1; }
  std::int64_t ranks_x() const { return in_two() ? tp_x : tp; }  // of those that cut the heads
  // Ranks that attention's rows of a window are cut over.
  std::int64_t attention_ranks() const { return cp * tp_y(); }
};

struct run_settings {
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // of a rank; 0: those of the machine, divided by the ranks
  std::int64_t ranks = 0;    // 0: a launcher's, else one
  std::string transport = "auto";
  std::int64_t timeout = 600;  // seconds that a rank waits for another
  bool zero = false;           // each rank keeps its part of the optimizer's state
  std::string out = "runs/pretrain";
  std::string log;
  bool measure = true;     // the machine's limits, before the first step
  bool operators = false;  // a table of the time by operator, after the last step
  std::string trace, gradients;
  std::string routing_record, routing_replay;  // directories
  std::string expert_picture;                  // file
  std::string profile;                         // directory
  std::int64_t profile_start = 10, profile_end = 12, profile_level = 0;
  std::string profile_ranks = "all";
  std::int64_t log_every = 10;
  std::int64_t save_every = 0;
  std::int64_t save_slice = 4 << 20;  // bytes that ranks gather at a time
  std::int64_t validate_every = 0;
  std::int64_t stop_after = 0;
  std::string sample_prompt = "The ";
  std::int64_t sample_bytes = 400;
  double temperature = 0.8;
  std::int64_t top_k = 40;
};

struct settings {
  model_settings model;
  data_settings data;
  optimizer_settings optimizer;
  schedule_settings schedule;
  memory_settings memory;
  parallel_settings parallel;
  run_settings run;
};

}  // namespace decoder
