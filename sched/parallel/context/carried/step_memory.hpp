// Memory of a call that later steps use again.
//
// A piece is taken in one step and may be taken again, for the same size, from a later step on.
// Invariant: nobody reads a piece that may be taken again. A store that peers read in place is free
// one step behind the step that needs it. Memory of a sent or received message is free two steps
// behind its last use: a step takes memory for its messages before those of the step before have
// ended. Cost: one visit of all pieces for each that is taken.
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
