// Computes the costs of layers. Names: n is the number of a micro-batch's tokens on a rank before
// tensor parallelism, t the number of ranks that share tensors.
#include "sched/tune/layer_costs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sched/tune/context_cost.hpp"

namespace velo::sched::tune {
namespace {

constexpr double element = 2;           // bytes of an activation
constexpr double flash_backward = 2.5;  // of the forward's operations

struct link {
  double rate, latency;
};

// The slowest step of a ring over ranks `stride` apart. Between nodes every member in a node adds
// its own network link.
link link_of(const profile& of, std::int64_t size, std::int64_t stride) {
  if (size * stride <= of.per_node) return {of.intra_rate, of.intra_latency};
  const std::int64_t members =
      std::clamp<std::int64_t>(of.per_node / std::max<std::int64_t>(stride, 1), 1, size);
  return {std::min(of.intra_rate, of.inter_rate * static_cast<double>(members)), of.inter_latency};
}

double hops(std::int64_t size) {
  return std::ceil(std::log2(static_cast<double>(size)));
}

// The time of two all-to-alls of a pass, `bytes` each: links inside a node and between nodes work
// in parallel.
double all_to_all_seconds(const profile& of, std::int64_t size, double bytes) {
  if (size == 1) return 0;
  const auto all = static_cast<double>(size);
  const auto in_node = static_cast<double>(std::min(size, of.per_node));
  const bool far = size > of.per_node;
  const double inside = bytes * (in_node - 1) / all / of.intra_rate;
  const double outside = bytes * (all - in_node) / all / of.inter_rate;
  return 2 * (std::max(inside, outside) + (far ? of.inter_latency : of.intra_latency));
}

// The time in which a rank exchanges `bytes` with the others, an equal part with each.
double pairs_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes) {
  if (size * stride <= of.per_node) return bytes / of.intra_rate + of.intra_latency;
  const auto others = static_cast<double>(size - 1);
  const auto near = static_cast<double>(
      std::clamp<std::int64_t>(of.per_node / std::max<std::int64_t>(stride, 1), 1, size) - 1);
  const double inside = bytes * near / others / of.intra_rate;
  return std::max(inside, bytes * (others - near) / others / of.inter_rate) + of.inter_latency;
}

struct widths {
  explicit widths(const model& m, double t)
      : hidden(static_cast<double>(m.hidden)),
        heads(static_cast<double>(m.heads) / t),
        // A rank has at least one whole head.
        kv_heads(m.kv_rank > 0 ? heads : std::max(static_cast<double>(m.kv_heads) / t, 1.0)),
        query(static_cast<double>(m.head_dim + m.rope_dim)),
        value(static_cast<double>(m.kv_rank > 0 ? m.value_dim : m.head_dim)),
        matrices(m.gated ? 3 : 2) {}

  double hidden, heads, kv_heads;  // of a rank
  double query, value;             // of a head
  double matrices;                 // of a feed-forward
};

// Builds costs: one call each for products, attention, kept tensors and communication.
class builder {
 public:
  builder(const job& training_job, const full_layout& layout)
      : job_(training_job),
        m_(training_job.model),
        profile_(training_job.profile),
        input_bytes_(training_job.training.fp8 ? 1 : element),
        t_(layout.tp),
        cp_(layout.cp),
        ep_(layout.ep),
        neighbors_(neighbors_of(layout)),
        slices_(std::max(layout.tp_slices, 1)),
        tokens_(layout.tokens),
        recompute_(layout.recompute),
        // Tokens inside tensor-parallel blocks, and between them, where tokens are sharded.
        n_(static_cast<double>(layout.micro_batch) *
           static_cast<double>(training_job.training.sequence) / layout.cp),
        between_(training_job.training.sequence_parallel ? n_ / t_ : n_),
        w_(training_job.model, t_) {
    if (cp_ > 1) share_sequence(layout);
  }

  const context_use& context() const { return use_; }
  double context_buffers() const { return context_.buffers; }

  layer_cost dense() {
    begin();
    attention();
    gather_and_scatter();
    whole_feed_forward(static_cast<double>(m_.ffn_hidden) / t_);
    norm_output();  // input of the feed-forward
    gather_and_scatter();
    return layer();
  }

  layer_cost moe() {
    begin();
    attention();
    gather_and_scatter();
    norm_output();
    router();
    experts();
    if (m_.shared_hidden > 0) {
      whole_feed_forward(static_cast<double>(m_.shared_hidden) / t_);
      gather_and_scatter();
    }
    return layer();
  }

  layer_cost embedding() {
    begin();
    cached_.parameters = table();
    if (m_.dropout) kept(between_ * w_.hidden);
    // Rows are read and written, and in the backward accumulated.
    cached_.forward = cached_.weight = 2 * between_ * element * w_.hidden / profile_.memory_rate;
    return cached_;
  }

  layer_cost output() {
    begin();
    const double logits = n_ * static_cast<double>(m_.vocabulary) / t_;
    cached_.parameters = w_.hidden + (m_.tied_embeddings ? 0 : table());
    product(n_, w_.hidden, static_cast<double>(m_.vocabulary) / t_);
    kept(2 * between_ * element * w_.hidden);  // of the norm and of the product
    kept(4 * logits);                          // float32
    element_wise();
    cached_.remade = 4 * logits;  // their gradient
    return cached_;
  }

 private:
  void begin() {
    cached_ = {};
    compute_ = all_to_all_ = remade_core_ = remade_activation_ = remade_cheap_ = 0;
    core_bytes_ = activation_bytes_ = cheap_bytes_ = 0;
  }

  double table() const { return w_.hidden * static_cast<double>(m_.vocabulary) / t_; }

  // narrow: 8 bits if the training says so; for all products but output and router.
  double product(double rows, double inner, double columns, double copies = 1,
                 bool narrow = false) {
    const double operations = 2 * rows * inner * columns;
    const double bytes = element * (rows * inner + copies * inner * columns + rows * columns);
    const bool in_fp8 = narrow && job_.training.fp8;
    const double rate = in_fp8 ? profile_.fp8_flops : profile_.matmul_flops;
    const double seconds = std::max(operations / rate, bytes / profile_.memory_rate);
    cached_.forward += seconds;
    cached_.input += seconds;
    cached_.weight += seconds;
    compute_ += 3 * seconds;
    return seconds;
  }

  // Keeps the output of a norm, the input of a product; it is cheap to recompute.
  void norm_output() {
    const double bytes = between_ * input_bytes_ * w_.hidden;
    kept(bytes);
    cheap(bytes, 2 * bytes / profile_.memory_rate);
  }
  void cheap(double bytes, double seconds) {
    cheap_bytes_ += bytes;
    remade_cheap_ += seconds;
  }

  void kept(double bytes) { cached_.kept += bytes; }

  void attention() {
    const double query = w_.heads * w_.query, key = w_.kv_heads * w_.query;
    const double value = w_.kv_heads * w_.value, out = w_.heads * w_.value;
    kept(between_ * element * 2 * w_.hidden);  // of two norms
    norm_output();                             // input of the projections
    if (m_.kv_rank > 0)
      latent(query, key, value);
    else
      first_product_ = project(w_.hidden, query + key + value);
    last_product_ = project(out, w_.hidden);
    kept(n_ * (element * (query + key + value) + input_bytes_ * out));
    cached_.parameters += 2 * w_.hidden;
    if (m_.dropout) kept(2 * between_ * w_.hidden);  // masks
    core();
  }

  double project(double inner, double columns) {
    cached_.parameters += inner * columns;
    return product(n_, inner, columns, 1, true);
  }

  // Multi-head latent attention (DeepSeek-V2, 2024): queries, keys and values come from narrow
  // vectors, which every rank makes for its own part of the tokens.
  void latent(double query, double key, double value) {
    const auto q = static_cast<double>(m_.q_rank), kv = static_cast<double>(m_.kv_rank);
    const auto rope = static_cast<double>(m_.rope_dim);
    const double narrow = q + kv + rope;
    product(between_, w_.hidden, narrow, 1, true);
    cached_.parameters += w_.hidden * narrow + q + kv;  // with two norms
    const double normed = between_ * input_bytes_ * (q + kv);
    kept(between_ * element * (q + kv + rope) + normed);
    double up = project(q > 0 ? q : w_.hidden, query);
    first_product_ = up;
    // All heads share the rotated part of keys.
    up += project(kv, key - w_.heads * rope + value);
    cheap(normed, 2 * normed / profile_.memory_rate);
    cheap(n_ * element * (query + key + value), up);
  }

  void core() {
    const auto s = static_cast<double>(job_.training.sequence);
    const double cells = cp_ == 1 ? n_ * s * w_.heads / 2 : use_.cells;
    const double seconds = seconds_of_cells(cells);
    cached_.forward += seconds;
    cached_.input += flash_backward * seconds;
    compute_ += (1 + flash_backward) * seconds;
    if (m_.flash_attention) {
      kept(n_ * 4 * w_.heads);  // the logarithm of each row's sum
    } else {
      core_bytes_ = n_ * w_.heads * s * (m_.dropout ? 2 * element + 1 : element);
      kept(core_bytes_);
      remade_core_ = seconds + 2 * core_bytes_ / profile_.memory_rate;
    }
    cached_.forward += use_.forward_exposed;
    cached_.input += use_.gradient_exposed;
    kept(use_.kept_bytes);
  }

  double seconds_of_cells(double cells) const {
    return 2 * cells * (w_.query + w_.value) / profile_.attention_flops;
  }

  static std::int32_t neighbors_of(const full_layout& layout) {
    if (layout.cp_algorithm == VELO_SEQUENCE_ULYSSES) return layout.cp;
    return layout.cp_algorithm == VELO_SEQUENCE_HYBRID ? layout.cp_ulysses : 1;
  }

  // The price of the plan for all sequences of a micro-batch.
  void share_sequence(const full_layout& layout) {
    context_ = context_cost_of({layout.cp_algorithm, cp_, neighbors_, job_.training.sequence,
                                m_.heads / t_, static_cast<std::int64_t>(w_.kv_heads), w_.query,
                                w_.value, element});
    for (auto* pass : {&context_.forward, &context_.gradient})
      for (context_phase& one : *pass) {
        one.cells *= layout.micro_batch;
        one.bytes *= layout.micro_batch;
      }
    context_.buffers *= layout.micro_batch;
    use_.cells = cells_of(context_.forward);
    use_.forward_bytes = bytes_of(context_.forward);
    use_.gradient_bytes = bytes_of(context_.gradient);
    use_.forward_exposed = exposed(context_.forward, 1);
    use_.gradient_exposed = exposed(context_.gradient, flash_backward);
    use_.kept_bytes = context_.kept * layout.micro_batch;
  }

  // work: of a cell, over the forward's.
  double exposed(const std::vector<context_phase>& pass, double work) const {
    double sum = 0;
    for (const context_phase& one : pass) {
      if (one.bytes == 0) continue;
      const double moved = exchange_seconds(one), worked = work * seconds_of_cells(one.cells);
      sum += one.steps * (moved - profile_.cp_overlap * std::min(moved, worked));
    }
    return sum;
  }

  double exchange_seconds(const context_phase& of) const {
    if (of.way == context_way::all) return pairs_seconds(profile_, cp_, t_, of.bytes);
    if (of.way == context_way::neighbors) return pairs_seconds(profile_, neighbors_, t_, of.bytes);
    const link over = link_of(profile_, cp_ / neighbors_, std::int64_t{t_} * neighbors_);
    return of.bytes / over.rate + over.latency;
  }

  // copies: the number of matrices, each for a part of the rows.
  void feed_forward(double rows, double width, double copies) {
    const double outer = m_.gated ? 2 : 1;
    first_product_ = product(rows, w_.hidden, outer * width, copies, true);
    last_product_ = product(rows, width, w_.hidden, copies, true);
    const double one = rows * input_bytes_ * width;
    kept((outer + 1) * one);
    activation_bytes_ += one;
    const double seconds = (outer + 1) * one / profile_.memory_rate;
    remade_activation_ += seconds;
    cheap(one, seconds);
  }

  void whole_feed_forward(double width) {
    feed_forward(n_, width, 1);
    cached_.parameters += w_.matrices * w_.hidden * width;
  }

  void router() {
    const auto experts = static_cast<double>(m_.experts);
    product(between_, w_.hidden, experts);
    cached_.parameters += w_.hidden * experts;
    kept(between_ * 4 * experts);  // probabilities
  }

  void experts() {
    const double tokens = n_ / t_ * static_cast<double>(m_.active) * job_.training.imbalance;
    const double own = static_cast<double>(m_.experts) / ep_;
    kept(tokens * input_bytes_ * w_.hidden);  // what comes in
    // The returned outputs. They are not needed if the router's weights are applied before the last
    // product, which holds if that product's input is recomputed.
    kept(tokens * element * w_.hidden);
    cheap(tokens * element * w_.hidden, 0);
    feed_forward(tokens, static_cast<double>(m_.expert_hidden), own);
    if (tokens_ == rearrange::one_hot) rearrange_by_products(tokens);
    cached_.expert_parameters =
        own * w_.matrices * w_.hidden * static_cast<double>(m_.expert_hidden);
    // Tokens leave in the bytes of a product's input and return in those of a sum.
    const double seconds =
        all_to_all_seconds(profile_, ep_, tokens * (input_bytes_ + element) / 2 * w_.hidden);
    cached_.forward += seconds;
    cached_.input += seconds;
    all_to_all_ += 2 * seconds;
  }

  // Tokens to their places and back by two products with a matrix of zeros and ones, a place for
  // each choice. The second one's gradient to the router's weights is another product.
  void rearrange_by_products(double places) {
    const double rows = n_ / t_;
    const double seconds =
        std::max(2 * places * rows * w_.hidden / profile_.matmul_flops,
                 element * (places * rows + (places + rows) * w_.hidden) / profile_.memory_rate);
    kept(places * rows * element);
    cached_.forward += 2 * seconds;
    cached_.input += 3 * seconds;
    compute_ += 5 * seconds;
  }

  // A gather before the block that was just made and a scatter behind it, in the forward and in the
  // backward, where they change places. Without sequence parallelism one sum is next to a product.
  void gather_and_scatter() {
    double seconds = 0;
    if (job_.training.sequence_parallel || slices_ == 1)
      seconds = exposed_beside(first_product_, 1) + exposed_beside(last_product_, 1);
    else
      seconds = exposed_beside(std::min(first_product_, last_product_), 2);
    seconds *= 1 - profile_.tp_overlap;
    cached_.forward += seconds;
    cached_.input += seconds;
  }

  // Seconds that a product does not hide of so many exchanges of all rows.
  double exposed_beside(double product, double exchanges) const {
    if (t_ == 1) return 0;
    const double bytes = exchanges * n_ * element * w_.hidden;
    const double latency = collective_seconds(profile_, t_, 1, 0);
    const double moved =
        collective_seconds(profile_, t_, 1, bytes) + (exchanges * slices_ - 1) * latency;
    return moved / slices_ + std::max(moved - product, 0.0) * (slices_ - 1) / slices_;
  }

  void element_wise() {
    const double seconds = 2 * cached_.kept / profile_.memory_rate;
    cached_.forward += seconds;
    cached_.input += seconds;
  }

  // The end of all layers: element-wise work, launches, recomputation.
  layer_cost layer() {
    element_wise();
    cached_.forward += profile_.layer_seconds;
    cached_.input += profile_.layer_seconds;
    cached_.weight += profile_.layer_seconds;
    cached_.hidden = profile_.fused_overlap * std::min(all_to_all_, compute_);
    switch (recompute_) {
      case VELO_TUNING_RECOMPUTE_CORE:
        remake(core_bytes_, remade_core_);
        break;
      case VELO_TUNING_RECOMPUTE_ACTIVATION:
        remake(activation_bytes_, remade_activation_);
        break;
      case VELO_TUNING_RECOMPUTE_NORMS:
        remake(cheap_bytes_, remade_cheap_);
        break;
      case VELO_TUNING_RECOMPUTE_FULL:
        remake(cached_.kept - between_ * element * w_.hidden, cached_.forward);
        break;
      default:
        break;
    }
    return cached_;
  }

  void remake(double bytes, double seconds) {
    cached_.kept -= bytes;
    cached_.remade = bytes;
    cached_.input += seconds;
  }

  const job& job_;
  const model& m_;
  const profile& profile_;
  const double input_bytes_;  // of an element that a product keeps
  const std::int32_t t_, cp_, ep_, neighbors_, slices_;
  const rearrange tokens_;
  const velo_tuning_recompute recompute_;
  const double n_, between_;
  const widths w_;

  context_cost context_;
  context_use use_;
  layer_cost cached_;
  double compute_ = 0, all_to_all_ = 0;
  double core_bytes_ = 0, activation_bytes_ = 0, remade_core_ = 0, remade_activation_ = 0;
  double cheap_bytes_ = 0, remade_cheap_ = 0;
  double first_product_ = 0, last_product_ = 0;  // seconds, of the block made last
};

}  // namespace

layer_cost& layer_cost::operator+=(const layer_cost& more) {
  forward += more.forward;
  input += more.input;
  weight += more.weight;
  hidden += more.hidden;
  kept += more.kept;
  remade = std::max(remade, more.remade);
  parameters += more.parameters;
  expert_parameters += more.expert_parameters;
  return *this;
}

bool layer_costs::covers(const layer_costs& other) const {
  const auto each = [](const layer_cost& a, const layer_cost& b) {
    return a.forward <= b.forward && a.input <= b.input && a.weight <= b.weight &&
           a.hidden >= b.hidden && a.kept <= b.kept && a.remade <= b.remade;
  };
  return each(dense, other.dense) && each(moe, other.moe) && gathered_bytes <= other.gathered_bytes;
}

double collective_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes) {
  if (size == 1) return 0;
  const link over = link_of(of, size, stride);
  const auto all = static_cast<double>(size);
  return bytes * (all - 1) / all / over.rate + hops(size) * over.latency;
}

layer_costs layer_costs_of(const job& training_job, const full_layout& layout) {
  builder make(training_job, layout);
  layer_costs result;
  result.context = make.context();
  result.dense = make.dense();
  if (training_job.model.experts > 0) result.moe = make.moe();
  result.embedding = make.embedding();
  result.output = make.output();

  const model& m = training_job.model;
  const double n = static_cast<double>(layout.micro_batch) *
                   static_cast<double>(training_job.training.sequence) / layout.cp;
  const double whole = n * element * static_cast<double>(m.hidden);
  result.message_bytes = training_job.training.sequence_parallel ? whole / layout.tp : whole;
  const std::int64_t below = std::int64_t{layout.tp} * layout.cp * layout.dp;
  const link over = link_of(training_job.profile, layout.pp, below);
  // A message uses one link.
  const double rate = layout.pp * below <= training_job.profile.per_node
                          ? over.rate
                          : training_job.profile.inter_rate;
  result.message_seconds = result.message_bytes / rate + over.latency;

  if (layout.tp > 1) result.gathered_bytes += whole;
  result.gathered_bytes += make.context_buffers();
  if (layout.ep > 1)
    result.gathered_bytes +=
        2 * whole / layout.tp * static_cast<double>(m.active) * training_job.training.imbalance;
  return result;
}

namespace {

// A layout with everything on one rank.
velo_tuning_layout uncut() {
  velo_tuning_layout one{};
  one.tp = one.pp = one.vpp = one.dp = one.cp = one.ep = one.micro_batch = 1;
  return one;
}

// A job whose seconds are operations.
job counted(const model& of) {
  job alone;
  alone.model = of;
  alone.profile.matmul_flops = alone.profile.attention_flops = 1;
  alone.profile.memory_rate = std::numeric_limits<double>::infinity();
  return alone;
}

}  // namespace

double parameters_of(const model& of) {
  job alone = counted(of);
  alone.training.sequence = 1;
  const layer_costs all = layer_costs_of(alone, uncut());
  double sum = all.embedding.parameters + all.output.parameters;
  for (std::int64_t i = 0; i < of.layers; ++i) {
    const layer_cost& layer = all.layer(of, i);
    sum += layer.parameters + layer.expert_parameters;
  }
  return sum;
}

double operations_of(const job& training_job) {
  job alone = counted(training_job.model);
  alone.training.sequence = training_job.training.sequence;
  const layer_costs all = layer_costs_of(alone, uncut());
  double forward = all.output.forward;
  for (std::int64_t i = 0; i < training_job.model.layers; ++i)
    forward += all.layer(training_job.model, i).forward;
  return 3 * forward * static_cast<double>(training_job.training.global_batch);
}

}  // namespace velo::sched::tune
