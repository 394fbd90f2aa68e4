// The way in which the messages of a plan reach their ranks.
//
// Ranks that share memory publish the stores that messages lie in, and receivers read them there;
// nothing is copied on the way. Other ranks pack a message, unless it is a whole store, and send
// it; where the transport starts messages it moves while they compute. It arrives in memory of the
// call. Either way begins with an agreement on the plan, before any row moves. Invariant: a store
// that was sent does not change until the step behind the one that needs it, a packed copy until
// the step behind the one that sent it. Cost: a barrier for each step that needs messages; or a
// copy at either end, none at the receiver's where the rows arrive in what the gradient keeps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/transport/transport.hpp"
#include "core/stream/execution.hpp"
#include "sched/parallel/context/carried/row_store.hpp"
#include "sched/parallel/context/carried/step_memory.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

class block_carrier {
 public:
  block_carrier() = default;
  virtual ~block_carrier() = default;
  block_carrier(const block_carrier&) = delete;
  block_carrier& operator=(const block_carrier&) = delete;

  // Waits for what a step needs; the number of steps stands for the end. Throws PEER.
  virtual void begin(std::int64_t step) = 0;
  // Sends a message of the pass, by its index, that lies in a store.
  virtual void send(std::size_t message, const row_store& from) = 0;
  // Follows the messages of a step.
  virtual void start_sent() = 0;
  // Memory in which a message may arrive: a dense store of its rows and heads.
  virtual void offer(std::size_t, void*) {}
  // The store in which a message lies.
  virtual row_store received(std::size_t message) = 0;
  virtual void end() = 0;

  // Held while stores of peers are read: for a copy, or for a part of attention.
  using access = std::optional<comm::relay::tensor_access>;
  virtual void begin_access(access&) {}
  // Whether nothing travels while a step computes.
  virtual bool is_in_place() const { return true; }
};

// The pass of a rank that a carrier serves.
struct carried_messages {
  const attention_pass& pass;
  std::int64_t rank, ranks, batch;
  head_widths widths;
  ops::element_type type;

  // The type of a message's elements: sums and parts of results are float32.
  ops::element_type type_of(const block_message& m) const {
    const bool sums = m.part || m.what == content::dk || m.what == content::dv;
    return sums ? ops::element_type::f32 : type;
  }
  // Elements of a row and head, with the numbers that go with it behind them.
  std::int64_t width_of(const block_message& m) const {
    return widths.of(m.what) + elements_of(m.statistics, type_of(m));
  }
};

// what: the terms of the call, the same on all ranks. Its `in` is set.
std::unique_ptr<block_carrier> make_shared_carrier(const carried_messages& of,
                                                   comm::operation& what, comm::transport& link,
                                                   core::execution& on);
std::unique_ptr<block_carrier> make_message_carrier(const carried_messages& of,
                                                    const comm::operation& what,
                                                    comm::transport& link, step_memory& memory,
                                                    core::execution& on);
// For a rank alone, which has nothing to carry.
std::unique_ptr<block_carrier> make_no_carrier();

}  // namespace velo::sched
