// Sorts the changes of a rank and adds them up.
#include "sched/simulate/memory_use.hpp"

#include <algorithm>
#include <numeric>

#include "core/index.hpp"

namespace velo::sched {
namespace {

enum phase { released, in_order, taken };

}  // namespace

double memory_amounts::total() const {
  return std::accumulate(of.begin(), of.begin() + on_device, 0.0);
}

memory_use::memory_use(const timeline& of, const spans& when)
    : of_(of), pipeline_(*of.of), shape_(pipeline_.sizes()), when_(when) {
  forward_ends_.resize(static_cast<std::size_t>(shape_.cells()));
  gradient_ends_.resize(forward_ends_.size());
  for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) note_ends(rank);
}

// The amount of a count: categories count shares, activations or messages.
double memory_use::amount(std::size_t of, std::int64_t count) const {
  const memory_sizes& sizes = of_.sizes;
  const double whole = of_.in_microbatches(count * of_.times.scale.full) * shape_.splits;
  switch (of) {
    case weights:
      return whole * sizes.weights;
    case gradients:
      return whole * sizes.gradients;
    case optimizer_states:
      return whole * sizes.optimizer;
    case messages:
      return static_cast<double>(count) * sizes.message / shape_.splits;
    default:
      return of_.in_microbatches(count) * sizes.activations;
  }
}

void memory_use::note_ends(std::int32_t rank) {
  std::size_t index = 0;
  for (row_reader row(pipeline_, rank); !row.done(); row.pass(), ++index) {
    const action& a = row.next();
    const std::int64_t end = when_[core::at(rank)][index].end;
    if (has_forward(a.kind)) forward_ends_[cell(a.stage, a.microbatch)] = end;
    if (!has_gradient(a.kind)) continue;
    const bool both = a.kind == VELO_ACTION_FB;
    gradient_ends_[both ? cell(a.other_stage, a.other_microbatch) : cell(a.stage, a.microbatch)] =
        end;
  }
}

// Adds weights, gradients and optimizer states of the rank's stages.
void memory_use::add_stages(std::int32_t rank, std::vector<change>& to) const {
  const auto stages = static_cast<std::size_t>(shape_.stages);
  std::vector<bool> gathered(stages), summed(stages);
  std::size_t index = 0;
  for (row_reader row(pipeline_, rank); !row.done(); row.pass(), ++index) {
    const action& a = row.next();
    const span& when = when_[core::at(rank)][index];
    const bool both = a.kind == VELO_ACTION_FB;
    const std::int32_t stage = both ? a.other_stage : a.stage;
    const std::int64_t share = of_.times.scale.share(stage);
    const auto s = static_cast<std::size_t>(stage);
    if (a.kind == VELO_ACTION_UNSHARD) {
      gathered[s] = true;
      to.push_back({when.begin, taken, weights, share});
    }
    if (a.kind == VELO_ACTION_RESHARD) to.push_back({when.end, released, weights, -share});
    if (releases(a.kind) && !summed[s]) {
      summed[s] = true;
      to.push_back({when.begin, taken, gradients, share});
    }
    if (a.kind == VELO_ACTION_OPTIMIZER && summed[s]) {
      summed[s] = false;
      to.push_back({when.end, released, gradients, -share});
    }
  }
  for (const std::int32_t stage : pipeline_.stages_of(rank)) {
    const std::int64_t share = of_.times.scale.share(stage);
    to.push_back({0, released, optimizer_states, share});
    if (!gathered[core::at(stage)]) to.push_back({0, released, weights, share});
  }
}

void memory_use::add_message(std::int32_t rank, std::int32_t maker, std::int64_t sent,
                             std::int64_t until, std::vector<change>& to) const {
  if (pipeline_.rank_of(maker) == rank || sent >= until) return;
  to.push_back({sent, taken, messages, 1});
  to.push_back({until, released, messages, -1});
}

void memory_use::add_messages(std::int32_t rank, const action& a, const span& when,
                              std::vector<change>& to) const {
  if (has_forward(a.kind) && !shape_.begins_chain(a.stage))
    add_message(rank, a.stage - 1, forward_ends_[cell(a.stage - 1, a.microbatch)], when.begin, to);
  if (!has_gradient(a.kind)) return;
  const bool both = a.kind == VELO_ACTION_FB;
  const std::int32_t stage = both ? a.other_stage : a.stage;
  const std::int32_t unit = both ? a.other_microbatch : a.microbatch;
  if (!shape_.ends_chain(stage))
    add_message(rank, stage + 1, gradient_ends_[cell(stage + 1, unit)], when.end, to);
}

std::vector<memory_amounts> memory_use::changes(std::int32_t rank) {
  std::vector<change> all;
  add_stages(rank, all);
  holdings held(pipeline_, of_.times.scale);
  std::int64_t device = 0, host = 0;
  const auto changed = [&](std::int64_t time, const holdings::amounts& now) {
    all.push_back({time, in_order, activations, now.device - device});
    if (now.host != host) all.push_back({time, in_order, offloaded, now.host - host});
    device = now.device;
    host = now.host;
  };
  std::size_t index = 0;
  for (row_reader row(pipeline_, rank); !row.done(); row.pass(), ++index) {
    const span& when = when_[core::at(rank)][index];
    held.add(rank, row.next(), when, changed);
    add_messages(rank, row.next(), when, all);
  }
  held.finish(rank, changed);
  std::stable_sort(all.begin(), all.end(), [](const change& a, const change& b) {
    return a.time != b.time ? a.time < b.time : a.phase < b.phase;
  });

  std::vector<memory_amounts> result;
  std::array<std::int64_t, categories> now{};
  for (const change& one : all) {
    now[one.of] += one.amount;
    memory_amounts amounts;
    amounts.time = one.time;
    for (std::size_t c = 0; c < categories; ++c) amounts.of[c] = amount(c, now[c]);
    result.push_back(amounts);
  }
  return result;
}

memory_amounts memory_use::peak(std::int32_t rank) {
  memory_amounts most;
  double host = 0;
  for (const memory_amounts& now : changes(rank)) {
    host = std::max(host, now.of[offloaded]);
    if (now.total() > most.total()) most = now;
  }
  most.of[offloaded] = host;
  return most;
}

}  // namespace velo::sched
