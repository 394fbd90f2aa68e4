// Filling and emptying the slots of messages.
#include "comm/transport/mpi/messages.hpp"

#include <algorithm>
#include <cstring>

#include "core/index.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t head_bytes =
    64;  // of a slot; in the first slot of a message it holds the terms
constexpr int way = 2;
static_assert(sizeof(terms) <= head_bytes);

bool is_done(const message& m) {
  return m.moved == m.bytes;
}

fault fault_of(const message& m) {
  fault why;
  why.terms = m.terms;
  return why;
}

}  // namespace

mpi_messages::mpi_messages(mpi_link& link)
    : link_(link),
      room_(link.slot_bytes() - head_bytes),
      out_(static_cast<std::size_t>(link.size())),
      in_(static_cast<std::size_t>(link.size())),
      blocked_(static_cast<std::size_t>(link.size())) {}

void mpi_messages::run(const message_batch& what) {
  for (lane& one : in_) {
    one.next = 0;
    one.wanted = -1;
  }
  link_.wait(
      what.messages.empty() ? fault() : fault_of(what.messages[0]), [&] { return move(what); },
      [&] { return awaited_of(what); });
}

mpi_link::motion mpi_messages::move(const message_batch& what) {
  bool any = free_sent(), all = true;
  std::fill(blocked_.begin(), blocked_.end(), char{0});
  for (const message& m : what.messages) {  // for each rank, the first message that is not done
    char& blocked = blocked_[core::at(m.peer)];
    if (m.receives || is_done(m) || blocked != 0) continue;
    while (!is_done(m) && put(m)) any = true;
    blocked = is_done(m) ? 0 : 1;
  }
  for (int peer = 0; peer < link_.size(); ++peer) {
    while (expect(what, peer)) {
    }
    while (take(what, peer)) {
      any = true;
      expect(what, peer);
    }
  }
  for (const message& m : what.messages) all = all && is_done(m);
  if (all) return mpi_link::motion::all;
  return any ? mpi_link::motion::some : mpi_link::motion::none;
}

// Frees the slots whose contents have been sent.
bool mpi_messages::free_sent() {
  bool any = false;
  for (int peer = 0; peer < link_.size(); ++peer) {
    lane& l = out_[core::at(peer)];
    while (l.begun > l.ended && link_.is_done(l.requests[l.ended % slots], peer, fault())) {
      ++l.ended;
      any = true;
    }
  }
  return any;
}

// A message without bytes occupies a slot, too.
bool mpi_messages::put(const message& m) {
  lane& l = out_[core::at(m.peer)];
  if (l.is_full()) return false;
  const auto turn = static_cast<int>(l.begun % slots);
  char* slot = link_.slot_to(m.peer, turn, way);
  if (m.moved < 0) std::memcpy(slot, &m.terms, sizeof m.terms);
  const std::int64_t from = std::max<std::int64_t>(m.moved, 0);
  const std::int64_t bytes = std::min(room_, m.bytes - from);
  if (bytes > 0) std::memcpy(slot + head_bytes, m.data + from, static_cast<std::size_t>(bytes));
  link_.begin_send(l.requests[l.begun % slots], flow::message, m.peer, slot, head_bytes + bytes);
  ++l.begun;
  m.moved = from + bytes;
  return true;
}

// Posts a receive for the next slot that this call expects from a rank.
bool mpi_messages::expect(const message_batch& what, int from) {
  lane& l = in_[core::at(from)];
  while (l.next < what.messages.size() &&
         (!what.messages[l.next].receives || what.messages[l.next].peer != from))
    ++l.next;
  if (l.next == what.messages.size() || l.is_full()) return false;
  const message& m = what.messages[l.next];
  const std::int64_t begin = std::max<std::int64_t>(l.wanted, 0);
  const std::int64_t bytes = std::min(room_, m.bytes - begin);
  const auto turn = static_cast<int>(l.begun % slots);
  l.chunks[l.begun % slots] = {l.next, begin, bytes};
  link_.begin_receive(l.requests[l.begun % slots], flow::message, from,
                      link_.slot_of(from, turn, way), link_.slot_bytes());
  ++l.begun;
  l.wanted = begin + bytes;
  if (l.wanted == m.bytes) {
    ++l.next;
    l.wanted = -1;
  }
  return true;
}

bool mpi_messages::take(const message_batch& what, int from) {
  lane& l = in_[core::at(from)];
  if (l.begun == l.ended) return false;
  const chunk& c = l.chunks[l.ended % slots];
  const message& m = what.messages[c.of];
  if (!link_.is_done(l.requests[l.ended % slots], from, fault_of(m))) return false;
  const char* slot = link_.slot_of(from, static_cast<int>(l.ended % slots), way);
  if (c.from == 0) {
    terms theirs;
    std::memcpy(&theirs, slot, sizeof theirs);
    if (!m.terms.has_elements_of(theirs)) disagree(m, theirs);
  }
  if (c.bytes > 0)
    std::memcpy(m.data + c.from, slot + head_bytes, static_cast<std::size_t>(c.bytes));
  m.moved = c.from + c.bytes;
  ++l.ended;
  return true;
}

void mpi_messages::disagree(const message& m, const terms& theirs) {
  fault why = fault_of(m);
  why.kind = fault::how::disagree;
  why.other = theirs;
  why.culprits.add(m.peer);
  link_.end(why);
  link_.raise_if_failed();
  why.raise();
}

mpi_link::awaited mpi_messages::awaited_of(const message_batch& what) const {
  mpi_link::awaited all;
  all.begins = true;
  for (const message& m : what.messages)
    if (!is_done(m)) (m.receives ? all.comes : all.goes).push_back(m.peer);
  return all;
}

void mpi_messages::finish() {
  const auto under_way = [this](int peer) {
    const lane& l = out_[core::at(peer)];
    return l.begun > l.ended && !link_.has_left(peer);
  };
  link_.wait(
      fault(),
      [&] {
        const bool any = free_sent();
        bool all = true;
        for (int peer = 0; peer < link_.size(); ++peer) all = all && !under_way(peer);
        if (all) return mpi_link::motion::all;
        return any ? mpi_link::motion::some : mpi_link::motion::none;
      },
      [&] {
        mpi_link::awaited all;
        for (int peer = 0; peer < link_.size(); ++peer)
          if (under_way(peer)) all.goes.push_back(peer);
        return all;
      });
}

void mpi_messages::abandon() noexcept {
  for (auto* lanes : {&out_, &in_})
    for (lane& l : *lanes)
      for (mpi_request& one : l.requests) link_.abandon(one);
}

}  // namespace velo::comm
