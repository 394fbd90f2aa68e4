// Generators: from what is wanted to a schedule.
//
// A kind has one file and one row in the table of generate.cpp. A request has been checked as far as
// all kinds agree (counts from 1, sizes that fit); what a kind alone asks for, its generator refuses.
#pragma once

#include <vector>

#include "core/failure.hpp"
#include "sched/schedule.hpp"

namespace velo::sched {

// velo_schedule_desc with its defaults filled in.
struct request {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t ranks = 0;         // P
  std::int32_t microbatches = 0;  // M
  std::int32_t chunks = 1;        // V
  std::int32_t group = 0;         // N
  bool extra_warmup = false;
};

schedule make_gpipe(const request& wanted);
schedule make_1f1b(const request& wanted);
schedule make_interleaved(const request& wanted);

// The schedule that a desc asks for; throws ARGUMENT naming the field.
schedule generate(const velo_schedule_desc& desc);

// A schedule in loops with a program for every rank: fill(rank, program).
template <class Fill>
schedule by_programs(const request& wanted, const turns& order,
                     std::vector<std::vector<std::int32_t>> stages, Fill&& fill) {
  shape what;
  what.kind = wanted.kind;
  what.ranks = wanted.ranks;
  what.stages = wanted.ranks * wanted.chunks;
  what.microbatches = wanted.microbatches;
  std::vector<row> rows;
  rows.reserve(wanted.ranks);
  for (std::int32_t rank = 0; rank < wanted.ranks; ++rank) {
    program actions(order);
    fill(rank, actions);
    rows.emplace_back(std::move(actions));
  }
  return {what, std::move(stages), std::move(rows)};
}

}  // namespace velo::sched
