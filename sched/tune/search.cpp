// Evaluates candidates by rising bound.
#include <algorithm>
#include <cmath>
#include <queue>

#include "core/index.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/simulate/simulate.hpp"
#include "sched/tune/candidates.hpp"
#include "sched/tune/demands.hpp"

namespace velo::sched::tune {
namespace {

// A bound and a simulation round differently.
constexpr double slack = 1 - 1e-9;

bool better(const plan& a, const plan& b) {
  if (a.step() != b.step()) return a.step() < b.step();
  return a.bytes() < b.bytes();
}

class searcher {
 public:
  explicit searcher(tuning& to)
      : to_(to), job_(to.of), keep_(static_cast<std::size_t>(job_.space.keep)) {}

  void run() {
    std::vector<candidate> all = candidates_of(job_, to_.rejections);
    std::stable_sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) {
      const bool late = is_searched(a.layout.kind), later = is_searched(b.layout.kind);
      return late != later ? later : a.bound < b.bound;
    });
    operations_ = operations_of(job_);
    for (const candidate& one : all) {
      consider(one);
      if (to_.plans.size() > 2 * keep_ + 64) keep_best();
    }
    keep_best();
    if (to_.plans.empty()) find_nearest();
  }

 private:
  // A candidate's stages, and the memory of its ranks.
  struct case_of {
    case_of(const job& training_job, const full_layout& layout)
        : costs(layer_costs_of(training_job, layout)) {
      result.layout = layout;
      result.stage_layers =
          split_layers(training_job.model, costs, layout.pp * layout.vpp, layout.split);
      stages = stages_of(training_job.model, costs, result.stage_layers);
    }
    layer_costs costs;
    plan result;
    std::vector<layer_cost> stages;
  };

  void consider(const candidate& one) {
    if (times_.size() == keep_ && one.bound * slack > times_.top()) {
      reject(one.layout, VELO_TUNING_REASON_SLOWER, one.bound);
      return;
    }
    case_of now(job_, one.layout);
    weigh_least(now);
    if (too_large(now)) {
      to_.rejections.back().at_least = true;
      return;
    }
    const auto rows = order_of(now);
    if (rows->rows == nullptr) {
      reject(one.layout, VELO_TUNING_REASON_SCHEDULE, 0);
      to_.rejections.back().text = rows->why;
      return;
    }
    weigh(now, *rows);
    if (too_large(now)) return;
    price(now, *rows->rows);
    times_.push(now.result.step());
    if (times_.size() > keep_) times_.pop();
    to_.plans.push_back(std::move(now.result));
  }

  // The candidate's order; if it is searched for, the first that fits.
  std::shared_ptr<const order> order_of(case_of& now) {
    const full_layout& l = now.result.layout;
    if (!is_searched(l.kind)) return orders_.get(l.kind, l.pp, l.vpp, l.microbatches, l.splits());
    std::shared_ptr<const order> found;
    for (const demand& wanted : demands_of(l, now.costs, now.stages, rooms_of(now))) {
      auto result = find_order(l, wanted);
      if (result->rows == nullptr && found != nullptr) continue;
      found = std::move(result);
      now.result.searched = wanted;
      if (found->rows == nullptr) continue;
      weigh(now, *found);
      if (now.result.bytes() <= job_.profile.memory_bytes) break;
    }
    return found;
  }

  // The room that is left for activations.
  std::vector<room> rooms_of(const case_of& now) const {
    std::vector<room> all;
    for (placement& of : placements_of(now.result.layout)) {
      room one;
      for (const rank_memory& rank : without_activations(now, of))
        one.bytes.push_back(job_.profile.memory_bytes - rank.total());
      one.of = std::move(of);
      all.push_back(std::move(one));
    }
    return all;
  }

  std::vector<rank_memory> without_activations(const case_of& now, const placement& of) const {
    std::vector<rank_memory> all;
    for (const std::vector<std::int32_t>& own : of)
      all.push_back(
          memory_of(job_, now.result.layout, now.costs, now.stages, now.result.stage_layers, own));
    return all;
  }

  static std::vector<double> sizes_of(const case_of& now, const std::vector<std::int32_t>& own) {
    std::vector<double> sizes;
    for (const std::int32_t s : own) sizes.push_back(now.stages[core::at(s)].kept);
    return sizes;
  }

  // Computes the memory of every rank under an order.
  void weigh(case_of& now, const order& by) const {
    const placement of = placement_in(*by.rows);
    now.result.memory = without_activations(now, of);
    for (std::size_t rank = 0; rank < of.size(); ++rank)
      now.result.memory[rank].activations =
          by.peak(static_cast<std::int32_t>(rank), sizes_of(now, of[rank]));
  }

  // The same with one activation at a time, if that is the minimum.
  void weigh_least(case_of& now) const {
    std::vector<rank_memory> least;
    double bytes = 0;
    for (const placement& of : placements_of(now.result.layout)) {
      now.result.memory = without_activations(now, of);
      for (std::size_t rank = 0; rank < of.size(); ++rank) {
        const std::vector<double> sizes = sizes_of(now, of[rank]);
        now.result.memory[rank].activations = *std::max_element(sizes.begin(), sizes.end());
      }
      if (!least.empty() && bytes <= now.result.bytes()) continue;
      bytes = now.result.bytes();
      least = now.result.memory;
    }
    now.result.memory = std::move(least);
  }

  bool too_large(const case_of& now) {
    if (now.result.bytes() <= job_.profile.memory_bytes) return false;
    reject(now.result.layout, VELO_TUNING_REASON_MEMORY, now.result.bytes());
    to_.rejections.back().rank = now.result.fullest();
    return true;
  }

  // Simulates the pipeline and derives the step's time.
  void price(case_of& now, const schedule& rows) {
    plan& result = now.result;
    std::vector<stuck_rank> stuck;
    const simulation times = simulate(rows, ticks_of_stages(rows, now.costs, now.stages), stuck);
    ++to_.simulated;
    result.pipeline = times.scale.value(times.makespan());
    double work = 0;
    for (const rank_times& rank : times.ranks) work += times.scale.value(rank.work);
    result.bubble = 1 - work / (result.pipeline * result.layout.pp);
    const step_end end = end_of(job_, result.layout, now.stages, placement_in(rows));
    result.gradients = end.gradients;
    result.optimizer = end.optimizer;
    const auto accelerators = static_cast<double>(job_.accelerators);
    result.tokens_per_second = static_cast<double>(job_.training.global_batch) *
                               static_cast<double>(job_.training.sequence) / result.step();
    result.utilization = operations_ / (result.step() * accelerators * job_.profile.peak_flops);
  }

  // Seconds in the finest ticks that can count all actions and messages one after another.
  static ticks ticks_of_stages(const schedule& rows, const layer_costs& costs,
                               const std::vector<layer_cost>& stages) {
    const std::int32_t units = rows.sizes().units();
    double all = 0;
    for (const layer_cost& stage : stages) all += stage.seconds() + 2 * costs.message_seconds;
    int exponent = 0;
    std::frexp(all * units, &exponent);
    ticks result;
    result.unit = std::ldexp(1, std::min(60 - exponent, 50));
    const auto count = [&](double seconds) { return std::llround(seconds * result.unit); };
    const bool hidden = row_of(rows.sizes().kind).has(fuses);
    for (const layer_cost& stage : stages)
      result.stages.push_back({count(stage.forward), count(stage.input), count(stage.weight),
                               hidden ? count(stage.hidden) : 0});
    result.latency = count(costs.message_seconds);
    return result;
  }

  void reject(const full_layout& layout, velo_tuning_reason code, double value) {
    rejection one;
    one.layout = layout;
    one.code = code;
    one.value = value;
    to_.rejections.push_back(std::move(one));
  }

  void keep_best() {
    std::stable_sort(to_.plans.begin(), to_.plans.end(), better);
    while (to_.plans.size() > keep_) {
      reject(to_.plans.back().layout, VELO_TUNING_REASON_SLOWER, to_.plans.back().step());
      to_.plans.pop_back();
    }
  }

  // Finds the candidate that lacks least memory: exactly, by rising lower bound, until the next
  // bound exceeds the best.
  void find_nearest() {
    std::vector<std::size_t> lacking;
    for (std::size_t i = 0; i < to_.rejections.size(); ++i)
      if (to_.rejections[i].code == VELO_TUNING_REASON_MEMORY) lacking.push_back(i);
    const auto value = [&](std::size_t i) { return to_.rejections[i].value; };
    std::stable_sort(lacking.begin(), lacking.end(),
                     [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
    for (const std::size_t i : lacking) {
      const auto nearest = static_cast<std::size_t>(to_.nearest);
      if (to_.nearest >= 0 && value(i) >= value(nearest)) break;
      weigh_again(to_.rejections[i]);
      if (to_.rejections[i].code != VELO_TUNING_REASON_MEMORY) continue;
      if (to_.nearest < 0 || value(i) < value(nearest)) to_.nearest = static_cast<std::int64_t>(i);
    }
  }

  void weigh_again(rejection& one) {
    if (!one.at_least) return;
    case_of now(job_, one.layout);
    const auto rows = order_of(now);
    if (rows->rows == nullptr) {
      one.code = VELO_TUNING_REASON_SCHEDULE;
      one.text = rows->why;
      return;
    }
    weigh(now, *rows);
    one.value = now.result.bytes();
    one.rank = now.result.fullest();
    one.at_least = false;
  }

  tuning& to_;
  const job& job_;
  const std::size_t keep_;
  double operations_ = 0;
  orders orders_;
  std::priority_queue<double> times_;  // of the best plans, the slowest on top
};

}  // namespace

std::int32_t plan::fullest() const {
  const auto less = [](const rank_memory& a, const rank_memory& b) {
    return a.total() < b.total();
  };
  return static_cast<std::int32_t>(std::max_element(memory.begin(), memory.end(), less) -
                                   memory.begin());
}

tuning search(job of) {
  tuning result;
  result.of = std::move(of);
  searcher(result).run();
  return result;
}

}  // namespace velo::sched::tune
