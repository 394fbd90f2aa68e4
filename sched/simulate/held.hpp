// The activations that ranks hold, on the device and on the host, action by action.
//
// F acquires the activations, or only their input if they are recomputed later; RECOMPUTE acquires
// all. The end of I releases those that W does not need, the end of W or B the rest. A copy to the
// host releases them when it ends, and a copy back acquires them when it begins. Copies run beside
// the rank's actions, so their changes are applied when the rank reaches their time. One sum
// for each rank suffices for a schedule without copies and recomputation whose W needs all
// activations; others keep an amount for each stage and unit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "sched/schedule/ticks.hpp"

namespace velo::sched {

struct span {
  std::int64_t begin, end;  // ticks
};

class holdings {
 public:
  holdings(const schedule& pipeline, const ticks& scale);

  struct amounts {
    std::int64_t device = 0, host = 0;
    std::int64_t peak = 0, host_peak = 0;
  };

  // Takes an action of a rank, in the row's order. changed(time, amounts) is called for every
  // change, by time.
  template <class Changed>
  void add(std::int32_t rank, const action& a, const span& when, Changed&& changed) {
    if (!plain_) {
      collect(rank, a, when);
      if (computes(a.kind)) apply(rank, when.end, changed);
      return;
    }
    amounts& now = now_[core::at(rank)];
    if (has_forward(a.kind)) {
      now.device += scale_.full * scale_.share(a.stage);
      now.peak = std::max(now.peak, now.device);
      changed(when.begin, now);
    }
    if (releases(a.kind)) {
      now.device -= scale_.full * scale_.share(a.kind == VELO_ACTION_FB ? a.other_stage : a.stage);
      changed(when.end, now);
    }
  }
  void add(std::int32_t rank, const action& a, const span& when) {
    add(rank, a, when, [](std::int64_t, const amounts&) {});
  }
  // Applies the changes of copies that end after the rank's last action.
  template <class Changed>
  void finish(std::int32_t rank, Changed&& changed) {
    if (!plain_) apply(rank, INT64_MAX, changed);
  }
  void finish(std::int32_t rank) {
    finish(rank, [](std::int64_t, const amounts&) {});
  }
  const amounts& of(std::int32_t rank) const { return now_[core::at(rank)]; }

 private:
  struct change {
    std::int64_t time, device, host;
  };

  void collect(std::int32_t rank, const action& a, const span& when);
  void plan(std::int32_t rank, std::int64_t time, std::int64_t device, std::int64_t host);
  // Sets the amount of a cell, from a time on.
  void hold(std::int32_t rank, std::int32_t stage, std::int32_t unit, std::int64_t part,
            std::int64_t time);
  std::size_t cell(std::int32_t stage, std::int32_t unit) const {
    return static_cast<std::size_t>(stage) * units_ + static_cast<std::size_t>(unit);
  }

  template <class Changed>
  void apply(std::int32_t rank, std::int64_t until, Changed&& changed) {
    amounts& now = now_[core::at(rank)];
    std::vector<change>& coming = coming_[core::at(rank)];
    auto next = coming.begin();
    for (; next != coming.end() && next->time <= until; ++next) {
      now.device += next->device;
      now.host += next->host;
      now.peak = std::max(now.peak, now.device);
      now.host_peak = std::max(now.host_peak, now.host);
      changed(next->time, now);
    }
    coming.erase(coming.begin(), next);
  }

  const ticks& scale_;
  const std::size_t units_;
  const bool plain_;
  std::vector<amounts> now_;                 // by rank
  std::vector<std::vector<change>> coming_;  // by rank and time
  std::vector<std::int64_t> parts_;          // the amount of each cell
  std::vector<bool> again_;                  // cells whose RECOMPUTE is still to come
};

}  // namespace velo::sched
