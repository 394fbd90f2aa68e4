// Callbacks of the executor: actions of the schedule as passes through stages.
#include "examples/decoder/pipeline/pipeline.hpp"

#include <algorithm>
#include <utility>

#include "examples/decoder/model/overlap/layer_overlap.hpp"
#include "examples/decoder/parallel/data_parallel.hpp"

namespace decoder {

pipeline::pipeline(member& rank, const settings& values, const stage_plan& plan,
                   const weights& weights, const std::shared_ptr<const model_parallel>& parallel,
                   const helpers& by)
    : rank_(rank),
      values_(values),
      plan_(plan),
      parallel_(parallel),
      reducer_(by.reducer),
      late_(by.late),
      swap_(by.swap),
      stream_(rank.stream()),
      type_(dtype_of(weights.type())),
      place_(static_cast<std::size_t>(plan.stages()), -1) {
  std::vector<std::size_t> depths;
  for (const int number : plan.stages_of(rank.stage())) {
    const stage_range layers = plan.layers_of(number);
    depths.push_back(layers.count());
    place_[static_cast<std::size_t>(number)] = static_cast<int>(stages_.size());
    stages_.push_back(
        {model(rank.memory(), rank.context(), weights, values.model, parallel, true, layers),
         number,
         0,
         {},
         {}});
  }
  recompute(recompute_by(values.memory));
  cells_.resize(stages_.size() * static_cast<std::size_t>(plan.units()));
  if (plan.splits() > 1)
    splits_ = {parallel->context.splits(), plan.units() / plan.splits(), depths};
  for (const velo_action& each : plan.made_again_by(rank.stage())) cell_of(each).again = true;
  if (values.parallel.nanopipe_swap) late_swap_.emplace(rank.context(), rank.memory(), "host", "");
  const bool records = !values.parallel.timeline.empty();
  if (late_ == nullptr) {
    executor_ = make_executor(plan.order(), records, nullptr);
    return;
  }
  const velo_executor_validation updates = validation();
  executor_ = make_executor(plan.order_of_step(), records, &updates);
  scorer_ = make_executor(plan.order(), false, nullptr);
}

template <class Work>
velo_status pipeline::guarded(void* user, Work&& work) {
  auto& me = *static_cast<pipeline*>(user);
  try {
    work(me);
    return VELO_OK;
  } catch (...) {
    me.failure_ = std::current_exception();  // it says more than the executor's error
    return VELO_ERR_FOREIGN;
  }
}

// The stage, the kind and the micro-batch, with a dot the split.
std::string pipeline::name_of(const velo_action& a) const {
  if (a.kind == VELO_ACTION_FB)
    return name_of({VELO_ACTION_F, a.stage, a.microbatch, -1, -1}) + ";" +
           name_of({VELO_ACTION_B, a.other_stage, a.other_microbatch, -1, -1});
  const char* kind = a.kind == VELO_ACTION_F   ? "F"
                     : a.kind == VELO_ACTION_I ? "I"
                     : a.kind == VELO_ACTION_W ? "W"
                     : a.kind == VELO_ACTION_B ? "B"
                                               : "other";
  const std::string name = std::to_string(a.stage) + kind;
  if (splits_.are_whole()) return name + std::to_string(a.microbatch);
  return name + std::to_string(plan_.microbatch(a.stage, a.microbatch)) + '.' +
         std::to_string(plan_.split(a.microbatch));
}

// An action is named as in schedules, "2F0" or "2F0.1".
template <void (pipeline::*method)(velo_executor_call&)>
velo_status pipeline::call(void* user, velo_executor_call* call) {
  return guarded(user, [&](pipeline& me) {
    const profile& to = me.rank_.profiled();
    const std::string name = to.records() ? me.name_of(call->action) : "";
    const profile::range here(to, name.c_str());
    (me.*method)(*call);
  });
}

velo_executor_validation pipeline::validation() {
  velo_executor_validation made = VELO_EXECUTOR_VALIDATION_INIT;
  made.state_size = late_->state_size();
  made.measure = [](void* user, velo_stream, void* state) {
    return guarded(user, [&](pipeline& me) { me.measure(state); });
  };
  made.decide = [](void* user, const void* states, std::int32_t known, std::int32_t ranks,
                   double* factor) {
    return guarded(user, [&](pipeline& me) { *factor = me.late_->decide(states, known, ranks); });
  };
  made.step = [](void* user, velo_stream, const velo_action* a, double factor, std::int32_t final) {
    return guarded(user, [&](pipeline& me) { me.update(*a, factor, final != 0); });
  };
  made.rollback = [](void* user, velo_stream) {
    return guarded(user, [](pipeline& me) { me.roll_back(); });
  };
  made.forget = [](void* user) { return guarded(user, [](pipeline& me) { me.forget(); }); };
  return made;
}

velo::executor pipeline::make_executor(const velo::schedule& order, bool records,
                                       const velo_executor_validation* validation) {
  const velo_link link = velo::group_link(rank_.pipeline());
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.rank = rank_.stage();
  desc.flags = records ? VELO_EXECUTOR_RECORD : 0;
  desc.link = &link;
  desc.user = this;
  desc.forward = &call<&pipeline::forward>;
  desc.input = &call<&pipeline::input>;
  desc.weight = &call<&pipeline::deferred_weight>;
  desc.backward = &call<&pipeline::both>;
  if (pairs()) desc.fused = &call<&pipeline::fused>;
  desc.other = &call<&pipeline::other>;
  desc.released = [](void* user, const velo_action* action) {
    static_cast<pipeline*>(user)->released(*action);
  };
  desc.validation = validation;
  return velo::executor::create(rank_.context().get(), order, desc);
}

void pipeline::refresh(const data_parallel* gathered) {
  for (stage& each : stages_) each.part.refresh(stream_, gathered);
}

void pipeline::complete() {
  for (stage& each : stages_) each.part.complete(stream_);
}

double pipeline::train(const source& from) {
  return run(from, false);
}

double pipeline::score(const source& from) {
  return run(from, true);
}

double pipeline::run(const source& from, bool scores) {
  from_ = &from;
  scores_ = scores;
  loss_ = 0;
  for (stage& each : stages_) each.left = plan_.units();
  const bool updates = !scores && !is_dry_;
  carry_out([&] { (!updates && scorer_ ? scorer_ : executor_).run(stream_); });
  return loss_;
}

void pipeline::settle() {
  carry_out([&] { executor_.settle(stream_); });
}

template <class Work>
void pipeline::carry_out(Work&& work) {
  try {
    work();
  } catch (...) {
    if (failure_) std::rethrow_exception(failure_);
    throw;
  }
}

pipeline::stage& pipeline::stage_of(const velo_action& a) {
  return stages_[static_cast<std::size_t>(place_[static_cast<std::size_t>(a.stage)])];
}

pipeline::cell& pipeline::cell_of(const velo_action& a) {
  const auto place = static_cast<std::size_t>(place_[static_cast<std::size_t>(a.stage)]);
  return cells_[place * static_cast<std::size_t>(plan_.units()) +
                static_cast<std::size_t>(a.microbatch)];
}

std::vector<layer_recompute> pipeline::recompute_by(const memory_settings& with) const {
  std::vector<std::int64_t> depths;
  for (const stage& each : stages_)
    depths.push_back(static_cast<std::int64_t>(plan_.layers_of(each.number).count()));
  const std::vector<std::int64_t> turns = dealt_by_turns(with.recompute_layers, depths);
  std::vector<layer_recompute> all;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const auto before = static_cast<std::int64_t>(all.size());
    memory_settings own = with;
    own.recompute_layers = std::min(own.recompute_layers, depths[i]);
    if (with.recompute_layers_per_rank) own.recompute_layers = turns[i];
    if (with.recompute_layers_per_rank && turns[i] == 0) own.recompute = "none";
    for (layer_recompute one : recompute_of(own, depths[i])) {
      one.first += before;
      all.push_back(one);
    }
  }
  return all;
}

void pipeline::recompute(const std::vector<layer_recompute>& with) {
  recompute_ = with;
  auto next = with.begin();
  for (stage& each : stages_) {
    const auto layers = static_cast<std::ptrdiff_t>(plan_.layers_of(each.number).count());
    std::vector<layer_recompute> own(next, next + layers);
    for (layer_recompute& one : own) one.first -= next - with.begin();
    each.part.recompute(std::move(own));
    next += layers;
  }
}

std::unique_ptr<activations> pipeline::make_work(const stage& at) const {
  const auto layers = static_cast<std::int64_t>(plan_.layers_of(at.number).count());
  const sequence_share& share = parallel_->context.of_window();
  const std::int64_t windows = values_.data.batch / rank_.copies();
  const batch_shape largest = splits_.are_whole()
                                  ? batch_shape{windows, share.rows.count(), share.all_rows()}
                                  : splits_.largest(windows);
  return std::make_unique<activations>(rank_.memory(), layers, largest,
                                       values_.data.has_documents());
}

// Activations for a pass that begins, of its split where sequences are split.
activations& pipeline::take_work(const velo_action& a) {
  stage& at = stage_of(a);
  if (at.idle.empty()) {
    at.made.push_back(make_work(at));
    at.made.back()->swap = swap_;
    at.made.back()->swapped = swapped_modules(values_.memory);
    at.idle.push_back(at.made.back().get());
  }
  activations& one = *at.idle.back();
  at.idle.pop_back();
  if (!splits_.are_whole())
    splits_.assign(static_cast<std::size_t>(&at - stages_.data()),
                   plan_.microbatch(a.stage, a.microbatch), plan_.split(a.microbatch), one);
  return one;
}

bool pipeline::holds(int stage) const {
  return stage >= 0 && stage < plan_.stages() && place_[static_cast<std::size_t>(stage)] >= 0;
}

// The tensor that the executor passes to an action, made by stage `from`; empty without one. In a
// dry run the memory of a message from another rank counts, which is the executor's otherwise.
buffer pipeline::received(const velo_tensors& inputs, cell& of, int from, bool backward) {
  if (inputs.count == 0) return {};
  const velo_tensor& one = inputs.data[0];
  if (is_dry_ && !holds(from)) {
    buffer& message = of.messages[backward ? 1 : 0];
    const std::int64_t rows = parallel_->tensor.rows(of.work->room(true).all_tokens());
    message = rank_.memory().take(rows * stages_.front().part.width() * (type_.bits / 8),
                                  VELO_PURPOSE_ACTIVATION);
    return buffer::borrowed(message.data(), message.bytes());
  }
  const std::int64_t bytes = one.shape[0] * one.shape[1] * (one.dtype.bits / 8);
  return buffer::borrowed(static_cast<std::byte*>(one.data) + one.byte_offset, bytes);
}

// The copy of a stage's last layer overlaps the exchange behind the pass.
void pipeline::settle_last_layer() {
  if (swapping_ != nullptr) swapping_->part.settle_last_layer(*swapped_work_);
  swapping_ = nullptr;
}

// Gets a micro-batch's activations and symbols; returns whether it has any rows.
bool pipeline::begin_forward(const velo_action& a) {
  settle_last_layer();
  cell& of = cell_of(a);
  of.work = &take_work(a);
  const std::int64_t sequences = (*from_)(plan_.microbatch(a.stage, a.microbatch), *of.work);
  of.work->sequences = sequences;
  return sequences > 0 || is_dry_;
}

kept pipeline::saved_by(const cell& of) const {
  return scores_ ? kept::nothing : of.again ? kept::input : kept::all;
}

void pipeline::forward(velo_executor_call& call) {
  const velo_action& a = call.action;
  const bool has_rows = begin_forward(a);
  cell& of = cell_of(a);
  if (has_rows)
    of.output =
        stage_of(a).part.forward_stage(stream_, *of.work, of.work->sequences,
                                       received(call.inputs, of, a.stage - 1, false), saved_by(of));
  end_forward(call, a, has_rows);
}

// Computes the loss, or hands the output on.
void pipeline::end_forward(velo_executor_call& call, const velo_action& a, bool has_rows) {
  stage& at = stage_of(a);
  cell& of = cell_of(a);
  if (has_rows && at.part.ends())
    loss_ +=
        at.part.loss(stream_, *of.work, scores_ ? velo::reduction::sum : velo::reduction::mean);
  else if (has_rows)
    hand_out({call.outputs, call.output_count}, of, of.output);
  if (scores_) {
    if (!splits_.are_whole() && splits_.is_last(*of.work)) split_sequences::free_keys(*of.work);
    return finish(at, of);
  }
  swapping_ = &at;
  swapped_work_ = of.work;
}

// The stage's last pass to its weights' gradients.
void pipeline::finish_gradients_in(const stage& at, activations& last) const {
  if (at.left > 1 || is_dry_) return;
  last.reducer = reducer_;
  last.finishes = true;
}

// Gradients are averaged later over all ranks with the same weights: over copies, and over the
// chains of each. So every chain computes the mean of its own accumulation / chains micro-batches.
double pipeline::gradient_scale() const {
  return plan_.chains() / static_cast<double>(values_.data.accumulation);
}

void pipeline::begin_backward(const velo_action& a, bool deferred) {
  settle_last_layer();
  if (late_ && !is_dry_) late_->clear_gradients();
  if (!deferred) finish_gradients_in(stage_of(a), *cell_of(a).work);
}

void pipeline::backward(velo_executor_call& call, bool deferred) {
  if (scores_) return;
  begin_backward(call.action, deferred);
  stage& at = stage_of(call.action);
  cell& of = cell_of(call.action);
  of.gradient =
      at.part.backward_stage(stream_, *of.work, gradient_scale(),
                             received(call.inputs, of, call.action.stage + 1, true), deferred);
  if (!at.part.begins()) hand_out({call.outputs, call.output_count}, of, of.gradient);
  if (!deferred) finish(at, of);
}

bool pipeline::pairs() const {
  return parallel_->overlap != nullptr && parallel_->overlap->pairs();
}

// A forward pass and a backward pass of two micro-batches at once.
void pipeline::fused(velo_executor_call& call) {
  if (scores_) return forward(call);
  const velo_action& f = call.action;
  const velo_action b = {VELO_ACTION_B, f.other_stage, f.other_microbatch, -1, -1};
  begin_forward(f);
  begin_backward(b, false);
  cell &of = cell_of(f), &back = cell_of(b);
  model &ahead = stage_of(f).part, &behind = stage_of(b).part;
  const forward_parts forward_now =
      ahead.begin_forward(stream_, *of.work, of.work->sequences,
                          received(call.inputs, of, f.stage - 1, false), saved_by(of));
  backward_parts backward_now = behind.begin_backward(
      stream_, *back.work, gradient_scale(), received(call.other_inputs, back, b.stage + 1, true));
  parallel_->overlap->run(stream_, {&ahead, &forward_now}, {&behind, &backward_now});
  of.output = ahead.end_forward(forward_now);
  end_forward(call, f, true);
  back.gradient = behind.end_backward(backward_now);
  if (!behind.begins())
    hand_out({call.other_outputs, call.other_output_count}, back, back.gradient);
  finish(stage_of(b), back);
}

void pipeline::weight(const velo_executor_call& call) {
  if (scores_) return;
  stage& at = stage_of(call.action);
  cell& of = cell_of(call.action);
  finish_gradients_in(at, *of.work);
  if (late_swap_) of.work->each_deferred([&](buffer& each) { late_swap_->wait(each); });
  at.part.weight_gradients(stream_, *of.work);
  finish(at, of);
}

void pipeline::other(velo_executor_call& call) {
  if (scores_) return;
  const auto work = [&]() -> activations& { return *cell_of(call.action).work; };
  switch (call.action.kind) {
    case VELO_ACTION_RECOMPUTE:
      return stage_of(call.action).part.make_again(stream_, work());
    case VELO_ACTION_OFFLOAD:
      return offload(work());
    case VELO_ACTION_RELOAD:
      return reload(work());
    default:
      return;  // others have no micro-batch, and nothing to do here
  }
}

// A copy overlaps the passes until the next copy begins; its memory is free then.
void pipeline::offload(activations& of) {
  settle_offloaded();
  of.each_deferred([&](buffer& each) { late_swap_->out(each); });
  offloaded_.push_back(&of);
}

void pipeline::reload(activations& of) {
  settle_offloaded();
  of.each_deferred([&](buffer& each) { late_swap_->in(each); });
}

void pipeline::settle_offloaded() {
  for (activations* one : offloaded_)
    one->each_deferred([&](buffer& each) { late_swap_->settle(each); });
  offloaded_.clear();
}

void pipeline::measure(void* state) {
  late_->measure(loss_ / static_cast<double>(values_.data.accumulation), state);
}

// The weights of all stages of this rank are updated at once, with the last of them.
void pipeline::update(const velo_action& a, double factor, bool final) {
  if (a.stage != stages_.back().number) return;
  late_->update(factor, final);
  refresh(late_->gathering());
}

void pipeline::roll_back() {
  complete();  // weights on their way would overwrite those that come back
  late_->roll_back();
  refresh(nullptr);
}

void pipeline::forget() {
  loss_ = 0;
  swapping_ = nullptr;
  offloaded_.clear();
  splits_.free_keys();
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    cell& of = cells_[i];
    if (of.work == nullptr) continue;
    stage& at = stages_[i / static_cast<std::size_t>(plan_.units())];
    of.work->clear();
    at.idle.push_back(std::exchange(of.work, nullptr));
    of.output = {};
  }
  rank_.memory().end_step();  // a plan's step begins with these forwards
  rank_.memory().begin_step();
}

void pipeline::finish(stage& at, cell& of) {
  --at.left;
  of.work->reducer = nullptr;
  of.work->finishes = false;
  of.work->clear();
  for (buffer& each : of.messages) each = {};
  at.idle.push_back(std::exchange(of.work, nullptr));
}

void pipeline::hand_out(const outputs& to, cell& of, const buffer& made) const {
  const std::int64_t width = stages_.front().part.width();
  of.shape[1] = width;
  of.shape[0] = is_dry_ ? 0 : made.bytes() / (width * (type_.bits / 8));
  velo_tensor& out = to.tensors[0];
  out.data = made.data();
  out.device.type = VELO_DEVICE_CPU;
  out.ndim = 2;
  out.dtype = type_;
  out.shape = of.shape;
  to.count = 1;
}

void pipeline::released(const velo_action& a) {
  cell& of = cell_of(a);
  (a.kind == VELO_ACTION_F ? of.output : of.gradient) = {};
}

}  // namespace decoder
