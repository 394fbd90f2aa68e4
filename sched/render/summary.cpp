// The numbers of a timeline, with the fewest digits that are exact.
#include "sched/render/text.hpp"
#include "sched/simulate/critical_path.hpp"
#include "sched/simulate/memory_use.hpp"

namespace velo::sched {
namespace {

void write_path(core::json_writer& to, const timeline& of, const spans& when) {
  to.key("critical_path").array();
  for (const path_step& step : critical_path(of, when)) {
    to.line(" ").object().member("rank", step.rank).member("index", step.index);
    to.member("action", text_of(step.done)).member("begin", of.in_units(step.when.begin));
    to.member("length", of.in_units(step.when.end - step.when.begin));
    to.member("wait", of.in_units(step.wait)).member("cause", cause_name(step.cause)).end();
  }
  to.end();
}

void write_memory(core::json_writer& to, const timeline& of, const spans& when) {
  memory_use use(of, when);
  to.key("memory").array();
  for (std::int32_t rank = 0; rank < of.of->sizes().ranks; ++rank) {
    const memory_amounts most = use.peak(rank);
    to.line(" ").object().member("rank", rank);
    for (std::size_t c = 0; c < categories; ++c) to.member(category_names[c], most.of[c]);
    to.member("total", most.total()).member("time", of.in_units(most.time)).end();
  }
  to.end();
}

// "critical path: 22 actions of 21 in all, between them 1.5 of messages"
void append_path(std::string& to, const timeline& of, const spans& when) {
  std::int64_t length = 0, waits[VELO_PATH_COLLECTIVE + 1] = {};
  const std::vector<path_step> path = critical_path(of, when);
  for (const path_step& step : path) {
    length += step.when.end - step.when.begin;
    waits[step.cause] += step.wait;
  }
  to += "critical path: " + std::to_string(path.size()) + " actions that take ";
  append_number(to, of.in_units(length));
  for (velo_path_cause cause = 0; cause <= VELO_PATH_COLLECTIVE; ++cause) {
    if (waits[cause] == 0) continue;
    to += std::string(", waits for ") + cause_name(cause) + " ";
    append_number(to, of.in_units(waits[cause]));
  }
  to += '\n';
}

// Appends a line for each rank: "0: 24.1 at 10.5, weights 2, gradients 4, ..".
void append_memory(std::string& to, const timeline& of, const spans& when) {
  memory_use use(of, when);
  to += "most memory by rank, when, and of what; offloaded is on the host, its most at any time:\n";
  for (std::int32_t rank = 0; rank < of.of->sizes().ranks; ++rank) {
    const memory_amounts most = use.peak(rank);
    to += " " + std::to_string(rank) + ": ";
    append_number(to, most.total());
    append_number(to += " at ", of.in_units(most.time));
    for (std::size_t c = 0; c < categories; ++c)
      append_number(to += std::string(", ") + category_names[c] + ' ', most.of[c]);
    to += '\n';
  }
}

}  // namespace

std::string write_summary_json(const timeline& of) {
  const simulation& times = of.times;
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  to.object().member("makespan", of.in_units(times.makespan()));
  to.member("work", of.in_units(times.work()));
  to.member("beta", of.in_units(times.makespan() - times.work()));
  to.member("sigma", of.in_units(times.sigma())).key("peak_activations").array();
  for (const auto& rank : times.ranks) to.value(of.in_microbatches(rank.peak));
  to.end();
  if (has_details(of)) {
    const auto when = spans_of(of);
    write_path(to, of, *when);
    write_memory(to, of, *when);
  }
  to.end();
  return out += '\n';
}

std::string write_summary(const timeline& of) {
  const simulation& times = of.times;
  const shape& sizes = of.of->sizes();
  std::string out = std::to_string(sizes.ranks) + " ranks, " + std::to_string(sizes.stages) +
                    " stages, " + std::to_string(sizes.microbatches) + " micro-batches, " +
                    std::to_string(of.of->actions()) + " actions\n";
  const auto line = [&](const char* name, std::int64_t value, const char* meaning) {
    out += name;
    append_number(out, of.in_units(value));
    out += meaning;
  };
  line("makespan  ", times.makespan(), "\n");
  line("work      ", times.work(), "  of the rank that works least\n");
  line("beta      ", times.makespan() - times.work(), "  makespan - work: the most a rank idles\n");
  line("sigma     ", times.sigma(), "  the same between its own first and last action\n");
  out += "peak activations by rank, in micro-batches of a whole rank:\n ";
  for (std::size_t rank = 0; rank < times.ranks.size(); ++rank)
    append_number(out += rank > 0 ? " " : "", of.in_microbatches(times.ranks[rank].peak));
  out += '\n';
  if (!has_details(of)) return out;
  const auto when = spans_of(of);
  append_path(out, of, *when);
  if (has_sizes(of)) append_memory(out, of, *when);
  return out;
}

}  // namespace velo::sched
