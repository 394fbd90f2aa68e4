// Search for a placement below a ceiling, by branching on which buffer comes to lie lowest.
//
// Placed buffers form a skyline: floor(m) is the least address that a buffer still to place can
// have at moment m. A node takes a buffer i that can lie at its lowest address low(i) and under
// which no other one still fits; i lies there, or it does not and then lies upon some buffer still
// to place, which raises low(i). Both ways together leave out nothing worth having: every placement
// can be pushed down until each buffer lies on address 0 or on another. What cannot succeed shows
// early: at each moment the floor and the sizes still to place must fit below the ceiling, and the
// floor rises to the least low(i) there.
//
//   - A buffer that spans all moments of its part of the problem goes to the top of it at once.
//   - When what is left falls apart in time, each part is solved alone; a part that fails goes back
//     to the decision that made it, past those made in its finished neighbors.
//   - The run's strategy, one of some fifty, says which moment to look at and which buffer to try
//     first; a run has a limited number of nodes. Moments at which runs fail gain weight, and
//     later runs look there first. Runs, seeds and limits decide everything: the clock only ends
//     it.
//
// A node costs O(buffers met + moments spanned by those whose low rises). Memory O(problem +
// trail).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "memory/plan/solver/problem.hpp"

namespace velo::memory {

// How a run chooses. Any value of any field is valid: only the time to a solution depends on it.
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

  // One run of at most so many nodes. stop is asked now and then.
  search_result run(std::int64_t ceiling, const search_strategy& strategy, std::int64_t nodes,
                    std::uint64_t seed, const std::function<bool()>& stop);

  // Of the last run that found.
  const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  // Buffers still to place that are connected in time: arena_[begin, end), and the decision that
  // made it a part.
  struct part {
    std::int32_t parent;
    std::size_t begin, end;
  };
  struct decision {
    part of;
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
  bool place(std::int32_t buffer, const part& of);
  bool postpone(std::int32_t buffer, const part& of);
  bool raise_postponed(const part& of);
  bool raise_floors(std::int32_t first, std::int32_t last);
  void raise_floor(std::int32_t moment);
  void settle(std::int32_t buffer, std::int64_t offset);
  void divide(std::int32_t parent, std::size_t begin, std::size_t end);
  part strip(part of);
  void split(const part& of);
  bool go_back(std::int32_t to);
  void undo(std::size_t trail);

  bool placed(std::int32_t buffer) const { return offset_[buffer] >= 0; }
  std::int64_t end_of(std::int32_t buffer) const { return low_[buffer] + problem_.sizes[buffer]; }
  // Whether a postponed buffer can lie upon `below` as low as it is said to.
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
  // Who was found last to decide a bound: where it still does, nobody else is looked at.
  std::vector<std::int32_t> held_by_, lowest_at_;  // by buffer, by moment
  std::vector<change> trail_;
  std::vector<std::int32_t> arena_;
  std::vector<part> agenda_;
  std::vector<decision> decisions_;
  std::vector<part> open_;           // of divide alone
  std::vector<std::int32_t> cover_;  // of split alone: by moment
  search_strategy strategy_;
  std::int64_t ceiling_ = 0;
  std::int64_t nodes_ = 0;
};

}  // namespace velo::memory
