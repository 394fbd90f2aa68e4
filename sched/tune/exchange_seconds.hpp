// The time of exchanges between ranks over a profile's links.
//
// Ranks of a group lie `stride` apart: tensor ranks next to each other, then those of the context,
// of the data and of the pipeline. A group within a node has that node's links. A ring between
// nodes has the network links of all its members in a node. `bytes` is what all ranks have
// together, unless a function says otherwise. O(1) each.
#pragma once

#include "sched/tune/job.hpp"

namespace velo::sched::tune {

struct link {
  double rate, latency;  // bytes a second; seconds
};

// The slowest step of a ring.
link link_of(const profile& of, std::int64_t size, std::int64_t stride);

// The time of a ring or a tree in which every rank gets or gives `bytes` of the others.
double collective_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes);

// The time of two all-to-alls of a pass, `bytes` of a rank each, of neighboring ranks.
double all_to_all_seconds(const profile& of, std::int64_t size, double bytes);

// The time in which a rank exchanges `bytes` with the others, an equal part with each.
double pairs_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes);

}  // namespace velo::sched::tune
