// Generators: from a request to a schedule. Each kind has a file here, and a row in kinds.cpp.
#pragma once

#include <utility>
#include <vector>

#include "core/failure.hpp"
#include "sched/pipeline/request.hpp"

namespace velo::sched {

// The schedule that a request asks for; throws ARGUMENT naming the field of the desc.
schedule generate(const request& wanted);

// Throws ARGUMENT: no order is found within the cap. enough: a cap within which one is found.
[[noreturn]] void refuse_cap(const request& wanted, double enough);

// A schedule with a program for every rank, which fill(rank, program) fills.
template <class Fill>
schedule by_programs(const request& wanted, const chunk_order& order, placement stages,
                     Fill&& fill) {
  std::vector<row> rows;
  rows.reserve(wanted.ranks);
  for (std::int32_t rank = 0; rank < wanted.ranks; ++rank) {
    program actions(order);
    fill(rank, actions);
    rows.emplace_back(std::move(actions));
  }
  return {shape_of(wanted), std::move(stages), std::move(rows)};
}

// The rows of a search: each rank's state has its `order`.
template <class State>
std::vector<row> orders_of(std::vector<State>& states) {
  std::vector<row> all;
  for (State& state : states) all.emplace_back(std::move(state.order));
  return all;
}

}  // namespace velo::sched
