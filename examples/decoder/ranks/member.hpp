// One rank of a run: its memory, its context, and its collectives with the other ranks.
//
// Each rank holds a copy of the model, or a copy's stages: with `pp` stages, ranks 0 to n / pp - 1
// hold the first stage, and so on. Copies share each micro-batch's windows. The ranks with the same
// weights form a data-parallel group; their results have the same bits. Rank 0 leads: it alone
// prints, measures, saves and writes files. All ranks call the collectives in the same order; with
// one rank they do nothing.
#pragma once

#include <memory>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class member {
 public:
  // The only rank, until it joins a group. It records memory only if it `leads`.
  explicit member(const settings& values, bool leads = true);

  // Makes this a rank of the group. Its threads are its share of the machine's where the settings
  // leave that open.
  void join(velo::group group);

  run_memory& memory() { return memory_; }
  velo::context& context() { return context_; }
  const velo::context& context() const { return context_; }
  velo::stream_ref stream() const { return context_.inline_stream(); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // Copies of the model, and this rank's copy; a copy's ranks are in the order of its stages.
  int copies() const { return ranks_ / stages_; }
  int copy() const { return rank_ % copies(); }
  int stages() const { return stages_; }
  int stage() const { return rank_ / copies(); }

  // The ranks with this rank's weights, and a stream for their communication; whether this rank is
  // the first of them.
  velo_group data_parallel_group() const {
    return data_parallel_group_ ? data_parallel_group_ : group_;
  }
  velo::stream_ref data_parallel_stream() const { return link_; }
  bool is_data_parallel() const { return data_parallel_ranks_ > 1; }
  bool leads_data_parallel() const { return leads_data_parallel_; }
  // The ranks of this copy.
  velo_group pipeline() const { return pipeline_; }

  // Collectives.

  // Cuts each copy into stages. With `both_ways` a rank shares the weights of the rank at the same
  // distance from the other end.
  void split(int stages, bool both_ways);
  void barrier() const;
  double sum(double mine) const;
  int max(int mine) const;
  // Sums over the data-parallel group, in place.
  void sum_data_parallel(double* values, std::int64_t count) const;
  // Collects elements at rank 0; each element is nonzero on one rank alone.
  void collect(float* pieces, std::int64_t count) const;

  // Ends the waits of the other ranks, as this rank has failed.
  void abort() const noexcept;

 private:
  const std::int64_t threads_;  // as the settings say
  run_memory memory_;
  velo::context context_;
  velo::group group_, pipeline_;
  velo::group data_parallel_group_;  // empty: it is group_
  velo::stream link_;
  int rank_ = 0, ranks_ = 1, stages_ = 1;
  int data_parallel_ranks_ = 1;
  bool leads_data_parallel_ = true;
};

}  // namespace decoder
