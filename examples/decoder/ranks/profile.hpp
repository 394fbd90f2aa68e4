// The profile of a rank: when its operators, collectives and passes ran in some steps.
//
// Passes mark themselves as ranges; without a profile that costs a branch. Reports of all ranks are
// collected at rank 0 (member::collect_texts).
#pragma once

#include <string>
#include <velo/velo.hpp>

namespace decoder {

class profile {
 public:
  // Records from now on, as much as the level says.
  void start(const velo::context& of, int rank, std::int64_t level);
  bool records() const { return static_cast<bool>(now_); }
  // Ends recording; returns the events as velo::profiler does, and how many found no room.
  struct result {
    std::string events;
    std::uint64_t dropped;
  };
  result stop();

  // A range of the rank's own thread, until the end of the scope.
  class range {
   public:
    range(const profile& of, const char* text) : of_(of.records() ? &of.now_ : nullptr) {
      if (of_ != nullptr) velo_profiler_begin(*of_, text);
    }
    ~range() {
      if (of_ != nullptr) velo_profiler_end(*of_);
    }
    range(const range&) = delete;
    range& operator=(const range&) = delete;

   private:
    const velo::profiler* of_;
  };

 private:
  velo::profiler now_;
};

// Whether a text is a list of ranks, "0,2", or "all"; whether it names this one.
bool names_ranks(const std::string& list);
// Whether a list that is one names no rank of `ranks` or above.
bool are_ranks_below(const std::string& list, std::int64_t ranks);
bool is_named(const std::string& list, int rank);

}  // namespace decoder
