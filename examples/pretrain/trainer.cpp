// The training step and its state.
#include "trainer.hpp"

#include <algorithm>

#include "failure.hpp"
#include "learning_rate.hpp"

namespace pretrain {

namespace {

std::unique_ptr<swapper> make_swapper(member& rank, const std::string& where,
                                      const std::string& directory) {
  if (where == "off") return nullptr;
  return std::make_unique<swapper>(rank.context(), rank.memory(), where, directory);
}

std::unique_ptr<exchange> make_exchange(const member& rank, const weights& of, bool sharded) {
  if (rank.ranks() == 1) return nullptr;
  const weight_layout& all = of.layout();
  return std::make_unique<exchange>(rank, all, of.gradient(0, {all.total}), sharded);
}

}  // namespace

trainer::trainer(member& rank, const settings& values, const corpus& text)
    : values_(values),
      rank_(rank),
      memory_(rank.memory()),
      text_(text),
      stream_(rank.stream()),
      activations_away_(make_swapper(rank, values.memory.swap_activations, values.memory.swap_dir)),
      optimizer_away_(make_swapper(rank, values.memory.swap_optimizer, values.memory.swap_dir)),
      weights_(memory_, values.model, true, sharded()),
      exchange_(make_exchange(rank, weights_, sharded())),
      model_(memory_, rank.context(), weights_, values.model, values.data.sequence, true),
      batch_(memory_, values.model, {windows_here(), values.data.sequence}),
      optimizer_(values.optimizer),
      windows_(static_cast<std::int64_t>(text.training.size()), values.data.sequence,
               values.run.seed),
      recompute_(recompute_of(values.memory, values.model.layers)) {
  losses_.reserve(static_cast<std::size_t>(values.schedule.steps));
  model_.recompute(recompute_);
  batch_.away = activations_away_.get();
  if (sharded()) weights_.shard(rank, exchange_->own());
}

void trainer::warm_up() {
  send_state_away();
  if (!warm_) model_.warm_up(stream_, batch_);
  warm_ = true;
}

std::int64_t trainer::promise(const memory_settings& with) {
  const bool ours = with.recompute == "adaptive";
  return promise(ours ? recompute_ : recompute_of(with, values_.model.layers));
}

bool trainer::adapt(std::int64_t most) {
  warm_up();
  const auto chosen =
      choose_recompute(values_.memory, values_.model.layers, model_.measure(stream_, batch_),
                       [&](const auto& with) { return promise(with) <= most; });
  if (chosen.empty()) return false;
  recompute_ = chosen;
  model_.recompute(recompute_);
  return true;
}

std::int64_t trainer::promise(const std::vector<layer_recompute>& with) {
  warm_up();
  model_.recompute(with);
  const std::int64_t of_a_step = most_alive(model_.rehearse(stream_, batch_));
  model_.recompute(recompute_);
  const velo_pool_stats held = memory_.stats();
  const auto now = static_cast<std::int64_t>(held.bytes_live);
  // Scratch that grows holds the old and the new for a moment, more than a step of a tiny model.
  const auto before = static_cast<std::int64_t>(held.bytes_peak);
  if (!optimizer_away_) return std::max(before, now + of_a_step);
  // Between steps, to be saved, the state is where activations were.
  const std::vector<buffer*> state = weights_.state();
  const auto count = static_cast<std::int64_t>(state.size());
  const std::int64_t bytes = state[0]->bytes();
  return std::max(before, now + std::max({of_a_step, count * bytes,
                                          optimizer_away_->update_bytes(count, bytes)}));
}

void trainer::start(const checkpoint_reader* from) {
  bring_state_back();
  if (from) {
    from->read_weights(weights_.files());
    from->read_masters(weights_.master_files());
  } else {
    weights_.initialize(stream_, values_.run.seed);
  }
  model_.refresh(stream_);
  if (values_.run.trace.empty()) return;
  trace_ = std::make_unique<trace>(values_.run.trace);
  trace_->initial(weights_);
}

void trainer::resume(const checkpoint_reader& saved) {
  if (saved.data_crc() != text_.crc) fail("the data is not what the checkpoint was trained on");
  if (saved.step() > values_.schedule.steps) {
    fail("the checkpoint has done %lld steps, more than the %lld of this run",
         static_cast<long long>(saved.step()), static_cast<long long>(values_.schedule.steps));
  }
  bring_state_back();
  steps_done_ = saved.step();
  losses_.resize(static_cast<std::size_t>(steps_done_));
  saved.read_weights(weights_.files());
  saved.read_state(training_files(steps_done_));
  model_.refresh(stream_);
}

void trainer::send_state_away() {
  if (!optimizer_away_ || !*weights_.state()[0]) return;
  for (buffer* each : weights_.state()) optimizer_away_->out(*each);
  for (buffer* each : weights_.state()) optimizer_away_->settle(*each);
}

void trainer::bring_state_back() {
  if (!optimizer_away_) return;
  for (buffer* each : weights_.state()) optimizer_away_->in(*each);
  for (buffer* each : weights_.state()) optimizer_away_->wait(*each);
}

void trainer::write_batch(std::int64_t micro_batch) {
  const std::int64_t length = values_.data.sequence;
  const std::int64_t first = micro_batch * values_.data.batch + rank_.rank() * windows_here();
  for (std::int64_t i = 0; i < windows_here(); ++i) {
    const std::int64_t begin = windows_.begin(first + i);
    const std::string_view bytes(&text_.training[static_cast<std::size_t>(begin)],
                                 static_cast<std::size_t>(length));
    write_sequence(bytes, batch_.inputs() + i * length, batch_.targets() + i * length);
  }
}

trainer::result trainer::step() {
  const std::int64_t pieces = values_.data.accumulation, sequences = windows_here();
  double loss = 0;
  send_state_away();
  weights_.clear_gradients();
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    write_batch(steps_done_ * pieces + piece);
    memory_.note(piece == 0 ? "step " + std::to_string(steps_done_ + 1) + ": forward" : "forward");
    if (trace_)
      trace_->symbols(batch_.inputs(), batch_.targets(), sequences * values_.data.sequence);
    model_.forward(stream_, batch_, sequences);
    loss += model_.loss(stream_, batch_, velo::reduction::mean) / static_cast<double>(pieces);
    memory_.note("backward");
    batch_.told = piece + 1 == pieces ? exchange_.get() : nullptr;
    model_.backward(stream_, batch_, 1 / static_cast<double>(pieces));
  }
  batch_.told = nullptr;
  if (exchange_) exchange_->finish();
  loss = rank_.sum(loss) / rank_.ranks();
  memory_.note("optimizer");
  if (trace_ && steps_done_ == 0) trace_->first_gradients(weights_);
  const double rate = learning_rate(steps_done_, values_.optimizer.learning_rate, values_.schedule);
  const double norm =
      optimizer_.step(rank_, weights_, exchange_ ? exchange_->own() : weights_.own(),
                      optimizer_away_.get(), steps_done_ + 1, rate);
  if (sharded()) exchange_->gather(weights_.weight(0, {weights_.layout().total}));
  model_.refresh(stream_, sharded() ? exchange_.get() : nullptr);
  ++steps_done_;
  losses_.push_back(static_cast<float>(loss));
  return {loss, rate, norm};
}

std::vector<named_tensor> trainer::training_files(std::int64_t steps) {
  std::vector<named_tensor> all = weights_.training_files();
  all.push_back({"losses", element::f32, {steps}, losses_.data()});
  return all;
}

void trainer::give(const checkpoint& state) {
  std::vector<float> passing;
  for (const named_tensor& each : state.state) {
    if (!each.give) continue;
    each_piece(each, [&](std::int64_t first, std::int64_t count) {
      passing.resize(static_cast<std::size_t>(count));
      each.give(first, count, passing.data());
    });
  }
}

checkpoint trainer::state(const std::string& settings_json) {
  bring_state_back();
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

}  // namespace pretrain
