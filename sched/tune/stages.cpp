// Sums over layers, stages and ranks.
#include "sched/tune/stages.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/round_up.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/schedule/schedule.hpp"
#include "sched/tune/exchange_seconds.hpp"

namespace velo::sched::tune {
namespace {

// Fills stages from the last one with as many layers as keep each within `limit`; false if too many
// are left for the first. The first of several stages and the last may have none: they hold the
// embedding and the output.
bool fill(const model& of, const layer_costs& costs, double limit,
          std::vector<std::int32_t>& into) {
  const auto stages = static_cast<std::int64_t>(into.size());
  std::int64_t left = of.layers;
  for (std::int64_t s = stages; s-- > 0;) {
    const bool ends = s == 0 || s + 1 == stages;
    double sum =
        (s == 0 ? costs.embedding.seconds() : 0) + (s + 1 == stages ? costs.output.seconds() : 0);
    std::int64_t taken = 0;
    while (left > std::max<std::int64_t>(s - 1, 0)) {  // every stage in between needs one
      const double more = costs.layer(of, left - 1).seconds();
      if ((taken > 0 || ends) && sum + more > limit) break;
      sum += more;
      --left;
      ++taken;
    }
    if (sum > limit || (taken == 0 && !ends)) return false;
    into[core::at(s)] = static_cast<std::int32_t>(taken);
  }
  return left == 0;
}

std::int64_t sharers(const velo_tuning_layout& layout) {
  return std::int64_t{layout.dp} * layout.cp;
}
std::int64_t expert_sharers(const velo_tuning_layout& layout) {
  return std::int64_t{layout.tp} * layout.cp * layout.dp / layout.ep;
}

}  // namespace

std::int64_t sequence_parts(const training& of, const full_layout& layout) {
  const std::int64_t parts = of.cuts_rows(layout) ? layout.tp : 1;
  return parts * layout.cp * layout.splits();
}

bool cuts_sequence(const job& of, const full_layout& layout) {
  const std::int64_t parts = sequence_parts(of.training, layout), rows = of.training.sequence;
  return of.model.has_equal_parts() ? rows % parts == 0 : rows >= parts;
}

bool cuts_heads(const model& of, std::int64_t ranks) {
  return ranks <= of.kv_heads || (ranks % of.kv_heads == 0 && of.heads % ranks == 0);
}

std::vector<std::int32_t> split_layers(const model& of, const layer_costs& costs,
                                       std::int32_t stages, velo_tuning_split how) {
  const std::int64_t ends = stages > 1 ? 2 : 0;  // stages that may have no layer
  if (of.layers < stages - ends || of.layers == 0) return {};
  std::vector<std::int32_t> result(static_cast<std::size_t>(stages));
  if (how == VELO_TUNING_SPLIT_EVEN) {
    const bool fewer = of.layers % stages != 0;  // by one at both ends
    if (fewer && (of.layers + ends) % stages != 0) return {};
    result.assign(result.size(),
                  static_cast<std::int32_t>((of.layers + (fewer ? ends : 0)) / stages));
    if (fewer) {
      --result.front();
      --result.back();
    }
    return result;
  }
  double low = 0, high = costs.embedding.seconds() + costs.output.seconds();
  for (std::int64_t i = 0; i < of.layers; ++i) high += costs.layer(of, i).seconds();
  high *= 1 + 1e-9;  // stages add up in another order
  constexpr int halvings = 40;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (fill(of, costs, middle, result) ? high : low) = middle;
  }
  fill(of, costs, high, result);
  return result;
}

std::vector<layer_cost> stages_of(const model& of, const layer_costs& costs,
                                  const std::vector<std::int32_t>& layers) {
  std::vector<layer_cost> result(layers.size());
  std::int64_t next = 0;
  for (std::size_t s = 0; s < layers.size(); ++s)
    for (std::int32_t i = 0; i < layers[s]; ++i) result[s] += costs.layer(of, next++);
  result.front() += costs.embedding;
  result.back() += costs.output;
  return result;
}

std::vector<placement> placements_of(const velo_tuning_layout& layout) {
  const stage_path path = row_of(layout.kind).path;
  const bool both = path == stage_path::either && layout.vpp == 2;
  const bool up = path == stage_path::down_and_up;
  std::vector<placement> all;
  if (both || !up) all.push_back(loop_placement(layout.pp, layout.vpp));
  if (both || up) all.push_back(v_placement(layout.pp, layout.vpp));
  return all;
}

placement placement_in(const schedule& rows) {
  placement all;
  for (std::int32_t rank = 0; rank < rows.sizes().ranks; ++rank)
    all.push_back(rows.stages_of(rank));
  return all;
}

double least_seconds(const full_layout& layout, const layer_costs& costs,
                     const std::vector<layer_cost>& stages, const placement& of) {
  const bool whole = row_of(layout.kind).has(whole_backward);
  const bool pairs = row_of(layout.kind).has(fuses);
  double least = 0, delay = 0;
  // A rank's first stage has the rank's number, whatever the placement.
  for (std::int32_t rank = 0; rank < layout.pp; ++rank) {
    double work = 0;
    for (const std::int32_t s : of[core::at(rank)]) {
      const layer_cost& one = stages[core::at(s)];
      work += one.seconds() - (pairs ? one.hidden : 0);
    }
    least = std::max(least, delay + work * layout.units());
    const layer_cost& first = stages[core::at(rank)];
    delay += first.forward + costs.message_seconds;
    if (whole) delay += first.input + first.weight + costs.message_seconds;
  }
  return least;
}

step_end end_of(const job& training_job, const full_layout& layout,
                const std::vector<layer_cost>& stages, const placement& of) {
  const training& t = training_job.training;
  const profile& p = training_job.profile;
  const std::int64_t zero = t.zero_of(layout);
  const auto gradient_bytes = static_cast<double>(t.gradient_bytes);
  const auto parameter_bytes = static_cast<double>(t.parameter_bytes);
  // ZeRO stage 2 reduces gradients whenever a rank switches to another stage: behind pp
  // micro-batches if a rank has several stages, else behind each.
  const std::int64_t behind = layout.vpp > 1 ? layout.pp : 1;
  const std::int64_t rounds = zero < 2 ? 1 : core::ceil_div(layout.microbatches, behind);
  // Gradients are reduced and parameters gathered, or gradients all-reduced.
  const auto synchronize = [&](std::int64_t ranks, std::int64_t stride, double parameters) {
    const auto once = [&](double bytes) {
      return collective_seconds(p, ranks, stride, parameters * bytes);
    };
    return static_cast<double>(rounds) * once(gradient_bytes) +
           once(zero == 0 ? gradient_bytes : parameter_bytes);
  };
  const auto share = [&](std::int64_t ranks) {
    return zero == 0 ? 1.0 : static_cast<double>(ranks);
  };
  const double touched =
      2 * static_cast<double>(t.optimizer_bytes) + gradient_bytes + parameter_bytes;

  step_end longest;
  for (const std::vector<std::int32_t>& own : of) {
    layer_cost sum;
    for (const std::int32_t s : own) sum += stages[core::at(s)];
    step_end now;
    now.gradients = synchronize(sharers(layout), layout.tp, sum.parameters);
    if (sum.expert_parameters > 0)
      now.gradients += synchronize(expert_sharers(layout), layout.ep, sum.expert_parameters);
    now.gradients *= 1 - p.dp_overlap;
    now.optimizer = touched *
                    (sum.parameters / share(sharers(layout)) +
                     sum.expert_parameters / share(expert_sharers(layout))) /
                    p.memory_rate;
    if (now.seconds() > longest.seconds()) longest = now;
  }
  return longest;
}

rank_memory memory_of(const job& training_job, const full_layout& layout, const layer_costs& costs,
                      const std::vector<layer_cost>& stages,
                      const std::vector<std::int32_t>& layers,
                      const std::vector<std::int32_t>& own) {
  const training& t = training_job.training;
  const profile& p = training_job.profile;
  rank_memory result;
  layer_cost sum;
  for (const std::int32_t s : own) {
    sum += stages[core::at(s)];
    result.layers += layers[core::at(s)];
  }
  // A matrix shared by embedding and output is on both of their ranks.
  const bool first = own.front() == 0;
  const bool last = own.back() + 1 == static_cast<std::int32_t>(stages.size());
  if (training_job.model.tied_embeddings && last && !first)
    sum.parameters += costs.embedding.parameters;

  const double all = sum.parameters + sum.expert_parameters;
  result.parameters = all * static_cast<double>(t.parameter_bytes);
  const double shared_part = sum.parameters / static_cast<double>(sharers(layout)) +
                             sum.expert_parameters / static_cast<double>(expert_sharers(layout));
  const std::int64_t zero = t.zero_of(layout);
  const double updated = zero == 0 ? all : shared_part;
  double summed = all;
  if (zero == 2) {  // the rank's shards, and all of the stage in progress
    double most = 0;
    for (const std::int32_t s : own) {
      const layer_cost& stage = stages[core::at(s)];
      most = std::max(most, stage.parameters + stage.expert_parameters);
    }
    summed = std::min(all, shared_part + most);
  }
  result.gradients = summed * static_cast<double>(t.gradient_bytes);
  result.optimizer = updated * static_cast<double>(t.optimizer_bytes);
  result.workspace = p.workspace_bytes + sum.remade + sum.shared;

  const bool shared =
      sharers(layout) > 1 || (sum.expert_parameters > 0 && expert_sharers(layout) > 1);
  const int groups = (layout.ranks_x() > 1) + (layout.ranks_y() > 1) + (layout.pp > 1) +
                     (layout.attention_ranks() > 1) + (layout.ep > 1) + shared;
  result.communication = costs.gathered_bytes + groups * p.group_bytes +
                         (layout.pp > 1 ? 4 * costs.message_bytes : 0) +
                         (shared ? 2 * p.bucket_bytes : 0);
  return result;
}

}  // namespace velo::sched::tune
