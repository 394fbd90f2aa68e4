// Enumerates cuts dimension by dimension, from tensors to the split of layers.
#include "sched/tune/candidates.hpp"

#include <algorithm>
#include <limits>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/schedule/kind_name.hpp"
#include "sched/tune/stages.hpp"

namespace velo::sched::tune {
namespace {

// Bounds memory: a candidate takes about a hundred bytes.
constexpr std::size_t most_candidates = std::size_t{1} << 20;

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
      for (const std::int32_t x : space_.tp_x) {
        at_.tp_x = x;
        for (const std::int32_t shared : rows_choices()) {
          at_.sequence_parallel = shared;
          tensors();
        }
        at_.sequence_parallel = -1;
      }
    }
    return std::move(found_);
  }

 private:
  // Rows are a choice of tensor ranks that cut matrices one way.
  std::vector<std::int32_t> rows_choices() const {
    if (at_.tp == 1 || at_.in_two()) return {at_.in_two() ? 1 : 0};
    return space_.sequence_parallel;
  }

  void tensors() {
    const bool divides = !at_.in_two() || at_.tp % at_.tp_x == 0;
    if (divides && cuts_tensors() && at_.ranks_y() <= m_.hidden) {
      if (!is_one_dimension()) return contexts();
      reject(VELO_TUNING_REASON_SAME);
      rejected_.back().text =
          core::concat("tp_x ", at_.tp_x, " of tp ", at_.tp, " is the same cut as tp_x 0").buffer;
      return;
    }
    reject(VELO_TUNING_REASON_HEADS);
    if (!divides)
      rejected_.back().text =
          core::concat("tp_x ", at_.tp_x, " does not divide tp ", at_.tp).buffer;
    else if (cuts_tensors())
      rejected_.back().text =
          core::concat("tp / tp_x = ", at_.ranks_y(), " exceeds a hidden dimension of ", m_.hidden)
              .buffer;
  }

  // Whether a cut both ways is the one of another candidate that cuts one way, in one slice.
  bool is_one_dimension() const {
    if (at_.tp_x != at_.tp || !std::count(space_.tp_x.begin(), space_.tp_x.end(), 0)) return false;
    if (at_.tp == 1) return true;
    const bool in_one_slice = at_.tp > job_.profile.per_node ||
                              std::count(space_.tp_slices.begin(), space_.tp_slices.end(), 1);
    const auto& rows = space_.sequence_parallel;
    return std::count(rows.begin(), rows.end(), 1) && in_one_slice;
  }

  bool cuts_tensors() const {
    const std::int64_t x = at_.ranks_x();
    if (!m_.has_equal_parts()) return cuts_heads(m_, x) && x <= m_.ffn_hidden && x <= m_.vocabulary;
    const bool keys = m_.kv_rank > 0 || m_.kv_heads % x == 0 || x % m_.kv_heads == 0;
    return m_.heads % x == 0 && keys && m_.ffn_hidden % x == 0 && m_.shared_hidden % x == 0;
  }

  void contexts() {
    for (const std::int32_t cp : space_.cp) {
      at_.cp = cp;
      if (!cuts_sequence(job_, at_)) {
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
    if (at_.attention_ranks() == 1)
      add_ways(-1, 0);
    else
      share_sequence();
  }

  void share_sequence() {
    const std::int64_t heads = m_.fewest_heads(at_.ranks_x());
    const std::int32_t ranks = at_.attention_ranks();
    for (const velo_sequence_kind algorithm : space_.cp_algorithms) {
      const std::size_t before = ways_.size();
      if (algorithm == VELO_SEQUENCE_HYBRID) {
        bool divides = false;
        for (std::int32_t u = 2; u < ranks; ++u) {
          if (ranks % u != 0) continue;
          divides = true;
          if (u <= heads) add_ways(algorithm, u);
        }
        // A prime number of ranks is a ring or neighbors, which are other choices.
        if (!divides && space_.cp_algorithms.size() > 1) continue;
      } else if (algorithm != VELO_SEQUENCE_ULYSSES || heads >= ranks) {
        add_ways(algorithm, 0);
      }
      if (ways_.size() == before) reject_way(algorithm, heads);
    }
  }

  // Slices overlap where ranks share memory; beyond a node, and in two dimensions, there is one.
  void add_ways(velo_sequence_kind algorithm, std::int32_t ulysses) {
    full_layout made = at_;
    made.cp_algorithm = algorithm;
    made.cp_ulysses = ulysses;
    std::vector<std::int32_t> slices = {at_.tp > 1 ? 1 : 0};
    if (at_.tp > 1 && !at_.in_two() && at_.tp <= job_.profile.per_node) slices = space_.tp_slices;
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
            ? core::concat("ulysses of ", at_.attention_ranks(),
                           " ranks needs as many heads of a rank, which are ", heads)
                  .buffer
            : core::concat(at_.in_two() ? "cp * tp / tp_x = " : "cp ", at_.attention_ranks(),
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

  // A way that takes least time for whole sequences may not for their splits.
  void ways() {
    cheapest_ways();
    const bool orders_splits =
        at_.pp > 1 && std::count(space_.kinds.begin(), space_.kinds.end(), VELO_SCHEDULE_SEQ1F1B);
    if (orders_splits) sequence_splits();
  }

  // Tries the ways that no other makes superfluous, with at_.sequence_splits.
  void cheapest_ways() {
    const full_layout open = at_;
    std::vector<full_layout> layouts;
    std::vector<layer_costs> all;
    std::vector<const full_layout*> names;
    for (const full_layout& one : ways_) {
      full_layout laid = laid_out(one);
      laid.sequence_splits = open.sequence_splits;
      if (laid.sequence_splits > 0 && !has_splits(laid)) continue;
      all.push_back(layer_costs_of(job_, laid));
      layouts.push_back(laid);
      names.push_back(&one);
    }
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      at_ = layouts[i];
      costs_ = all[i];
      const std::size_t better = better_than(all, i);
      if (better == i) {
        at_.sequence_splits > 0 ? chunks() : kinds();
      } else {
        reject(VELO_TUNING_REASON_SAME);
        rejected_.back().text =
            "takes no less time and memory in a layer than " + ways_text(*names[better]);
      }
    }
    at_ = open;
  }

  static bool has_splits(const full_layout& of) {
    return of.attention_ranks() == 1 || of.cp_algorithm == VELO_SEQUENCE_ALL_GATHER ||
           of.cp_algorithm == VELO_SEQUENCE_ULYSSES;
  }
  // Rejects the ways whose attention has no splits, once for all numbers of splits.
  void reject_ways_without_splits() {
    const full_layout open = at_;
    for (const full_layout& one : ways_) {
      at_ = laid_out(one);
      at_.kind = VELO_SCHEDULE_SEQ1F1B;
      if (has_splits(at_)) continue;
      reject(VELO_TUNING_REASON_SCHEDULE);
      rejected_.back().text =
          core::concat(
              "seq1f1b splits sequences, and ", cp_algorithm_name(at_.cp_algorithm),
              " sends keys between parts of whole ones; all_gather and ulysses have splits")
              .buffer;
    }
    at_ = open;
  }

  // The first way that is nowhere worse than way i and not the same, or i.
  static std::size_t better_than(const std::vector<layer_costs>& all, std::size_t i) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (k != i && all[k].covers(all[i]) && (k < i || !all[i].covers(all[k]))) return k;
    return i;
  }

  // Tries the kinds whose order is one of whole sequences.
  void kinds() {
    if (at_.pp == 1) {  // one rank has no pipeline
      at_.kind = VELO_SCHEDULE_1F1B;
      at_.vpp = 1;
      splits();
      at_.vpp = 0;
    } else {
      for (const velo_schedule_kind kind : space_.kinds) {
        if (kind == VELO_SCHEDULE_SEQ1F1B) continue;
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

  void sequence_splits() {
    reject_ways_without_splits();
    at_.kind = VELO_SCHEDULE_SEQ1F1B;
    for (const std::int32_t count : space_.sequence_splits) {
      at_.sequence_splits = count;
      if (cuts_sequence(job_, at_))
        cheapest_ways();
      else
        reject(VELO_TUNING_REASON_SEQUENCE);
      at_.sequence_splits = 0;
    }
    at_.kind = -1;
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
        optimizers(layers);
      before = layers;
    }
    at_.split = -1;
  }

  // ZeRO shares nothing if no two ranks have the same parameters.
  void optimizers(const std::vector<std::int32_t>& layers) {
    const bool shares =
        at_.dp * at_.cp > 1 || (m_.experts > 0 && at_.tp * at_.dp * at_.cp > at_.ep);
    for (const std::int32_t zero : space_.zero) {
      at_.zero = zero;
      if (shares || zero == space_.zero.front()) {
        add(layers);
        continue;
      }
      reject(VELO_TUNING_REASON_SAME);
      rejected_.back().text = core::concat("no ranks share parameters, so zero ", zero,
                                           " is the same as zero ", space_.zero.front())
                                  .buffer;
    }
    at_.zero = -1;
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

}  // namespace

std::vector<candidate> candidates_of(const job& training_job, std::vector<rejection>& rejected) {
  return enumeration(training_job, rejected).run();
}

}  // namespace velo::sched::tune
