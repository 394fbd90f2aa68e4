// The memory of a rank over a timeline, by category.
//
// A rank holds the weights and optimizer states of its stages all the time, and gathered weights
// from UNSHARD to RESHARD; gradients of a stage from its first W or B to the end of its OPTIMIZER;
// activations as sched/simulate/held.hpp counts them; a message from when its sender has sent it
// until the F that takes it begins, or the I or B ends; copies of activations on the host. A stage
// counts its share of the costs' sizes. Amounts are whole numbers of shares, so adding and
// subtracting is exact.
//
// O(actions) to match messages, then O(n log n) for the n changes of a rank.
#pragma once

#include <array>
#include <vector>

#include "sched/simulate/timeline.hpp"

namespace velo::sched {

enum category { weights, gradients, optimizer_states, activations, messages, offloaded };
inline constexpr std::size_t categories = 6, on_device = 5;  // all but the last
inline constexpr const char* category_names[categories] = {"weights",     "gradients", "optimizer",
                                                           "activations", "messages",  "offloaded"};

struct memory_amounts {
  std::int64_t time = 0;  // ticks, from which they hold
  std::array<double, categories> of{};
  double total() const;  // on the device
};

class memory_use {
 public:
  memory_use(const timeline& of, const spans& when);

  // Every change, by time, beginning at 0.
  std::vector<memory_amounts> changes(std::int32_t rank);
  // The time at which the device holds most, the first of several. `offloaded` is the maximum on
  // the host at any time.
  memory_amounts peak(std::int32_t rank);

 private:
  struct change {
    std::int64_t time;
    int phase;  // order at one time: releases, activations in their order, acquisitions
    category of;
    std::int64_t amount;
  };

  double amount(std::size_t of, std::int64_t count) const;
  void note_ends(std::int32_t rank);
  void add_stages(std::int32_t rank, std::vector<change>& to) const;
  void add_messages(std::int32_t rank, const action& a, const span& when,
                    std::vector<change>& to) const;
  void add_message(std::int32_t rank, std::int32_t maker, std::int64_t sent, std::int64_t taken,
                   std::vector<change>& to) const;
  std::size_t cell(std::int32_t stage, std::int32_t unit) const {
    return static_cast<std::size_t>(std::int64_t{stage} * shape_.units() + unit);
  }

  const timeline& of_;
  const schedule& pipeline_;
  const shape shape_;
  const spans& when_;
  std::vector<std::int64_t> forward_ends_, gradient_ends_;  // by stage and unit
};

}  // namespace velo::sched
