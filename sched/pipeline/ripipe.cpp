// Ripipe, by MindSpeed: an interleaved schedule that recomputes activations in a separate action,
// before their gradient arrives.
//
// In the bubble: a rank holds the activations of at most P V stages. More forwards, all of chunk 0,
// keep only their input: those of the warm-up beyond the first P V and some of each later group, n
// = max(0, warm-up + 1 - P V) each, by which rank r exceeds the limit. RECOMPUTE precedes their
// backward in the steady phase. In the last phase there is a bubble before each of the first n
// backwards, in which the remaining n are recomputed.
//
// In advance: all forwards except those of the last stage keep only their input, and RECOMPUTE
// precedes every backward, where the rank would wait for the gradient.
#include <algorithm>

#include "core/index.hpp"
#include "sched/pipeline/interleaved.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

class rank_row {
 public:
  rank_row(const request& wanted, std::int32_t rank, const std::vector<std::int32_t>& stages)
      : wanted_(wanted),
        rank_(rank),
        ranks_(wanted.ranks),
        all_(wanted.microbatches * wanted.chunks),
        warmup_(interleaved_warmup(wanted, rank)),
        stages_(stages),
        again_(static_cast<std::size_t>(all_)) {
    if (wanted.in_advance)
      choose_all();
    else
      choose();
  }

  std::vector<action> run() {
    row_.reserve(static_cast<std::size_t>(2 * all_) + again_.size());
    for (std::int32_t k = 0; k < warmup_; ++k) forward(k);
    for (std::int32_t k = 0; k < all_ - warmup_; ++k) {
      forward(k + warmup_);
      backward(k);
    }
    for (std::int32_t k = all_ - warmup_; k < all_; ++k) {
      if (k - (all_ - warmup_) < most_) recompute_oldest();
      backward(k);
    }
    return std::move(row_);
  }

 private:
  struct work_item {
    std::int32_t chunk, unit;
  };
  // The chunk and unit of the k-th forward or backward.
  work_item forward_item(std::int32_t k) const {
    const std::int32_t of_group = ranks_ * wanted_.chunks, inside = k % of_group;
    return {inside / ranks_, k / of_group * ranks_ + inside % ranks_};
  }
  work_item backward_item(std::int32_t k) const {
    const work_item at = forward_item(k);
    return {wanted_.chunks - 1 - at.chunk, at.unit};
  }
  std::size_t index(const work_item& at) const {
    return static_cast<std::size_t>(at.chunk) * static_cast<std::size_t>(wanted_.microbatches) +
           static_cast<std::size_t>(at.unit);
  }
  action make(velo_action_kind kind, const work_item& at) const {
    return make_action(kind, stages_[core::at(at.chunk)], at.unit);
  }

  void choose_all() {
    std::fill(again_.begin(), again_.end(), true);
    if (stages_.back() == ranks_ * wanted_.chunks - 1)
      for (std::int32_t unit = 0; unit < wanted_.microbatches; ++unit)
        again_[index({wanted_.chunks - 1, unit})] = false;
  }

  // Chooses the forwards that keep only their input, group by group.
  void choose() {
    const std::int32_t held = ranks_ * wanted_.chunks, groups = wanted_.microbatches / ranks_;
    if (groups > 1) most_ = std::max(0, warmup_ + 1 - held);
    if (most_ == 0) return;
    std::int32_t steady = 0, tail = 0;  // whole groups; forwards of the rest
    if (groups >= 3) {
      steady = groups - 3;
      tail = steady == 0 ? 2 + 2 * rank_ : 1;
      if (steady == 0 && tail >= ranks_ - 1 - 2 * rank_) {
        tail = 0;
        steady = 1;
      }
    }
    std::int32_t left = most_;
    for (std::int32_t k = held; k < all_; ++k) {
      const work_item at = forward_item(k);
      const std::int32_t group = at.unit / ranks_, inside = at.unit % ranks_;
      const bool beyond = k < warmup_ || left > 0;
      if (beyond) {
        --left;
      } else if (at.chunk != 0 || group < 2 ||
                 inside < (group < 2 + steady ? 1 + 2 * rank_ : ranks_ - tail)) {
        continue;
      }
      again_[index(at)] = true;
    }
  }

  void forward(std::int32_t k) { row_.push_back(make(VELO_ACTION_F, forward_item(k))); }
  void backward(std::int32_t k) {
    const work_item at = backward_item(k);
    recompute(at);
    row_.push_back(make(VELO_ACTION_B, at));
  }
  void recompute(const work_item& at) {
    if (!again_[index(at)]) return;
    again_[index(at)] = false;
    row_.push_back(make(VELO_ACTION_RECOMPUTE, at));
  }
  // Recomputes the oldest unit of chunk 0.
  void recompute_oldest() {
    for (; oldest_ < wanted_.microbatches; ++oldest_) {
      if (!again_[index({0, oldest_})]) continue;
      recompute({0, oldest_});
      return;
    }
  }

  const request& wanted_;
  const std::int32_t rank_, ranks_, all_, warmup_;
  const std::vector<std::int32_t>& stages_;
  std::vector<bool> again_;  // by chunk and unit: whether activations are to be recomputed
  std::int32_t most_ = 0;    // n
  std::int32_t oldest_ = 0;  // unit of chunk 0
  std::vector<action> row_;
};

}  // namespace

schedule make_ripipe(const request& wanted) {
  if (wanted.microbatches % wanted.ranks != 0)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches", text("a multiple of the ranks, %d", wanted.ranks),
         text("%d", wanted.microbatches));
  const auto stages = loop_placement(wanted.ranks, wanted.chunks);
  std::vector<row> rows;
  for (std::int32_t rank = 0; rank < wanted.ranks; ++rank)
    rows.emplace_back(rank_row(wanted, rank, stages[core::at(rank)]).run());
  return {shape_of(wanted), stages, std::move(rows)};
}

}  // namespace velo::sched
