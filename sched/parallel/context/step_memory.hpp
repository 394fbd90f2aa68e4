// Memory of a call that later steps use again.
//
// A piece is taken in a step and is free from a later step on, in which pieces of the same size are
// taken from it. Its user frees it so that nobody reads it then: a store that peers read in place
// from the step behind the one that needs it, what a message sends or brings two steps behind its
// last use, since messages of a step are taken memory for before the earlier ones have ended. Cost:
// one visit of the pieces for each that is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/host/arena.hpp"

namespace velo::sched {

class step_memory {
 public:
  static constexpr std::int64_t to_the_end = std::int64_t{1} << 60;

  explicit step_memory(core::arena& from) : from_(from) {}
  // free_in: the step from which on the memory may be taken again.
  void* take(std::size_t bytes, std::int64_t step, std::int64_t free_in = to_the_end);
  void free(const void* memory, std::int64_t free_in);

 private:
  struct piece {
    void* memory;
    std::size_t bytes;
    std::int64_t free_in;
  };
  core::arena& from_;
  std::vector<piece> pieces_;
};

}  // namespace velo::sched
