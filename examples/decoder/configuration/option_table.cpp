// The table of settings: section, name, address of the value, explanation, bounds.
#include <limits>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"

namespace decoder {
namespace {

// A bound for counts that have no tighter one; products of two still fit 64 bits.
constexpr double many = 1e9;

// The kinds of schedules that the library names; last the one that is a search among the others.
std::string trained_pipelines() {
  std::string all;
  for (const std::string& kind : pipelines())
    if (kind != "auto") all += kind + ", ";
  return all + "auto";
}

}  // namespace

configuration::configuration() {
  add_model();
  add_data();
  add_training();
  add_memory();
  add_parallel();
  add_run();
}

void configuration::add(const char* section, const char* name, target value, const char* help,
                        double low, double high) {
  options_.push_back({section, name, value, low, high, help});
}

void configuration::add_model() {
  auto& m = values.model;
  add("model", "hidden", &m.hidden, "width of the residual stream", 2, 65536);
  add("model", "layers", &m.layers, "number of decoder layers", 1, 1024);
  add("model", "heads", &m.heads, "query heads; must divide hidden", 1, 1024);
  add("model", "kv_heads", &m.kv_heads, "key and value heads; must divide heads", 1, 1024);
  add("model", "kv_share", &m.kv_share,
      "F: each F-th layer uses the keys and values of the layer before it, and has no weights for "
      "them; 0, or 2 and more; 0: each layer has its own",
      0, 1024);
  add("model", "attention", &m.attention,
      "grouped (heads of hidden / heads elements, kv_heads of keys) or latent (keys and values "
      "from "
      "rows of kv_lora_rank elements)");
  add("model", "q_lora_rank", &m.q_lora_rank,
      "latent: elements of the rows that queries are made from; 0: those of the stream", 0, 65536);
  add("model", "kv_lora_rank", &m.kv_lora_rank,
      "latent: elements of the rows that keys and values are made from", 0, 65536);
  add("model", "qk_nope_head_dim", &m.qk_nope_head_dim,
      "latent: elements of a head of queries and keys that are not rotated", 0, 4096);
  add("model", "qk_rope_head_dim", &m.qk_rope_head_dim,
      "latent: those that are rotated, of keys the same in all heads; even", 0, 4096);
  add("model", "v_head_dim", &m.v_head_dim, "latent: elements of a head of values", 0, 4096);
  add("model", "inner", &m.inner, "width inside the feed-forward block", 1, 1048576);
  add("model", "experts", &m.experts,
      "experts of each layer in place of its feed-forward block, of which a router chooses some "
      "for "
      "each token; 0: none",
      0, 65536);
  add("model", "experts_per_token", &m.experts_per_token, "experts that a token goes to", 1, 65536);
  add("model", "expert_inner", &m.expert_inner, "width inside an expert; 0: inner", 0, 1048576);
  add("model", "dense_layers", &m.dense_layers,
      "so many layers, the first ones, have a feed-forward block in place of experts", 0, 1024);
  add("model", "shared_experts", &m.shared_experts,
      "N: beside the chosen experts each token goes to a feed-forward block N times as wide as "
      "one; "
      "0: none",
      0, 1024);
  add("model", "router", &m.router,
      "scores of a token's experts, of which the largest are chosen: softmax (over all experts) or "
      "sigmoid (of each)");
  add("model", "router_normalize", &m.router_normalize,
      "true: the chosen scores, by which the experts' outputs are weighted, are divided by their "
      "sum");
  add("model", "router_scale", &m.router_scale, "factor of the weights of the experts' outputs", 0,
      1e6);
  add("model", "router_bias", &m.router_bias,
      "true: the largest sums of score and a bias are chosen, which training does not change, "
      "while "
      "weights are scores alone");
  add("model", "router_groups", &m.router_groups,
      "groups of as many experts; a token's are of the groups whose two best scores have the "
      "largest "
      "sums",
      1, 65536);
  add("model", "router_groups_kept", &m.router_groups_kept,
      "groups that a token's experts are chosen from", 1, 65536);
  add("model", "balance_loss", &m.balance_loss,
      "coefficient of the balance loss of each layer, E sum of f p over its E experts: f is an "
      "expert's share of the choices of a micro-batch, p the mean of its scores",
      0, 1e3);
  add_capacity();
  add("model", "vocab", &m.vocab, "symbols: 256 bytes, 3 specials, padding",
      static_cast<double>(vocabulary_size), 1048576);
  add("model", "tied", &m.tied, "true: the head uses the embedding's weights");
  add("model", "rope_theta", &m.rope_theta, "base of the rotary embedding's wavelengths", 1, 1e12);
  add("model", "norm_epsilon", &m.norm_epsilon, "added to the mean square in rms_norm", 0, 1);
  add("model", "dtype", &m.dtype, "of weights and activations: bf16 (with f32 masters) or f32");
}

void configuration::add_capacity() {
  auto& m = values.model;
  add("model", "capacity_factor", &m.capacity_factor,
      "in training an expert takes no more choices of a micro-batch than this much times the mean "
      "of an expert, and others are dropped; 0: none is dropped",
      0, 1e6);
  add("model", "capacity_drop", &m.capacity_drop,
      "which choices an expert keeps: probability (those of the largest weights, of equal ones the "
      "first), position (the first tokens)");
  add("model", "capacity_pad", &m.capacity_pad,
      "true: an expert gets exactly as many rows as its capacity, zeros among them");
  add("model", "capacity_by_rank", &m.capacity_by_rank,
      "true: each rank has a capacity for its own tokens, as in Megatron-LM and DeepSpeed; false: "
      "for those of all ranks, so that the same choices are dropped in any layout");
}

void configuration::add_data() {
  auto& d = values.data;
  add("data", "paths", &d.paths, "file or directory of text; give it again for more");
  add("data", "sequence", &d.sequence, "bytes a window", 2, 1048576);
  add("data", "batch", &d.batch, "windows a micro-batch, of all ranks together", 1, many);
  add("data", "accumulation", &d.accumulation, "micro-batches whose gradients one step sums", 1,
      many);
  add("data", "documents", &d.documents,
      "what attention and positions begin anew with: false (nothing: the files are one text), "
      "true (each file), lines (each line); windows are packed from whole documents, longer ones "
      "are cut, and each ends with a symbol of its own");
  add("data", "validation_bytes", &d.validation_bytes,
      "at most so many bytes of the validation text are used, evenly spread", 1, 1e15);
}

void configuration::add_training() {
  auto& o = values.optimizer;
  add("optimizer", "learning_rate", &o.learning_rate, "AdamW's, at the end of the warm-up", 0, 1e3);
  add("optimizer", "beta1", &o.beta1, "decay of the first moment", 0, 0.999999);
  add("optimizer", "beta2", &o.beta2, "decay of the second moment", 0, 0.999999999);
  add("optimizer", "epsilon", &o.epsilon, "added to the root of the second moment", 0, 1);
  add("optimizer", "weight_decay", &o.weight_decay, "of matrices; norms are not decayed", 0, 1e3);
  add("optimizer", "clip", &o.clip, "bound of the global gradient norm; 0: none", 0, 1e30);
  add("optimizer", "reuse_fp32_param", &o.narrow.masters,
      "true: of a bf16 model's f32 masters only the 16 bits are kept that the weights lack; the "
      "same bits, 2 bytes a parameter less");
  add("optimizer", "o2_optimizer", &o.narrow.moments,
      "true: both moments of a bf16 model are bf16, 4 bytes a parameter less");
  add("optimizer", "o2_gradient", &o.narrow.gradients,
      "true: the gradients of a bf16 model are bf16, 2 bytes a parameter less");
  auto& s = values.schedule;
  add("schedule", "steps", &s.steps, "optimizer steps of the whole run", 1, many);
  add("schedule", "warmup", &s.warmup, "steps over which the learning rate rises", 0, many);
  add("schedule", "final_fraction", &s.final_fraction,
      "of the learning rate, where the cosine decay ends", 0, 1);
}

void configuration::add_memory() {
  auto& y = values.memory;
  add("memory", "recompute", &y.recompute,
      "what the backward pass makes again: none, full (every layer from its input), block (the "
      "first recompute_layers), uniform (groups of recompute_layers), selective (core attention), "
      "activation (the gating's output), norm (the norms' outputs), mlp (the feed-forward block, "
      "from its input), experts (what experts compute from their rows), dispatch (these rows, too, "
      "from inputs that wait in other memory), adaptive (what takes least time within "
      "memory_budget)");
  add("memory", "recompute_layers", &y.recompute_layers,
      "of block, activation, norm, mlp, experts and dispatch the first so many layers of a stage, "
      "0: all; of uniform the size of a group, 0: 1",
      0, 1024);
  add("memory", "recompute_layers_per_rank", &y.recompute_layers_per_rank,
      "true: recompute_layers counts the layers of all stages of a rank: the first ones of the "
      "stages, then the second ones, ..");
  add("memory", "recompute_load", &y.recompute_load,
      "with recompute = experts: only ranks recompute of which an expert has more than so many "
      "times the mean of rows; 0: all",
      0, 1e6);
  add("memory", "recompute_communication_level", &y.recompute_level,
      "of a layer that is recomputed from its input: 1: the last sum over tensor ranks is not "
      "repeated; 2: attention's is not, either, since the layer keeps the rows behind it",
      1, 2);
  add("memory", "distribute_saved_activations", &y.distribute_saved,
      "true: of the inputs from which layers are recomputed each tensor rank keeps its rows; they "
      "are gathered again for the backward pass");
  add("memory", "memory_budget", &y.memory_budget,
      "most bytes for weights, optimizer, activations and scratch; 0: no bound", 0, 1e15);
  add("memory", "swap_activations", &y.swap_activations,
      "where activations wait between their passes: off, host (other memory), disk");
  add("memory", "swap_modules", &y.swap_modules,
      "parts of a layer whose activations wait there, with ',' between: input_norm, "
      "self_attention, post_attention_norm, mlp");
  add("memory", "swap_optimizer", &y.swap_optimizer,
      "where the optimizer's state waits, which is updated in slices: off, host, disk");
  add("memory", "plan", &y.plan,
      "true: what the first step takes and gives back is recorded, and in later ones lies at the "
      "addresses of a plan; the same bits");
  add("memory", "memory_trace", &y.memory_trace,
      "FILE.csv that receives what is allocated and freed until the third step ends, as "
      "velo replay reads it");
  add("memory", "memory_snapshot", &y.memory_snapshot,
      "FILE that receives what the first three steps did to memory: a picture (.svg), or, for "
      "torch's memory viewer, JSON (.json) or a pickle (any other ending)");
  add("memory", "swap_dir", &y.swap_dir,
      "directory, or several with ':' between, of what is on disk");
}

void configuration::add_parallel() {
  auto& p = values.parallel;
  add("parallel", "tp", &p.tp,
      "ranks that each matrix of a layer is cut over; at most kv_heads, or a multiple of it that "
      "divides heads",
      1, 1024);
  add("parallel", "tp_x", &p.tp_x,
      "X cuts each matrix both ways, over X ranks and over Y = tp / X: kv_heads over X, and the "
      "columns of activations over Y; 0: one way, over tp ranks",
      0, 1024);
  add("parallel", "sequence_parallel", &p.sequence_parallel,
      "true: these ranks also share the rows of activations between the matrices, which saves "
      "memory");
  add("parallel", "tp_slices", &p.tp_slices,
      "slices of rows in which their products overlap with the exchanges next to them, where ranks "
      "share memory; 1: one after the other; 0: as velo chooses by the shape",
      0, 1024);
  add("parallel", "cp", &p.cp, "ranks that the rows of each window are cut over", 1, 1024);
  add("parallel", "cp_algorithm", &p.cp_algorithm,
      "how these attend to each other's rows: ring (keys and values go round), ulysses (heads are "
      "exchanged for rows), hybrid (rings of neighbors that exchange heads), all_gather, adaptive "
      "(blocks that see each other, in rounds), hybrid_adaptive");
  add("parallel", "cp_window", &p.cp_window,
      "ranks of a window in a ring of rings, a divisor of the ring and less; 1: one ring", 1, 1024);
  add("parallel", "cp_ulysses", &p.cp_ulysses,
      "neighbors that exchange heads, of a hybrid; a divisor of cp: with 1 hybrid is ring, with cp "
      "it is ulysses",
      1, 1024);
  add("parallel", "cp_kv_cache", &p.cp_kv_cache,
      "cache of keys and values for the gradient: none, half (keys), full (both). A ring caches "
      "those of other ranks; ulysses caches its own and exchanges them again");
  add("parallel", "cp_kv_interval", &p.cp_kv_interval,
      "layers without that cache between two with it: with 1 every second layer has it", 0, 1024);
  add("parallel", "cp_kv_gather", &p.cp_kv_gather,
      "true: ranks that exchange heads get all heads of keys and values, as an all-gather gives "
      "them; false: those that their query heads need");
  add("parallel", "ep", &p.ep,
      "ranks that the experts of a layer are dealt out to, each with as many; a divisor of the "
      "ranks "
      "that share a stage, tp and cp and copies together",
      1, 1024);
  add("parallel", "etp", &p.etp,
      "ranks that each expert is cut over: 1 (an expert is on one rank as a whole), or tp (each "
      "tensor rank has a part of it); 0: tp",
      0, 1024);
  add("parallel", "dispatcher", &p.dispatcher,
      "how rows go to these where ranks do not share memory: all_to_all (one for each choice), "
      "all_gather (all rows to all ranks), all_to_all_sequence (as all_to_all, of tensor ranks "
      "that share rows), hierarchical (one to each host, which passes it on); the same bits");
  add("parallel", "pp", &p.pp,
      "ranks that the model's layers are dealt out to, so that each holds a part; the others are "
      "copies of these",
      1, 1024);
  add("parallel", "pipeline", &p.pipeline,
      ("order in which they work on the micro-batches (accumulation): " + trained_pipelines())
          .c_str());
  add("parallel", "stage_layers", &p.stage_layers,
      "how many layers each stage has, 0 too: \"2,3,3,0\" in the order of the stages, or "
      "\"[[0,1],[1,1],[1,1],[3,0]]\", for each rank those of its stages; empty: evenly");
  add("parallel", "expert_overlap", &p.expert_overlap,
      "messages to experts on other ranks beside what is computed: none; shared: of the same pass, "
      "as the weight gradients of experts; fused: of a forward and a backward pass at once, too, "
      "in "
      "the orders dualpipev and interleaved");
  add("parallel", "noop_layers", &p.noop_layers,
      "places without a layer, \"0,7\", where layers and these are dealt out evenly or by "
      "stage_layers: a stage with such places has fewer layers");
  add("parallel", "vpp", &p.vpp, "parts of the model that a rank has; 0: as the order has it", 0,
      1024);
  add("parallel", "sequence_splits", &p.sequence_splits,
      "parts of each window that go through the stages one after another in the order seq1f1b, 2 "
      "or more; they need not be of equal length",
      1, 1024);
  add("parallel", "timeline", &p.timeline,
      "FILE that receives when each rank did what in the third step: a picture (.svg), or a trace "
      "for Perfetto (any other ending)");
  add("parallel", "in_advance", &p.in_advance,
      "true: ripipe makes all activations again, ahead of the gradients that they wait for; false: "
      "those for which there is no room, where a rank would wait");
  add("parallel", "dw_detach", &p.dw_detach,
      "false: dualpipe and dualpipev compute gradients of inputs and weights at once at the end of "
      "a step, too, which needs less memory");
  add("parallel", "nanopipe_swap", &p.nanopipe_swap,
      "true: what the late weight gradients of nanopipe need waits in other memory");
  add("parallel", "post_validation", &p.post_validation,
      "true: no rank waits for the norm of all gradients; a step that would have been clipped is "
      "rolled back and done again, with the same bits, from a copy of weights and moments");
}

void configuration::add_run() {
  auto& r = values.run;
  add("run", "seed", &r.seed, "of initial weights, window order and sampling", 0,
      static_cast<double>(1LL << 53));
  add("run", "threads", &r.threads,
      "of each rank; 0: all the machine lends, divided by the ranks; results do not depend on it",
      0, 1024);
  add("run", "ranks", &r.ranks,
      "that train together; 0: those that mpirun, torchrun or srun started, else those of the "
      "layout",
      0, 1024);
  add("run", "transport", &r.transport,
      "of ranks that nobody started: local (threads of one process), shm (processes), auto (shm)");
  add("run", "timeout", &r.timeout,
      "seconds that a rank waits for another one; then the run ends and names that rank", 1, 86400);
  add("run", "zero", &r.zero,
      "true: each rank keeps and updates its part of the optimizer's state alone, with the same "
      "bits");
  add("run", "out", &r.out, "directory for checkpoint/ and loss.svg");
  add("run", "log", &r.log, "FILE.jsonl that receives a line a step and a validation");
  add("run", "log_every", &r.log_every, "steps between the lines that stay on the screen", 1, many);
  add("run", "measure", &r.measure,
      "false: the machine's limits are not measured first, which takes a second, and no shares of "
      "them are reported");
  add("run", "operators", &r.operators,
      "true: the run ends with a table of its operators: calls, time, least time at the machine's "
      "limits; of the first rank");
  add("run", "trace", &r.trace, "directory for what another framework needs to repeat the run");
  add("run", "gradients", &r.gradients,
      "FILE.safetensors that receives the gradients of the first step, before they are clipped");
  add("run", "routing_record", &r.routing_record,
      "directory that receives which experts the tokens of each step chose, a safetensors file a "
      "step");
  add("run", "routing_replay", &r.routing_replay,
      "directory of such files, whose choices are taken in place of the router's");
  add("run", "expert_picture", &r.expert_picture,
      "FILE.svg that receives a picture of the choices of each expert, by layer and step");
  add("run", "profile", &r.profile,
      "directory that receives when operators, collectives and passes ran in some steps, as traces "
      "for Perfetto: of each rank, and of all in one");
  add("run", "profile_start", &r.profile_start, "the first step that is profiled", 1, many);
  add("run", "profile_end", &r.profile_end, "the last step that is profiled", 1, many);
  add("run", "profile_level", &r.profile_level,
      "0: times, 1: also kernels' flops and bytes, 2: also waits in queues and for events", 0, 2);
  add("run", "profile_ranks", &r.profile_ranks, "that are profiled: all, or a list like 0,2");
  add("run", "save_every", &r.save_every, "steps between checkpoints; 0: at the end only", 0, many);
  add("run", "save_slice", &r.save_slice,
      "bytes of a tensor that ranks gather at a time when they save it, from 4096 to 2147483648",
      4096, 1LL << 31);
  add("run", "validate_every", &r.validate_every, "steps between validations; 0: at the end only",
      0, many);
  add("run", "stop_after", &r.stop_after, "save and leave after this step; 0: at the end", 0, many);
  add("run", "sample_prompt", &r.sample_prompt,
      "what the text generated after training begins with");
  add("run", "sample_bytes", &r.sample_bytes, "length of generated text", 0, many);
  add("run", "temperature", &r.temperature, "of sampling; 0: always the likeliest byte", 0, 100);
  add("run", "top_k", &r.top_k, "sample among the k likeliest bytes; 0: all", 0, many);
}

}  // namespace decoder
