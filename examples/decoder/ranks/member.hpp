// One rank of a run: its memory, its context, and its collectives with the other ranks.
//
// Each rank holds a copy of the model or a part of one: `tp` tensor ranks share each matrix, `cp`
// context ranks the rows of each window, `pp` stages the layers. The rest are copies, which share
// each micro-batch's windows. Ranks are numbered as velo_topology has it: tensor ranks fastest,
// then context ranks, copies and stages. The ranks with the same weights form a data-parallel
// group; their results have the same bits. Rank 0 leads: it alone prints, measures, saves and
// writes files. All ranks call the collectives in the same order; with one rank they do nothing.
#pragma once

#include <memory>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/ranks/profile.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class member {
 public:
  // The only rank, until it joins a group. It records memory only if it `leads`. A pool of the kind
  // VELO_POOL_SHARED is for ranks that are processes.
  explicit member(const settings& values, bool leads = true,
                  velo_pool_kind kind = VELO_POOL_ORDINARY);

  // The defaults of a job's group, with the timeout of the settings.
  velo_group_desc group_desc() const;

  // Makes this a rank of the group. Its threads are its share of the machine's where the settings
  // leave that open.
  void join(velo::group group);

  run_memory& memory() { return memory_; }
  velo::context& context() { return context_; }
  const velo::context& context() const { return context_; }
  velo::stream_ref stream() const { return context_.inline_stream(); }
  profile& profiled() { return profile_; }
  const profile& profiled() const { return profile_; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // Copies of the model, and this rank's.
  int copies() const { return ranks_ / ranks_of_copy_; }
  int copy() const { return rank_ % ranks_of_stage() / (tensor_.ranks * context_ranks_.ranks); }
  bool holds_whole_model() const { return ranks_of_copy_ == 1 && expert_ranks_.ranks == 1; }
  int stages() const { return stages_.ranks; }
  int stage() const { return stages_.rank; }
  int ranks_of_stage() const { return ranks_ / stages(); }  // in all copies

  // Ranks of this copy that share something, and this one's place among them; without a group where
  // it is alone.
  struct part {
    velo::group group;
    int rank = 0, ranks = 1;
  };
  const part& tensor_ranks() const { return tensor_; }
  const part& context_ranks() const { return context_ranks_; }
  // The tensor ranks along x and those along y, in two dimensions (hidden_parallel.hpp); in one
  // dimension all of them are along x.
  const part& tensor_ranks_x() const { return in_two_ ? tensor_x_ : tensor_; }
  const part& tensor_ranks_y() const { return tensor_y_; }
  // The ranks that have rows of the same windows in attention: context ranks, and those along y.
  const part& attention_ranks() const { return in_two_ ? attention_ : context_ranks_; }
  // The tensor ranks that have this one's keys and values, too: several where there are more ranks
  // than heads of them.
  const part& key_ranks() const { return key_ranks_; }
  // The first and the last stage of this copy, if they share an embedding and this is one of them.
  const part& tied_ends() const { return tied_ends_; }

  // Of a model with experts: the ranks that a layer's experts are dealt out to, those that have
  // this rank's experts, and all that have tokens of a micro-batch in this stage. expert_copies()
  // has a group of one rank, too.
  const part& expert_ranks() const { return expert_ranks_; }
  const part& expert_copies() const { return expert_copies_; }
  const part& stage_ranks() const { return stage_ranks_; }

  // The ranks with this rank's weights, and a stream for their communication; whether this rank is
  // the first of them.
  velo_group data_parallel_group() const {
    return data_parallel_group_ ? data_parallel_group_ : group_;
  }
  velo::stream_ref data_parallel_stream() const { return link_; }
  bool is_data_parallel() const { return data_parallel_ranks_ > 1; }
  int data_parallel_ranks() const { return data_parallel_ranks_; }
  bool leads_data_parallel() const { return leads_data_parallel_; }
  // A rank of each stage of this copy.
  velo_group pipeline() const { return stages_.group; }

  // Collectives.

  // Cuts each copy over several ranks. With the schedule dualpipe a rank shares the weights of the
  // stage at the same distance from the other end.
  void split(const parallel_settings& how, std::int64_t ranks_of_key, bool ties_ends,
             bool has_experts);
  void barrier() const;
  double sum(double mine) const;
  std::int64_t max(std::int64_t mine) const;
  // Sums integers, in place; rank 0 has the sums.
  void sum_at_leader(std::int64_t* values, std::int64_t count) const;
  // Sums over the data-parallel group and the tensor ranks, in place.
  void sum_stage(double* values, std::int64_t count) const;
  // Collects elements at rank 0; each element is nonzero on one rank alone.
  void collect(float* pieces, std::int64_t count) const;

  // The texts of all ranks, at rank 0.
  std::vector<std::string> collect_texts(const std::string& mine) const;

  // Ends the waits of the other ranks, as this rank has failed.
  void abort() const noexcept;

 private:
  // Makes the group of these ranks, which have this one's weights, and of those of the stage at the
  // same distance from the other end, if it has them, too.
  void share_weights(std::vector<std::int32_t> ranks, bool with_mirror);
  template <class T>
  std::vector<T> gathered(T mine) const;

  const std::int64_t threads_;  // as the settings say
  const std::int64_t timeout_ns_;
  run_memory memory_;
  velo::context context_;
  profile profile_;
  velo::group group_;
  part tensor_, tensor_x_, tensor_y_, context_ranks_, attention_, stages_, key_ranks_, tied_ends_;
  part expert_ranks_, expert_copies_, stage_ranks_;
  bool in_two_ = false;
  velo::group data_parallel_group_;  // empty: it is group_
  velo::stream link_;
  int rank_ = 0, ranks_ = 1, ranks_of_copy_ = 1;
  int data_parallel_ranks_ = 1;
  bool leads_data_parallel_ = true;
};

}  // namespace decoder
