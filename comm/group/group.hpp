// The object behind velo_group: one rank of a group, in one context.
//
// A collective is work of the stream on which it is called. The caller of an inline stream, or the
// worker of a queue, runs it as work that waits and never occupies the context's threads. The group
// adds the order: calls are numbered when they are made and run in that order, whatever their
// streams, so that ranks that make the same calls run them together. Every call waits only for
// earlier calls, so waits form no cycle.
//
// A failure ends the group. A call that is dropped because its stream has failed also ends it,
// since the other ranks would wait for the call. A group of one rank goes on with its other calls
// in order; a dropped call does not wait for earlier ones. Thread-safe. A call costs the
// transport's time and two locks, which are rarely contended.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/group/history.hpp"
#include "comm/group/measured_times.hpp"
#include "comm/group/met_fault.hpp"
#include "comm/group/own_messages.hpp"
#include "comm/transport/transport.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/handle/inside.hpp"
#include "core/stream/stream.hpp"

namespace velo::comm {

struct planned_operation;

struct group_settings {
  static constexpr const char* no_label = "group";

  std::string label;
  std::int64_t timeout_ns;
  bool verifies = false;  // compares results that must be equal on all ranks
};

// The state that an outermost group and its parts share on one rank.
struct group_ties {
  met_fault met = {};
  wait_board waits = {};
};

class group {
 public:
  group(core::context& owner, std::unique_ptr<transport> link, group_settings set,
        const group_ties& of_part = {});
  ~group();  // after all calls have ended
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  core::context& owner() const noexcept { return owner_; }
  int rank() const noexcept { return link_->rank(); }
  int size() const noexcept { return link_->size(); }
  std::int64_t timeout_ns() const noexcept { return set_.timeout_ns; }

  // Throws UNSUPPORTED for messages that the transport cannot carry.
  void admit(const operation&) const noexcept {}
  void admit(const message_batch& what) const;
  // Throw PEER if the group has ended, and what the stream throws. start: runs a planned call that
  // was admitted (planned.hpp). here: the innermost scope of the calling thread.
  void submit(const core::inside_scope& here, core::stream& on, const operation& what);
  void submit(const core::inside_scope& here, core::stream& on, const message_batch& what);
  template <class What>
  void submit(core::stream& on, const What& what) {
    submit(core::inside_scope(), on, what);
  }
  void start(const core::inside_scope& here, core::stream& on,
             const std::shared_ptr<planned_operation>& what);

  // part: the transport of a subgroup, created in order with the group's calls; throws STATE if
  // work that computes calls it. shrink: the transport of the survivors, after the group has ended.
  // Both throw as the transport does.
  std::unique_ptr<transport> part(const subgroup_terms& of);
  std::unique_ptr<transport> shrink(const subgroup_terms& of);

  // A position in the order of calls, for work that is more than one collective (an operator that
  // communicates). It is held from the operator's call until the work is served or dropped. A
  // ticket is plain data.
  struct ticket {
    std::uint64_t number = 0;
    const core::stream* queue = nullptr;  // nullptr: an inline stream
    bool begun = false;                   // its turn had come already on entry
  };
  // Fills a ticket, and then calls queue(), which puts the work into the stream and may throw. On
  // an inline stream queue() does nothing. Throws PEER if the group has ended.
  template <class Queue>
  void enter(const core::stream& on, ticket& place, const request& what, Queue&& queue);
  // Calls body(transport&, arena&) in the ticket's turn. The arena belongs to the group and is
  // emptied afterwards. A failure of body ends the group, as dropping a ticket does.
  template <class Body>
  void serve(const ticket& place, const request& what, Body&& body);
  void drop(const ticket& place, const request& what) noexcept;
  // In a catch block: drops a ticket, with the caught failure as the cause.
  void drop_failed(const ticket& place, const request& what) noexcept;
  // In a catch block of a call that should have entered two groups at once. If one group has ended,
  // this ends the other, whose ranks would wait for the call forever. Throws the fault of the first
  // of the two that has ended; if none has, rethrows the caught exception. in: may be nullptr.
  struct side {
    group* in;
    const request& what;
  };
  [[noreturn]] static void rethrow_for_both(const side& first, const side& second);
  // The state that a part of these ranks shares with the group.
  group_ties ties_of_part(const std::vector<int>& ranks) const {
    return {met_.part(ranks), waits_.part(ranks)};
  }
  bool has_ended() const noexcept { return link_->has_failed(); }
  std::int64_t relay_slot_bytes() const noexcept { return link_->relay_slot_bytes(); }
  bool shows_tensors() const noexcept { return link_->shows_tensors(); }
  bool starts_messages() const noexcept { return link_->starts_messages(); }

  void abort(const char* why = "") noexcept;  // why: for the records of the other ranks
  // Whether this thread runs work of a stream with calls of this group.
  bool is_waited_for_here() const;
  void fill(velo_group_info& info) const noexcept;
  std::string describe() const;  // JSON
  std::string history() const;   // JSON

  // measure: measures the times of collectives; all ranks call it. explain: returns the algorithm
  // of an admitted call, and its predicted time if one was measured, as JSON.
  void measure(core::stream& on);
  std::string explain(const operation& what) const;
  std::string explain(const message_batch& what) const;

 private:
  template <class What>
  struct queued_call;
  struct repeated_call;
  struct measuring;

  velo_group handle() const noexcept;
  void raise_if_ended() const;
  const char* fault_label() const noexcept;
  void meet(const fault& known) const noexcept;
  void forget_met() const noexcept;
  [[noreturn]] void rethrow() const;  // in a catch block
  void end(const fault& why) noexcept;
  // Throws STATE in a function that a call of this group runs.
  void require_not_carrying(const core::inside_scope& here) const;
  void require_can_wait_for_queued() const;  // with the lock; throws STATE
  template <class Queue>
  void number_in_order(const core::stream& on, ticket& place, const request& what, Queue&& queue);
  template <class Body>
  void carry_out_in_turn(const ticket& place, const request& what, Body&& body);
  template <class What>
  void submit_any(const core::inside_scope& here, core::stream& on, const What& what);
  template <class Count, class Body>
  void carry_out_inline(const core::inside_scope& here, core::stream& on, const request& what,
                        Count&& count, Body&& body);
  void carry_out(const ticket& place, const operation& what, transport& link,
                 core::execution& state);
  void carry_out(const ticket& place, const message_batch& what, transport& link,
                 core::execution& state);
  void carry_out_again(const ticket& place, planned_operation& what, transport& link,
                       core::execution& state);
  std::string text_of(const explanation& all, const request& what, std::int64_t bytes) const;
  void count_another();
  void keep(const measured_times& all);
  void verify(const ticket& place, const operation& what, transport& link, core::execution& state);
  ticket number(const request& what);  // of a call without a stream
  void make_room();                    // with the lock, as the next two
  void begin_if_free(ticket& place) noexcept;
  void pass(std::uint64_t number) noexcept;
  void await_turn(std::uint64_t number);
  void report(core::profile_event call) noexcept;
  void finish(const ticket& place, ending how) noexcept;
  void fail(const request& what) noexcept;  // in a catch block
  void tell_peers(const request& what, const char* cause) noexcept;

  core::context& owner_;
  const std::unique_ptr<transport> link_;
  const group_settings set_;
  const met_fault met_;
  wait_board waits_;
  core::arena scratch_;  // memory of the running call
  own_messages own_;

  mutable std::mutex lock_;  // guards the following members
  std::condition_variable moved_;
  int awaiting_ = 0;                         // threads that wait for moved_
  std::uint64_t called_ = 0;                 // the number of the last call
  std::uint64_t passed_ = 0;                 // all calls up to this number have ended
  std::vector<std::uint64_t> early_;         // later calls that have ended; reserved by make_room()
  std::vector<const core::stream*> queues_;  // one for each call that is queued or running there
  comm::history past_;
  measured_times measured_;
  bool is_measured_ = false;
};

template <class Queue>
void group::enter(const core::stream& on, ticket& place, const request& what, Queue&& queue) {
  if (on.is_inline()) require_not_carrying(core::inside_scope());
  number_in_order(on, place, what, queue);
}

template <class Queue>
void group::number_in_order(const core::stream& on, ticket& place, const request& what,
                            Queue&& queue) {
  raise_if_ended();
  // Held while queueing, so that the stream keeps the order of the numbers.
  const std::lock_guard<std::mutex> lock(lock_);
  if (on.is_inline() && passed_ != called_) require_can_wait_for_queued();
  make_room();
  place = {called_ + 1, on.is_inline() ? nullptr : &on, false};
  if (place.queue != nullptr) queues_.push_back(&on);
  try {
    queue();
  } catch (...) {
    if (place.queue != nullptr) queues_.pop_back();
    throw;
  }
  past_.call(++called_, what);
  if (place.queue == nullptr) begin_if_free(place);
}

template <class Body>
void group::serve(const ticket& place, const request& what, Body&& body) {
  const core::inside_scope here(handle(), core::part::carries);
  carry_out_in_turn(place, what, body);
}

// Inlined: a function call would cost an inline collective 4 of 80 ns.
template <class Body>
__attribute__((always_inline)) inline void group::carry_out_in_turn(const ticket& place,
                                                                    const request& what,
                                                                    Body&& body) {
  bool has_turn = false;
  try {
    if (!place.begun) await_turn(place.number);
    has_turn = true;
    body(*link_, scratch_);
  } catch (...) {
    fail(what);
    link_->settle();
    if (has_turn) scratch_.reset();  // no peer reads it any more
    finish(place, ending::failed);
    rethrow();
  }
  scratch_.reset();
  finish(place, ending::done);
}

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::group> {
  using handle = velo_group;
  static constexpr handle_kind& kind = kinds::group;
};
