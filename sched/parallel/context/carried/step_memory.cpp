// Pieces of memory by size.
#include "sched/parallel/context/carried/step_memory.hpp"

#include <algorithm>

namespace velo::sched {

void* step_memory::take(std::size_t bytes, std::int64_t step, std::int64_t free_in) {
  bytes = std::max<std::size_t>(bytes, 1);  // each piece has an address of its own
  for (piece& one : pieces_) {
    if (one.bytes != bytes || one.free_in > step) continue;
    one.free_in = free_in;
    return one.memory;
  }
  void* memory = from_.take(bytes);
  pieces_.push_back({memory, bytes, free_in});
  return memory;
}

void step_memory::free(const void* memory, std::int64_t free_in) {
  for (piece& one : pieces_)
    if (one.memory == memory) one.free_in = free_in;
}

}  // namespace velo::sched
