// The search: every layout of a job's space becomes a plan, or a rejection with its reason.
//
// Candidates are enumerated once and get a lower bound of their step's time from the work of the
// busiest rank and the delay to it and back, in about two microseconds each. They are then
// evaluated by rising bound: memory from the order of each rank (sched/tune/orders.hpp), and for
// those that fit, time from the simulator. The search ends when the next bound exceeds the slowest
// of as many plans as are kept, so the plans are those that trying every candidate would give.
// Memory: about a hundred bytes for each candidate, and the cache of orders.
//
// Kinds whose order is itself found by a search come after all others, when few bounds are below
// the plans that are kept: they take tens of milliseconds each. Such an order is made for the
// stages' costs and the memory that is left (sched/tune/demands.hpp), then evaluated as any other.
//
// The memory of a rank, in the bytes that the training states: parameters and gradients of its
// layers, divided by tp and ep; optimizer states, under ZeRO stage 1 (Rajbhandari et al., 2020)
// sharded over the ranks that hold the same parameters; activations (sched/tune/layer_costs.hpp)
// that its row holds at a time, from F to the end of W; a workspace; buffers.
#pragma once

#include <string>
#include <vector>

#include "core/index.hpp"
#include "sched/tune/full_layout.hpp"
#include "sched/tune/job.hpp"
#include "sched/tune/orders.hpp"

namespace velo::sched::tune {

struct rank_memory {
  std::int32_t layers = 0;
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0,
         communication = 0;  // bytes
  double total() const {
    return parameters + gradients + optimizer + activations + workspace + communication;
  }
};

struct plan {
  full_layout layout;
  double pipeline = 0, gradients = 0, optimizer = 0;  // seconds
  double bubble = 0, tokens_per_second = 0, utilization = 0;
  std::vector<rank_memory> memory;         // by rank of the pipeline
  std::vector<std::int32_t> stage_layers;  // by stage
  demand searched;                         // where the kind's order is found by a search

  double step() const { return pipeline + gradients + optimizer; }
  std::int32_t fullest() const;  // the rank with most memory
  double bytes() const { return memory[core::at(fullest())].total(); }
};

struct rejection {
  full_layout layout;
  velo_tuning_reason code = 0;
  std::int32_t rank = -1;  // MEMORY: the rank
  double value = 0;        // MEMORY: bytes; SLOWER: seconds at least
  bool at_least = false;   // MEMORY: even with one activation at a time
  std::string text;        // SCHEDULE, or where ways to share a sequence are rejected: why
};

struct tuning {
  job of;
  std::vector<plan> plans;  // the fastest first
  std::vector<rejection> rejections;
  std::int64_t nearest = -1;
  std::int64_t simulated = 0;
};

tuning search(job of);

// The reason why a candidate is no plan, as a sentence.
std::string reason_of(const tuning& from, const rejection& rejected);

// The ways of a layout beyond velo_tuning_layout: "ring, 4 slices".
std::string ways_text(const full_layout& layout);

// The result as texts.
std::string write_summary(const tuning& from);
std::string write_json(const tuning& from);
std::string write_rejected(const tuning& from);
std::string write_assumptions(const tuning& from);

}  // namespace velo::sched::tune
