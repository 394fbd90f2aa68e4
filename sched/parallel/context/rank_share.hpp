// The share of one rank in a plan: what it computes, which rows of others it gets and in which
// stores, and what the forward leaves for its gradient.
//
// Rows of one content that arrive for one step form one store, the landing. Own rows are copied in
// where tasks need both. Keys or values from a single message are read in place, unless the
// gradient keeps them. Invariant: landings follow from plan and rank alone, so that the size of the
// kept ones is known before a call runs. Cost: one visit of the plan's messages.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/parallel/context/carried/row_store.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

// Rows of queries, keys, values or gradients of outputs that a rank gets before a step.
struct landing {
  content what;
  std::int64_t needed;
  row_places places;
  span heads;
  bool kept;      // for the gradient
  bool with_own;  // this rank's rows lie among them
  bool remote;    // queries that this rank computes for another
  std::vector<std::size_t> messages;

  bool comes_as_one() const { return is_of_keys(what) && !with_own && messages.size() == 1; }
};

class rank_share {
 public:
  rank_share(const sequence_plan& plan, const sequence_shape& of, std::int64_t rank);

  const sequence_plan& plan() const { return plan_; }
  const sequence_shape& shape() const { return of_; }
  std::int64_t rank() const { return rank_; }
  const row_places& held() const { return held_; }
  const std::vector<landing>& landings(bool gradient) const {
    return gradient ? gradient_ : forward_;
  }
  // What the call of the layer that owns the keys has kept, in its order, if the plan takes keys
  // from it. Its queries are not read.
  const std::vector<landing>& given() const { return given_; }
  // The messages to this rank that hold results or parts of them, by index.
  const std::vector<std::size_t>& results(bool gradient) const {
    return gradient ? gradient_results_ : forward_results_;
  }
  // The rows and heads of queries that this rank computes for itself; all heads of no row if it has
  // none.
  const row_places& queries() const {
    return exchanged_ < 0 ? held_ : forward_[exchanged()].places;
  }
  span heads() const { return heads_; }
  // Whether these come from an exchange of heads. Then outputs are kept beside them.
  bool exchanges() const { return exchanged_ >= 0; }

  // Elements a sequence of the batch that the forward keeps, and that the plan takes.
  std::int64_t kept_elements(const head_widths& widths) const;
  std::int64_t given_elements(const head_widths& widths) const;

 private:
  std::int64_t elements_of_kept(const std::vector<landing>& all, const head_widths& widths) const;
  std::size_t exchanged() const { return static_cast<std::size_t>(exchanged_); }

  const sequence_plan& plan_;
  const sequence_shape& of_;
  std::int64_t rank_;
  row_places held_;
  std::vector<landing> forward_, gradient_, given_;
  std::vector<std::size_t> forward_results_, gradient_results_;
  span heads_{0, 0};
  std::int64_t exchanged_ = -1;  // the landing of queries
};

}  // namespace velo::sched
