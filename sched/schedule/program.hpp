// A rank's order as a formula: phases, each a short pattern of instructions that is repeated.
//
// Every schedule with a closed form has a few phases for each rank: F, F, F; then F and B
// alternately; then B, B. An instruction names a kind of action and a counter, whose value in the
// i-th repetition of the phase is `first` + i * `stride`. An instruction of one chunk processes the
// unit of that number. An instruction of all chunks uses the counter as an index in the order of an
// interleaved schedule: groups of N units (the last may have fewer) go through chunk 0, then
// through chunk 1, and so on; backward through the last chunk first. With down_groups the units of
// a group come from its end, so that the splits of a micro-batch go backward.
//
// Reading the k-th action costs a search among some ten phases and three divisions; each following
// action costs none.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "sched/schedule/action.hpp"

namespace velo::sched {

// The order in which units go through the chunks of a rank.
struct chunk_order {
  std::int32_t chunks = 1;  // V
  std::int32_t units = 0;   // M
  std::int32_t group = 1;   // N
};

inline constexpr std::int8_t all_chunks = -1;           // forward, interleaved
inline constexpr std::int8_t all_chunks_mirrored = -2;  // backward, interleaved
inline constexpr std::int8_t down_groups = -3;          // the only chunk, groups from their ends

struct instruction {
  velo_action_kind kind = 0;
  std::int8_t chunk = 0;        // or all_chunks, all_chunks_mirrored, down_groups
  std::int8_t other_chunk = 0;  // of an FB's B
  std::int8_t stride = 1;       // instructions of the pattern with the same counter
  std::int8_t other_stride = 1;
  std::int32_t first = 0;  // the counter in the first repetition
  std::int32_t other_first = 0;
};

struct phase {
  static constexpr int most_instructions = 6;
  std::int64_t begin = 0;  // index of its first action in the rank's row
  std::int32_t times = 0;
  std::int32_t length = 0;  // instructions in use
  instruction instructions[most_instructions] = {};
};

class program {
 public:
  explicit program(chunk_order order = {}) : order_(order) {}

  struct step {
    velo_action_kind kind;
    std::int8_t chunk = 0;
    std::int8_t other_chunk = 0;
  };
  // Appends a phase, or none if times is 0 or less. Counters continue from the previous phases. A
  // chunk has one counter for F, one for I and B, one for W (which skips units whose W was part of
  // a B), one for OFFLOAD and one for RELOAD.
  void repeat(std::int64_t times, std::initializer_list<step> steps);

  // Phases added later have no actions of units `units` and above.
  void leave_out_from(std::int32_t units) { limit_ = units; }

  // Sets the counter of W to 0; units whose W was part of a B are not skipped.
  void begin_weights();

  std::int64_t length() const { return length_; }
  kind_set kinds() const;
  std::size_t bytes() const {
    return sizeof *this + phases_.capacity() * sizeof(phase) +
           counters_.capacity() * sizeof(counters);
  }

  // Reads actions [first, first + count), which exist. stages: those of the rank, by chunk.
  void read(std::int64_t first, std::int64_t count, const std::int32_t* stages, action* into) const;

 private:
  struct counters {
    std::int32_t forward = 0, backward = 0, weight = 0, out = 0, in = 0;
    std::int32_t& of(velo_action_kind kind) {
      return kind == VELO_ACTION_F || kind == VELO_ACTION_FB ? forward
             : kind == VELO_ACTION_W                         ? weight
             : kind == VELO_ACTION_OFFLOAD                   ? out
             : kind == VELO_ACTION_RELOAD                    ? in
                                                             : backward;
    }
  };
  counters& of(std::int8_t chunk);
  void add(std::int32_t times, const std::vector<step>& steps);

  chunk_order order_;
  std::int32_t limit_ = std::numeric_limits<std::int32_t>::max();
  std::int64_t length_ = 0;
  std::vector<phase> phases_;
  std::vector<counters> counters_;  // by chunk; all chunks: as chunk 0
};

}  // namespace velo::sched
