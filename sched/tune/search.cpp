// Enumerates candidates, computes bounds, and evaluates the best first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/schedule/kind_name.hpp"
#include "sched/simulate/simulate.hpp"
#include "sched/tune/demands.hpp"

namespace velo::sched::tune {
namespace {

// Bounds memory: a candidate takes about a hundred bytes.
constexpr std::size_t most_candidates = std::size_t{1} << 20;
// A bound and a simulation round differently.
constexpr double slack = 1 - 1e-9;

struct candidate {
  full_layout layout;
  double bound;  // seconds of a step, at least
};

// Whether a kind is tried with so many chunks. A kind of several is not tried with 1: it then has
// the order of another.
bool takes(velo_schedule_kind kind, std::int32_t chunks) {
  const kind_row& row = row_of(kind);
  return chunks >= row.chunks && chunks <= row.most_chunks;
}

class enumeration {
 public:
  enumeration(const job& training_job, std::vector<rejection>& rejected)
      : job_(training_job),
        space_(training_job.space),
        m_(training_job.model),
        rejected_(rejected) {
    at_.recompute = at_.kind = at_.split = -1;
  }

  std::vector<candidate> run() {
    for (const std::int32_t tp : space_.tp) {
      at_.tp = tp;
      if (cuts_tensors())
        contexts();
      else
        reject(VELO_TUNING_REASON_HEADS);
    }
    return std::move(found_);
  }

 private:
  bool cuts_tensors() const {
    const std::int64_t t = at_.tp;
    const bool keys = m_.kv_rank > 0 || m_.kv_heads % t == 0 || t % m_.kv_heads == 0;
    return m_.heads % t == 0 && keys && m_.ffn_hidden % t == 0 && m_.shared_hidden % t == 0;
  }

  void contexts() {
    for (const std::int32_t cp : space_.cp) {
      at_.cp = cp;
      if (job_.training.sequence % sequence_parts(job_.training, at_) != 0) {
        reject(VELO_TUNING_REASON_SEQUENCE);
        continue;
      }
      find_ways();
      if (!ways_.empty()) pipelines();
    }
    at_.cp = 0;
  }

  // The ways in which the ranks of a sequence can share it. Each of those that exchange heads needs
  // at least one of its own.
  void find_ways() {
    ways_.clear();
    if (at_.cp == 1)
      add_ways(-1, 0);
    else
      share_sequence();
  }

  void share_sequence() {
    const std::int64_t heads = m_.heads / at_.tp;
    for (const velo_sequence_kind algorithm : space_.cp_algorithms) {
      const std::size_t before = ways_.size();
      if (algorithm == VELO_SEQUENCE_HYBRID) {
        bool divides = false;
        for (std::int32_t u = 2; u < at_.cp; ++u) {
          if (at_.cp % u != 0) continue;
          divides = true;
          if (u <= heads) add_ways(algorithm, u);
        }
        // A prime number of ranks is a ring or neighbors, which are other choices.
        if (!divides && space_.cp_algorithms.size() > 1) continue;
      } else if (algorithm != VELO_SEQUENCE_ULYSSES || heads >= at_.cp) {
        add_ways(algorithm, 0);
      }
      if (ways_.size() == before) reject_way(algorithm, heads);
    }
  }

  // Slices overlap where ranks share memory; beyond a node there is one.
  void add_ways(velo_sequence_kind algorithm, std::int32_t ulysses) {
    full_layout made = at_;
    made.cp_algorithm = algorithm;
    made.cp_ulysses = ulysses;
    std::vector<std::int32_t> slices = {at_.tp > 1 ? 1 : 0};
    if (at_.tp > 1 && at_.tp <= job_.profile.per_node) slices = space_.tp_slices;
    std::vector<rearrange> tokens = {rearrange::index};
    if (m_.experts > 0) tokens = space_.rearranges;
    for (const std::int32_t count : slices)
      for (const rearrange how : tokens) {
        made.tp_slices = count;
        made.tokens = how;
        ways_.push_back(made);
      }
  }

  void reject_way(velo_sequence_kind algorithm, std::int64_t heads) {
    at_.cp_algorithm = algorithm;
    reject(VELO_TUNING_REASON_HEADS);
    rejected_.back().text =
        algorithm == VELO_SEQUENCE_ULYSSES
            ? core::concat("ulysses of ", at_.cp,
                           " ranks needs as many heads of a rank, which are ", heads)
                  .buffer
            : core::concat("cp ", at_.cp,
                           " is no hybrid of rings and neighbors, of which each has "
                           "one of ",
                           heads, " heads")
                  .buffer;
    at_.cp_algorithm = -1;
  }

  void pipelines() {
    for (const std::int32_t pp : space_.pp) {
      at_.pp = pp;
      const std::int64_t ranks = std::int64_t{at_.tp} * at_.cp * pp;
      if (job_.accelerators % ranks != 0) {
        reject(VELO_TUNING_REASON_RANKS);
        continue;
      }
      at_.dp = static_cast<std::int32_t>(job_.accelerators / ranks);
      const bool wanted =
          space_.dp.empty() || std::count(space_.dp.begin(), space_.dp.end(), at_.dp);
      if (wanted) experts();
      at_.dp = 0;
    }
    at_.pp = 0;
  }

  void experts() {
    for (const std::int32_t ep : space_.ep) {
      at_.ep = ep;
      const std::int64_t ranks = std::int64_t{at_.tp} * at_.cp * at_.dp;
      if (ep == 1 || (m_.experts > 0 && m_.experts % ep == 0 && ranks % ep == 0))
        batches();
      else
        reject(VELO_TUNING_REASON_EXPERTS);
    }
    at_.ep = 0;
  }

  void batches() {
    for (const std::int32_t size : space_.micro_batch) {
      at_.micro_batch = size;
      const std::int64_t at_once = std::int64_t{at_.dp} * size;
      if (job_.training.global_batch % at_once == 0) {
        at_.microbatches = static_cast<std::int32_t>(job_.training.global_batch / at_once);
        recomputes();
        at_.microbatches = 0;
      } else {
        reject(VELO_TUNING_REASON_BATCH);
      }
    }
    at_.micro_batch = 0;
  }

  void recomputes() {
    for (const velo_tuning_recompute how : space_.recompute) {
      at_.recompute = how;
      if (how == VELO_TUNING_RECOMPUTE_CORE && m_.flash_attention)
        reject(VELO_TUNING_REASON_SAME);
      else
        ways();
    }
    at_.recompute = -1;
  }

  // Tries the ways that no other makes superfluous.
  void ways() {
    std::vector<layer_costs> all;
    for (const full_layout& one : ways_) all.push_back(layer_costs_of(job_, laid_out(one)));
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      at_ = laid_out(ways_[i]);
      costs_ = all[i];
      const std::size_t better = better_than(all, i);
      if (better == i) {
        kinds();
      } else {
        reject(VELO_TUNING_REASON_SAME);
        rejected_.back().text =
            "takes no less time and memory in a layer than " + ways_text(ways_[better]);
      }
    }
    at_ = laid_out(full_layout());
  }

  // The first way that is nowhere worse than way i and not the same, or i.
  static std::size_t better_than(const std::vector<layer_costs>& all, std::size_t i) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (k != i && all[k].covers(all[i]) && (k < i || !all[i].covers(all[k]))) return k;
    return i;
  }

  void kinds() {
    if (at_.pp == 1) {  // one rank has no pipeline
      at_.kind = VELO_SCHEDULE_1F1B;
      at_.vpp = 1;
      splits();
      at_.vpp = 0;
    } else {
      for (const velo_schedule_kind kind : space_.kinds) {
        at_.kind = kind;
        chunks();
      }
    }
    at_.kind = -1;
  }

  void chunks() {
    const std::vector<std::int32_t> all = chunks_of(at_.kind);
    for (const std::int32_t one : all) {
      at_.vpp = one;
      splits();
    }
    at_.vpp = 0;
    if (!all.empty()) return;
    reject(VELO_TUNING_REASON_SCHEDULE);
    rejected_.back().text = std::string(name_of(at_.kind)) + " takes a vpp of 2" +
                            (takes(at_.kind, 3) ? " or more" : "") +
                            ", which search.vpp does not list";
  }

  // Kinds of one chunk need no entry in the list.
  std::vector<std::int32_t> chunks_of(velo_schedule_kind kind) const {
    std::vector<std::int32_t> all;
    if (takes(kind, 1)) all.push_back(1);
    for (const std::int32_t chunks : space_.vpp)
      if (chunks > 1 && takes(kind, chunks)) all.push_back(chunks);
    return all;
  }

  void splits() {
    std::vector<std::int32_t> before;
    for (const velo_tuning_split how : space_.splits) {
      at_.split = how;
      const std::vector<std::int32_t> layers = split_layers(m_, costs_, at_.pp * at_.vpp, how);
      if (layers.empty())
        reject(VELO_TUNING_REASON_LAYERS);
      else if (layers == before)
        reject(VELO_TUNING_REASON_SAME);
      else
        add(layers);
      before = layers;
    }
    at_.split = -1;
  }

  void add(const std::vector<std::int32_t>& layers) {
    const std::vector<layer_cost> stages = stages_of(m_, costs_, layers);
    double bound = std::numeric_limits<double>::infinity();
    for (const placement& of : placements_of(at_))
      bound = std::min(
          bound, least_seconds(at_, costs_, stages, of) + end_of(job_, at_, stages, of).seconds());
    found_.push_back({at_, bound});
    require_few();
  }

  void reject(velo_tuning_reason code) {
    rejection one;
    one.layout = at_;
    one.code = code;
    rejected_.push_back(std::move(one));
    require_few();
  }

  void require_few() const {
    if (found_.size() + rejected_.size() > most_candidates)
      core::fail(VELO_ERR_ARGUMENT, "config.search",
                 core::text("at most %zu candidates", most_candidates), "more");
  }

  // What is tried now, in the ways of another layout.
  full_layout laid_out(const full_layout& how) const {
    full_layout made = how;
    static_cast<velo_tuning_layout&>(made) = at_;
    return made;
  }

  const job& job_;
  const space& space_;
  const model& m_;
  std::vector<rejection>& rejected_;
  std::vector<candidate> found_;
  std::vector<full_layout> ways_;
  full_layout at_;
  layer_costs costs_;
};

bool better(const plan& a, const plan& b) {
  if (a.step() != b.step()) return a.step() < b.step();
  return a.bytes() < b.bytes();
}

class searcher {
 public:
  explicit searcher(tuning& to)
      : to_(to), job_(to.of), keep_(static_cast<std::size_t>(job_.space.keep)) {}

  void run() {
    std::vector<candidate> all = enumeration(job_, to_.rejections).run();
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
    const velo_tuning_layout& l = now.result.layout;
    if (!is_searched(l.kind)) return orders_.get(l.kind, l.pp, l.vpp, l.microbatches);
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
