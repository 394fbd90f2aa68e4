// The forward pass: the embedding, the layers, the head and the loss.
#include "examples/decoder/model/model.hpp"

#include <numeric>
#include <utility>

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/model/overlap/layer_overlap.hpp"
#include "examples/decoder/model/saved_rows.hpp"
#include "examples/decoder/model/shared_rows.hpp"
#include "examples/decoder/parallel/data_parallel.hpp"

namespace decoder {

model::model(run_memory& from, const velo::context& context, const weights& weights,
             const model_settings& settings, std::int64_t length, bool training)
    : model(from, context, weights, settings, std::make_shared<model_parallel>(length), training,
            {0, static_cast<std::size_t>(settings.layers), true, true}) {}

model::model(run_memory& from, const velo::context& context, const weights& weights,
             const model_settings& settings, std::shared_ptr<const model_parallel> parallel,
             bool training, stage_range part)
    : memory_(from),
      settings_(settings),
      part_(weights.layout().widths),
      parallel_(std::move(parallel)),
      type_(dtype_of(weights.type())),
      first_(part.first),
      begins_(part.begins),
      ends_(part.ends),
      recompute_(recompute_of({}, static_cast<std::int64_t>(part.count()))),
      depth_(recompute_.size()),
      angles_(from, settings, parallel_->context.of_window().rows.positions()) {
  const weight_layout& at = weights.layout();
  for (std::size_t i = part.first; i < part.last; ++i)
    layers_.emplace_back(context, weights, settings, at.layers[i], training,
                         parallel_->context.keys_of(i), parallel_->experts, i);
  const velo::sizes table = {part_.vocab, part_.hidden};
  if (begins_) embedding_ = weights.weight(at.embedding, table);
  if (ends_) {
    head_.emplace(context, weights, at.head, part_.vocab, part_.hidden, training);
    gain_ = weights.weight(at.final_norm, {part_.hidden});
  }
  if (!training) return;
  if (begins_) embedding_gradient_ = weights.gradient(at.embedding, table);
  if (ends_) gain_gradient_ = weights.gradient(at.final_norm, {part_.hidden});
}

void model::refresh(const velo::stream_ref& stream, const data_parallel* gathered) {
  gathered_ = gathered;
  packed_ = 0;
  head_packed_ = false;
  if (gathered == nullptr) complete(stream);
}

void model::complete(const velo::stream_ref& stream) {
  require_embedding();
  require_layers(stream, layers_.size());
  require_head(stream);
  gathered_ = nullptr;
}

void model::require_embedding() {
  if (gathered_ == nullptr || packed_ > 0) return;
  gathered_->await_norms();
  if (begins_) gathered_->await_embedding();
}

// Packs the first `count` layers.
void model::require_layers(const velo::stream_ref& stream, std::size_t count) {
  for (; packed_ < count; ++packed_) {
    if (gathered_ != nullptr) gathered_->await_layer(first_ + packed_);
    layers_[packed_].refresh(stream);
  }
}

void model::require_head(const velo::stream_ref& stream) {
  if (!ends_ || head_packed_) return;
  if (gathered_ != nullptr) gathered_->await_head();
  head_->refresh(stream);
  head_packed_ = true;
}

pass model::begin(const velo::stream_ref& stream, const activations& of) const {
  const batch_shape room = of.room(memory_.is_dry_run());
  const packed_documents* documents = of.documents ? &*of.documents : nullptr;
  return {stream,   memory_,     angles_,    *parallel_,     of.batch(), room,    documents,
          of.split, of.inputs(), of.choices, of.first_token, of.limits,  of.loads};
}

velo::tensor_view model::stream(const pass& now, const buffer& of) const {
  return {of.data(), type_, {now.rows(), part_.hidden}};
}
velo::tensor_view model::logits(const pass& now, const activations& of) const {
  return {of.logits.data(), type_, {now.batch.tokens(), part_.vocab}};
}
velo::tensor_view model::floats(const buffer& of, std::int64_t count) const {
  return {of.floats(), {count}};
}

buffer model::make(std::int64_t elements) const {
  return memory_.take(elements * (type_.bits / 8), VELO_PURPOSE_ACTIVATION);
}
buffer model::make_stream(const pass& now) const {
  return make(now.room_of_rows() * part_.hidden);
}
buffer model::make_floats(std::int64_t count) const {
  return memory_.take(count * 4, VELO_PURPOSE_ACTIVATION);
}

velo::tensor_view model::forward(const velo::stream_ref& stream, activations& of,
                                 std::int64_t sequences, bool alone) {
  forward_stage(stream, of, sequences, {}, alone ? kept::nothing : kept::all);
  return logits(begin(stream, of), of);
}

buffer model::forward_stage(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                            buffer input, kept what) {
  if (parallel_->overlap != nullptr) {
    const forward_parts parts = begin_forward(stream, of, sequences, std::move(input), what);
    parallel_->overlap->run(stream, {this, &parts}, {});
    return end_forward(parts);
  }
  of.clear();  // a forward pass without a backward pass leaves buffers
  of.sequences = sequences;
  const pass now = begin(stream, of);
  begin_layers(now, of, std::move(input));
  for (std::size_t i = 0; i < depth_; ++i) {
    if (gathered_ != nullptr) require_layers(stream, i + 1);
    layer_forward(now, of, i, what);
  }
  return end_layers(now, of, what);
}

void model::begin_layers(const pass& now, activations& of, buffer input) {
  if (gathered_ != nullptr) require_embedding();
  if (begins_) {
    of.residual[0] = make_stream(now);
    embed(now, of);
  } else {
    of.residual[0] = std::move(input);
  }
}

buffer model::end_layers(const pass& now, activations& of, kept what) {
  if (!ends_) return handed_on(now, std::move(of.residual[depth_]), depth_ > 0 || begins_);
  if (gathered_ != nullptr) require_head(now.stream);
  head_forward(now, of, what == kept::nothing);
  return {};
}

// The output of a stage for the next one. A stage without a layer passes on its input, as a copy,
// since the received message may end before the copy has been sent.
buffer model::handed_on(const pass& now, buffer made, bool is_own) const {
  if (is_own) return made;
  buffer copy = make_stream(now);
  const std::int64_t bytes = now.rows() * part_.hidden * (type_.bits / 8);
  if (bytes > 0) std::memcpy(copy.data(), made.data(), static_cast<std::size_t>(bytes));
  return copy;
}

// A layer without experts has nothing of theirs to recompute.
void model::recompute(std::vector<layer_recompute> what) {
  for (std::size_t i = 0; i < depth_ && i < what.size(); ++i)
    if (what[i].experts != expert_part::all && !layers_[i].has_experts())
      what[i].kinds = VELO_RECOMPUTE_NONE;
  recompute_ = std::move(what);
}

void model::make_again(const velo::stream_ref& stream, activations& of) const {
  pass now = begin(stream, of);
  now.loads = nullptr;  // the forward pass counted them
  for (std::size_t i = 0; i < depth_; ++i) layer_forward(now, of, i, kept::all);
  of.residual[depth_] = {};  // the next stage has it
}

void model::head_forward(const pass& now, activations& of, bool alone) const {
  of.normed = make_stream(now);
  of.rstd = make_floats(now.room_of_rows());
  const velo::tensor_view rstd(of.rstd.floats(), {now.rows(), 1});
  now.parallel.hidden.norm(now.stream, {stream(now, of.residual[depth_]), gain_, rstd},
                           stream(now, of.normed), settings_.norm_epsilon);
  of.logits = make(now.room.tokens() * part_.vocab);
  project(now, *head_, stream(now, of.normed), logits(now, of));
  if (alone) {
    of.residual[depth_] = {};
    of.normed = {};
    of.rstd = {};
  }
}

void model::embed(const pass& now, activations& of) const {
  const velo::tensor_view ids(of.inputs(), {now.batch.all_tokens()});
  const velo::tensor_view y = stream(now, of.residual[0]);
  const tensor_parallel& tensor = now.parallel.tensor;
  if (tensor.is_alone()) {
    velo::embedding(now.stream, velo::embedding_args().ids(ids).table(embedding_).y(y));
    return;
  }
  velo::vocab_parallel_embedding_args call;
  call.group(tensor.group()).indices(ids).weight(embedding_).y(y);
  call.vocab_begin(part_.vocab_begin).vocab_size(settings_.vocab);
  const velo_ints rows = tensor.row_counts(now.batch.all_tokens());
  if (tensor.cuts_rows()) call.sequence_parallel(true).token_rows(rows);
  velo::vocab_parallel_embedding(now.stream, call);
}

bool model::is_shared() const {
  return !parallel_->tensor.is_alone() || !parallel_->context.is_alone();
}

double model::loss(const velo::stream_ref& stream, activations& of, velo::reduction how) {
  const pass now = begin(stream, of);
  of.lse = make_floats(now.room.tokens());
  if (is_shared()) return shared_loss(now, of, how);
  const std::int64_t tokens = now.batch.tokens();
  const bool divides = how == velo::reduction::mean && of.counted > 0;
  velo::cross_entropy(stream, velo::cross_entropy_args()
                                  .logits(logits(now, of))
                                  .targets(velo::tensor_view(of.targets(), {tokens}))
                                  .loss(velo::tensor_view(&loss_, {}))
                                  .lse(floats(of.lse, tokens))
                                  .reduction(divides ? velo::reduction::sum : how));
  return static_cast<double>(loss_) / (divides ? of.counted : 1);
}

// The targets that a mean is over where ranks share the layers.
double model::counted_by_ranks(const activations& of) const {
  if (of.counted > 0) return of.counted;
  return static_cast<double>(of.sequences * parallel_->context.of_window().rows.sequence());
}

// The first rank along x returns the losses of this rank's rows; the others return 0.
double model::shared_loss(const pass& now, activations& of, velo::reduction how) const {
  const std::int64_t tokens = now.batch.tokens();
  const buffer losses = memory_.take(now.room.tokens() * 4, VELO_PURPOSE_WORKSPACE);
  velo::vocab_parallel_cross_entropy(now.stream,
                                     velo::vocab_parallel_cross_entropy_args()
                                         .group(parallel_->tensor.group())
                                         .logits(logits(now, of))
                                         .targets(velo::tensor_view(of.targets(), {tokens}))
                                         .loss(floats(losses, tokens))
                                         .lse(floats(of.lse, tokens))
                                         .vocab_begin(part_.vocab_begin)
                                         .vocab_size(settings_.vocab));
  if (!parallel_->tensor.leads()) return 0;
  const double sum = std::accumulate(losses.floats(), losses.floats() + tokens, 0.0);
  if (how == velo::reduction::sum) return sum;
  return sum / counted_by_ranks(of);
}

// Whether a layer of this stage has no keys and values of its own.
bool model::shares_keys(std::size_t layer) const {
  return layer < depth_ && settings_.shares_keys(first_ + layer);
}

// Whether the layers before this one recompute its input.
bool model::inside_group(std::size_t layer) const {
  const layer_recompute& later = recompute_[layer];
  return later.has(VELO_RECOMPUTE_FULL) && later.first < static_cast<std::int64_t>(layer);
}

// Frees what is not saved. The keys of a layer, and what attention has kept of other ranks' keys,
// stay until the layer that shares them has read them.
void model::free_layer(activations& of, std::size_t layer, kept what) const {
  const auto free = [&](layer_activations& one) {
    if (what == kept::all)
      one.each_kept([](buffer& each) { each.release(); });
    else
      one = {};
  };
  layer_activations& own = of.layers[layer];
  if (shares_keys(layer)) free(of.layers[layer - 1]);
  if (!shares_keys(layer + 1)) return free(own);
  buffer keys = std::move(own.projected), of_others = std::move(own.kept_keys);
  free(own);
  own.projected = std::move(keys);
  own.kept_keys = std::move(of_others);
}

void model::layer_forward(const pass& now, activations& of, std::size_t layer, kept what) const {
  begin_layer(of, layer, what);
  layers_[layer].forward(now, of.residual[layer], of.layers[layer], of.residual[layer + 1]);
  end_layer(now, of, layer, what);
}

void model::begin_layer(activations& of, std::size_t layer, kept what) const {
  if (what == kept::all) {
    decoder_layer::recompute(of.layers[layer], recompute_[layer]);
    if (layer + 1 < depth_ && inside_group(layer + 1)) of.residual[layer + 1].recompute();
  }
  if (shares_keys(layer)) of.layers[layer].owner = &of.layers[layer - 1];
  if (of.keys != nullptr)
    of.layers[layer].of_sequence = &(*of.keys)[shares_keys(layer) ? layer - 1 : layer];
}

// Saves or frees what the layer has made.
void model::end_layer(const pass& now, activations& of, std::size_t layer, kept what) const {
  free_layer(of, layer, what);
  if (what != kept::all) {
    if (what == kept::nothing || layer > 0) of.residual[layer] = {};
    return;
  }
  of.residual[layer].release();
  if (recompute_[layer].has(VELO_RECOMPUTE_FULL) && !inside_group(layer))
    keep_own_rows(now, of.residual[layer], part_.hidden * (type_.bits / 8));
  if (of.swap == nullptr) return;
  // A layer is copied while the next one computes. The model's last layer is needed at once.
  if (layer > 0) of.each_kept(layer - 1, [&](buffer& each) { of.swap->settle(each); });
  if (layer + 1 == depth_ && ends_) return;
  const auto number = static_cast<std::int64_t>(layer);
  const layer_modules which = recompute_[layer].dispatches_again()
                                  ? of.swapped.with(layer_modules::expert_input)
                                  : of.swapped;
  of.each_kept_of(which, layer, [&](buffer& each) { of.swap->add(each, number); });
  of.swap->out(number);
}

void model::settle_last_layer(activations& of) const {
  if (of.swap != nullptr && depth_ > 0)
    of.each_kept(depth_ - 1, [&](buffer& each) { of.swap->settle(each); });
}

}  // namespace decoder
