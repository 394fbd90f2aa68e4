// The price of context-parallel attention by velo's sequence plans (sched/parallel/context): what
// the slowest rank computes and exchanges in each step of a plan.
//
// A plan has messages for each pair of ranks, and a search prices thousands of layouts. So the
// numbers are sums in closed form, of one causal sequence, without caches and rings of rings. A
// sequence that cp does not divide has the price of the next one that it divides, whose ranks have
// as many rows as the fullest of its own. tests/sched/tune/context_cost_test.cpp holds every step
// to the plan's own price.
// Splits of a sequence, which all_gather and ulysses have, keep what plans exchange again.
// Equal steps are one phase. A step's exchange travels beside what the same step computes.
// Cost: one pass over the neighbors that exchange heads.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/sequence_plan.h"

namespace velo::sched::tune {

// One sequence and the ranks that share it. Heads are those of a rank of tensor parallelism.
struct context_shape {
  velo_sequence_kind kind;
  std::int64_t cp, ulysses;  // neighbors that exchange heads; 1 without such an exchange
  std::int64_t sequence, heads, kv_heads;
  double key, value;  // elements of a head: of queries and keys, of values
  double element;     // bytes of an element; gradients of keys and values have 4
  // The sequence goes through in splits: a rank keeps the keys and values of all rows that its
  // queries see, and the sums of their gradients, which have `element` bytes, too.
  bool keeps_all_keys = false;
};

// The ranks between which a phase exchanges: all, in pairs; neighbors, in pairs; next in a ring.
enum class context_way { all, neighbors, ring };

struct context_phase {
  double steps;
  double cells;  // of the causal mask, times heads: of the rank that computes most
  double bytes;  // in or out of a rank, whichever is more, of the rank that has most
  context_way way;
};

struct context_cost {
  std::vector<context_phase> forward, gradient;
  double kept = 0;      // bytes that a rank has from others and keeps for the gradient
  double buffers = 0;   // bytes that others' rows and parts of their gradients take at a time
  double all_keys = 0;  // bytes of the keys and values of all rows, where a rank keeps them
};

// The number of neighbors where the kind fixes it: cp for ULYSSES, 1 for RING and ALL_GATHER.
context_cost context_cost_of(const context_shape& of);

// Sums over the phases of a pass.
double cells_of(const std::vector<context_phase>& pass);
double bytes_of(const std::vector<context_phase>& pass);

}  // namespace velo::sched::tune
