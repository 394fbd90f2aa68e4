// The orders of a pipeline that a search tries, each made once, and the activations that they hold.
//
// The activations of each chunk that a rank holds at a time follow from its row alone, whatever the
// durations. Only states that no other state covers matter, a few for each rank, so the peak under
// any sizes is a maximum over few sums. One pass over the row finds them. Orders are kept while
// their bytes fit into the cache's room.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sched/schedule/ticks.hpp"
#include "velo/tune.h"

namespace velo::sched::tune {

// The number of activations of each chunk that a rank holds at one time.
using holding = std::vector<std::int32_t>;

struct order {
  std::shared_ptr<const schedule> rows;      // null if there is none of the size
  std::string why;                           // the reason for null
  std::vector<std::vector<holding>> states;  // by rank: states that no other covers

  // The maximum that a rank holds if an activation of chunk c takes sizes[c].
  double peak(std::int32_t rank, const std::vector<double>& sizes) const;
  std::size_t bytes() const;
};

// Whether a kind's order is found by a search, for costs and within a cap on memory.
bool is_searched(velo_schedule_kind kind);

// The demands on such an order: costs in seconds and a cap in micro-batches, of an average rank.
struct demand {
  sched::costs costs;
  double cap = 0;
};
std::shared_ptr<const order> find_order(const velo_tuning_layout& layout, const demand& wanted);

// The cache of orders of the other kinds.
class orders {
 public:
  // room: the bytes of all kept orders, unless a single one takes more.
  explicit orders(std::size_t room = std::size_t{256} << 20) : room_(room) {}

  // The order stays cached until others need the room.
  std::shared_ptr<const order> get(velo_schedule_kind kind, std::int32_t ranks, std::int32_t chunks,
                                   std::int32_t microbatches, std::int32_t splits = 1);

 private:
  using key =
      std::tuple<velo_schedule_kind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  const std::size_t room_;
  std::size_t bytes_ = 0;
  std::map<key, std::shared_ptr<const order>> cached_;
};

}  // namespace velo::sched::tune
