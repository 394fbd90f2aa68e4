// The algorithms that a transport considers for a call, in the order in which it tries them, each
// with the reason for or against it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::comm {

struct candidate {
  const char* name;
  bool chosen;
  std::string reason;  // for or against it
};

struct explanation {
  std::vector<candidate> algorithms;
  std::int64_t steps = 0, step_bytes = 0;  // slices through memory that ranks share; 0: none

  // The first algorithm that fits is chosen.
  void consider(const char* name, bool fits, std::string reason) {
    bool open = true;
    for (const candidate& one : algorithms) open = open && !one.chosen;
    algorithms.push_back({name, fits && open, std::move(reason)});
  }
  bool is_chosen(const char* name) const {
    for (const candidate& one : algorithms)
      if (one.chosen) return std::string(one.name) == name;
    return false;
  }
  void take_steps(std::int64_t count, std::int64_t bytes) {
    steps = count > 0 ? count : 1;
    step_bytes = bytes;
  }
};

}  // namespace velo::comm
