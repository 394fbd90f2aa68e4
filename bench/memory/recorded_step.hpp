// The allocations and frees of a training step, in their order: read from a recorded trace, or as
// the sizes of a decoder give them. Unlike in the random mix, sizes come again, by layer and by
// step, and most are large. Blocks left alive are freed at the end, in the order of their
// allocation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace velo::bench {

struct recorded_step {
  struct event {
    std::size_t buffer;
    bool allocates;
  };
  std::string name;
  std::vector<std::size_t> sizes;  // by buffer
  std::vector<event> events;
};

// The traces of a folder (RMM's log, NAME.csv), by name; the decoder's where there are none.
std::vector<recorded_step> steps_in(const std::string& folder);

// One step after the other, each as the one before.
template <class Calls>
class replayed_step {
 public:
  replayed_step(Calls calls, const recorded_step& step)
      : calls_(calls), step_(step), blocks_(step.sizes.size()) {}

  void run() {
    for (const recorded_step::event& e : step_.events) {
      void*& block = blocks_[e.buffer];
      if (e.allocates)
        block = calls_.allocate(step_.sizes[e.buffer]);
      else
        calls_.free(block, step_.sizes[e.buffer]);
    }
  }

 private:
  Calls calls_;
  const recorded_step& step_;
  std::vector<void*> blocks_;
};

}  // namespace velo::bench
