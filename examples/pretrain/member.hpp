// One rank of a run: its memory, its context, and what it does together with the other ranks.
//
// All ranks hold the same weights and do the same steps, each on its part of the windows; what they
// make together has the same bits on all of them. Rank 0 leads: it alone prints, measures, saves
// and writes files. Every function below "Together" is to be called by all ranks in the same order;
// of a run of one rank it does nothing.
#pragma once

#include <memory>
#include <velo/velo.hpp>

#include "run_memory.hpp"
#include "settings.hpp"

namespace pretrain {

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

  // Of several ranks: their group, and a stream of communication's own.
  velo_group group() const { return group_; }
  velo::stream_ref link() const { return link_; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // Together.
  void barrier() const;
  double sum(double mine) const;
  int most(int mine) const;
  // Brings elements of which each is one rank's, and 0 on the others, to rank 0.
  void collect(float* pieces, std::int64_t count) const;

  // Ends what the others wait for: this rank has failed.
  void abort() const noexcept;

 private:
  const std::int64_t threads_;  // as the settings say
  run_memory memory_;
  velo::context context_;
  velo::group group_;
  velo::stream link_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace pretrain
