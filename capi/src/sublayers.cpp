// Entries of velo/sublayers.h.
#include "velo/sublayers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"
#include "sched/sublayers/sublayer_plan.hpp"
#include "sched/sublayers/sublayer_run.hpp"

using namespace velo;
using core::concat;
using core::fail;
using core::number;
using sched::sublayer_plan;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 72;
constexpr std::uint32_t info_size = 56;
constexpr std::uint32_t run_size = 48;
static_assert(sizeof(velo_sublayers_desc) >= desc_size &&
              sizeof(velo_sublayers_info) >= info_size &&
              sizeof(velo_sublayers_run_desc) >= run_size);

const sublayer_plan& plan_of(velo_sublayers handle) {
  return core::use<sublayer_plan>(handle, "plan");
}

template <class T>
void write_list(const std::vector<T>& from, const char* argument, const char* things, T* to,
                std::int64_t capacity, std::int64_t* count) {
  capi::require_room(to, capacity, argument, things);
  const auto found = static_cast<std::int64_t>(from.size());
  std::copy_n(from.begin(), std::min(found, capacity), to);
  if (count != nullptr) *count = found;
}

velo_sublayers_run_desc read_run(const velo_sublayers_run_desc* given, const sublayer_plan& plan) {
  const velo_sublayers_run_desc defaults = VELO_SUBLAYERS_RUN_DESC_INIT;
  const auto read = capi::read_struct(given, run_size, "desc", defaults);
  if (read.compute == nullptr) fail(VELO_ERR_NULL, "desc.compute", "a function", "NULL");
  if (read.message == nullptr && plan.has_messages())
    fail(VELO_ERR_NULL, "desc.message", "a function, since the plan has messages", "NULL");
  return read;
}

core::stream& working_stream(velo_stream handle, const char* argument) {
  auto& on = core::use<core::stream>(handle, argument);
  if (!on.is_inline()) on.owner().require_can_wait(argument);
  return on;
}

}  // namespace

extern "C" {

velo_status velo_sublayers_create(const velo_sublayers_desc* desc, velo_sublayers* plan) {
  return core::guard("velo_sublayers_create", [&] {
    const velo_sublayers_desc defaults = VELO_SUBLAYERS_DESC_INIT;
    const velo_sublayers_desc given = capi::read_struct(desc, desc_size, "desc", defaults);
    capi::required(plan, "plan");
    *plan = core::handle_of(core::make_object<sublayer_plan>(nullptr, given));
  });
}

void velo_sublayers_destroy(velo_sublayers plan) {
  capi::destroy<sublayer_plan>("velo_sublayers_destroy", plan, "plan");
}

velo_status velo_sublayers_get_info(velo_sublayers plan, velo_sublayers_info* info) {
  return core::guard("velo_sublayers_get_info",
                     [&] { capi::write_struct(info, info_size, "info", plan_of(plan).info()); });
}

velo_status velo_sublayers_get_steps(velo_sublayers plan, velo_sublayer_step* steps,
                                     int64_t capacity, int64_t* count) {
  return core::guard("velo_sublayers_get_steps", [&] {
    write_list(plan_of(plan).steps(), "steps", "steps", steps, capacity, count);
  });
}

velo_status velo_sublayers_get_needs(velo_sublayers plan, int64_t step, int64_t* needs,
                                     int64_t capacity, int64_t* count) {
  return core::guard("velo_sublayers_get_needs", [&] {
    const sublayer_plan& of = plan_of(plan);
    const auto steps = static_cast<std::int64_t>(of.steps().size());
    if (step < 0 || step >= steps)
      fail(VELO_ERR_ARGUMENT, "step", concat("one of ", steps, " steps"), number(step));
    capi::require_room(needs, capacity, "needs", "steps");
    write_list(of.needs_of(step), "needs", "steps", needs, capacity, count);
  });
}

velo_status velo_sublayers_write(velo_sublayers plan, const velo_sublayer_span* spans,
                                 velo_sublayers_format format, char* buffer, uint64_t capacity,
                                 uint64_t* needed) {
  return core::guard("velo_sublayers_write", [&] {
    const sublayer_plan& of = plan_of(plan);
    if (format != VELO_SUBLAYERS_JSON && format != VELO_SUBLAYERS_SVG)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_SUBLAYERS_JSON or VELO_SUBLAYERS_SVG",
           number(format));
    const std::string text = format == VELO_SUBLAYERS_JSON ? of.json(spans) : of.picture(spans);
    capi::write_text(text.c_str(), buffer, capacity, needed);
  });
}

velo_status velo_sublayers_run(velo_stream compute, velo_stream messages, velo_sublayers plan,
                               const velo_sublayers_run_desc* desc) {
  return core::guard("velo_sublayers_run", [&] {
    core::stream& computes = working_stream(compute, "compute");
    core::stream& sends = working_stream(messages, "messages");
    const sublayer_plan& of = plan_of(plan);
    const velo_sublayers_run_desc given = read_run(desc, of);
    if (&computes.owner() != &sends.owner())
      fail(VELO_ERR_ARGUMENT, "messages", "a stream of the context of `compute`",
           "one of another context");
    sched::sublayer_run(computes, sends, of, given).carry_out();
  });
}
}
