// Entries of velo/tune.h.
#include "velo/tune.h"

#include <cmath>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"
#include "sched/tune/tuning_object.hpp"

using namespace velo;
using core::fail;
using core::text;
using sched::tune::tuning;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 48;
constexpr std::uint32_t info_size = 48;
constexpr std::uint32_t plan_size = 120;
constexpr std::uint32_t memory_size = 64;
constexpr std::uint32_t rejection_size = 256;
static_assert(sizeof(velo_tune_desc) >= desc_size && sizeof(velo_tuning_info) >= info_size &&
              sizeof(velo_tuning_plan) >= plan_size && sizeof(velo_tuning_memory) >= memory_size &&
              sizeof(velo_tuning_rejection) >= rejection_size);

const tuning& tuning_of(velo_tuning handle) {
  return core::use<tuning>(handle, "tuning");
}

template <class Row>
const Row& row_of(const std::vector<Row>& rows, std::int64_t index, const char* noun) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (index < 0 || index >= count)
    fail(VELO_ERR_ARGUMENT, "index", core::concat("that of one of ", count, " ", noun),
         core::number(index));
  return rows[core::at(index)];
}

std::int64_t whole(double bytes) {
  return std::llround(bytes);
}

// The layout of a plan or a rejection. Its struct is of a fixed size, so later ways of a cut are
// fields behind it.
template <class Row>
void write_layout(Row& to, const sched::tune::full_layout& from) {
  to.layout = from;
  to.cp_algorithm = from.cp_algorithm;
  to.cp_ulysses = from.cp_ulysses;
  to.tp_slices = from.tp_slices;
  to.token_rearrange = static_cast<velo_tuning_rearrange>(from.tokens);
  to.tp_x = from.tp_x;
  to.sequence_splits = from.sequence_splits;
  to.sequence_parallel = from.sequence_parallel;
  to.zero = from.zero;
}

void require_range(std::int32_t value, std::int64_t most, const char* field) {
  if (value < 0 || value > most)
    fail(VELO_ERR_ARGUMENT, field, core::concat("0 to ", most), text("%d", value));
}

}  // namespace

extern "C" {

velo_status velo_tune(const velo_tune_desc* desc, velo_tuning* tuning) {
  return core::guard("velo_tune", [&] {
    capi::required(tuning, "tuning");
    const velo_tune_desc wanted =
        capi::read_struct(desc, desc_size, "desc", velo_tune_desc VELO_TUNE_DESC_INIT);
    require_range(wanted.accelerators, sched::tune::most_accelerators, "desc.accelerators");
    require_range(wanted.keep, sched::tune::most_kept, "desc.keep");
    *tuning = core::handle_of(core::make_object<sched::tune::tuning>(
        nullptr, sched::tune::search(sched::tune::read_job(wanted))));
  });
}

void velo_tuning_destroy(velo_tuning tuning) {
  capi::destroy<sched::tune::tuning>("velo_tuning_destroy", tuning, "tuning");
}

velo_status velo_tuning_get_info(velo_tuning tuning, velo_tuning_info* info) {
  return core::guard("velo_tuning_get_info", [&] {
    const sched::tune::tuning& from = tuning_of(tuning);
    velo_tuning_info now{};
    now.accelerators = static_cast<std::int32_t>(from.of.accelerators);
    now.plans = static_cast<std::int64_t>(from.plans.size());
    now.rejections = static_cast<std::int64_t>(from.rejections.size());
    now.candidates = now.plans + now.rejections;
    now.nearest = from.nearest;
    now.memory = whole(from.of.profile.memory_bytes);
    capi::write_struct(info, info_size, "info", now);
  });
}

velo_status velo_tuning_get_plan(velo_tuning tuning, int64_t index, velo_tuning_plan* plan) {
  return core::guard("velo_tuning_get_plan", [&] {
    const sched::tune::plan& from = row_of(tuning_of(tuning).plans, index, "plans");
    velo_tuning_plan now{};
    now.fullest = from.fullest();
    write_layout(now, from.layout);
    now.memory = whole(from.bytes());
    now.step_seconds = from.step();
    now.pipeline_seconds = from.pipeline;
    now.gradient_seconds = from.gradients;
    now.optimizer_seconds = from.optimizer;
    now.bubble = from.bubble;
    now.tokens_per_second = from.tokens_per_second;
    now.utilization = from.utilization;
    capi::write_struct(plan, plan_size, "plan", now);
  });
}

velo_status velo_tuning_get_memory(velo_tuning tuning, int64_t index, int32_t rank,
                                   velo_tuning_memory* memory) {
  return core::guard("velo_tuning_get_memory", [&] {
    const sched::tune::plan& plan = row_of(tuning_of(tuning).plans, index, "plans");
    if (rank < 0 || rank >= plan.layout.pp)
      fail(VELO_ERR_ARGUMENT, "rank", text("that of one of %d ranks", plan.layout.pp),
           text("%d", rank));
    const sched::tune::rank_memory& from = plan.memory[core::at(rank)];
    velo_tuning_memory now{};
    now.layers = from.layers;
    now.parameters = whole(from.parameters);
    now.gradients = whole(from.gradients);
    now.optimizer = whole(from.optimizer);
    now.activations = whole(from.activations);
    now.workspace = whole(from.workspace);
    now.communication = whole(from.communication);
    now.total = whole(from.total());
    capi::write_struct(memory, memory_size, "memory", now);
  });
}

velo_status velo_tuning_get_rejection(velo_tuning tuning, int64_t index,
                                      velo_tuning_rejection* rejection) {
  return core::guard("velo_tuning_get_rejection", [&] {
    const sched::tune::tuning& all = tuning_of(tuning);
    const sched::tune::rejection& from = row_of(all.rejections, index, "rejections");
    velo_tuning_rejection now{};
    now.code = from.code;
    write_layout(now, from.layout);
    core::copy_text(now.reason, sizeof now.reason, reason_of(all, from).c_str());
    capi::write_struct(rejection, rejection_size, "rejection", now);
  });
}

velo_status velo_tuning_write(velo_tuning tuning, velo_tuning_format format, char* buffer,
                              uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_tuning_write", [&] {
    const sched::tune::tuning& from = tuning_of(tuning);
    if (format < 0 || format > VELO_TUNING_ASSUMPTIONS)
      fail(VELO_ERR_ARGUMENT, "format", "one of VELO_TUNING_*", text("%d", format));
    constexpr std::string (*writers[])(const sched::tune::tuning&) = {
        &sched::tune::write_summary, &sched::tune::write_json, &sched::tune::write_rejected,
        &sched::tune::write_assumptions};
    capi::write_text(writers[format](from).c_str(), buffer, capacity, needed);
  });
}
}
