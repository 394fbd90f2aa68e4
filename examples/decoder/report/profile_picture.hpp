// The picture of a profile: when the passes, operators and collectives of each rank ran.
//
// A rank has three strips: its passes with their names; operators of all its threads; collectives,
// one color for each group, over the operators that wait for them, which are pale. Traces have no
// event for a product inside such an operator, so a collective's strip does not show what it
// overlaps with there. A line marks where the first rank's steps begin. At the right stand the
// shares of the time in which some operator that waits for no rank, and some collective, ran.
// Slices are drawn where they are half a pixel wide or more, so a picture's size is bounded
// whatever the profile's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

struct profile_slice {
  enum class kind : std::uint8_t { range, operation, collective };
  std::int64_t rank, thread;
  kind what;
  double begin, end;        // us
  std::string name, group;  // group: of a collective
};

// The slices of a trace's events as velo::profiler writes them, joined by commas; without waits.
// Parsed events take several times the memory of their text, so ranks are read one by one.
std::vector<profile_slice> slices_of(const std::string& events);

std::string svg(const std::vector<profile_slice>& profile);

}  // namespace decoder
