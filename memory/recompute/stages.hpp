// A schedule by stages: stage t ends with the first run of operation t, and a table says which
// outputs are there when a stage begins (after Checkmate, MLSys'20). The table decides everything:
// a stage runs what it needs and does not find, in the order of the operations, and frees each
// output after its last use unless the next stage finds it.
//
// Search changes a table by runs of stages: an output stays between two uses, or is freed and made
// again. Only the stages at the two ends are worked out anew; between them the bytes change by
// those of the output. A table costs size * size bytes.
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

  // Lets outputs stay that are made again although there is room for them; most seconds a byte
  // first.
  void fill();

  // Frees outputs until every stage fits the budget; false when that goes in circles.
  bool repair(plan_random& random);

  // Simulated annealing for about so many stages worked out; ends with the best table that fits.
  void anneal(plan_random& random, std::int64_t work);

 private:
  // The marks of an output in a stage: it is in memory when the stage begins, it is made in it, it
  // is used in it. The first decides the others.
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
  void rebuild();  // everything, from there_
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
  std::vector<std::uint8_t> marks_;  // by stage and operation, one stage more than there are
  std::vector<std::vector<std::int32_t>> runs_;  // of each stage, ascending
  std::vector<std::vector<std::int32_t>>
      starts_;  // outputs that the next stage finds and it does not
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
