// Names and numbers of pictures.
#include "sched/render/text.hpp"

#include <charconv>
#include <cmath>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/print.hpp"
#include "sched/schedule/kind_name.hpp"

namespace velo::sched {
namespace {

// An action takes about 100 bytes in a picture.
constexpr std::int64_t most_drawn = std::int64_t{1} << 20;

constexpr look looks[] = {{VELO_ACTION_F, "F", "forward", 0x4e79a7},
                          {VELO_ACTION_I, "I", "gradient of inputs", 0xf28e2b},
                          {VELO_ACTION_W, "W", "gradient of weights", 0x59a14f},
                          {VELO_ACTION_B, "B", "both gradients", 0xd1615d},
                          {VELO_ACTION_SEND_F, "SEND_F", "output sent", 0x6f6f6f},
                          {VELO_ACTION_RECV_F, "RECV_F", "input received", 0xa5a5a5},
                          {VELO_ACTION_SEND_B, "SEND_B", "gradient sent", 0x857661},
                          {VELO_ACTION_RECV_B, "RECV_B", "gradient received", 0xbfae94},
                          {VELO_ACTION_UNSHARD, "UNSHARD", "parameters gathered", 0x76b7b2},
                          {VELO_ACTION_RESHARD, "RESHARD", "parameters let go", 0xa0cbe8},
                          {VELO_ACTION_REDUCE_GRAD, "REDUCE_GRAD", "gradients summed", 0xb07aa1},
                          {VELO_ACTION_RECOMPUTE, "RECOMPUTE", "forward again", 0x86bcb6},
                          {VELO_ACTION_OFFLOAD, "OFFLOAD", "to the host", 0xd7b5a6},
                          {VELO_ACTION_RELOAD, "RELOAD", "from the host", 0x9d7660},
                          {VELO_ACTION_OPTIMIZER, "OPTIMIZER", "parameters updated", 0xedc948}};

}  // namespace

const look& look_of(velo_action_kind kind) {
  for (const look& row : looks)
    if (row.kind == kind) return row;
  return looks[0];
}

std::vector<std::int32_t> chunks_of(const schedule& pipeline) {
  std::vector<std::int32_t> chunks(static_cast<std::size_t>(pipeline.sizes().stages));
  for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank) {
    const std::vector<std::int32_t>& stages = pipeline.stages_of(rank);
    for (std::size_t c = 0; c < stages.size(); ++c)
      chunks[core::at(stages[c])] = static_cast<std::int32_t>(c);
  }
  return chunks;
}

std::string unit_text(const shape& sizes, std::int32_t unit) {
  if (unit < 0) return {};
  if (sizes.splits == 1) return std::to_string(unit);
  return std::to_string(unit / sizes.splits) + '.' + std::to_string(unit % sizes.splits);
}

std::string title_of(const timeline& of) {
  const shape& sizes = of.of->sizes();
  std::string out = name_of(sizes.kind);
  out += ": " + std::to_string(sizes.ranks) + " ranks, " + std::to_string(sizes.stages) +
         " stages, " + std::to_string(sizes.microbatches) + " micro-batches; makespan ";
  const std::int64_t makespan = of.times.makespan(), bubble = makespan - of.times.work();
  if (of.measured != nullptr)
    core::append(out, "%.6g ms", shown(of, makespan));
  else
    append_number(out, shown(of, makespan));
  core::append(
      out, ", bubble %.1f %%",
      makespan == 0 ? 0.0 : 100 * static_cast<double>(bubble) / static_cast<double>(makespan));
  return out;
}

double idle_percent(const timeline& of, std::int32_t rank) {
  const std::int64_t makespan = of.times.makespan();
  const std::int64_t work = of.times.ranks[core::at(rank)].work;
  if (makespan == 0) return 0;
  return 100 * static_cast<double>(makespan - work) / static_cast<double>(makespan);
}

double shown(const timeline& of, std::int64_t ticks) {
  return of.measured != nullptr ? static_cast<double>(ticks) / 1e6 : of.in_units(ticks);
}

bool has_details(const timeline& of) {
  return of.of->actions() <= most_drawn;
}

bool has_sizes(const timeline& of) {
  const memory_sizes& s = of.sizes;
  return s.weights != 0 || s.gradients != 0 || s.optimizer != 0 || s.message != 0 ||
         s.activations != 1;
}

const char* cause_name(velo_path_cause cause) {
  constexpr const char* names[] = {"start", "rank", "message", "copy", "collective"};
  return names[cause];
}

void require_drawable(const timeline& of) {
  const std::int64_t actions = of.of->actions();
  if (actions > most_drawn)
    core::fail(VELO_ERR_ARGUMENT, "format",
               core::concat("one without pictures for more than ", most_drawn, " actions"),
               core::concat("a picture of ", actions));
}

}  // namespace velo::sched
