// The training step and its state.
#include "examples/decoder/train/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/replaced_file.hpp"
#include "examples/decoder/model/overlap/layer_overlap.hpp"
#include "examples/decoder/optimizer/finished_gradients.hpp"
#include "examples/decoder/optimizer/learning_rate.hpp"
#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {

namespace {

std::unique_ptr<swapper> make_swapper(member& rank, const std::string& where,
                                      const std::string& directory, std::int64_t smallest) {
  if (where == "off") return nullptr;
  return std::make_unique<swapper>(rank.context(), rank.memory(), where, directory, smallest);
}

std::unique_ptr<data_parallel> make_data_parallel(const member& rank, const weights& of,
                                                  bool sharded) {
  if (!data_parallel::is_needed(rank)) return nullptr;
  return std::make_unique<data_parallel>(rank, of, sharded);
}

std::unique_ptr<stage_plan> make_plan(const member& rank, const settings& values) {
  return rank.stages() == 1 ? nullptr : std::make_unique<stage_plan>(values);
}

weights make_weights(member& rank, const settings& values, const stage_plan* plan) {
  const auto sharded = [&] { return values.run.zero && rank.is_data_parallel(); };
  const narrow_settings& narrow = values.optimizer.narrow;
  const member::part &tensor = rank.tensor_ranks(), &experts = rank.expert_ranks();
  if (plan == nullptr && tensor.ranks == 1 && experts.ranks == 1)
    return weights(rank.memory(), values.model, true, sharded(), narrow);
  holding held = plan != nullptr ? plan->held_by(rank.stage()) : holding::all(values.model);
  held.tensor_rank = tensor.rank;
  held.tensor_ranks = tensor.ranks;
  held.tensor_x = static_cast<int>(values.parallel.tp_x);
  held.expert_rank = experts.rank;
  held.expert_ranks = experts.ranks;
  held.cuts_experts = values.parallel.cuts_experts();
  return weights(rank, values.model, held, sharded(), narrow);
}

std::shared_ptr<const model_parallel> make_parallel(const member& rank, const settings& values,
                                                    const part_widths& widths) {
  auto made = std::make_shared<model_parallel>(rank, values, widths);
  const std::string& overlap = values.parallel.expert_overlap;
  if (overlap != "none")
    made->overlap = std::make_shared<layer_overlap>(rank.context(), overlap == "fused");
  return made;
}

}  // namespace

trainer::trainer(member& rank, const settings& values, const corpus& text)
    : values_(values),
      rank_(rank),
      memory_(rank.memory()),
      text_(text),
      stream_(rank.stream()),
      activation_swap_(make_swapper(rank, values.memory.activations_wait_in(),
                                    values.memory.swap_dir, swapper::page)),
      optimizer_swap_(make_swapper(rank, values.memory.swap_optimizer, values.memory.swap_dir, 1)),
      plan_(make_plan(rank, values)),
      weights_(make_weights(rank, values, plan_.get())),
      parallel_(make_parallel(rank, values, weights_.layout().widths)),
      data_parallel_(make_data_parallel(rank, weights_, sharded())),
      optimizer_(values.optimizer),
      windows_(text, values.data.sequence, values.run.seed),
      writer_(values.data.sequence),
      // of a whole model's layers; the body sets those of stages
      recompute_(recompute_of(values.memory, values.model.layers)) {
  losses_.reserve(static_cast<std::size_t>(values.schedule.steps));
  weights_.set_piece(values.run.save_slice);
  if (!values.run.routing_record.empty() || !values.run.routing_replay.empty())
    choices_ = std::make_unique<step_choices>(
        rank, values, crc32_of(0, text.training.data(), text.training.size()));
  if (values.model.has_experts() && !values.parallel.post_validation)
    loads_ = std::make_unique<expert_loads>(rank, values.model);
  if (sharded()) weights_.shard(rank, data_parallel_->own());
  counted_ = counted_ranges(weights_, data_parallel_.get());
  if (plan_) {
    if (values.parallel.post_validation)
      late_ = std::make_unique<post_validation>(rank, weights_, optimizer_, *parallel_,
                                                data_parallel_.get(), sharded());
    pipeline_ = std::make_unique<pipeline>(
        rank, values, *plan_, weights_, parallel_,
        pipeline::helpers{data_parallel_.get(), late_.get(), activation_swap_.get()});
    recompute_ = pipeline_->recompute_by(values.memory);
    return;
  }
  model_.emplace(memory_, rank.context(), weights_, values.model, parallel_, true,
                 stage_range{0, static_cast<std::size_t>(values.model.layers), true, true});
  model_->recompute(recompute_);
  const sequence_share& share = parallel_->context.of_window();
  batch_.emplace(memory_, values.model.layers,
                 batch_shape{windows_here(), share.rows.count(), share.all_rows()},
                 values.data.has_documents());
  batch_->swap = activation_swap_.get();
  batch_->swapped = swapped_modules(values.memory);
}

void trainer::warm_up() {
  swap_state_out();
  if (!warm_) pipeline_ ? pipeline_->warm_up() : model_->warm_up(stream_, *batch_);
  warm_ = true;
}

std::int64_t trainer::peak_bytes(const memory_settings& with) {
  warm_up();
  if (with.recompute == "adaptive") return peak_bytes(recompute_);
  return peak_bytes(pipeline_ ? pipeline_->recompute_by(with)
                              : recompute_of(with, values_.model.layers));
}

std::optional<std::int64_t> trainer::adapt(std::int64_t most) {
  warm_up();
  const bool keeps = values_.memory.recompute_level > 1;
  std::vector<recompute_cost> costs =
      pipeline_ ? pipeline_->measure(keeps) : model_->measure(stream_, *batch_, keeps);
  for (recompute_cost& each : costs) {  // ranks that share the layers choose the same
    each.bytes = max_of_stage(each.bytes);
    each.seconds = static_cast<double>(max_of_stage(std::llround(each.seconds * 1e9))) / 1e9;
  }
  // All ranks of a pipeline run a trial together, so those that have chosen run those of others.
  constexpr std::int64_t none_tries = 0, some_try = 1, some_stop = 2;
  const auto next = [&](std::int64_t mine) { return rank_.max(interrupted() ? some_stop : mine); };
  const auto peak_of = [&](const auto& with) -> std::optional<std::int64_t> {
    if (next(some_try) == some_stop) return std::nullopt;
    return max_of_stage(peak_here(with));
  };
  const auto layers = static_cast<std::int64_t>(recompute_.size());
  const auto chosen = choose_recompute(values_.memory, layers, costs, most, peak_of);
  if (!chosen) return std::nullopt;
  std::int64_t others = next(none_tries);
  for (; others == some_try; others = next(none_tries)) max_of_stage(peak_here(recompute_));
  if (others == some_stop) return std::nullopt;
  const std::int64_t peak = rank_.max(chosen->peak);
  if (peak > most) return peak;
  recompute_ = chosen->layers;
  pipeline_ ? pipeline_->recompute(recompute_) : model_->recompute(recompute_);
  return peak;
}

std::int64_t trainer::max_of_stage(std::int64_t mine) const {
  std::int64_t found = mine;
  for (int stage = 0; stage < rank_.stages(); ++stage) {
    const std::int64_t most = rank_.max(stage == rank_.stage() ? mine : 0);
    if (stage == rank_.stage()) found = most;
  }
  return found;
}

std::int64_t trainer::layers_with(velo_recompute_kind kind) const {
  const auto here = std::count_if(recompute_.begin(), recompute_.end(),
                                  [&](const layer_recompute& each) { return each.has(kind); });
  if (!pipeline_) return here;
  const double all = rank_.sum(static_cast<double>(here));
  return std::llround(all / (rank_.ranks_of_stage() * plan_->chains()));
}

std::int64_t trainer::peak_bytes(const std::vector<layer_recompute>& with) {
  return rank_.max(peak_here(with));
}

std::int64_t trainer::peak_here(const std::vector<layer_recompute>& with) {
  const auto most_of = [&](bool scores) {
    return most_alive(pipeline_ ? pipeline_->dry_run(with, scores)
                                : model_->dry_run(stream_, *batch_, scores));
  };
  if (model_) model_->recompute(with);
  const std::int64_t of_a_step = most_of(false);
  const std::int64_t beside = values_.memory.plan ? most_of(true) : 0;
  if (model_) model_->recompute(recompute_);
  return peak_with(of_a_step + beside);
}

// This rank's peak if the buffers of a step hold so many bytes. A plan's memory stays its own, so
// that those of a validation lie beside it.
std::int64_t trainer::peak_with(std::int64_t of_a_step) {
  const velo_pool_stats held = memory_.stats();
  const auto now = static_cast<std::int64_t>(held.bytes_live);
  // Growing scratch briefly holds the old and the new block, more than a step of a tiny model.
  const auto before = static_cast<std::int64_t>(held.bytes_peak);
  if (!optimizer_swap_) return std::max(before, now + of_a_step);
  // The state takes the place of activations between steps, while it is saved.
  const std::vector<buffer*> state = weights_.state();
  const auto count = static_cast<std::int64_t>(state.size());
  const std::int64_t bytes = state[0]->bytes();
  return std::max(before, now + std::max({of_a_step, count * bytes,
                                          optimizer_swap_->update_bytes(count, bytes)}));
}

void trainer::start(const stored_weights* from) {
  swap_state_in();
  if (from)
    from->read(weights_, stream_);
  else
    weights_.initialize(stream_, values_.run.seed);
  refresh();
  if (values_.run.trace.empty()) return;
  trace_ = std::make_unique<parity_trace>(values_.run.trace);
  trace_->initial(weights_);
}

void trainer::resume(const checkpoint_reader& saved) {
  if (saved.data_crc() != text_.crc) fail("the data is not what the checkpoint was trained on");
  if (saved.step() > values_.schedule.steps) {
    fail("the checkpoint has done %lld steps, more than the %lld of this run",
         static_cast<long long>(saved.step()), static_cast<long long>(values_.schedule.steps));
  }
  swap_state_in();
  steps_done_ = saved.step();
  losses_.resize(static_cast<std::size_t>(steps_done_));
  saved.read_weights(weights_.files());
  saved.read_state(training_files(steps_done_));
  refresh();
}

void trainer::swap_state_out() {
  if (!optimizer_swap_ || !*weights_.state()[0]) return;
  for (buffer* each : weights_.state()) optimizer_swap_->out(*each);
  for (buffer* each : weights_.state()) optimizer_swap_->settle(*each);
}

void trainer::swap_state_in() {
  if (!optimizer_swap_) return;
  for (buffer* each : weights_.state()) optimizer_swap_->in(*each);
  for (buffer* each : weights_.state()) optimizer_swap_->wait(*each);
}

void trainer::refresh(const data_parallel* gathered) {
  if (pipeline_)
    pipeline_->refresh(gathered);
  else
    model_->refresh(stream_, gathered);
}

void trainer::write_batch(std::int64_t micro_batch, class activations& into) {
  const std::int64_t first = micro_batch * values_.data.batch + rank_.copy() * windows_here();
  into.choices = choices_.get();
  into.limits = values_.model.has_capacity();
  into.loads = loads_.get();
  into.first_token = first * values_.data.sequence - steps_done_ * values_.data.step_tokens();
  writer_.begin();
  for (std::int64_t i = 0; i < windows_here(); ++i) writer_.add(windows_.at(first + i));
  hand_over(into);
  if (into.documents || into.split != nullptr) into.counted = targets_of_micro_batch();
}

// The targets of a step by micro-batch and copy, whose means are averaged.
double trainer::targets_of_micro_batch() const {
  const data_settings& d = values_.data;
  const std::int64_t windows = d.batch * d.accumulation;
  return static_cast<double>(windows_.targets(steps_done_ * windows, windows)) /
         static_cast<double>(d.accumulation * rank_.copies());
}

// Runs this rank's micro-batches, adds up their gradients, and returns their mean loss, as
// pipelined does.
double trainer::micro_batches() {
  const std::int64_t pieces = values_.data.accumulation, sequences = windows_here();
  double loss = 0;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    write_batch(steps_done_ * pieces + piece, *batch_);
    if (piece > 0) memory_.note("forward");
    if (trace_)
      trace_->symbols(batch_->inputs(), batch_->targets(), sequences * values_.data.sequence);
    {
      const profile::range here(rank_.profiled(), "forward");
      model_->forward(stream_, *batch_, sequences);
      loss += model_->loss(stream_, *batch_, velo::reduction::mean) / static_cast<double>(pieces);
    }
    memory_.note("backward");
    batch_->finishes = piece + 1 == pieces;
    batch_->reducer = batch_->finishes ? data_parallel_.get() : nullptr;
    const profile::range here(rank_.profiled(), "backward");
    model_->backward(stream_, *batch_, 1 / static_cast<double>(pieces));
  }
  batch_->finishes = false;
  batch_->reducer = nullptr;
  return loss;
}

double trainer::pipelined() {
  const std::int64_t pieces = values_.data.accumulation;
  const double sum = pipeline_->train([&](std::int64_t piece, class activations& into) {
    write_batch(steps_done_ * pieces + piece, into);
    return windows_here();
  });
  return sum / static_cast<double>(pieces);
}

std::optional<trainer::result> trainer::step() {
  if (!late_) {
    const result done = waited();
    losses_.push_back(static_cast<float>(done.loss));
    return done;
  }
  late_->announce({steps_done_ + 1,
                   learning_rate(steps_done_, values_.optimizer.learning_rate, values_.schedule)});
  memory_.note("step " + std::to_string(steps_done_ + 1) + ": forward");
  memory_.begin_step();
  pipelined();
  memory_.end_step();
  ++steps_done_;
  settled_ = false;
  return known_result(late_->before());
}

std::optional<trainer::result> trainer::settle() {
  if (settled_) return std::nullopt;
  pipeline_->settle();
  settled_ = true;
  return known_result(late_->last());
}

std::optional<trainer::result> trainer::known_result(
    const std::optional<post_validation::result>& of) {
  if (!of || of->of.number <= static_cast<std::int64_t>(losses_.size())) return std::nullopt;
  losses_.push_back(static_cast<float>(of->loss));
  return result{of->of.number, of->loss, of->of.learning_rate, of->grad_norm, of->interrupt};
}

trainer::result trainer::waited() {
  swap_state_out();
  weights_.clear_gradients();
  memory_.note("step " + std::to_string(steps_done_ + 1) + ": forward");
  if (choices_) choices_->begin(steps_done_ + 1);
  if (loads_) loads_->begin();
  memory_.begin_step();
  double loss = pipeline_ ? pipelined() : micro_batches();
  memory_.end_step();
  if (choices_) choices_->end();
  if (loads_) loads_->end();
  finish_gradients(stream_, *parallel_, weights_, data_parallel_.get());
  loss = rank_.sum(loss) / rank_.copies();
  memory_.note("optimizer");
  if (trace_ && steps_done_ == 0) trace_->first_gradients(weights_);
  if (steps_done_ == 0) write_gradients();
  const double rate = learning_rate(steps_done_, values_.optimizer.learning_rate, values_.schedule);
  const profile::range here(rank_.profiled(), "optimizer");
  const double norm =
      optimizer_.step(rank_, weights_, counted_, optimizer_swap_.get(), steps_done_ + 1, rate);
  if (sharded()) data_parallel_->gather(weights_);
  refresh(sharded() ? data_parallel_.get() : nullptr);
  ++steps_done_;
  return {steps_done_, loss, rate, norm};
}

std::int64_t trainer::windows_at_once() const {
  return pipeline_ ? values_.data.accumulation * windows_here() : windows_here();
}

double trainer::nats(const window* all, std::int64_t count) {
  swap_state_out();  // saving has brought it back
  if (!pipeline_) {
    model_->forward(stream_, *batch_, write_windows(all, count, *batch_), true);
    return model_->loss(stream_, *batch_, velo::reduction::sum);
  }
  return pipeline_->score([&](std::int64_t piece, class activations& into) {
    const std::int64_t first = piece * windows_here(),
                       mine = std::clamp<std::int64_t>(count - first, 0, windows_here());
    return write_windows(all + std::min(first, count), mine, into);
  });
}

std::vector<named_tensor> trainer::training_files(std::int64_t steps) {
  std::vector<named_tensor> all = weights_.training_files(stream_);
  all.push_back({"losses", element::f32, {steps}, losses_.data()});
  return all;
}

void trainer::give(const checkpoint& state) {
  for (const auto* all : {&state.weights, &state.state}) give(*all);
}

void trainer::give(const std::vector<named_tensor>& all) {
  std::vector<float> passing;
  for (const named_tensor& each : all) {
    if (!each.give) continue;
    each_piece(each, [&](std::int64_t first, std::int64_t count) {
      passing.resize(static_cast<std::size_t>(count));
      each.give(first, count, passing.data());
    });
  }
}

// Returns how many windows there are. A rank without windows, whose experts others need, has one
// that does not count.
std::int64_t trainer::write_windows(const window* all, std::int64_t count,
                                    class activations& into) {
  into.choices = nullptr;
  into.limits = false;
  into.loads = nullptr;
  writer_.begin();
  for (std::int64_t i = 0; i < count; ++i) writer_.add(all[i]);
  if (count == 0 && !parallel_->experts.is_alone()) {
    const piece uncounted = {" ", 1, false};
    writer_.add(window{&uncounted, 1});
  }
  hand_over(into);
  return writer_.windows();
}

// Copies the rows of the windows written that this rank has, or those of a split.
void trainer::hand_over(class activations& into) const {
  const context_parallel& context = parallel_->context;
  if (into.documents && writer_.windows() > 0) {
    packed_documents& of = *into.documents;
    of.ends = writer_.ends();
    if (into.split != nullptr)
      of.fill_split(*into.split, writer_.windows());
    else
      of.share = context.of_documents(of.ends);
    writer_.copy_positions(of.share.rows, reinterpret_cast<std::int32_t*>(of.positions.data()));
    return copy_symbols(of.share.rows, of.share.along_y, into);
  }
  if (into.split != nullptr) return copy_symbols(into.split->rows, into.split->along_y, into);
  copy_symbols(context.of_window().rows, context.of_window().along_y, into);
}

void trainer::copy_symbols(const held_rows& own, const std::vector<held_rows>& along_y,
                           class activations& into) const {
  if (along_y.empty()) return writer_.copy_symbols(own, into.inputs(), into.targets());
  std::int32_t* inputs = into.inputs();
  for (const held_rows& each : along_y) inputs = writer_.copy_inputs(each, inputs);
  writer_.copy_targets(own, into.targets());
}

void trainer::write_gradients() {
  if (values_.run.gradients.empty()) return;
  const std::vector<named_tensor> all = weights_.gradient_files();
  if (!rank_.leads()) return give(all);
  replace_file(values_.run.gradients, [&](durable_file& file) {
    write_safetensors(file, all, {{"format", "pt"}});
  });
}

checkpoint trainer::state(const std::string& settings_json) {
  swap_state_in();
  pipeline_ ? pipeline_->complete() : model_->complete(stream_);
  checkpoint result;
  result.step = steps_done_;
  result.data_crc = text_.crc;
  result.settings = settings_json;
  result.model = values_.model;
  result.sequence = values_.data.sequence;
  result.weights = weights_.files();
  result.state = training_files(steps_done_);
  return result;
}

}  // namespace decoder
