// The exchange of heads between neighbors, which Ulysses attention and all hybrids begin and end
// with.
//
// A list of rows belongs to a ring rank, which is u neighbors; they have contiguous parts of it.
// Each neighbor gets all rows of the list of its share of the heads, and gives results back.
// Invariant: with one neighbor there is nothing to exchange and no step for it. Cost: one message
// for each pair of neighbors and content.
#pragma once

#include <initializer_list>
#include <vector>

#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

class head_exchange {
 public:
  // lists: of the ring ranks.
  head_exchange(const sequence_shape& of, exchange_shape how, std::vector<rows> lists);

  std::int64_t neighbors() const { return u_; }
  std::int64_t steps() const { return u_ > 1 ? 1 : 0; }  // before the ring's, and behind them
  std::int64_t ring() const { return static_cast<std::int64_t>(lists_.size()); }
  const rows& list(std::int64_t ring_rank) const;
  rows held(std::int64_t rank) const;
  std::vector<rows> all_held() const;
  span heads_of(std::int64_t member) const;      // of queries
  span key_heads_of(std::int64_t member) const;  // that these need

  // Every neighbor sends its rows of the heads that others compute. kept: the receivers keep them
  // for the gradient.
  void send_heads(attention_pass& pass, std::int64_t step, std::initializer_list<content> what,
                  bool kept) const;
  // Results of all rows go back to their owners.
  void send_back(attention_pass& pass, std::int64_t step,
                 std::initializer_list<content> what) const;

 private:
  template <class Body>
  void each_pair(const Body& body) const;

  const sequence_shape& of_;
  const std::int64_t u_;
  const bool gathers_;
  const std::vector<rows> lists_;
};

}  // namespace velo::sched
