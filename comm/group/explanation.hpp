// Which way an operation takes over a transport, and why: the ways in the order in which they are
// tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::comm {

struct candidate {
  const char* name;
  bool chosen;
  std::string reason;  // of either
};

struct explanation {
  std::vector<candidate> ways;
  std::int64_t steps = 0, step_bytes = 0;  // slices through memory between the ranks; 0: none

  // The first way that fits is chosen.
  void consider(const char* name, bool fits, std::string reason) {
    bool open = true;
    for (const candidate& one : ways) open = open && !one.chosen;
    ways.push_back({name, fits && open, std::move(reason)});
  }
  bool is_chosen(const char* name) const {
    for (const candidate& one : ways)
      if (one.chosen) return std::string(one.name) == name;
    return false;
  }
  void take_steps(std::int64_t count, std::int64_t bytes) {
    steps = count > 0 ? count : 1;
    step_bytes = bytes;
  }
};

}  // namespace velo::comm
