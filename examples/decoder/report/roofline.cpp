// The operators of trainer, model, decoder_layer, linear and optimizer, counted.
#include "examples/decoder/report/roofline.hpp"

#include <algorithm>

namespace decoder {
namespace {

class counter {
 public:
  counter(const model_settings& m, const data_settings& d, const narrow_settings& narrow)
      : layers_(static_cast<double>(m.layers)),
        sharing_(static_cast<double>(m.sharing_layers())),
        owning_(layers_ - sharing_),
        micro_batches_(static_cast<double>(d.accumulation)),
        element_(m.dtype == "bf16" ? 2 : 4),
        gradient_(narrow.gradients ? 2 : 4),
        moment_(narrow.moments ? 2 : 4),
        residuals_(narrow.masters),
        tokens_(static_cast<double>(d.batch * d.sequence)),
        hidden_(static_cast<double>(m.hidden)),
        kv_(static_cast<double>(m.kv_heads * m.head_dim())),
        inner_(static_cast<double>(m.inner)),
        vocab_(static_cast<double>(m.vocab)),
        routed_(static_cast<double>(m.expert_layers())),
        dense_(layers_ - routed_),
        shared_(static_cast<double>(m.shared_width())),
        experts_(static_cast<double>(m.experts)),
        width_(static_cast<double>(m.expert_width())),
        rows_(tokens_ * static_cast<double>(m.experts_per_token)),
        queries_(static_cast<double>(m.heads * m.head_dim())),
        values_(static_cast<double>(m.heads * m.value_dim())),
        is_latent_(m.is_latent()),
        query_low_(static_cast<double>(m.q_lora_rank)),
        key_low_(static_cast<double>(m.kv_lora_rank)),
        rotated_(static_cast<double>(m.qk_rope_head_dim)),
        heads_(static_cast<double>(m.heads)),
        expanded_(queries_ - heads_ * rotated_ + values_),
        scores_(static_cast<double>(d.batch * d.sequence * d.sequence) * (queries_ + values_) / 4),
        tables_(m.tied ? 1 : 2) {}

  std::vector<operation> count() {
    whole_step();
    around_layers();
    attention_block();
    feed_forward_blocks();
    if (routed_ > 0) expert_block();
    return std::move(all_);
  }

 private:
  // Once a step, over all weights.
  void whole_step() {
    const double routed = experts_ * (hidden_ + 3 * hidden_ * width_) + 3 * hidden_ * shared_;
    const double of_attention = is_latent_
                                    ? layers_ * latent_elements()
                                    : layers_ * 2 * hidden_ * hidden_ + owning_ * 2 * hidden_ * kv_;
    const double matrices = of_attention + dense_ * 3 * hidden_ * inner_ + routed_ * routed;
    const double packed = matrices + vocab_ * hidden_;
    const double norms = (2 * layers_ + 1) * hidden_ + layers_ * (query_low_ + key_low_);
    const double parameters = matrices + tables_ * vocab_ * hidden_ + norms;
    // Read: gradient, master, both moments; written: all but the gradient, and the bf16 copy, which
    // is a half of a master with a residual.
    const double weight = element_ == 2 && !residuals_ ? 4 + element_ : 4;
    const double adamw_touches = gradient_ + 2 * moment_ + weight;
    const double adamw = adamw_touches + 2 * moment_ + 4;
    const double cleared = gradient_ * parameters;
    add({"clear gradients", 1, 0, cleared, cleared, walk::copy});
    add({"global_norm", 1, 0, cleared, cleared, walk::read});
    add({"apply_fused_adamw", 1, 0, adamw * parameters, adamw_touches * parameters, walk::update});
    const double moved = 2 * element_ * packed;
    add({"pack", 2, 0, moved, moved, walk::copy});  // one for each direction
  }

  void around_layers() {
    const double row = element_ * tokens_ * hidden_, logits = element_ * tokens_ * vocab_;
    const double gathered = std::min(tokens_, vocab_) * hidden_;
    stream("embedding", 1, 2 * row, 2 * row, walk::copy);
    const double added = gradient_ * gathered;
    stream("embedding_backward", 1, row + 2 * added, row + added, walk::update);
    norm(2 * layers_ + 1, row);
    linear(1, hidden_, vocab_);
    stream("cross_entropy", 1, logits, logits, walk::read);
    stream("cross_entropy_backward", 1, 2 * logits, logits, walk::update);
  }

  void norm(double times, double row) {
    stream("rms_norm", times, 2 * row, 2 * row, walk::copy);
    stream("rms_norm_backward", times, 3 * row, 2 * row, walk::update);  // dx where dy was
  }

  void attention_block() {
    const double row = element_ * tokens_ * hidden_, row_kv = element_ * tokens_ * kv_;
    stream("add", layers_, 3 * row, 3 * row, walk::triad);
    stream("add in place", layers_, 3 * row, 2 * row, walk::update);
    if (is_latent_) return latent_attention();
    linear(owning_, hidden_, hidden_ + 2 * kv_);
    linear(sharing_, hidden_, hidden_);
    linear(layers_, hidden_, hidden_);
    rotary(owning_, row + row_kv);  // queries and keys, in place
    rotary(sharing_, row);
    attention(row, row_kv, row_kv);
  }

  // The matrices of latent attention in a layer.
  double latent_elements() const {
    const double queries = query_low_ > 0 ? query_low_ * (hidden_ + queries_) : hidden_ * queries_;
    return queries + hidden_ * (key_low_ + rotated_) + key_low_ * expanded_ + values_ * hidden_;
  }

  void latent_attention() {
    const double row = element_ * tokens_;
    if (query_low_ > 0) {
      linear(layers_, hidden_, query_low_);
      norm(layers_, row * query_low_);
    }
    linear(layers_, query_low_ > 0 ? query_low_ : hidden_, queries_);
    linear(layers_, hidden_, key_low_);
    norm(layers_, row * key_low_);
    linear(layers_, hidden_, rotated_);
    linear(layers_, key_low_, expanded_);
    linear(layers_, values_, hidden_);
    rotary(2 * layers_, row * heads_ * rotated_);  // queries, and keys to all heads
    attention(row * queries_, row * queries_, row * values_);
  }

  // Two products forward; backward four, and one to find the probabilities again. Half of each is
  // masked. The rows: of queries, keys and values; outputs are as wide as the values of all heads.
  void attention(double query, double key, double value) {
    const double out = is_latent_ ? value : query;
    const double forward = query + key + value + out, backward = 2 * forward;
    each_batch({"fusion_attention", layers_, 4 * scores_, forward, forward, walk::triad});
    const auto gradient = [&](double times, double bytes) {
      each_batch({"fusion_attention_backward", times, 10 * scores_, bytes, backward, walk::triad});
    };
    gradient(owning_, backward);
    gradient(sharing_, backward + key + value);  // adds to those that another layer has left
  }

  // Feed-forward blocks of layers without experts, and shared experts, whose outputs and gradients
  // are added to those of the others.
  void feed_forward_blocks() {
    const double row = element_ * tokens_ * hidden_;
    gated(dense_, inner_);
    stream("add", layers_, 3 * row, 3 * row, walk::triad);
    stream("add in place", layers_, 3 * row, 2 * row, walk::update);
    if (shared_ == 0) return;
    gated(routed_, shared_);
    stream("add in place", 2 * routed_, 3 * row, 2 * row, walk::update);
  }

  void gated(double times, double inner) {
    const double wide = element_ * tokens_ * inner;
    linear(times, hidden_, 2 * inner);
    linear(times, inner, hidden_);
    stream("swiglu", times, 3 * wide, 3 * wide, walk::triad);
    stream("swiglu_backward", times, 5 * wide, 3 * wide, walk::update);  // dx where x was
  }

  // Rows of tokens at their experts: `rows` in all, however they are spread.
  void expert_block() {
    const double row = element_ * tokens_ * hidden_, at_experts = element_ * rows_ * hidden_,
                 wide = element_ * rows_ * width_, logits = element_ * tokens_ * experts_;
    linear(routed_, hidden_, experts_);
    stream("topk_router", routed_, logits, logits, walk::read);
    stream("topk_router_backward", routed_, 2 * logits, 2 * logits, walk::copy);
    grouped(hidden_, 2 * width_);
    grouped(width_, hidden_);
    stream("moe_token_permute", routed_, row + at_experts, row + at_experts, walk::copy);
    stream("moe_token_permute_backward", routed_, row + at_experts, row + at_experts, walk::copy);
    stream("moe_token_unpermute", routed_, row + at_experts, row + at_experts, walk::copy);
    stream("moe_token_unpermute_backward", routed_, row + 2 * at_experts, row + 2 * at_experts,
           walk::triad);
    stream("swiglu", routed_, 3 * wide, 3 * wide, walk::triad);
    stream("swiglu_backward", routed_, 5 * wide, 3 * wide, walk::update);
  }

  // A matrix [out, in] of each expert, as linear.
  void grouped(double in, double out) {
    const double flops = 2 * rows_ * in * out, weights = experts_ * in * out;
    const double activations = element_ * rows_ * (in + out);
    const double moved = activations + element_ * weights;
    each_batch({"grouped_matmul", routed_, flops, moved, moved, walk::triad});
    each_batch({"grouped_matmul, input gradient", routed_, flops, moved, moved, walk::triad});
    const double added = gradient_ * weights;
    each_batch({gradient_ == 4 ? "grouped_matmul_add_fp32" : "grouped_matmul, weight gradient",
                routed_, flops, activations + 2 * added, activations + added, walk::update});
  }

  // A matrix [out, in]: the product, and those of both gradients; the weight's is added to.
  void linear(double times, double in, double out) {
    const double flops = 2 * tokens_ * in * out;
    const double activations = element_ * tokens_ * (in + out), weight = element_ * in * out;
    const double moved = activations + weight;
    each_batch({"matmul", times, flops, moved, moved, walk::triad});
    each_batch({"matmul, input gradient", times, flops, moved, moved, walk::triad});
    const double added = gradient_ * in * out;
    each_batch({gradient_ == 4 ? "matmul_add_fp32" : "matmul, weight gradient", times, flops,
                activations + 2 * added, activations + added, walk::update});
  }

  void rotary(double times, double bytes) {
    stream("rotary_position_embedding", times, 2 * bytes, bytes, walk::update);
    stream("rotary_position_embedding_backward", times, 2 * bytes, bytes, walk::update);
  }

  void stream(const char* name, double times, double bytes, double footprint, walk way) {
    each_batch({name, times, 0, bytes, footprint, way});
  }
  void each_batch(operation one) {
    one.times *= micro_batches_;
    add(one);
  }
  void add(const operation& one) {
    if (one.times > 0) all_.push_back(one);
  }

  double layers_, sharing_, owning_;  // all; those without keys of their own; those with them
  double micro_batches_;
  double element_, gradient_, moment_;  // bytes
  bool residuals_;                      // in place of masters
  double tokens_, hidden_, kv_, inner_, vocab_;
  double routed_, dense_;    // layers with experts and without
  double shared_;            // width of a shared expert
  double experts_, width_;   // of a layer, and width inside one
  double rows_;              // of tokens at their experts
  double queries_, values_;  // of all heads
  bool is_latent_;
  double query_low_, key_low_, rotated_, heads_, expanded_;  // of latent attention
  double scores_;  // multiply-adds of one attention product over all heads, the visible half
  double tables_;  // embedding, and head where it has weights of its own
  std::vector<operation> all_;
};

}  // namespace

std::vector<operation> step_operations(const model_settings& model, const data_settings& data,
                                       const narrow_settings& narrow) {
  return counter(model, data, narrow).count();
}

double seconds_of(const operation& one, const machine_rates& machine) {
  const walk_rates& rates = one.footprint <= machine.cache_bytes ? machine.cache : machine.memory;
  return std::max(one.flops / machine.flops, one.bytes / rates[static_cast<std::size_t>(one.way)]);
}

double roofline_seconds(const std::vector<operation>& all, const machine_rates& machine) {
  double seconds = 0;
  for (const operation& one : all) seconds += one.times * seconds_of(one, machine);
  return seconds;
}

}  // namespace decoder
