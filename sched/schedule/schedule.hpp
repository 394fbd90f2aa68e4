// Pipeline schedules: the value that generators make, the validator proves, the simulator prices,
// the pictures draw and executors run.
//
// A model is a chain of stages, ranks hold stages, and a batch is cut into micro-batches. A
// schedule gives every rank a row: its actions (sched/schedule/action.hpp) in order. Rows do not
// state times. They also do not state what follows from the chain: F of a stage needs F of the
// stage before; I and B need I or B of the stage behind and the stage's own F; W needs the stage's
// own I. Only the order of a row can be wrong.
//
// A row is a program (sched/schedule/program.hpp) if its kind has a closed form, else a list.
// Readers see no difference: they read block by block (row_reader), so that 25 million actions need
// not be held in memory.
//
// Terms. chunk: the number of a stage on its rank. chain: stages that follow each other. There is
// one chain, or two where micro-batches enter from both ends; each then has half of the stages.
// split: a part of a micro-batch's sequence that is processed separately. unit: a micro-batch or
// one of its splits, micro-batch * splits + split; actions are numbered by it. Invariant: stages
// and units of actions are below those of the shape.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "sched/schedule/action.hpp"
#include "sched/schedule/layout.hpp"
#include "sched/schedule/program.hpp"

namespace velo::sched {

// The most ranks, and the most pairs of a stage and a unit. These bound memory.
inline constexpr std::int32_t most_ranks = 1 << 16;
inline constexpr std::int64_t most_cells = std::int64_t{1} << 27;
// The most actions of a schedule whose rows are lists: half a gigabyte.
inline constexpr std::int64_t most_listed = std::int64_t{1} << 25;

struct shape {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t ranks = 0;
  std::int32_t stages = 0;
  std::int32_t chains = 1;
  std::int32_t microbatches = 0;
  std::int32_t splits = 1;

  // Units that each stage works on.
  std::int32_t units() const { return microbatches / chains * splits; }
  std::int64_t cells() const { return std::int64_t{stages} * units(); }
  std::int32_t chain_length() const { return stages / chains; }
  bool begins_chain(std::int32_t stage) const { return stage % chain_length() == 0; }
  bool ends_chain(std::int32_t stage) const { return (stage + 1) % chain_length() == 0; }
};

// The stages of every rank, by chunk.
using placement = std::vector<std::vector<std::int32_t>>;

using row = std::variant<program, std::vector<action>>;

class schedule {
 public:
  schedule() = default;
  // Each stage is on one rank; rows are given by rank.
  schedule(const shape& sizes, placement stages, std::vector<row> rows);

  const shape& sizes() const { return sizes_; }
  std::int32_t rank_of(std::int32_t stage) const { return rank_of_[stage]; }
  const std::vector<std::int32_t>& stages_of(std::int32_t rank) const { return stages_[rank]; }

  bool has(kind_set kinds) const { return (kinds_ & kinds) != 0; }  // an action of one of them
  // The layers of a chain's stages; null if they are not known.
  const layout* layers() const { return layout_.get(); }
  const std::shared_ptr<const layout>& shared_layers() const { return layout_; }
  void set_layers(std::shared_ptr<const layout> of) { layout_ = std::move(of); }

  std::int64_t length(std::int32_t rank) const;
  std::int64_t actions() const;  // of all ranks
  std::size_t bytes() const;     // of memory that the rows take
  // Reads actions [first, first + count) of a row, which exist.
  void read(std::int32_t rank, std::int64_t first, std::int64_t count, action* into) const;

 private:
  shape sizes_;
  placement stages_;
  std::vector<std::int32_t> rank_of_;
  std::vector<row> rows_;
  kind_set kinds_ = 0;
  std::shared_ptr<const layout> layout_;
};

// The usual placements. Loop: chunk c of rank r is stage c * P + r. V: even chunks go down the
// ranks, odd ones up again.
placement loop_placement(std::int32_t ranks, std::int32_t chunks);
placement v_placement(std::int32_t ranks, std::int32_t chunks);

// The public description of a stage.
velo_stage_info describe_stage(const schedule& of, std::int32_t stage);

// Reads the row of a rank block by block, from its begin or another index.
class row_reader {
 public:
  row_reader(const schedule& from, std::int32_t rank, std::int64_t index = 0)
      : from_(&from), length_(from.length(rank)), index_(index), end_(index), rank_(rank) {}

  bool done() const { return index_ == length_; }
  std::int64_t index() const { return index_; }  // of the action that is next
  const action& next() {
    if (index_ >= end_) fill();
    return block_[index_ - begin_];
  }
  void pass() { ++index_; }  // an action that need not have been read

 private:
  static constexpr std::int64_t block = 64;
  void fill();

  const schedule* from_;
  std::int64_t length_, index_, begin_ = 0, end_;
  std::int32_t rank_;
  action block_[block];
};

// Whether a rank's row states its sends; nothing else is sent then.
bool says_sends(const schedule& pipeline, std::int32_t rank);

}  // namespace velo::sched
