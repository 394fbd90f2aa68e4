// Pipeline schedules: the value that everything here makes, proves, prices, draws or carries out.
//
// A model is a chain of stages; ranks hold stages; a batch is cut into micro-batches. A schedule
// gives every rank a row: its actions (sched/schedule/action.hpp) in order. Rows say nothing of
// time. Two things follow from the chain alone, so no row states them: F of a stage needs F of the
// stage before, I and B need I or B of the stage behind and the stage's own F, W needs the stage's
// own I. What else could go wrong is the order of each row.
//
// A row is a program (sched/schedule/program.hpp) where the kind has a closed form, else a list.
// Whoever reads it cannot tell, and reads block by block (row_reader), so that nothing need hold 25
// million actions.
//
// Words. chunk: a stage as its rank counts them. chain: stages that follow each other; there is
// one, or two when micro-batches enter from both ends (then each has half of the stages). split: a
// part of a micro-batch's sequence, worked on by itself; an action's micro-batch is then
// micro-batch * splits
// + split, a unit. Invariant: stages and units of actions are below those of the shape.
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

// The most ranks, and the most pairs of a stage and a unit: bounds on memory, not on sense.
inline constexpr std::int32_t most_ranks = 1 << 16;
inline constexpr std::int64_t most_cells = std::int64_t{1} << 27;
// The most actions of a schedule whose rows are lists: half a gigabyte of them.
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

using row = std::variant<program, std::vector<action>>;

class schedule {
 public:
  schedule() = default;
  // stages: of every rank, by chunk; each stage on one rank. rows: by rank.
  schedule(const shape& what, std::vector<std::vector<std::int32_t>> stages, std::vector<row> rows);

  const shape& what() const { return what_; }
  std::int32_t rank_of(std::int32_t stage) const { return rank_of_[stage]; }
  const std::vector<std::int32_t>& stages_of(std::int32_t rank) const { return stages_[rank]; }

  bool has(kind_set kinds) const { return (kinds_ & kinds) != 0; }  // an action of one of them
  // What the stages of a chain hold; null: not known.
  const layout* layers() const { return layout_.get(); }
  const std::shared_ptr<const layout>& shared_layers() const { return layout_; }
  void set_layers(std::shared_ptr<const layout> of) { layout_ = std::move(of); }

  std::int64_t length(std::int32_t rank) const;
  std::int64_t actions() const;  // of all ranks
  std::size_t bytes() const;     // of memory that the rows take
  // Actions [first, first + count) of a row, which are there.
  void read(std::int32_t rank, std::int64_t first, std::int64_t count, action* into) const;

 private:
  shape what_;
  std::vector<std::vector<std::int32_t>> stages_;
  std::vector<std::int32_t> rank_of_;
  std::vector<row> rows_;
  kind_set kinds_ = 0;
  std::shared_ptr<const layout> layout_;
};

// Where stages are. Loop: chunk c of rank r is stage c * P + r. V: even chunks go down the ranks,
// odd ones up again.
std::vector<std::vector<std::int32_t>> place_in_loops(std::int32_t ranks, std::int32_t chunks);
std::vector<std::vector<std::int32_t>> place_in_v(std::int32_t ranks, std::int32_t chunks);

// What a stage is, as callers see it.
velo_stage_info describe_stage(const schedule& of, std::int32_t stage);

// The row of a rank from its beginning, or a place in it, a block at a time.
class row_reader {
 public:
  row_reader(const schedule& from, std::int32_t rank, std::int64_t place = 0)
      : from_(&from), length_(from.length(rank)), place_(place), end_(place), rank_(rank) {}

  bool done() const { return place_ == length_; }
  std::int64_t place() const { return place_; }  // of the action that is next
  const action& next() {
    if (place_ == end_) fill();
    return block_[place_ - begin_];
  }
  void pass() { ++place_; }

 private:
  static constexpr std::int64_t block = 64;
  void fill();

  const schedule* from_;
  std::int64_t length_, place_, begin_ = 0, end_;
  std::int32_t rank_;
  action block_[block];
};

// Whether a rank's row has sends, and so nothing is sent but there.
bool says_sends(const schedule& what, std::int32_t rank);

}  // namespace velo::sched
