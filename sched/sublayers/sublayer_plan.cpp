// Checks of velo_sublayers_desc and of a caller's order; the price of a plan.
#include "sched/sublayers/sublayer_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/text.hpp"
#include "sched/sublayers/sublayer_order.hpp"

namespace velo::sched {

using core::at;
using core::concat;
using core::fail;
using core::number;
using core::text;

namespace {

constexpr std::int32_t most_layers = 4096, most_slices = 64, most_tried = 8;
constexpr std::int64_t most_parts = 65536;  // layers times slices
constexpr double most_time = 1e18;

template <class Expected>
void require(bool holds, const char* field, const Expected& expected, std::int64_t got) {
  if (!holds) fail(VELO_ERR_ARGUMENT, text("desc.%s", field), expected, number(got));
}

template <class Field>
void require_time(const Field& field, double time) {
  if (!(time >= 0 && time <= most_time))
    fail(VELO_ERR_ARGUMENT, field, "0 to 1e18", text("%g", time));
}

void require_numbers(const velo_sublayers_desc& d) {
  const text layers = concat("0 to ", most_layers);
  require(d.forward_layers >= 0 && d.forward_layers <= most_layers, "forward_layers", layers,
          d.forward_layers);
  require(d.backward_layers >= 0 && d.backward_layers <= most_layers, "backward_layers", layers,
          d.backward_layers);
  require((d.flags & ~(VELO_SUBLAYERS_SHARED | VELO_SUBLAYERS_SEND)) == 0, "flags",
          "bits of VELO_SUBLAYERS_*", d.flags);
  require(d.slicing >= VELO_SUBLAYER_WHOLE && d.slicing <= VELO_SUBLAYER_BY_SEQUENCE, "slicing",
          "VELO_SUBLAYER_WHOLE, _BY_EXPERT, _BY_ROWS or _BY_SEQUENCE", d.slicing);
  const bool both = d.forward_layers > 0 && d.backward_layers > 0;
  require(d.slicing == VELO_SUBLAYER_WHOLE || !both, "slicing",
          "VELO_SUBLAYER_WHOLE where a forward and a backward go at once", d.slicing);
  if (d.slicing == VELO_SUBLAYER_WHOLE)
    require(d.slices == 0 || d.slices == 1, "slices", "0 or 1 with VELO_SUBLAYER_WHOLE", d.slices);
  require(d.slices >= 0 && d.slices <= most_slices, "slices", concat("0 to ", most_slices),
          d.slices);
  const std::int64_t layers_of_all = std::int64_t{d.forward_layers} + d.backward_layers;
  require(layers_of_all * d.slices <= most_parts, "slices",
          concat("at most ", most_parts, " slices of ", layers_of_all, " layers"), d.slices);
}

std::vector<char> read_dense(const std::int32_t* given, std::int32_t layers, const char* field) {
  std::vector<char> all(at(layers), 0);
  for (std::int32_t i = 0; given != nullptr && i < layers; ++i) {
    if (given[i] != 0 && given[i] != 1)
      fail(VELO_ERR_ARGUMENT, text("desc.%s[%d]", field, i), "0 or 1", number(given[i]));
    all[at(i)] = static_cast<char>(given[i]);
  }
  return all;
}

// Checked in this order, so that lists are read only with sizes that make sense.
sublayer_layout read_layout(const velo_sublayers_desc& d) {
  require_numbers(d);
  return {read_dense(d.forward_dense, d.forward_layers, "forward_dense"),
          read_dense(d.backward_dense, d.backward_layers, "backward_dense"),
          (d.flags & VELO_SUBLAYERS_SHARED) != 0,
          (d.flags & VELO_SUBLAYERS_SEND) != 0,
          d.slicing,
          d.slices};
}

std::vector<double> read_times(const velo_sublayers_desc& d) {
  std::vector<double> all(at(sublayer_kinds), 1);
  for (int kind = 1; d.times != nullptr && kind < sublayer_kinds; ++kind) {
    require_time(text("desc.times[%d]", kind), d.times[kind]);
    all[at(kind)] = d.times[kind];
  }
  require_time("desc.latency", d.latency);
  return all;
}

// Steps of a run that failed may lack both times, or the second.
bool did_run(const velo_sublayer_span& span) {
  return span.begin != -1 && span.end != -1;
}

text text_of(const velo_sublayer_step& step) {
  return text("%s of layer %d, slice %d", sublayer_name(step.kind), step.layer, step.slice);
}

}  // namespace

sublayer_plan::sublayer_plan(const velo_sublayers_desc& desc)
    : layout_(read_layout(desc)), times_(read_times(desc)), latency_(desc.latency) {
  set_slices(desc);
  if (desc.order != nullptr || desc.order_steps != 0) {
    read_order(desc);
  } else {
    steps_ = order_sublayers(layout_);
    index_steps();
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(steps_.size()); ++i)
    for (const velo_sublayer_step& need : layout_.needs_of(steps_[at(i)]))
      if (index_of(need) >= i)
        fail(VELO_ERR_ARGUMENT, concat("desc.order[", i, "]"),
             text("%s behind %s", text_of(steps_[at(i)]).buffer, text_of(need).buffer),
             concat("that one at ", index_of(need)));
  price();
}

// Tries numbers of slices where the description leaves them open.
void sublayer_plan::set_slices(const velo_sublayers_desc& desc) {
  if (desc.slices > 0) return;
  require(desc.order == nullptr, "slices", "1 or more with an order", desc.slices);
  std::int32_t best = 1;
  double least = 0;
  const std::int32_t last = desc.slicing == VELO_SUBLAYER_WHOLE ? 1 : most_tried;
  for (std::int32_t tried = 1; tried <= last; ++tried) {
    layout_.slices = tried;
    steps_ = order_sublayers(layout_);
    index_steps();
    price();
    if (tried > 1 && info_.makespan >= least) continue;
    best = tried;
    least = info_.makespan;
  }
  layout_.slices = best;
}

void sublayer_plan::read_order(const velo_sublayers_desc& desc) {
  const std::vector<velo_sublayer_step> all = layout_.all_steps();
  const auto count = static_cast<std::int64_t>(all.size());
  if (desc.order == nullptr)
    fail(VELO_ERR_NULL, "desc.order", concat(desc.order_steps, " steps"), "NULL");
  require(desc.order_steps == count, "order_steps", concat(count, ", the steps of these layers"),
          desc.order_steps);
  steps_.assign(desc.order, desc.order + count);
  for (std::int64_t i = 0; i < count; ++i) require_step(steps_[at(i)], i);
  clear_index();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t& place = index_[key_of(steps_[at(i)])];
    if (place >= 0)
      fail(VELO_ERR_ARGUMENT, concat("desc.order[", i, "]"), "each step once",
           text("%s again", text_of(steps_[at(i)]).buffer));
    place = i;
  }
}

void sublayer_plan::require_step(const velo_sublayer_step& step, std::int64_t place) const {
  const bool known = step.kind > 0 && step.kind < sublayer_kinds && step.slice >= 0 &&
                     step.slice < layout_.slices_of(step.kind, step.layer);
  if (!known)
    fail(VELO_ERR_ARGUMENT, concat("desc.order[", place, "]"), "a step of these layers",
         text("kind %d of layer %d, slice %d", step.kind, step.layer, step.slice));
  if (step.message != (is_message(step.kind) ? 1 : 0))
    fail(VELO_ERR_ARGUMENT, concat("desc.order[", place, "].message"),
         is_message(step.kind) ? "1, of a message" : "0, of what is computed",
         number(step.message));
}

std::size_t sublayer_plan::key_of(const velo_sublayer_step& step) const {
  const std::int32_t layers = std::max(layout_.layers(true), layout_.layers(false));
  return at((std::int64_t{step.kind} * layers + step.layer) * layout_.slices + step.slice);
}

std::int64_t sublayer_plan::index_of(const velo_sublayer_step& step) const {
  return index_[key_of(step)];
}

void sublayer_plan::clear_index() {
  const std::int32_t layers = std::max(layout_.layers(true), layout_.layers(false));
  index_.assign(at(std::int64_t{sublayer_kinds} * layers * layout_.slices), -1);
}

void sublayer_plan::index_steps() {
  clear_index();
  for (std::size_t i = 0; i < steps_.size(); ++i)
    index_[key_of(steps_[i])] = static_cast<std::int64_t>(i);
}

std::vector<std::int64_t> sublayer_plan::needs_of(std::int64_t step) const {
  std::vector<std::int64_t> all;
  for (const velo_sublayer_step& need : layout_.needs_of(steps_[at(step)]))
    all.push_back(index_of(need));
  std::sort(all.begin(), all.end());
  return all;
}

double sublayer_plan::time_of(const velo_sublayer_step& step) const {
  const double whole = times_[at(step.kind)] / layout_.slices_of(step.kind, step.layer);
  return step.message != 0 ? whole + latency_ : whole;
}

std::vector<sublayer_plan::time_span> sublayer_plan::priced() const {
  std::vector<time_span> all;
  double free[2] = {0, 0};  // of both streams
  for (const velo_sublayer_step& step : steps_) {
    double& own = free[step.message];
    double begin = own;
    for (const velo_sublayer_step& need : layout_.needs_of(step))
      begin = std::max(begin, all[at(index_of(need))].end);
    own = begin + time_of(step);
    all.push_back({begin, own});
  }
  return all;
}

void sublayer_plan::price() {
  info_ = sum_up(steps_, priced());
  info_.slices = layout_.slices;
}

// Sums times. A step that did not run begins below 0.
velo_sublayers_info sublayer_plan::sum_up(const std::vector<velo_sublayer_step>& steps,
                                          const std::vector<time_span>& times) {
  velo_sublayers_info all{};
  all.steps = static_cast<std::int64_t>(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all.messages += steps[i].message;
    if (times[i].begin < 0) continue;
    all.makespan = std::max(all.makespan, times[i].end);
    (steps[i].message != 0 ? all.communicating : all.computing) += times[i].end - times[i].begin;
  }
  all.exposed = std::max(all.makespan - all.computing, 0.0);
  return all;
}

// Times from the first begin.
std::vector<sublayer_plan::time_span> sublayer_plan::times_of(
    const velo_sublayer_span* spans) const {
  if (spans == nullptr) return priced();
  std::int64_t first = INT64_MAX;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!did_run(spans[i])) continue;
    if (spans[i].begin < 0 || spans[i].end < spans[i].begin)
      fail(VELO_ERR_ARGUMENT, concat("spans[", i, "]"), "a begin of 0 or more, an end behind it",
           concat(spans[i].begin, " to ", spans[i].end));
    first = std::min(first, spans[i].begin);
  }
  std::vector<time_span> all;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    all.push_back(did_run(spans[i]) ? time_span{static_cast<double>(spans[i].begin - first),
                                                static_cast<double>(spans[i].end - first)}
                                    : time_span{-1, -1});
  return all;
}

}  // namespace velo::sched
