// The capacity of experts: the number of choices of a micro-batch that an expert takes, and the
// choices that it drops.
//
// The ranks of a micro-batch exchange how many choices each expert has. Where an expert has more
// than its capacity, the ranks exchange the scores and the places of these choices, and each finds
// the same ones to keep: the first, or those of the largest scores and of equal ones the first.
// Tokens are ordered by their places in the micro-batch, so that the layout of ranks does not
// matter; without places, by rank. Invariant: a choice that is dropped takes no row and counts for
// no expert. Cost: 8 bytes an expert from each rank, and 16 bytes a choice of the experts that have
// too many.
#pragma once

#include <cstdint>

#include "comm/transport/transport.hpp"
#include "sched/moe/row_routes.hpp"

namespace velo::sched {

struct capacity_rule {
  enum class measure { none, rows, factor } by = measure::none;
  std::int64_t rows = 0;     // by rows: of an expert. by factor: the least of them
  double factor = 0;         // times the mean of the choices of an expert
  bool keeps_first = false;  // otherwise the largest scores
  bool alone = false;        // a rank for its own tokens
  bool pads = false;         // gives each expert all rows of its capacity

  bool limits() const { return by != measure::none; }
  bool scores() const { return limits() && !keeps_first; }
  // of: tokens with a choice.
  std::int64_t rows_for(std::int64_t tokens, const expert_layout& of) const;
  std::uint64_t hash() const;
};

// The order of choices, in tensors of the caller. Those of a rank without tokens may be null.
struct choice_order {
  bool placed = false;                   // else by rank
  const float* scores = nullptr;         // [tokens, top_k]; without keeps_first
  const std::int64_t* places = nullptr;  // [tokens]; placed alone
};

// Drops what exceeds the capacity from choices that were read. among: the ranks of the micro-batch;
// nullptr: this rank alone.
struct limit_call {
  const char* function;
  const capacity_rule& rule;
  choice_order order;
};
comm::operation counts_of(const limit_call& call, const row_routes& routes);  // what ranks exchange
void limit_choices(const limit_call& call, row_routes& routes, comm::transport* among,
                   core::execution& on);

}  // namespace velo::sched
