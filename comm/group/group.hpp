// What is behind velo_group: one rank of a group, in one context.
//
// A collective is work of the stream it was called on: the caller of an inline stream or the worker
// of a queue carries it out, as work that waits, which never has the context's turn. What a group
// has of its own is the order: collectives take a number when they are called, and are carried out
// in that order, whatever streams they are on, so that ranks that call alike meet alike. Every wait
// is for what was called earlier, so waits form no circle.
//
// A failure ends the group: a call that is dropped, because its stream failed before, tells the
// other ranks, who would wait for it. A group of one rank goes on, with its other calls in their
// order; a dropped call does not wait for earlier ones. Thread-safe. Cost of a call: two locks that
// are rarely contended, and the transport's.
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
  bool verifies = false;  // results that must be the same on all ranks
};

class group {
 public:
  group(core::context& owner, std::unique_ptr<transport> link, group_settings set);
  ~group();  // finishes what was called
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  core::context& owner() const noexcept { return owner_; }
  int rank() const noexcept { return link_->rank(); }
  int size() const noexcept { return link_->size(); }
  std::int64_t timeout_ns() const noexcept { return set_.timeout_ns; }

  // Throws UNSUPPORTED: an operation that the transport cannot carry out.
  void admit(const operation& what) const;
  // Throws PEER when the group has ended, and what the stream throws. start: of an operation that
  // was admitted, which is called again and again (planned.hpp). here: the innermost scope of the
  // calling thread.
  void submit(const core::inside_scope& here, core::stream& on, const operation& what);
  void submit(core::stream& on, const operation& what) { submit(core::inside_scope(), on, what); }
  void start(const core::inside_scope& here, core::stream& on,
             const std::shared_ptr<planned_operation>& what);

  // The transport of a part, or of the survivors of this group, which has ended. A part has its
  // turn among the calls. Throws as the transport does; a part: STATE when called by work that
  // computes.
  std::unique_ptr<transport> part(const subgroup_terms& of);
  std::unique_ptr<transport> shrink(const subgroup_terms& of);

  // For work that is more than a collective (an operator that communicates): its place in the order
  // of calls, from when it is made until it is served or dropped. A ticket is plain data.
  struct ticket {
    std::uint64_t number = 0;
    const core::stream* queue = nullptr;  // nullptr: of an inline stream
    bool begun = false;                   // its turn had come when it was entered
  };
  // Fills a ticket, and then puts the work into the stream: queue(), which may throw and does
  // nothing on an inline stream. Throws PEER when the group has ended.
  template <class Queue>
  void enter(const core::stream& on, ticket& place, const operation& what, Queue&& queue);
  // body(transport&, arena&) when its turn has come; the arena, empty again afterwards, is the
  // group's. A failure of it ends the group, as does dropping a ticket.
  template <class Body>
  void serve(const ticket& place, const operation& what, Body&& body);
  void drop(const ticket& place, const operation& what) noexcept;
  // In a catch block: drops a ticket for what was caught, and says so.
  void drop_failed(const ticket& place, const operation& what) noexcept;
  // In a catch block: of a call that two groups were to take at one time. Where one has ended, the
  // ranks of the other, who wait for a call that does not come, are told. Throws what ended the
  // first that has, whichever of the two was asked first; what was caught, if that is not why. in:
  // may be nullptr.
  struct side {
    group* in;
    const operation& what;
  };
  [[noreturn]] static void rethrow_for_both(const side& first, const side& second);
  bool has_ended() const noexcept { return link_->has_failed(); }
  std::int64_t relay_slot_bytes() const noexcept { return link_->relay_slot_bytes(); }
  bool starts_messages() const noexcept { return link_->starts_messages(); }

  void abort(const char* why = "") noexcept;  // why: for the others' records
  bool is_waited_for_here() const;            // the caller is work of a stream with calls of ours
  void fill(velo_group_info& info) const noexcept;
  std::string describe() const;  // JSON
  std::string history() const;   // JSON

  // Measures what collectives take; all ranks call it. And as JSON which way an operation takes
  // that has been admitted, and the time by that measurement.
  void measure(core::stream& on);
  std::string explain(const operation& what) const;

 private:
  struct call;
  struct repeated_call;
  struct measuring;

  struct scratch_reset {
    ~scratch_reset() { scratch.reset(); }
    core::arena& scratch;
  };

  velo_group handle() const noexcept;
  void raise_if_ended() const;
  // Throws STATE in a function that a call of ours runs.
  void require_not_carrying(const core::inside_scope& here) const;
  void require_can_wait_for_queued() const;  // with the lock; throws STATE
  template <class Queue>
  void number_in_order(const core::stream& on, ticket& place, const operation& what, Queue&& queue);
  template <class Body>
  void carry_out_in_turn(const ticket& place, const operation& what, Body&& body);
  template <class Count, class Body>
  void run_inline(const core::inside_scope& here, core::stream& on, const operation& what,
                  Count&& count, Body&& body);
  void carry_out(const ticket& place, const operation& what, transport& link,
                 core::execution& state);
  void carry_out_again(const ticket& place, planned_operation& what, transport& link,
                       core::execution& state);
  void carry_own(const operation& what, transport& link, core::execution& state);
  void count_another();
  void keep(const measured_times& all);
  void verify(const ticket& place, const operation& what, transport& link, core::execution& state);
  ticket number(const operation& what);  // of a call that no stream carries
  void make_room();                      // with the lock, as the next two
  void begin_if_free(ticket& place) noexcept;
  void pass(std::uint64_t number) noexcept;
  void await_turn(std::uint64_t number);
  void finish(const ticket& place, ending how) noexcept;
  void fail(const operation& what) noexcept;  // in a catch block
  void tell_peers(const operation& what, const char* cause) noexcept;

  core::context& owner_;
  const std::unique_ptr<transport> link_;
  const group_settings set_;
  core::arena scratch_;  // of whoever is served, as is
  own_messages own_;

  mutable std::mutex lock_;  // guards what follows
  std::condition_variable moved_;
  int awaiting_ = 0;                         // threads that wait for it
  std::uint64_t called_ = 0;                 // the number of the last call
  std::uint64_t passed_ = 0;                 // up to this number all came to their end
  std::vector<std::uint64_t> early_;         // beyond it, those that did; has room for all
  std::vector<const core::stream*> queues_;  // of each call that is queued or under way there
  comm::history past_;
  measured_times measured_;
  bool is_measured_ = false;
};

template <class Queue>
void group::enter(const core::stream& on, ticket& place, const operation& what, Queue&& queue) {
  if (on.is_inline()) require_not_carrying(core::inside_scope());
  number_in_order(on, place, what, queue);
}

template <class Queue>
void group::number_in_order(const core::stream& on, ticket& place, const operation& what,
                            Queue&& queue) {
  raise_if_ended();
  const std::lock_guard<std::mutex> lock(lock_);  // numbers and queue in one order
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
void group::serve(const ticket& place, const operation& what, Body&& body) {
  const core::inside_scope here(handle(), core::part::carries);
  carry_out_in_turn(place, what, body);
}

template <class Body>
void group::carry_out_in_turn(const ticket& place, const operation& what, Body&& body) {
  try {
    if (!place.begun) await_turn(place.number);
    const scratch_reset after{scratch_};
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
