// Point-to-point messages in shared memory, several at once, in any direction.
//
// Each pair of ranks has a channel in each direction: four slots that the sender fills and the
// receiver empties. All messages of a call progress together, so that ranks that send to each other
// do not deadlock; messages from one rank to another keep their order, also across calls. A message
// begins with its terms, which must match the receiver's. A rank that cannot make progress sleeps
// on its doorbell, which peers ring. A full slot costs a line in each direction.
//
// A started message moves as far as it can. Every later call first continues the started messages,
// then moves its own. A long message is copied at once into a block of the sender's message heap; a
// receiver either borrows the block or copies from it.
#include <algorithm>
#include <cstring>

#include "comm/transport/shared/messages/message_waits.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "comm/transport/shared/shared_round.hpp"
#include "core/context.hpp"
#include "core/index.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t head_bytes = sizeof(message_head);
constexpr std::int64_t least_heap_bytes = 16384;  // chosen, not measured (velo/executor.h)

class message_progress {
 public:
  message_progress(rank_context& self, const message_batch& batch, core::execution& state)
      : self_(self),
        messages_(batch.messages),
        kernels_(reductions_for(state.isa)),
        room_(static_cast<std::int64_t>(self.area.channel_bytes()) - head_bytes) {
    if (batch.awaited == awaited::nothing)
      self_.started.insert(self_.started.end(), messages_.begin(), messages_.end());
    own_ = batch.awaited == awaited::nothing ? 0 : messages_.size();
    first_ = batch.awaited == awaited::all ? 0 : self_.started.size();
  }

  void run() {
    move();
    while (!all_done()) {
      progress_ = false;
      noted_wait note(self_.waits);
      wait_until(
          self_, [this] { return progress_ || move(); },
          [this](std::int64_t waited) { check(waited); },
          [&](std::int64_t ns) { listen(ns, note); });
      note.clear();
      if (recorded_) clear_waits(self_.area, self_.rank);
      recorded_ = false;
    }
    const auto is_over = [](const message& m) { return m.moved == m.bytes; };
    self_.started.erase(std::remove_if(self_.started.begin(), self_.started.end(), is_over),
                        self_.started.end());
  }

 private:
  // Started messages come first, then those of the call. The call waits for the messages from
  // first_ on.
  std::size_t count() const { return self_.started.size() + own_; }
  const message& one(std::size_t i) const {
    return i < self_.started.size() ? self_.started[i] : messages_[i - self_.started.size()];
  }
  bool is_started(std::size_t i) const { return i < self_.started.size(); }

  // A message without bytes occupies a slot, too.
  bool is_done(std::size_t i) const { return one(i).moved == one(i).bytes; }
  bool all_done() const {
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) return false;
    return true;
  }

  // Advances the first incomplete message of each channel.
  bool move() {
    bool any = false;
    std::fill(self_.blocked.begin(), self_.blocked.end(), char{0});
    for (std::size_t i = 0; i < count(); ++i) {
      const message& m = one(i);
      char& blocked =
          self_.blocked[std::size_t{2} * static_cast<std::size_t>(m.peer) + (m.receives ? 1 : 0)];
      if (is_done(i) || blocked != 0) continue;
      while (!is_done(i) && (m.receives ? take(m) : put(m, is_started(i)))) any = true;
      if (!is_done(i)) blocked = 1;
    }
    return any;
  }

  // If the receiver has changed the counter since the last read, the counter lies in the receiver's
  // cache. The latency of this read then tells whether the two ranks share a cache.
  std::uint64_t taken_of(const message& m) {
    const channel& c = self_.area.channel_from(self_.rank, m.peer);
    std::uint64_t& seen = self_.seen_taken[core::at(m.peer)];
    cache_probe& probe = self_.writer.probe();
    if (m.bytes < peer_writer::least_probed_bytes || !probe.is_due())
      return seen = c.taken.load(std::memory_order_acquire);
    const std::int64_t begin = now_ns();
    const std::uint64_t taken = c.taken.load(std::memory_order_acquire);
    const std::int64_t took = now_ns() - begin;
    if (taken != seen) probe.record(took);
    return seen = taken;
  }

  bool put(const message& m, bool is_started) {
    channel& c = self_.area.channel_from(self_.rank, m.peer);
    const std::uint64_t number = c.put.load(std::memory_order_relaxed);
    const std::uint64_t full = number - taken_of(m);
    if (full > shared_area::channel_slots) end_as_corrupt(self_, m.peer, fault_of(m));
    if (full == shared_area::channel_slots) return false;
    char* slot = self_.area.channel_slot(self_.rank, m.peer, number);
    char* block = nullptr;
    if (m.moved < 0) {
      char* const own = self_.area.message_heap(self_.rank);
      if (is_started && m.bytes >= least_heap_bytes)
        block = self_.heap.allocate(own, self_.area.message_heap_bytes(),
                                    static_cast<std::size_t>(m.bytes));
      const message_head head{m.terms,
                              block == nullptr ? 0 : static_cast<std::uint64_t>(block - own) + 1};
      std::memcpy(slot, &head, sizeof head);
    }
    const std::int64_t from = std::max<std::int64_t>(m.moved, 0);
    const std::int64_t bytes = block != nullptr ? m.bytes : std::min(room_, m.bytes - from);
    self_.writer.copy(kernels_, m.data + from, block != nullptr ? block : slot + head_bytes, bytes);
    m.moved = from + bytes;
    c.put.store(number + 1, std::memory_order_seq_cst);
    self_.area.ring_doorbell(m.peer);
    return true;
  }

  bool take(const message& m) {
    channel& c = self_.area.channel_from(m.peer, self_.rank);
    const std::uint64_t number = c.taken.load(std::memory_order_relaxed);
    const std::uint64_t full = c.put.load(std::memory_order_acquire) - number;
    if (full > shared_area::channel_slots) end_as_corrupt(self_, m.peer, fault_of(m));
    if (full == 0) return false;
    const char* slot = self_.area.channel_slot(m.peer, self_.rank, number);
    char* block = m.moved < 0 ? begin(m, slot) : nullptr;
    m.block = m.borrows ? block : nullptr;
    if (m.borrows && block == nullptr) {  // it stays in the channel until it is received
      m.moved = m.bytes;
      return true;
    }
    const std::int64_t from = std::max<std::int64_t>(m.moved, 0);
    const std::int64_t bytes = block != nullptr ? m.bytes : std::min(room_, m.bytes - from);
    if (bytes > 0 && !m.borrows)
      std::memcpy(m.data + from, block != nullptr ? block : slot + head_bytes,
                  static_cast<std::size_t>(bytes));
    if (block != nullptr && !m.borrows) message_heap::free_block(block);
    m.moved = from + bytes;
    c.taken.store(number + 1, std::memory_order_seq_cst);
    self_.area.ring_doorbell(m.peer);
    return true;
  }

  // Compares the terms. Returns the block of the message if it lies in the sender's heap.
  char* begin(const message& m, const char* slot) const {
    message_head head;
    std::memcpy(&head, slot, sizeof head);
    if (m.terms.has_elements_of(head.terms)) {
      if (head.heap_offset == 0) return nullptr;
      if (!message_heap::is_block(head.heap_offset - 1, m.bytes, self_.area.message_heap_bytes()))
        end_as_corrupt(self_, m.peer, fault_of(m));
      return self_.area.message_heap(m.peer) + (head.heap_offset - 1);
    }
    fault why = fault_of(m);
    why.kind = fault::how::disagree;
    why.other = head.terms;
    why.culprits.add(m.peer);
    end_group(self_, why);
  }

  fault fault_of(const message& m) const {
    fault why;
    why.terms = m.terms;
    why.timeout_ns = self_.timeout_ns;
    return why;
  }

  // `left` is read before the peer's messages, since a peer may have sent everything before it
  // left.
  void check(std::int64_t waited) {
    raise_recorded_fault(self_);
    const message* gone = nullptr;
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i) && self_.area.state(one(i).peer).left.load(std::memory_order_acquire) != 0)
        gone = &one(i);
    if (move()) {
      progress_ = true;
      return;
    }
    const message& first = gone != nullptr ? *gone : first_open();
    if (gone != nullptr || waited >= yield_ns)
      raise_if_gone(self_, first.peer, waited, fault_of(first));
    if (waited < self_.timeout_ns) return;
    fault why = wait_now();
    why.kind = fault::how::late;
    why.culprits = to_blame(self_.area, self_.rank, why.culprits);
    self_.waits.follow_waits(why);
    end_group(self_, why);
  }
  // The first message that is awaited, and the peers of all of them as culprits.
  fault wait_now() const {
    fault why = fault_of(first_open());
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) why.culprits.add(one(i).peer);
    return why;
  }
  const message& first_open() const {
    std::size_t i = first_;
    while (is_done(i)) ++i;
    return one(i);
  }

  void record_waits() {
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) record_wait(self_.area, self_.rank, one(i).peer, one(i).receives);
    recorded_ = true;
  }

  void listen(std::int64_t ns, noted_wait& note) {
    rank_state& me = self_.area.state(self_.rank);
    if (!recorded_) record_waits();
    const std::uint64_t rung = me.doorbell.load(std::memory_order_acquire);
    me.listening.store(1, std::memory_order_seq_cst);
    progress_ = progress_ || move();  // check() may have moved something just now
    if (!progress_) {
      note.renew(wait_now());
      self_.area.sleep(self_.rank, me.doorbell, rung + 1, ns);
    }
    me.listening.store(0, std::memory_order_relaxed);
  }

  rank_context& self_;
  const std::vector<message>& messages_;
  const reduction_kernels& kernels_;
  const std::int64_t room_;  // of a slot
  std::size_t own_, first_;
  bool progress_ = false;
  bool recorded_ = false;  // this rank's waits
};

}  // namespace

void run_messages(rank_context& self, const message_batch& batch, core::execution& state) {
  message_progress(self, batch, state).run();
}

}  // namespace velo::comm
