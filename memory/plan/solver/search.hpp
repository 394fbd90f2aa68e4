// A search for a placement below a ceiling, which branches on the buffer at the lowest address.
//
// Placed buffers form a skyline: floor(m) is the lowest address that an unplaced buffer can have at
// moment m. A node takes a buffer i that can be at its lowest address low(i) and under which no
// other buffer fits. Either i is placed there, or it is on top of some unplaced buffer, which
// raises low(i). The two branches are complete: every placement can be pushed down until each
// buffer is at address 0 or on top of another. Dead ends are found early: at each moment the floor
// plus the sizes still to place must fit below the ceiling, and the floor rises to the least low(i)
// there.
//
//   - A buffer that spans all moments of its subproblem goes to the top of it at once.
//   - When the unplaced buffers fall apart in time, each subproblem is solved alone; one that fails
//     returns to the decision that made it, past those made in its finished neighbors.
//   - The run's strategy decides the moment and the buffer to try first; a run has a limited number
//     of nodes. Moments at which runs fail gain weight, and later runs try them first. Runs, seeds
//     and limits decide the result: the clock only ends the search.
//
// A node costs O(overlapping buffers + moments spanned by those whose low rises). Memory O(problem
// + trail).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "memory/plan/solver/problem.hpp"

namespace velo::memory {

// The preferences of a run. Any value of any field is valid; only the time to a solution depends on
// it.
struct search_strategy {
  enum class moment { tight, low_tight, low, low_half_tight, half_low, lowest };
  enum class buffer { least_waste, longest, largest, weighted_longest };
  moment where = moment::lowest;
  buffer what = buffer::weighted_longest;
  bool walls = false;  // prefer buffers that fit between their neighbors in time
  double noise = 0;    // how much chance changes the preference, 0 to 1
};

enum class search_result { found, impossible, gave_up };

class plan_search {
 public:
  explicit plan_search(const plan_problem& problem);

  // Runs for at most `nodes` nodes. stop() is called every 64 nodes and ends the run if it returns
  // true.
  search_result run(std::int64_t ceiling, const search_strategy& strategy, std::int64_t nodes,
                    std::uint64_t seed, const std::function<bool()>& stop);

  // The placement of the last run that found one.
  const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  // Buffers still to place that are connected in time: arena_[begin, end), and the decision that
  // made it a subproblem.
  struct subproblem {
    std::int32_t parent;
    std::size_t begin, end;
  };
  struct decision {
    subproblem of;
    std::int32_t buffer;
    std::size_t trail, agenda, arena;  // sizes to go back to
  };
  struct change {
    std::int64_t* where;
    std::int64_t before;
  };

  void reset(std::int64_t ceiling, const search_strategy& strategy, std::uint64_t seed);
  std::int32_t choose(const decision& at) const;
  std::int32_t choose_moment(const decision& at) const;
  double moment_score(std::int32_t moment) const;
  double preference(std::int32_t buffer) const;
  double wall_share(std::int32_t moment, std::int64_t bottom, std::int64_t top) const;
  bool place(std::int32_t buffer, const subproblem& of);
  bool postpone(std::int32_t buffer, const subproblem& of);
  bool raise_postponed(const subproblem& of);
  bool raise_floors(std::int32_t first, std::int32_t last);
  void raise_floor(std::int32_t moment);
  void settle(std::int32_t buffer, std::int64_t offset);
  void divide(std::int32_t parent, std::size_t begin, std::size_t end);
  subproblem strip(subproblem of);
  void split(const subproblem& of);
  bool go_back(std::int32_t to);
  void undo(std::size_t trail);

  bool placed(std::int32_t buffer) const { return offset_[buffer] >= 0; }
  std::int64_t end_of(std::int32_t buffer) const { return low_[buffer] + problem_.sizes[buffer]; }
  // Whether a postponed buffer can be on top of `below` at its lowest address.
  bool is_held_up(std::int32_t buffer, std::int32_t below) const {
    return below >= 0 && !placed(below) && end_of(below) <= low_[buffer];
  }
  std::int64_t slack(std::int32_t moment) const {
    return top_[moment] - floor_[moment] - rest_[moment];
  }
  void set(std::int64_t& where, std::int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }

  const plan_problem& problem_;
  std::vector<std::int64_t> low_, offset_, postponed_;  // by buffer
  std::vector<std::int64_t> floor_, rest_, top_;        // by moment; rest: sizes still to place
  std::vector<double> weight_, chance_;                 // by moment, by buffer
  // The buffer or moment that last decided a bound: it is checked first, since it often still does.
  std::vector<std::int32_t> held_by_, lowest_at_;  // by buffer, by moment
  std::vector<change> trail_;
  std::vector<std::int32_t> arena_;
  std::vector<subproblem> agenda_;
  std::vector<decision> decisions_;
  std::vector<subproblem> open_;     // of divide alone
  std::vector<std::int32_t> cover_;  // of split alone: by moment
  search_strategy strategy_;
  std::int64_t ceiling_ = 0;
  std::int64_t nodes_ = 0;
};

}  // namespace velo::memory
