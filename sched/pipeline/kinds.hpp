// The table of kinds of schedules: one row has everything that the library knows of a kind.
//
// A kind's number, name and help are in abi/spec/sched.json. Code that depends on the kind (reading
// a request, fitting a layout, the search of AUTO, velo_tune) reads its row, so that a new kind
// changes no such code; CONTRIBUTING lists its places. O(1): the rows are in the order of their
// numbers.
#pragma once

#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

struct request;

// The direction in which the stages of a rank's further chunks follow each other.
enum class stage_path : std::uint8_t {
  down,         // stages go down the ranks once for every chunk
  down_and_up,  // the second chunk's stages go up the ranks again
  both_ways,    // two chains: one goes down the ranks, the other up
  either        // with two chunks the search takes down or down_and_up
};

// Whether velo_tune tries a kind.
enum class tuning : std::uint8_t { never, if_listed, by_default };

// Traits of a kind, bits of kind_row::traits.
enum kind_trait : unsigned {
  takes_group = 1,
  takes_splits = 2,
  takes_cap = 4,        // its order is searched for by costs, within the cap
  stores_actions = 8,   // its rows are lists, not programs
  whole_backward = 16,  // a stage's B is done before the previous stage begins its own
  fuses = 32,           // FB hides the communication of experts, for which AUTO gives no credit
  weighs_stages = 64,   // the cap is compared with shares of the model, not with counted stages
  in_auto = 128         // AUTO tries it, with its default number of chunks
};

struct kind_row {
  velo_schedule_kind kind;
  schedule (*make)(const request& wanted);
  std::int32_t chunks;       // default for a rank; 0: the search decides
  std::int32_t most_chunks;  // of a rank
  unsigned traits;
  std::uint32_t flags;  // bits of velo_schedule_desc::flags that it uses, apart from OPTIMIZER
  stage_path path;
  sched::tuning tuning;

  bool has(unsigned all) const { return (traits & all) == all; }
  bool one_size() const { return chunks == most_chunks; }
  // Whether later stages of a chain are on lower ranks if a rank has `with_chunks` chunks.
  bool goes_up(std::int32_t with_chunks) const {
    return path == stage_path::down_and_up || path == stage_path::both_ways ||
           (path == stage_path::either && with_chunks != 1);
  }
};

// The row of an existing kind. CUSTOM's row has no generator.
const kind_row& row_of(velo_schedule_kind kind);

// The kinds that velo_tune tries by default, and all that it can try, which begin with the default
// ones. Kinds are left out that recompute or copy activations by themselves, split sequences or
// store parameters twice.
std::vector<velo_schedule_kind> default_tuning_kinds();
std::vector<velo_schedule_kind> tuning_kinds();

// The kinds that AUTO tries, fewest chunks first.
std::vector<const kind_row*> auto_candidates();

}  // namespace velo::sched
