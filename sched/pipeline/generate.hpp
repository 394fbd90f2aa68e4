// Generators: from what is wanted to a schedule.
//
// A kind has one file and one row in the table of generate.cpp. A request has been checked as far
// as all kinds agree (counts from 1, sizes that fit); what a kind alone asks for, its generator
// refuses.
#pragma once

#include <utility>
#include <vector>

#include "core/handle/failure.hpp"
#include "sched/schedule/ticks.hpp"

namespace velo::sched {

// velo_schedule_desc with its defaults filled in.
struct request {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t ranks = 0;         // P
  std::int32_t microbatches = 0;  // M
  std::int32_t chunks = 1;        // V
  std::int32_t group = 0;         // N
  std::int32_t splits = 1;        // S
  bool extra_warmup = false;
  bool detach = true;       // of W at the end of DualPipe(V)
  bool overlap = false;     // FB in an interleaved schedule
  bool in_advance = false;  // ripipe
  bool swap = false;        // nano-pipe
  double cap = 0;  // most activations, in micro-batches of a whole rank; 0: as the kind has it
  sched::costs costs;

  // The cap in activations of one stage.
  std::int32_t room_or(std::int32_t otherwise) const {
    return cap == 0 ? otherwise : static_cast<std::int32_t>(cap * chunks);
  }
};

// Sizes of the schedule that is wanted.
shape shape_of(const request& wanted);

// Throws ARGUMENT: no order is found within the cap; with `enough` micro-batches one is.
[[noreturn]] void refuse_cap(const request& wanted, double enough);

schedule make_gpipe(const request& wanted);
schedule make_1f1b(const request& wanted);
schedule make_interleaved(const request& wanted);
schedule make_looped_bfs(const request& wanted);
schedule make_zbh2(const request& wanted);
schedule make_zb1p(const request& wanted);
schedule make_zbv(const request& wanted);
schedule make_zbv_greedy(const request& wanted);
schedule make_vhalf(const request& wanted);
schedule make_vmin(const request& wanted);
schedule make_1f1b_v(const request& wanted);
schedule make_dualpipe(const request& wanted);
schedule make_dualpipev(const request& wanted);
schedule make_seq1f1b(const request& wanted);
schedule make_auto(const request& wanted);
schedule make_nanopipe(const request& wanted);
schedule make_ripipe(const request& wanted);

// The schedule that a desc asks for, its costs aside, which come checked; throws ARGUMENT naming
// the field.
schedule generate(const velo_schedule_desc& desc, const costs& given);

// A schedule with a program for every rank: fill(rank, program).
template <class Fill>
schedule by_programs(const request& wanted, const turns& order,
                     std::vector<std::vector<std::int32_t>> stages, Fill&& fill) {
  std::vector<row> rows;
  rows.reserve(wanted.ranks);
  for (std::int32_t rank = 0; rank < wanted.ranks; ++rank) {
    program actions(order);
    fill(rank, actions);
    rows.emplace_back(std::move(actions));
  }
  return {shape_of(wanted), std::move(stages), std::move(rows)};
}

// The orders that a search has come to: of every rank's state its `order`.
template <class State>
std::vector<row> orders_of(std::vector<State>& states) {
  std::vector<row> all;
  for (State& state : states) all.emplace_back(std::move(state.order));
  return all;
}

}  // namespace velo::sched
