// Messages: what one rank has for another, several at once, in any direction.
//
// Each pair of ranks has a channel in each direction: four slots that the sender fills and the
// reader empties. The messages of a call move along together, whichever can, so that ranks that
// send to each other do not wait for each other; those from one rank to another keep their order,
// also across calls. A message begins with its terms, which must be what the reader expects. Who
// finds nothing to move listens for its bell, which a peer rings. Cost of a slot full: a line in
// each direction.
//
// A message that is started moves as far as it can, and on with every later call of messages,
// before theirs. If it is long it goes into memory that the sender lends, whole and at once; a
// reader that borrows has it there, others copy it.
#include <algorithm>
#include <cstring>

#include "comm/collective/calls.hpp"
#include "comm/transport/shared/wait_notes.hpp"
#include "comm/transport/shared/waiting.hpp"
#include "core/context.hpp"

namespace velo::comm {
namespace {

message message_of(const caller& by, const velo_tensor* given, std::int32_t peer, bool receives,
                   const char* tensor, const char* rank) {
  const buffer x = buffer_of(by.owner, given, tensor);
  if (peer < 0 || peer >= by.size)
    core::fail(VELO_ERR_ARGUMENT, rank, core::text("0 to %d", by.size - 1), core::text("%d", peer));
  message made;
  made.data = x.data;
  made.bytes = x.bytes();
  made.peer = peer;
  made.receives = receives;
  made.terms.kind = receives ? collective::receive : collective::send;
  made.terms.in_code = made.terms.out_code = x.dtype.code;
  made.terms.in_bits = made.terms.out_bits = x.dtype.bits;
  made.terms.count = x.count;
  made.terms.root = static_cast<std::uint16_t>(peer);
  return made;
}

operation one_message(const caller& by, const velo_tensor* x, std::int32_t peer, bool receives) {
  operation what;
  what.function = receives ? "velo_group_receive" : "velo_group_send";
  what.messages.push_back(message_of(by, x, peer, receives, "x", receives ? "from" : "to"));
  what.terms = what.messages[0].terms;
  return what;
}

bool share_bytes(const message& a, const message& b) {
  return a.bytes > 0 && b.bytes > 0 && a.data < b.data + b.bytes && b.data < a.data + a.bytes;
}

}  // namespace

operation send_call(const caller& by, std::int32_t to, const velo_tensor* x) {
  return one_message(by, x, to, false);
}

operation receive_call(const caller& by, std::int32_t from, const velo_tensor* x) {
  return one_message(by, x, from, true);
}

operation start_call(const caller& by, std::int32_t to, const velo_tensor* x) {
  operation what = one_message(by, x, to, false);
  what.awaited = awaited::nothing;
  return what;
}

operation finish_call() {
  operation what;
  what.function = "velo_link.finish";
  what.terms.kind = collective::exchange;
  what.awaited = awaited::all;
  return what;
}

operation borrow_call(const caller& by, std::int32_t from, std::int64_t bytes) {
  velo_tensor all{};
  all.data = const_cast<std::int64_t*>(&bytes);  // nothing is written there
  all.device = by.owner.device();
  all.ndim = 1;
  all.dtype = {VELO_DTYPE_UINT, 8, 1};
  all.shape = &bytes;
  operation what = one_message(by, &all, from, true);
  what.messages[0].borrows = true;
  return what;
}

operation exchange_call(const caller& by, const velo_group_message* messages, std::int64_t count) {
  if (count < 0 || count > most_messages)
    core::fail(VELO_ERR_ARGUMENT, "count", core::text("0 to %d", most_messages),
               core::text("%lld", static_cast<long long>(count)));
  if (messages == nullptr && count > 0)
    core::fail(VELO_ERR_NULL, "messages", "as many as count says", "NULL");
  operation what;
  what.function = "velo_group_exchange";
  what.terms.kind = collective::exchange;
  what.terms.count = count;
  for (int i = 0; i < count; ++i) {
    const velo_group_message& given = messages[i];
    if (given.direction != VELO_MESSAGE_SEND && given.direction != VELO_MESSAGE_RECEIVE)
      core::fail(VELO_ERR_ARGUMENT, core::text("messages[%d].direction", i), "a VELO_MESSAGE",
                 core::text("%d", given.direction));
    const message made =
        message_of(by, given.x, given.rank, given.direction == VELO_MESSAGE_RECEIVE,
                   core::text("messages[%d].x", i), core::text("messages[%d].rank", i));
    for (int k = 0; k < i; ++k) {
      const message& other = what.messages[static_cast<std::size_t>(k)];
      if ((made.receives || other.receives) && share_bytes(made, other))
        core::fail(VELO_ERR_OVERLAP, core::text("messages[%d].x", i), "memory of its own",
                   core::text("memory shared with messages[%d].x", k));
    }
    what.messages.push_back(made);
  }
  return what;
}

namespace {

constexpr std::int64_t head_bytes = sizeof(message_head);
constexpr std::int64_t lent_from = 16384;  // bytes, as velo/executor.h says: chosen, not measured

class traffic {
 public:
  traffic(place& at, const operation& what, core::execution& state)
      : at_(at),
        messages_(what.messages),
        kernels_(reductions_for(state.isa)),
        room_(static_cast<std::int64_t>(at.area.channel_bytes()) - head_bytes) {
    if (what.awaited == awaited::nothing)
      at_.started.insert(at_.started.end(), messages_.begin(), messages_.end());
    own_ = what.awaited == awaited::nothing ? 0 : messages_.size();
    first_ = what.awaited == awaited::all ? 0 : at_.started.size();
  }

  void run() {
    move();
    while (!all_done()) {
      progress_ = false;
      wait_until(
          at_, [this] { return progress_ || move(); },
          [this](std::int64_t waited) { look_around(waited); },
          [this](std::int64_t ns) { listen(ns); });
      if (noted_) forget_waits(at_.area, at_.rank);
      noted_ = false;
    }
    const auto is_over = [](const message& m) { return m.moved == m.bytes; };
    at_.started.erase(std::remove_if(at_.started.begin(), at_.started.end(), is_over),
                      at_.started.end());
  }

 private:
  // Those that were started, then the call's own. It waits for all from first_ on.
  std::size_t count() const { return at_.started.size() + own_; }
  const message& one(std::size_t i) const {
    return i < at_.started.size() ? at_.started[i] : messages_[i - at_.started.size()];
  }
  bool is_started(std::size_t i) const { return i < at_.started.size(); }

  // A message without bytes has a slot, too.
  bool is_done(std::size_t i) const { return one(i).moved == one(i).bytes; }
  bool all_done() const {
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) return false;
    return true;
  }

  // Whatever can: of messages in one direction of one channel, the first that is not done.
  bool move() {
    bool any = false;
    std::fill(at_.blocked.begin(), at_.blocked.end(), char{0});
    for (std::size_t i = 0; i < count(); ++i) {
      const message& m = one(i);
      char& blocked =
          at_.blocked[std::size_t{2} * static_cast<std::size_t>(m.peer) + (m.receives ? 1 : 0)];
      if (is_done(i) || blocked != 0) continue;
      while (!is_done(i) && (m.receives ? take(m) : put(m, is_started(i)))) any = true;
      if (!is_done(i)) blocked = 1;
    }
    return any;
  }

  // A count that the reader has changed since it was last looked at lies in the reader's cache: how
  // long it takes tells how far that is.
  std::uint64_t taken_of(const message& m) {
    const channel& c = at_.area.way(at_.rank, m.peer);
    std::uint64_t& seen = at_.seen_taken[static_cast<std::size_t>(m.peer)];
    nearness& peers = at_.writer.peers();
    if (m.bytes < peer_writer::judged_from || !peers.wants_look())
      return seen = c.taken.load(std::memory_order_acquire);
    const std::int64_t begin = now_ns();
    const std::uint64_t taken = c.taken.load(std::memory_order_acquire);
    const std::int64_t took = now_ns() - begin;
    if (taken != seen) peers.took(took);
    return seen = taken;
  }

  bool put(const message& m, bool is_started) {
    channel& c = at_.area.way(at_.rank, m.peer);
    const std::uint64_t number = c.put.load(std::memory_order_relaxed);
    const std::uint64_t full = number - taken_of(m);
    if (full > shared_area::channel_slots) end_as_corrupt(at_, m.peer, fault_of(m));
    if (full == shared_area::channel_slots) return false;
    char* slot = at_.area.channel_slot(at_.rank, m.peer, number);
    char* block = nullptr;
    if (m.moved < 0) {
      char* const own = at_.area.lending(at_.rank);
      if (is_started && m.bytes >= lent_from)
        block = at_.own.take(own, at_.area.lending_bytes(), static_cast<std::size_t>(m.bytes));
      const message_head head{m.terms,
                              block == nullptr ? 0 : static_cast<std::uint64_t>(block - own) + 1};
      std::memcpy(slot, &head, sizeof head);
    }
    const std::int64_t from = std::max<std::int64_t>(m.moved, 0);
    const std::int64_t bytes = block != nullptr ? m.bytes : std::min(room_, m.bytes - from);
    at_.writer.copy(kernels_, m.data + from, block != nullptr ? block : slot + head_bytes, bytes);
    m.moved = from + bytes;
    c.put.store(number + 1, std::memory_order_seq_cst);
    at_.area.ring(m.peer);
    return true;
  }

  bool take(const message& m) {
    channel& c = at_.area.way(m.peer, at_.rank);
    const std::uint64_t number = c.taken.load(std::memory_order_relaxed);
    const std::uint64_t full = c.put.load(std::memory_order_acquire) - number;
    if (full > shared_area::channel_slots) end_as_corrupt(at_, m.peer, fault_of(m));
    if (full == 0) return false;
    const char* slot = at_.area.channel_slot(m.peer, at_.rank, number);
    char* block = m.moved < 0 ? begin(m, slot) : nullptr;
    m.lent = m.borrows ? block : nullptr;
    if (m.borrows && block == nullptr) {  // it stays, to be received
      m.moved = m.bytes;
      return true;
    }
    const std::int64_t from = std::max<std::int64_t>(m.moved, 0);
    const std::int64_t bytes = block != nullptr ? m.bytes : std::min(room_, m.bytes - from);
    if (bytes > 0 && !m.borrows)
      std::memcpy(m.data + from, block != nullptr ? block : slot + head_bytes,
                  static_cast<std::size_t>(bytes));
    if (block != nullptr && !m.borrows) lending::give_back(block);
    m.moved = from + bytes;
    c.taken.store(number + 1, std::memory_order_seq_cst);
    at_.area.ring(m.peer);
    return true;
  }

  // Compares terms. Where it lies, if the sender lends it.
  char* begin(const message& m, const char* slot) const {
    message_head head;
    std::memcpy(&head, slot, sizeof head);
    if (m.terms.has_elements_of(head.terms)) {
      if (head.lent == 0) return nullptr;
      if (!lending::is_block(head.lent - 1, m.bytes, at_.area.lending_bytes()))
        end_as_corrupt(at_, m.peer, fault_of(m));
      return at_.area.lending(m.peer) + (head.lent - 1);
    }
    fault why = fault_of(m);
    why.kind = fault::how::disagree;
    why.other = head.terms;
    why.culprits.add(m.peer);
    end_group(at_, why);
  }

  fault fault_of(const message& m) const {
    fault why;
    why.terms = m.terms;
    why.timeout_ns = at_.timeout_ns;
    return why;
  }

  // Peers that left may have sent all before: whether they left is read first.
  void look_around(std::int64_t waited) {
    raise_if_noted(at_);
    const message* gone = nullptr;
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i) && at_.area.state(one(i).peer).left.load(std::memory_order_acquire) != 0)
        gone = &one(i);
    if (move()) {
      progress_ = true;
      return;
    }
    const message& first = gone != nullptr ? *gone : first_open();
    if (gone != nullptr || waited >= yield_ns)
      raise_if_gone(at_, first.peer, waited, fault_of(first));
    if (waited < at_.timeout_ns) return;
    fault why = fault_of(first);
    why.kind = fault::how::late;
    rank_set open;
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) open.add(one(i).peer);
    why.culprits = to_blame(at_.area, at_.rank, open);
    end_group(at_, why);
  }
  const message& first_open() const {
    std::size_t i = first_;
    while (is_done(i)) ++i;
    return one(i);
  }

  void note() {
    for (std::size_t i = first_; i < count(); ++i)
      if (!is_done(i)) note_wait(at_.area, at_.rank, one(i).peer, one(i).receives);
    noted_ = true;
  }

  void listen(std::int64_t ns) {
    rank_state& me = at_.area.state(at_.rank);
    if (!noted_) note();
    const std::uint64_t rung = me.bell.load(std::memory_order_acquire);
    me.listening.store(1, std::memory_order_seq_cst);
    progress_ = progress_ || move();  // look_around may have moved something just now
    if (!progress_) at_.area.sleep(at_.rank, me.bell, rung + 1, ns);
    me.listening.store(0, std::memory_order_relaxed);
  }

  place& at_;
  const std::vector<message>& messages_;
  const reduction_kernels& kernels_;
  const std::int64_t room_;  // of a slot
  std::size_t own_, first_;
  bool progress_ = false;
  bool noted_ = false;  // whom we wait for
};

}  // namespace

void carry(place& at, const operation& what, core::execution& state) {
  traffic(at, what, state).run();
}

}  // namespace velo::comm
