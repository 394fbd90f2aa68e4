// The object behind velo_group: one rank of a group, in one context.
//
// A collective is work of the stream on which it is called. The caller of an inline stream, or the
// worker of a queue, carries it out as work that waits and never has the context's turn. The group
// adds the order: calls are numbered when they are made and carried out in that order, whatever
// their streams, so that ranks that make the same calls carry them out together. Every wait is for
// an earlier call, so that waits form no cycle.
//
// A failure ends the group. A call that is dropped because its stream has failed ends it, too,
// since the other ranks would wait for it. A group of one rank goes on with its other calls in
// order; a dropped call does not wait for earlier ones. Thread-safe. A call costs two locks, which
// are rarely contended, and the transport.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/group/history.hpp"
#include "comm/group/measured_times.hpp"
#include "comm/group/own_messages.hpp"
#include "comm/transport/transport.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/handle/inside.hpp"
#include "core/stream/stream.hpp"

namespace velo::comm {

struct planned_operation;

struct group_settings {
  std::string label;
  std::int64_t timeout_ns;
  bool verifies = false;  // compares results that must be equal on all ranks
};

class group {
 public:
  group(core::context& owner, std::unique_ptr<transport> link, group_settings set);
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
  // Throw PEER when the group has ended, and what the stream throws. start: of a planned call that
  // was admitted (planned.hpp). here: the innermost scope of the calling thread.
  void submit(const core::inside_scope& here, core::stream& on, const operation& what);
  void submit(const core::inside_scope& here, core::stream& on, const message_batch& what);
  template <class What>
  void submit(core::stream& on, const What& what) {
    submit(core::inside_scope(), on, what);
  }
  void start(const core::inside_scope& here, core::stream& on,
             const std::shared_ptr<planned_operation>& what);

  // The transport of a part of this group, which is made in its turn among the calls, or of the
  // survivors of this group after its end. Both throw as the transport does; part throws STATE when
  // work that computes calls it.
  std::unique_ptr<transport> part(const subgroup_terms& of);
  std::unique_ptr<transport> shrink(const subgroup_terms& of);

  // The position in the order of calls of work that is more than a collective (an operator that
  // communicates), from its call until it is served or dropped. A ticket is plain data.
  struct ticket {
    std::uint64_t number = 0;
    const core::stream* queue = nullptr;  // nullptr: an inline stream
    bool begun = false;                   // its turn came when it was entered
  };
  // Fills a ticket, and then calls queue(), which puts the work into the stream and may throw; on
  // an inline stream it does nothing. Throws PEER when the group has ended.
  template <class Queue>
  void enter(const core::stream& on, ticket& place, const request& what, Queue&& queue);
  // Calls body(transport&, arena&) when the ticket's turn has come. The arena belongs to the group
  // and is emptied afterwards. A failure of body ends the group, as dropping a ticket does.
  template <class Body>
  void serve(const ticket& place, const request& what, Body&& body);
  void drop(const ticket& place, const request& what) noexcept;
  // In a catch block: drops a ticket, with the caught failure as the cause.
  void drop_failed(const ticket& place, const request& what) noexcept;
  // In a catch block of a call that should have entered two groups at once. If one group has ended,
  // this ends the other, whose ranks wait for a call that does not come. Throws the fault of the
  // first of the two that has ended, or what was caught if that is another failure. in: may be
  // nullptr.
  struct side {
    group* in;
    const request& what;
  };
  [[noreturn]] static void rethrow_for_both(const side& first, const side& second);
  bool has_ended() const noexcept { return link_->has_failed(); }
  std::int64_t relay_slot_bytes() const noexcept { return link_->relay_slot_bytes(); }
  bool starts_messages() const noexcept { return link_->starts_messages(); }

  void abort(const char* why = "") noexcept;  // why: for the records of the other ranks
  bool is_waited_for_here() const;  // the caller is work of a stream with calls of this group
  void fill(velo_group_info& info) const noexcept;
  std::string describe() const;  // JSON
  std::string history() const;   // JSON

  // measure: measures the time of collectives; all ranks call it. explain: the algorithm of an
  // admitted call, and its time by the last measurement, as JSON.
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
  void finish(const ticket& place, ending how) noexcept;
  void fail(const request& what) noexcept;  // in a catch block
  void tell_peers(const request& what, const char* cause) noexcept;

  core::context& owner_;
  const std::unique_ptr<transport> link_;
  const group_settings set_;
  core::arena scratch_;  // of the call that is served, as is
  own_messages own_;

  mutable std::mutex lock_;  // guards what follows
  std::condition_variable moved_;
  int awaiting_ = 0;                  // threads that wait for moved_
  std::uint64_t called_ = 0;          // the number of the last call
  std::uint64_t passed_ = 0;          // all calls up to this number have ended
  std::vector<std::uint64_t> early_;  // later calls that have ended; its memory suffices for all
  std::vector<const core::stream*> queues_;  // one for each call that is queued or under way there
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
  const std::lock_guard<std::mutex> lock(lock_);  // the queue has the order of the numbers
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

// As a call it would cost an inline collective 4 of 80 ns.
template <class Body>
__attribute__((always_inline)) inline void group::carry_out_in_turn(const ticket& place,
                                                                    const request& what,
                                                                    Body&& body) {
  try {
    if (!place.begun) await_turn(place.number);
    const core::scratch_reset after{scratch_};
    body(*link_, scratch_);
  } catch (...) {
    fail(what);
    link_->settle();
    finish(place, ending::failed);
    throw;
  }
  finish(place, ending::done);
}

const char* name_of(velo_transport kind) noexcept;

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::group> {
  using handle = velo_group;
  static constexpr handle_kind& kind = kinds::group;
};
