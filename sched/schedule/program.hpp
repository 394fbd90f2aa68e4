// A rank's order as a formula: phases, each a short pattern of actions repeated.
//
// All schedules with a closed form are a few phases a rank: F, F, F; then F, B by turns; then B, B.
// A place of a pattern, a slot, says what is done and for which counter; in the i-th repetition of
// the phase the counter is `first` + i * `stride`. A slot of one chunk takes the counter as the
// unit it works on. A slot of all chunks takes it as a place in the order in which an interleaved
// schedule goes through chunks: groups of N units (the last may have fewer) go through chunk 0,
// then through chunk 1, ..; backward through the last chunk first. A slot that goes down takes
// every group from its end: so the splits of a micro-batch go backward.
//
// The k-th action costs a search among some ten phases and three divisions; reading on costs none.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "sched/schedule/action.hpp"

namespace velo::sched {

// The order in which chunks take turns.
struct turns {
  std::int32_t chunks = 1;  // V
  std::int32_t units = 0;   // M
  std::int32_t group = 1;   // N
};

inline constexpr std::int8_t all_chunks = -1;           // forward, by turns
inline constexpr std::int8_t all_chunks_mirrored = -2;  // backward, by turns
inline constexpr std::int8_t down_groups = -3;          // the only chunk, groups from their ends

struct slot {
  velo_action_kind kind = 0;
  std::int8_t chunk = 0;        // or all_chunks, all_chunks_mirrored, down_groups
  std::int8_t other_chunk = 0;  // of an FB's B
  std::int8_t stride = 1;       // slots of the pattern with the same counter
  std::int8_t other_stride = 1;
  std::int32_t first = 0;  // the counter in the first repetition
  std::int32_t other_first = 0;
};

struct phase {
  static constexpr int most_slots = 6;
  std::int64_t begin = 0;  // place of its first action in the rank's order
  std::int32_t times = 0;
  std::int32_t length = 0;  // slots in use
  slot slots[most_slots] = {};
};

class program {
 public:
  explicit program(turns order = {}) : turns_(order) {}

  struct step {
    velo_action_kind kind;
    std::int8_t chunk = 0;
    std::int8_t other_chunk = 0;
  };
  // Adds a phase behind the others, none where times is 0 or less. Counters go on where the phases
  // before left them: a chunk has one of its F, one of its I and B, one of its W, which is past
  // those that a B has done, one of its OFFLOAD, one of its RELOAD.
  void repeat(std::int64_t times, std::initializer_list<step> steps);

  // From here on actions of units from `units` on are left out of what is added.
  void leave_out_from(std::int32_t units) { limit_ = units; }

  // From here on the next W is that of counter 0: those that B have done are not passed over.
  void begin_weights();

  std::int64_t length() const { return length_; }
  kind_set kinds() const;
  std::size_t bytes() const {
    return sizeof *this + phases_.capacity() * sizeof(phase) +
           counters_.capacity() * sizeof(counters);
  }

  // Actions [first, first + count), which are there. stages: of the rank, by chunk.
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

  turns turns_;
  std::int32_t limit_ = std::numeric_limits<std::int32_t>::max();
  std::int64_t length_ = 0;
  std::vector<phase> phases_;
  std::vector<counters> counters_;  // by chunk; all chunks: as chunk 0
};

}  // namespace velo::sched
