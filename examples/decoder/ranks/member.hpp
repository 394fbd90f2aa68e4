// One rank of a run: its memory, its context, and what it does together with the other ranks.
//
// Ranks are copies of the model, each with its part of the windows, or of a copy's stages: with
// `pp` stages, ranks 0 to n / pp - 1 have the first, and so on. What ranks with the same weights,
// the sharers of these, make together has the same bits on all of them. Rank 0 leads: it alone
// prints, measures, saves and writes files. Every function below "Together" is to be called by all
// ranks in the same order; of a run of one rank it does nothing.
#pragma once

#include <memory>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class member {
 public:
  // The only rank, until it joins others. It writes no records of memory unless it `leads`.
  explicit member(const settings& values, bool leads = true);

  // From now on a rank of this group; its threads are its part of the machine's where the settings
  // leave that open.
  void join(velo::group group);

  run_memory& memory() { return memory_; }
  const velo::context& context() const { return context_; }
  velo::stream_ref stream() const { return context_.inline_stream(); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // Copies of the model, and which one this rank is of; a copy's ranks are in the order of its
  // stages.
  int copies() const { return ranks_ / stages_; }
  int copy() const { return rank_ % copies(); }
  int stages() const { return stages_; }
  int stage() const { return rank_ / copies(); }

  // The ranks with this one's weights, with a stream of communication's own; whether it is the
  // first.
  velo_group sharers() const { return sharers_ ? sharers_ : group_; }
  velo::stream_ref stream_of_sharers() const { return link_; }
  bool shares() const { return sharing_ > 1; }
  bool first_sharer() const { return first_sharer_; }
  // Those of this copy.
  velo_group pipeline() const { return pipeline_; }

  // Together.
  // Cuts copies into so many stages; `both_ways`: a rank shares the weights of the one as far from
  // the other end.
  void split(int stages, bool both_ways);
  void barrier() const;
  double sum(double mine) const;
  int most(int mine) const;
  // Of those that share weights: adds up, in place.
  void sum_of_sharers(double* values, std::int64_t count) const;
  // Brings elements of which each is one rank's, and 0 on the others, to rank 0.
  void collect(float* pieces, std::int64_t count) const;

  // Ends what the others wait for: this rank has failed.
  void abort() const noexcept;

 private:
  const std::int64_t threads_;  // as the settings say
  run_memory memory_;
  velo::context context_;
  velo::group group_, pipeline_, sharers_;  // sharers_: where not all ranks are
  velo::stream link_;
  int rank_ = 0, ranks_ = 1, stages_ = 1;
  int sharing_ = 1;
  bool first_sharer_ = true;
};

}  // namespace decoder
