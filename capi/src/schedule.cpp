// Entries of velo/schedule.h and velo/timeline.h.
#include "velo/timeline.h"

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"
#include "sched/check/schedule_object.hpp"
#include "sched/pipeline/generate.hpp"
#include "sched/schedule/csv.hpp"
#include "sched/schedule/json.hpp"
#include "sched/schedule/kind_name.hpp"
#include "sched/simulate/critical_path.hpp"
#include "sched/simulate/lower.hpp"
#include "sched/simulate/memory_use.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 72;
constexpr std::uint32_t info_size = 32;
constexpr std::uint32_t violation_size = 216;
constexpr std::uint32_t costs_size = 200;
constexpr std::uint32_t stage_size = 36;
constexpr std::uint32_t stats_size = 40;
constexpr std::uint32_t rank_size = 48;
constexpr std::uint32_t memory_size = 72;
static_assert(sizeof(velo_schedule_desc) >= desc_size && sizeof(velo_schedule_info) >= info_size &&
              sizeof(velo_violation) >= violation_size &&
              sizeof(velo_schedule_costs) >= costs_size &&
              sizeof(velo_timeline_stats) >= stats_size &&
              sizeof(velo_timeline_rank) >= rank_size &&
              sizeof(velo_timeline_memory) >= memory_size && sizeof(velo_stage_info) >= stage_size);

constexpr double most_cost = 1e18;

sched::schedule_object& schedule_of(velo_schedule handle) {
  return core::use<sched::schedule_object>(handle, "schedule");
}
const sched::timeline& timeline_of(velo_timeline handle) {
  return core::use<sched::timeline>(handle, "timeline");
}

void require_rank(std::int32_t rank, std::int32_t ranks) {
  if (rank < 0 || rank >= ranks)
    fail(VELO_ERR_ARGUMENT, "rank", text("that of one of %d ranks", ranks), text("%d", rank));
}

void require_format(std::int32_t format, std::int32_t most, const char* expected) {
  if (format < 0 || format > most) fail(VELO_ERR_ARGUMENT, "format", expected, text("%d", format));
}

sched::costs read_costs(const velo_schedule_costs* given, const char* argument) {
  const velo_schedule_costs defaults = VELO_SCHEDULE_COSTS_INIT;
  const velo_schedule_costs read =
      given == nullptr ? defaults : capi::read_struct(given, costs_size, argument, defaults);
  const auto require = [&](double cost, double most, const char* field) {
    if (!(cost >= 0) || cost > most)
      fail(VELO_ERR_ARGUMENT, text("%s.%s", argument, field), text("0 to %g", most),
           text("%g", cost));
  };
  const struct {
    double cost;
    const char* field;
  } times[] = {{read.forward, "forward"},
               {read.input, "input"},
               {read.weight, "weight"},
               {read.fused == -1 ? 0 : read.fused, "fused"},
               {read.latency, "latency"},
               {read.transfer, "transfer"},
               {read.recompute == -1 ? 0 : read.recompute, "recompute"},
               {read.offload, "offload"},
               {read.reload, "reload"},
               {read.gather, "gather"},
               {read.reduce, "reduce"},
               {read.optimizer, "optimizer"},
               {read.embedding, "embedding"},
               {read.predictor, "predictor"},
               {read.loss, "loss"},
               {read.weight_size, "weight_size"},
               {read.gradient_size, "gradient_size"},
               {read.optimizer_size, "optimizer_size"},
               {read.activation_size, "activation_size"},
               {read.message_size, "message_size"}};
  for (const auto& time : times) require(time.cost, most_cost, time.field);
  require(read.pending, 1, "pending");
  require(read.checkpoint, 1, "checkpoint");
  sched::costs costs;
  costs.forward = read.forward;
  costs.input = read.input;
  costs.weight = read.weight;
  costs.fused = read.fused;
  costs.latency = read.latency;
  costs.transfer = read.transfer;
  costs.recompute = read.recompute;
  costs.offload = read.offload;
  costs.reload = read.reload;
  costs.gather = read.gather;
  costs.reduce = read.reduce;
  costs.optimizer = read.optimizer;
  costs.pending = read.pending;
  costs.checkpoint = read.checkpoint;
  costs.embedding = read.embedding;
  costs.predictor = read.predictor;
  costs.loss = read.loss;
  costs.sizes = {read.weight_size, read.gradient_size, read.optimizer_size, read.activation_size,
                 read.message_size};
  if (read.share_count < 0 || (read.shares == nullptr) != (read.share_count == 0))
    fail(VELO_ERR_ARGUMENT, text("%s.share_count", argument), "as many as shares has",
         core::number(read.share_count));
  for (std::int64_t i = 0; i < read.share_count; ++i) {
    require(read.shares[i], most_cost, core::concat("shares[", i, "]"));
    costs.shares.push_back(read.shares[i]);
  }
  return costs;
}

}  // namespace

extern "C" {

velo_status velo_schedule_create(const velo_schedule_desc* desc, velo_schedule* schedule) {
  return core::guard("velo_schedule_create", [&] {
    capi::required(schedule, "schedule");
    const velo_schedule_desc wanted =
        capi::read_struct(desc, desc_size, "desc", velo_schedule_desc VELO_SCHEDULE_DESC_INIT);
    const sched::costs costs = read_costs(wanted.costs, "desc.costs");
    *schedule = core::handle_of(core::make_object<sched::schedule_object>(
        nullptr, sched::generate(sched::read_request(wanted, costs))));
  });
}

void velo_schedule_destroy(velo_schedule schedule) {
  capi::destroy<sched::schedule_object>("velo_schedule_destroy", schedule, "schedule");
}

velo_status velo_schedule_read(velo_schedule schedule, velo_schedule_format format,
                               const char* text, uint64_t length) {
  return core::guard("velo_schedule_read", [&] {
    sched::schedule_object& to = schedule_of(schedule);
    require_format(format, VELO_SCHEDULE_JSON, "VELO_SCHEDULE_CSV or _JSON");
    if (text == nullptr) fail(VELO_ERR_NULL, "text", "a text", "NULL");
    to.put(format == VELO_SCHEDULE_CSV ? sched::read_csv({text, length})
                                       : sched::read_json({text, length}));
  });
}

velo_status velo_schedule_get_info(velo_schedule schedule, velo_schedule_info* info) {
  return core::guard("velo_schedule_get_info", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    const sched::shape& sizes = from.sizes();
    velo_schedule_info now{};
    now.kind = sizes.kind;
    now.ranks = sizes.ranks;
    now.stages = sizes.stages;
    now.microbatches = sizes.microbatches;
    now.layers = from.layers() == nullptr ? 0 : from.layers()->layers();
    now.actions = from.actions();
    capi::write_struct(info, info_size, "info", now);
  });
}

velo_status velo_schedule_kind_name(velo_schedule_kind kind, const char** name) {
  return core::guard("velo_schedule_kind_name", [&] {
    capi::required(name, "name");
    const char* const found = sched::name_of(kind);
    if (found == nullptr)
      fail(VELO_ERR_ARGUMENT, "kind", "one of VELO_SCHEDULE_*", text("%d", kind));
    *name = found;
  });
}

velo_status velo_schedule_get_stage(velo_schedule schedule, int32_t stage, velo_stage_info* info) {
  return core::guard("velo_schedule_get_stage", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    const std::int32_t stages = from.sizes().stages;
    if (stage < 0 || stage >= stages)
      fail(VELO_ERR_ARGUMENT, "stage", text("that of one of %d stages", stages), text("%d", stage));
    capi::write_struct(info, stage_size, "info", sched::describe_stage(from, stage));
  });
}

velo_status velo_schedule_get_length(velo_schedule schedule, int32_t rank, int64_t* length) {
  return core::guard("velo_schedule_get_length", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    capi::required(length, "length");
    require_rank(rank, from.sizes().ranks);
    *length = from.length(rank);
  });
}

velo_status velo_schedule_get_actions(velo_schedule schedule, int32_t rank, int64_t first,
                                      int64_t count, velo_action* actions) {
  return core::guard("velo_schedule_get_actions", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    capi::required(actions, "actions");
    require_rank(rank, from.sizes().ranks);
    const std::int64_t length = from.length(rank);
    if (first < 0 || first > length)
      fail(VELO_ERR_ARGUMENT, "first", core::concat("a place among ", length, " actions"),
           core::number(first));
    if (count < 0 || count > length - first)
      fail(VELO_ERR_ARGUMENT, "count",
           core::concat("at most the ", length - first, " actions from there on"),
           core::number(count));
    from.read(rank, first, count, actions);
  });
}

velo_status velo_schedule_write(velo_schedule schedule, velo_schedule_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_schedule_write", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    require_format(format, VELO_SCHEDULE_JSON, "VELO_SCHEDULE_CSV or _JSON");
    const std::string all =
        format == VELO_SCHEDULE_CSV ? sched::write_csv(from) : sched::write_json(from);
    capi::write_text(all.c_str(), buffer, capacity, needed);
  });
}

velo_status velo_schedule_lower(velo_schedule schedule, velo_schedule* lowered) {
  return core::guard("velo_schedule_lower", [&] {
    const sched::schedule& from = schedule_of(schedule).value();
    capi::required(lowered, "lowered");
    *lowered =
        core::handle_of(core::make_object<sched::schedule_object>(nullptr, sched::lower(from)));
  });
}

velo_status velo_schedule_check(velo_schedule schedule, int64_t* violations) {
  return core::guard("velo_schedule_check", [&] {
    sched::schedule_object& of = schedule_of(schedule);
    capi::required(violations, "violations");
    *violations = static_cast<std::int64_t>(of.check().size());
  });
}

velo_status velo_schedule_get_violation(velo_schedule schedule, int64_t index,
                                        velo_violation* violation) {
  return core::guard("velo_schedule_get_violation", [&] {
    const sched::schedule_object& of = schedule_of(schedule);
    if (!of.checked()) fail(VELO_ERR_STATE, "schedule", "a checked schedule", "one not checked");
    const auto count = static_cast<std::int64_t>(of.found().size());
    if (index < 0 || index >= count)
      fail(VELO_ERR_ARGUMENT, "index", core::concat("that of one of ", count, " violations"),
           core::number(index));
    const sched::violation& from = of.found()[core::at(index)];
    velo_violation found{};
    found.code = from.code;
    found.rank = from.rank;
    found.index = from.index;
    found.action = from.subject;
    core::copy_text(found.reason, sizeof found.reason, from.reason.c_str());
    capi::write_struct(violation, violation_size, "violation", found);
  });
}

velo_status velo_schedule_simulate(velo_schedule schedule, const velo_schedule_costs* costs,
                                   velo_timeline* timeline) {
  return core::guard("velo_schedule_simulate", [&] {
    const sched::schedule_object& from = schedule_of(schedule);
    capi::required(timeline, "timeline");
    *timeline = core::handle_of(core::make_object<sched::timeline>(
        nullptr, sched::simulate(from.shared(), read_costs(costs, "costs"))));
  });
}

void velo_timeline_destroy(velo_timeline timeline) {
  capi::destroy<sched::timeline>("velo_timeline_destroy", timeline, "timeline");
}

velo_status velo_timeline_get_stats(velo_timeline timeline, velo_timeline_stats* stats) {
  return core::guard("velo_timeline_get_stats", [&] {
    const sched::timeline& from = timeline_of(timeline);
    const sched::simulation& times = from.times;
    velo_timeline_stats now{};
    now.makespan = from.in_units(times.makespan());
    now.work = from.in_units(times.work());
    now.beta = from.in_units(times.makespan() - times.work());
    now.sigma = from.in_units(times.sigma());
    capi::write_struct(stats, stats_size, "stats", now);
  });
}

velo_status velo_timeline_get_rank(velo_timeline timeline, int32_t rank,
                                   velo_timeline_rank* stats) {
  return core::guard("velo_timeline_get_rank", [&] {
    const sched::timeline& from = timeline_of(timeline);
    require_rank(rank, from.of->sizes().ranks);
    const sched::rank_times& times = from.times.ranks[core::at(rank)];
    velo_timeline_rank now{};
    now.first = from.in_units(times.first);
    now.last = from.in_units(times.last);
    now.work = from.in_units(times.work);
    now.peak_activations = from.in_microbatches(times.peak);
    now.peak_offloaded = from.in_microbatches(times.host_peak);
    capi::write_struct(stats, rank_size, "stats", now);
  });
}

velo_status velo_timeline_get_memory(velo_timeline timeline, int32_t rank,
                                     velo_timeline_memory* memory) {
  return core::guard("velo_timeline_get_memory", [&] {
    const sched::timeline& from = timeline_of(timeline);
    require_rank(rank, from.of->sizes().ranks);
    sched::require_listed(from);
    const sched::memory_amounts most = sched::memory_use(from, *sched::spans_of(from)).peak(rank);
    velo_timeline_memory now{};
    now.time = from.in_units(most.time);
    now.total = most.total();
    now.weights = most.of[sched::weights];
    now.gradients = most.of[sched::gradients];
    now.optimizer = most.of[sched::optimizer_states];
    now.activations = most.of[sched::activations];
    now.messages = most.of[sched::messages];
    now.offloaded = most.of[sched::offloaded];
    capi::write_struct(memory, memory_size, "memory", now);
  });
}

velo_status velo_timeline_get_path(velo_timeline timeline, int64_t capacity, velo_path_step* steps,
                                   int64_t* count) {
  return core::guard("velo_timeline_get_path", [&] {
    const sched::timeline& from = timeline_of(timeline);
    capi::required(count, "count");
    if (capacity < 0) fail(VELO_ERR_ARGUMENT, "capacity", "0 or more", core::number(capacity));
    if (capacity > 0) capi::required(steps, "steps");
    const std::vector<sched::path_step> path = sched::critical_path(from);
    const auto size = static_cast<std::int64_t>(path.size());
    for (std::int64_t i = 0; i < std::min(capacity, size); ++i) {
      const sched::path_step& step = path[core::at(i)];
      steps[i] = {step.done,
                  step.rank,
                  step.index,
                  from.in_units(step.when.begin),
                  from.in_units(step.when.end - step.when.begin),
                  from.in_units(step.wait),
                  step.cause,
                  0};
    }
    *count = size;
  });
}

velo_status velo_timeline_write(velo_timeline timeline, velo_timeline_format format, char* buffer,
                                uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_timeline_write", [&] {
    const sched::timeline& from = timeline_of(timeline);
    require_format(format, VELO_TIMELINE_GRID, "one of VELO_TIMELINE_*");
    constexpr std::string (*writers[])(const sched::timeline&) = {
        &sched::write_summary, &sched::write_summary_json, &sched::draw_svg, &sched::write_trace,
        &sched::draw_grid};
    const std::string all = writers[format](from);
    capi::write_text(all.c_str(), buffer, capacity, needed);
  });
}
}
