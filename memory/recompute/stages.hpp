// A schedule by stages: stage t ends with the first run of operation t, and a table says which
// outputs are in memory when a stage begins (as in Checkmate, MLSys'20). The table determines the
// schedule: a stage computes the missing outputs it needs, in the order of the operations, and
// frees each output after its last use unless the table has it in the next stage.
//
// The search changes a table over runs of stages: an output stays in memory between two uses, or is
// freed and recomputed. Only the stages at the two ends are evaluated again; between them the bytes
// change by the output's size. A table costs size * size bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/plan/solver/random.hpp"
#include "memory/recompute/graph.hpp"

namespace velo::memory {

class stage_table {
 public:
  static constexpr int most_ops = 4096;

  // The outputs in memory between the stages of a schedule.
  stage_table(const op_graph& graph, std::int64_t budget, const std::vector<op_step>& steps);

  bool fits() const { return over_ == 0; }
  double seconds() const { return seconds_; }
  std::vector<op_step> steps() const;

  // Keeps outputs in memory that are recomputed although there is room for them, those with the
  // most seconds a byte first.
  void fill();

  // Frees outputs until every stage fits the budget; returns false if that does not converge.
  bool repair(plan_random& random);

  // Simulated annealing for about `work` evaluated operations; ends with the best table that fits.
  void anneal(plan_random& random, std::int64_t work);

 private:
  // The marks of an output in a stage: it is in memory when the stage begins, the stage computes
  // it, the stage uses it. The first mark determines the others.
  static constexpr std::uint8_t is_there = 1, runs_here = 2, is_used = 4;

  struct edit {
    std::int32_t op, first, last;
    bool there;
  };

  std::size_t at(std::int32_t stage, std::int32_t op) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(count_) +
           static_cast<std::size_t>(op);
  }
  bool has(std::int32_t stage, std::int32_t op) const {
    return (marks_[at(stage, op)] & is_there) != 0;
  }
  bool runs(std::int32_t stage, std::int32_t op) const {
    return (marks_[at(stage, op)] & runs_here) != 0;
  }
  bool uses(std::int32_t stage, std::int32_t op) const {
    return (marks_[at(stage, op)] & is_used) != 0;
  }
  std::int64_t excess(std::int32_t stage) const {
    return peak_[stage] > budget_ ? peak_[stage] - budget_ : 0;
  }
  void rebuild();  // evaluates everything again, from there_
  void work_out(std::int32_t stage);
  void change(const edit& e);
  void undo(std::size_t from);
  std::int32_t last_seen(std::int32_t stage, std::int32_t op) const;
  bool stay(std::int32_t stage, std::int32_t op);
  bool drop(std::int32_t stage, std::int32_t op);
  void trim(std::int32_t stage, std::int32_t op);
  void trim_inputs(std::int32_t stage, std::int32_t op);
  bool drop_somewhere(std::int32_t stage, plan_random& random);
  bool mend(plan_random& random, int tries);
  std::int32_t worst_stage() const;

  const op_graph& graph_;
  const std::int64_t budget_;
  const std::int32_t count_;
  // One mark for each stage and operation; there is one stage more than operations.
  std::vector<std::uint8_t> marks_;
  std::vector<std::vector<std::int32_t>> runs_;  // of each stage, ascending
  std::vector<std::vector<std::int32_t>>
      starts_;  // outputs that are in memory in the next stage and not in this one
  std::vector<std::int64_t> live_, peak_;
  std::vector<double> cost_;
  double seconds_ = 0;
  std::int64_t over_ = 0;  // bytes beyond the budget, summed over stages
  std::int64_t worked_ = 0;
  std::vector<edit> edits_;  // since the last acceptance
  std::vector<std::int32_t> open_, gone_, last_use_;
  std::vector<std::int64_t> visited_;
  std::int64_t visits_ = 0;
};

}  // namespace velo::memory
