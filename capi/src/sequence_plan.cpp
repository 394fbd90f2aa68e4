// Entries of velo/sequence_plan.h.
#include "velo/sequence_plan.h"

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"
#include "sched/parallel/context/planned_sequence.hpp"

using namespace velo;
using core::concat;
using core::fail;
using core::number;
using sched::planned_sequence;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 104;
constexpr std::uint32_t info_size = 40;
constexpr std::uint32_t step_size = 64;
constexpr std::uint32_t task_size = 48;
constexpr std::uint32_t message_size = 80;
static_assert(sizeof(velo_sequence_desc) >= desc_size && sizeof(velo_sequence_info) >= info_size &&
              sizeof(velo_sequence_step) >= step_size && sizeof(velo_sequence_task) >= task_size &&
              sizeof(velo_sequence_message) >= message_size);

const planned_sequence& plan_of(velo_sequence_plan handle) {
  return core::use<planned_sequence>(handle, "plan");
}

void require_below(const char* argument, std::int64_t value, std::int64_t count) {
  if (value >= 0 && value < count) return;
  fail(VELO_ERR_ARGUMENT, argument,
       count == 0 ? core::text("none there") : concat("0 to ", count - 1), number(value));
}

void require_step(const planned_sequence& of, velo_sequence_pass pass, std::int64_t rank,
                  std::int64_t step) {
  if (pass != VELO_SEQUENCE_FORWARD && pass != VELO_SEQUENCE_GRADIENT)
    fail(VELO_ERR_ARGUMENT, "pass", "VELO_SEQUENCE_FORWARD or VELO_SEQUENCE_GRADIENT",
         number(pass));
  require_below("rank", rank, of.ranks());
  require_below("step", step, of.pass(pass).steps + 1);
}

const sched::attention_task& task_at(const planned_sequence& of, velo_sequence_pass pass,
                                     std::int64_t rank, std::int64_t step, std::int64_t index) {
  const auto all = of.tasks(pass, rank, step);
  require_below("index", index, static_cast<std::int64_t>(all.size()));
  return *all[core::at(index)];
}

const sched::block_message& message_at(const planned_sequence& of, velo_sequence_pass pass,
                                       std::int64_t rank, std::int64_t step,
                                       velo_sequence_part part, std::int64_t index) {
  const auto all =
      part == VELO_SEQUENCE_SENT ? of.sent(pass, rank, step) : of.received(pass, rank, step);
  require_below("index", index, static_cast<std::int64_t>(all.size()));
  return *all[core::at(index)];
}

void write_spans(const sched::rows& from, std::int64_t* spans, std::int64_t capacity,
                 std::int64_t* count) {
  capi::require_room(spans, capacity, "spans", "pairs");
  const auto found = static_cast<std::int64_t>(from.size());
  for (std::int64_t i = 0; i < std::min(found, capacity); ++i)
    spans[2 * i] = from[core::at(i)].begin, spans[2 * i + 1] = from[core::at(i)].end;
  if (count != nullptr) *count = found;
}

}  // namespace

extern "C" {

velo_status velo_sequence_plan_create(const velo_sequence_desc* desc, velo_sequence_plan* plan) {
  return core::guard("velo_sequence_plan_create", [&] {
    const velo_sequence_desc defaults = VELO_SEQUENCE_DESC_INIT;
    const velo_sequence_desc given = capi::read_struct(desc, desc_size, "desc", defaults);
    capi::required(plan, "plan");
    *plan = core::handle_of(core::make_object<planned_sequence>(nullptr, given));
  });
}

void velo_sequence_plan_destroy(velo_sequence_plan plan) {
  capi::destroy<planned_sequence>("velo_sequence_plan_destroy", plan, "plan");
}

velo_status velo_sequence_plan_get_info(velo_sequence_plan plan, velo_sequence_info* info) {
  return core::guard("velo_sequence_plan_get_info", [&] {
    const planned_sequence& of = plan_of(plan);
    velo_sequence_info found{};
    found.cp = of.ranks();
    found.sequence = of.sequence();
    found.forward_steps = of.pass(VELO_SEQUENCE_FORWARD).steps;
    found.gradient_steps = of.pass(VELO_SEQUENCE_GRADIENT).steps;
    if (const auto& rounds = of.plan().adaptive)
      found.rounds = rounds->rounds, found.rule_rounds = rounds->by_rule;
    found.kv_layers = of.cache().count();
    capi::write_struct(info, info_size, "info", found);
  });
}

velo_status velo_sequence_plan_get_rows(velo_sequence_plan plan, int64_t rank, int64_t* spans,
                                        int64_t capacity, int64_t* count) {
  return core::guard("velo_sequence_plan_get_rows", [&] {
    const planned_sequence& of = plan_of(plan);
    require_below("rank", rank, of.ranks());
    write_spans(of.held(rank), spans, capacity, count);
  });
}

velo_status velo_sequence_plan_get_step(velo_sequence_plan plan, velo_sequence_pass pass,
                                        int64_t rank, int64_t step, velo_sequence_step* price) {
  return core::guard("velo_sequence_plan_get_step", [&] {
    const planned_sequence& of = plan_of(plan);
    require_step(of, pass, rank, step);
    velo_sequence_step found{};
    of.price(pass, rank, step, found);
    capi::write_struct(price, step_size, "price", found);
  });
}

velo_status velo_sequence_plan_get_task(velo_sequence_plan plan, velo_sequence_pass pass,
                                        int64_t rank, int64_t step, int64_t index,
                                        velo_sequence_task* task) {
  return core::guard("velo_sequence_plan_get_task", [&] {
    const planned_sequence& of = plan_of(plan);
    require_step(of, pass, rank, step);
    const sched::attention_task& one = task_at(of, pass, rank, step, index);
    velo_sequence_task found{};
    found.cells = static_cast<velo_sequence_cells>(one.visible);
    found.step = one.step;
    found.heads_begin = one.heads.begin, found.heads_end = one.heads.end;
    found.queries = sched::size_of(one.queries), found.keys = sched::size_of(one.keys);
    capi::write_struct(task, task_size, "task", found);
  });
}

velo_status velo_sequence_plan_get_message(velo_sequence_plan plan, velo_sequence_pass pass,
                                           int64_t rank, int64_t step, velo_sequence_part part,
                                           int64_t index, velo_sequence_message* message) {
  return core::guard("velo_sequence_plan_get_message", [&] {
    const planned_sequence& of = plan_of(plan);
    require_step(of, pass, rank, step);
    if (part != VELO_SEQUENCE_SENT && part != VELO_SEQUENCE_RECEIVED)
      fail(VELO_ERR_ARGUMENT, "part", "VELO_SEQUENCE_SENT or VELO_SEQUENCE_RECEIVED", number(part));
    const sched::block_message& one = message_at(of, pass, rank, step, part, index);
    velo_sequence_message found{};
    found.content = static_cast<velo_sequence_content>(one.what);
    found.step = one.step, found.needed = one.needed;
    found.from = one.from, found.to = one.to;
    found.heads_begin = one.heads.begin, found.heads_end = one.heads.end;
    found.rows = sched::size_of(one.of);
    found.bytes = of.bytes_of(one);
    found.kept = one.kept ? 1 : 0;
    found.statistics = one.statistics;
    capi::write_struct(message, message_size, "message", found);
  });
}

velo_status velo_sequence_plan_get_spans(velo_sequence_plan plan, velo_sequence_pass pass,
                                         int64_t rank, int64_t step, velo_sequence_part part,
                                         int64_t index, int64_t* spans, int64_t capacity,
                                         int64_t* count) {
  return core::guard("velo_sequence_plan_get_spans", [&] {
    const planned_sequence& of = plan_of(plan);
    require_step(of, pass, rank, step);
    if (part < VELO_SEQUENCE_TASK_QUERIES || part > VELO_SEQUENCE_RECEIVED)
      fail(VELO_ERR_ARGUMENT, "part", "VELO_SEQUENCE_TASK_QUERIES to VELO_SEQUENCE_RECEIVED",
           number(part));
    if (part == VELO_SEQUENCE_TASK_QUERIES)
      write_spans(task_at(of, pass, rank, step, index).queries, spans, capacity, count);
    else if (part == VELO_SEQUENCE_TASK_KEYS)
      write_spans(task_at(of, pass, rank, step, index).keys, spans, capacity, count);
    else
      write_spans(message_at(of, pass, rank, step, part, index).of, spans, capacity, count);
  });
}

velo_status velo_sequence_plan_check(velo_sequence_plan plan) {
  return core::guard("velo_sequence_plan_check", [&] { plan_of(plan).prove(); });
}

velo_status velo_sequence_plan_write(velo_sequence_plan plan, velo_sequence_format format,
                                     char* buffer, uint64_t capacity, uint64_t* needed) {
  return core::guard("velo_sequence_plan_write", [&] {
    const planned_sequence& of = plan_of(plan);
    if (format != VELO_SEQUENCE_JSON && format != VELO_SEQUENCE_SVG)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_SEQUENCE_JSON or VELO_SEQUENCE_SVG", number(format));
    const std::string text = format == VELO_SEQUENCE_JSON ? of.json() : of.picture();
    capi::write_text(text.c_str(), buffer, capacity, needed);
  });
}
}
