// The orders of a pipeline that a search tries, each made once, and which activations they hold.
//
// What a rank holds at a time follows from its row alone, whatever actions take: how many
// activations of each of its chunks. Of all those states only the ones that no other covers matter,
// a few a rank, so that the peak under any sizes is a maximum over few sums. One pass over the row
// finds them. Orders are kept as long as their bytes fit into the room there is for them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sched/schedule/ticks.hpp"
#include "velo/tune.h"

namespace velo::sched::tune {

// Activations of each chunk of a rank that are held at one time.
using holding = std::vector<std::int32_t>;

struct order {
  std::shared_ptr<const schedule> rows;      // null where there is none of the size
  std::string why;                           // not
  std::vector<std::vector<holding>> states;  // by rank: those that no other covers

  // The most that a rank holds, where an activation of chunk c takes sizes[c].
  double peak(std::int32_t rank, const std::vector<double>& sizes) const;
  std::size_t bytes() const;
};

// Kinds whose order is found by a search, for costs and within a cap on memory.
bool is_searched(velo_schedule_kind kind);

// What such an order is to keep to: costs in seconds and a cap in micro-batches, of a rank on
// average.
struct demand {
  sched::costs costs;
  double cap = 0;
};
std::shared_ptr<const order> find_order(const velo_tuning_layout& layout, const demand& wanted);

// Orders of the other kinds.
class orders {
 public:
  // room: bytes of all that are kept, but for one that takes more by itself.
  explicit orders(std::size_t room = std::size_t{256} << 20) : room_(room) {}

  // Kept until others need the room.
  std::shared_ptr<const order> get(velo_schedule_kind kind, std::int32_t ranks, std::int32_t chunks,
                                   std::int32_t microbatches);

 private:
  using key = std::tuple<velo_schedule_kind, std::int32_t, std::int32_t, std::int32_t>;
  const std::size_t room_;
  std::size_t bytes_ = 0;
  std::map<key, std::shared_ptr<const order>> made_;
};

}  // namespace velo::sched::tune
