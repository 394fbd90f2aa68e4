// The exchanges of velo_routing_set: the drop of choices beyond capacity, and the counts of rows.
//
// A capacity of the whole micro-batch concerns the ranks that have its tokens, which may be more
// than those that share the experts. So there are two calls, each in its own group: the first reads
// the choices and drops some, the second exchanges the counts of the others. Without such a
// capacity the second reads the choices. Cost: capacity.hpp, and 8 bytes an expert from each rank;
// where rows move through the slots of a relay, 4 bytes a choice.
#pragma once

#include <memory>

#include "comm/group/group.hpp"
#include "core/stream/stream.hpp"
#include "sched/moe/capacity.hpp"
#include "sched/moe/row_routes.hpp"

namespace velo::sched {

// The tensors of a call, which must stay until the work has run. Those of a rank without tokens may
// be null.
struct given_choices {
  const std::int32_t* choices = nullptr;
  choice_order order;
};

// Reads choices and drops those beyond the capacity of a micro-batch.
struct choice_limitation {
  const char* function;
  std::shared_ptr<row_routes> routes;
  comm::group* among;
  capacity_rule rule;
  given_choices given;

  comm::operation request() const;
  void carry_out(const comm::group::ticket& place, core::execution& on) const;
};
void submit(core::stream& on, const choice_limitation& what);

// Exchanges counts.
struct choice_exchange {
  const char* function;
  std::shared_ptr<row_routes> routes;
  comm::group* among;
  capacity_rule rule;
  bool reads;           // choices, before; otherwise they are read
  given_choices given;  // if so
  comm::operation request() const;
  void carry_out(const comm::group::ticket& place, core::execution& on) const;
};
void submit(core::stream& on, const choice_exchange& what);

}  // namespace velo::sched
