// Computes the costs of layers. Names: n is the number of a micro-batch's tokens on a rank before
// tensor parallelism, t the number of ranks that share tensors, x and y those of its two
// dimensions; with one dimension x is t and y is 1. Where a number of ranks does not divide what
// they share, the largest part counts.
#include "sched/tune/layer_costs.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "sched/tune/context_cost.hpp"
#include "sched/tune/exchange_seconds.hpp"
#include "sched/tune/tensor_exchange.hpp"

namespace velo::sched::tune {
namespace {

constexpr double flash_backward = 2.5;  // of the forward's operations

// Bytes of an activation.
double element_of(const job& of) {
  return of.training.parameter_bytes >= 4 ? 4 : 2;
}

double part_of(std::int64_t all, std::int64_t ranks) {
  return static_cast<double>(core::ceil_div(all, ranks));
}

// Tokens of a micro-batch on the fullest rank, before tensor parallelism.
std::int64_t tokens_of(const job& of, const full_layout& layout) {
  const std::int64_t rows = core::ceil_div<std::int64_t>(of.training.sequence, layout.splits());
  return layout.micro_batch * core::ceil_div<std::int64_t>(rows, layout.cp);
}

struct widths {
  widths(const model& m, std::int32_t x, std::int32_t y)
      : hidden(part_of(m.hidden, y)),
        heads(static_cast<double>(m.most_heads(x))),
        kv_heads(m.kv_rank > 0 ? heads : static_cast<double>(m.most_keys(x))),
        query(static_cast<double>(m.head_dim + m.rope_dim)),
        value(static_cast<double>(m.kv_rank > 0 ? m.value_dim : m.head_dim)),
        matrices(m.gated ? 3 : 2) {}

  double hidden, heads, kv_heads;  // of a rank, of its matrices
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
        element_(element_of(training_job)),
        input_bytes_(training_job.training.fp8 ? 1 : element_),
        t_(layout.tp),
        x_(layout.ranks_x()),
        y_(layout.ranks_y()),
        in_two_(layout.in_two()),
        splits_(layout.splits()),
        cp_(layout.attention_ranks()),
        ep_(layout.ep),
        neighbors_(neighbors_of(layout)),
        slices_(std::max(layout.tp_slices, 1)),
        tokens_(layout.tokens),
        recompute_(layout.recompute),
        // Tokens of a product, those between two matrices of a block, and those between blocks.
        n_(static_cast<double>(tokens_of(training_job, layout))),
        inside_(part_of(tokens_of(training_job, layout), y_)),
        shares_rows_(training_job.training.cuts_rows(layout)),
        between_(shares_rows_ ? part_of(tokens_of(training_job, layout), x_) : n_),
        w_(training_job.model, x_, y_) {
    if (cp_ > 1) share_sequence(layout);
  }

  const context_use& context() const { return use_; }
  const tensor_use& tensor() const { return moved_; }
  // Bytes of the widest product of a block, before it is summed along y.
  double widest() const { return in_two_ && y_ > 1 ? n_ * element_ * widest_ : 0; }
  double context_buffers() const { return context_.buffers; }
  // Bytes of the rows that a rank sends from stage to stage, and of all rows that it gathers.
  double stream() const { return between_ * element_ * w_.hidden; }
  double gathered() const { return n_ * element_ * w_.hidden; }

  layer_cost dense() {
    begin();
    attention();
    gather_and_scatter();
    whole_feed_forward(part_of(m_.ffn_hidden, x_));
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
    cached_.forward = cached_.weight = 2 * between_ * element_ * w_.hidden / profile_.memory_rate;
    return cached_;
  }

  layer_cost output() {
    begin();
    const double symbols = part_of(m_.vocabulary, x_), logits = inside_ * symbols;
    cached_.parameters = w_.hidden + (m_.tied_embeddings ? 0 : table());
    product(n_, w_.hidden, symbols);
    if (in_two_) {  // scattered along y; gathered for either gradient
      const double seconds = collective_seconds(profile_, y_, x_, n_ * element_ * symbols);
      cached_.forward += seconds;
      cached_.input += seconds;
      cached_.weight += seconds;
    }
    kept(2 * between_ * element_ * w_.hidden);  // of the norm and of the product
    kept(4 * logits);                           // float32
    element_wise();
    cached_.remade = 4 * logits;  // their gradient
    return cached_;
  }

 private:
  void begin() {
    cached_ = {};
    moved_ = {};
    compute_ = all_to_all_ = remade_core_ = remade_activation_ = remade_cheap_ = 0;
    core_bytes_ = activation_bytes_ = cheap_bytes_ = 0;
  }

  double table() const { return w_.hidden * part_of(m_.vocabulary, x_); }

  // narrow: 8 bits if the training says so; for all products but output and router.
  double product(double rows, double inner, double columns, double copies = 1,
                 bool narrow = false) {
    const double operations = 2 * rows * inner * columns;
    const double bytes = element_ * (rows * inner + copies * inner * columns + rows * columns);
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
    kept(between_ * element_ * 2 * w_.hidden);  // of two norms
    norm_output();                              // input of the projections
    if (m_.kv_rank > 0)
      latent(query, key, value);
    else
      first_product_ = project(w_.hidden, query + key + value);
    last_product_ = project(out, w_.hidden);
    first_width_ = query + key + value;
    last_width_ = out;
    kept(inside_ * (element_ * (query + key + value) + input_bytes_ * out));
    if (splits_ > 1) share_keys(key + value);
    cached_.parameters += 2 * w_.hidden;
    if (m_.dropout) kept(2 * between_ * w_.hidden);  // masks
    core();
  }

  // Keys and values exist from a micro-batch's first split to its last, and their gradients back to
  // the first: more than its splits hold each at a time, and where ranks share sequences of more
  // rows than their own. Neither is made again.
  void share_keys(double columns) {
    keys_bytes_ = inside_ * element_ * columns;
    const double of_split = cp_ == 1 ? keys_bytes_ : context_.all_keys;
    constexpr double of_gradient = 4;  // float32
    cached_.shared = (1 + of_gradient / element_) * splits_ * of_split - keys_bytes_;
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
    kept(between_ * element_ * (q + kv + rope) + normed);
    double up = project(q > 0 ? q : w_.hidden, query);
    first_product_ = up;
    // All heads share the rotated part of keys.
    up += project(kv, key - w_.heads * rope + value);
    cheap(normed, 2 * normed / profile_.memory_rate);
    cheap(n_ * element_ * (query + key + value), up);
  }

  void core() {
    const auto s = static_cast<double>(job_.training.sequence);
    const double cells = cp_ == 1 ? n_ * s * w_.heads / 2 : use_.cells;
    const double seconds = seconds_of_cells(cells);
    cached_.forward += seconds;
    cached_.input += flash_backward * seconds;
    compute_ += (1 + flash_backward) * seconds;
    if (m_.flash_attention) {
      kept(inside_ * 4 * w_.heads);  // the logarithm of each row's sum
    } else {
      core_bytes_ = inside_ * w_.heads * s * (m_.dropout ? 2 * element_ + 1 : element_);
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
    if (layout.cp_algorithm == VELO_SEQUENCE_ULYSSES) return layout.attention_ranks();
    return layout.cp_algorithm == VELO_SEQUENCE_HYBRID ? layout.cp_ulysses : 1;
  }

  // The price of the plan for all sequences of a micro-batch, or for a split of them.
  void share_sequence(const full_layout& layout) {
    context_ = context_cost_of({layout.cp_algorithm, cp_, neighbors_, job_.training.sequence,
                                static_cast<std::int64_t>(w_.heads),
                                static_cast<std::int64_t>(w_.kv_heads), w_.query, w_.value,
                                element_, splits_ > 1});
    const double sequences = static_cast<double>(layout.micro_batch) / splits_;
    for (auto* pass : {&context_.forward, &context_.gradient})
      for (context_phase& one : *pass) {
        one.cells *= sequences;
        one.bytes *= sequences;
      }
    context_.buffers *= sequences;
    context_.all_keys *= sequences;
    use_.cells = cells_of(context_.forward);
    use_.forward_bytes = bytes_of(context_.forward);
    use_.gradient_bytes = bytes_of(context_.gradient);
    use_.forward_exposed = exposed(context_.forward, 1);
    use_.gradient_exposed = exposed(context_.gradient, flash_backward);
    use_.kept_bytes = context_.kept * sequences;
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
    if (of.way == context_way::all) return pairs_seconds(profile_, cp_, x_, of.bytes);
    if (of.way == context_way::neighbors) return pairs_seconds(profile_, neighbors_, x_, of.bytes);
    const link over = link_of(profile_, cp_ / neighbors_, std::int64_t{x_} * neighbors_);
    return of.bytes / over.rate + over.latency;
  }

  // copies: the number of matrices, each for a part of the rows.
  void feed_forward(double rows, double width, double copies) {
    const double outer = m_.gated ? 2 : 1;
    first_product_ = product(rows, w_.hidden, outer * width, copies, true);
    last_product_ = product(rows, width, w_.hidden, copies, true);
    first_width_ = outer * width;
    last_width_ = width;
    const double one = rows / y_ * input_bytes_ * width;
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
    kept(tokens * element_ * w_.hidden);
    cheap(tokens * element_ * w_.hidden, 0);
    feed_forward(tokens, static_cast<double>(m_.expert_hidden), own);
    if (tokens_ == rearrange::one_hot) rearrange_by_products(tokens);
    cached_.expert_parameters =
        own * w_.matrices * w_.hidden * static_cast<double>(m_.expert_hidden);
    // Tokens leave in the bytes of a product's input and return in those of a sum.
    const double seconds =
        all_to_all_seconds(profile_, ep_, tokens * (input_bytes_ + element_) / 2 * w_.hidden);
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
                 element_ * (places * rows + (places + rows) * w_.hidden) / profile_.memory_rate);
    kept(places * rows * element_);
    cached_.forward += 2 * seconds;
    cached_.input += 3 * seconds;
    compute_ += 5 * seconds;
  }

  // A gather before the block that was just made and a scatter behind it, in the forward and in the
  // backward, where they change places. The scatter of the backward then travels with another
  // gather of the block's input, for the weight's gradient. Without sequence parallelism one sum is
  // next to a product, and every rank has the input.
  void gather_and_scatter() {
    if (in_two_) return exchange_both_ways();
    const double exposed = 1 - profile_.tp_overlap;
    if (shares_rows_) {
      const double last = exposed_beside(last_product_, 1);
      cached_.forward += exposed * (exposed_beside(first_product_, 1) + last);
      cached_.input += exposed * (exposed_beside(first_product_, 2) + last);
      return;
    }
    const double sum = slices_ == 1
                           ? exposed_beside(first_product_, 1) + exposed_beside(last_product_, 1)
                           : exposed_beside(std::min(first_product_, last_product_), 2);
    cached_.forward += exposed * sum;
    cached_.input += exposed * sum;
  }

  // Seconds that a product does not hide of so many exchanges of all rows.
  double exposed_beside(double product, double exchanges) const {
    if (t_ == 1) return 0;
    const double bytes = exchanges * n_ * element_ * w_.hidden;
    const double latency = collective_seconds(profile_, t_, 1, 0);
    const double moved =
        collective_seconds(profile_, t_, 1, bytes) + (exchanges * slices_ - 1) * latency;
    return moved / slices_ + std::max(moved - product, 0.0) * (slices_ - 1) / slices_;
  }

  void exchange_both_ways() {
    const tensor_use use = exchanged_both_ways(
        profile_, {x_, y_, n_ * element_, between_, w_.hidden, first_width_, last_width_});
    cached_.forward += use.forward_seconds * (1 - profile_.tp_overlap);
    cached_.input += use.gradient_seconds * (1 - profile_.tp_overlap);
    moved_ += use;
    widest_ = std::max({widest_, first_width_, last_width_});
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
        remake(cached_.kept - between_ * element_ * w_.hidden - keys_bytes_, cached_.forward);
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
  const double element_;      // bytes of an activation
  const double input_bytes_;  // of an element that a product keeps
  const std::int32_t t_, x_, y_;
  const bool in_two_;
  const std::int32_t splits_, cp_, ep_, neighbors_, slices_;
  const rearrange tokens_;
  const velo_tuning_recompute recompute_;
  const double n_, inside_;
  const bool shares_rows_;
  const double between_;
  const widths w_;

  context_cost context_;
  context_use use_;
  tensor_use moved_;
  layer_cost cached_;
  double compute_ = 0, all_to_all_ = 0;
  double core_bytes_ = 0, activation_bytes_ = 0, remade_core_ = 0, remade_activation_ = 0;
  double cheap_bytes_ = 0, remade_cheap_ = 0;
  double first_product_ = 0, last_product_ = 0;  // seconds, of the block made last
  double first_width_ = 0, last_width_ = 0;      // of their outputs and inputs on a rank
  double widest_ = 0;                            // of all blocks
  double keys_bytes_ = 0;                        // of a split's keys and values
};

}  // namespace

layer_cost& layer_cost::operator+=(const layer_cost& more) {
  forward += more.forward;
  input += more.input;
  weight += more.weight;
  hidden += more.hidden;
  kept += more.kept;
  remade = std::max(remade, more.remade);
  shared += more.shared;
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

layer_costs layer_costs_of(const job& training_job, const full_layout& layout) {
  builder make(training_job, layout);
  layer_costs result;
  result.context = make.context();
  result.dense = make.dense();
  result.tensor = make.tensor();
  if (training_job.model.experts > 0) result.moe = make.moe();
  result.embedding = make.embedding();
  result.output = make.output();

  const model& m = training_job.model;
  result.message_bytes = make.stream();
  const std::int64_t below = std::int64_t{layout.tp} * layout.cp * layout.dp;
  const link over = link_of(training_job.profile, layout.pp, below);
  // A message uses one link.
  const double rate = layout.pp * below <= training_job.profile.per_node
                          ? over.rate
                          : training_job.profile.inter_rate;
  result.message_seconds = result.message_bytes / rate + over.latency;

  if (layout.tp > 1) result.gathered_bytes += make.gathered() + make.widest();
  result.gathered_bytes += make.context_buffers();
  if (layout.ep > 1)
    result.gathered_bytes += 2 * make.gathered() / layout.tp * static_cast<double>(m.active) *
                             training_job.training.imbalance;
  return result;
}

}  // namespace velo::sched::tune
