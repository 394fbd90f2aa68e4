// The table of collectives, and what a rank tells of all.
#include "comm/transport/shared/shared_transport.hpp"

#include <sched.h>

#include <utility>

#include "comm/transport/shared/shared_relay.hpp"
#include "core/host/cpu.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t spin_ns = 20000;

void carry_out(meeting& m) {
  switch (m.what.terms.kind) {
    case collective::barrier:
      return barrier(m);
    case collective::all_reduce:
      return all_reduce(m);
    case collective::reduce:
      return reduce(m);
    case collective::broadcast:
      return broadcast(m);
    case collective::all_gather:
      return all_gather(m);
    case collective::reduce_scatter:
      return reduce_scatter(m);
    case collective::all_to_all:
      return all_to_all(m);
    case collective::gather:
      return gather(m);
    case collective::scatter:
      return scatter(m);
    case collective::send:
    case collective::receive:
    case collective::exchange:
    case collective::create_part:
    case collective::shrink:
    case collective::dispatch:
    case collective::combine:
      return;  // not by meetings
  }
}

}  // namespace

shared_transport::shared_transport(const setting& set, const shared_area& area,
                                   std::shared_ptr<void> memory, std::unique_ptr<peer_watch> watch,
                                   std::shared_ptr<hall> parts, std::unique_ptr<windows> lent)
    : kind_(set.kind),
      memory_(std::move(memory)),
      watch_(std::move(watch)),
      parts_(std::move(parts)),
      lent_(std::move(lent)),
      at_{area,
          set.rank,
          set.timeout_ns,
          area.ranks() <= core::usable_threads() ? spin_ns : 0,
          watch_.get(),
          std::vector<const void*>(static_cast<std::size_t>(area.ranks())),
          0,
          0,
          std::vector<char>(2 * static_cast<std::size_t>(area.ranks())),
          std::vector<std::uint64_t>(static_cast<std::size_t>(area.ranks()))} {
  at_.lent = lent_.get();
  at_.beside = set.beside;
}

// Those that wait for us learn of it at once.
shared_transport::~shared_transport() {
  at_.area.state(at_.rank).left.store(1, std::memory_order_seq_cst);
  at_.area.wake_all();
}

void shared_transport::run(const operation& what, core::execution& state) {
  raise_if_noted(at_);
  if (what.terms.kind >= collective::send) return carry(at_, what, state);
  meeting m(at_, what, state);
  carry_out(m);
  at_.area.state(at_.rank).done.store(at_.met, std::memory_order_release);
  m.own_next();
}

void shared_transport::conclude() {
  if (!has_failed()) meet_earlier(at_);
}

std::unique_ptr<relay> shared_transport::begin_relay(const operation& what,
                                                     core::execution& state) {
  raise_if_noted(at_);
  return std::make_unique<shared_relay>(at_, what, state, kind_ == VELO_TRANSPORT_LOCAL);
}

// Others use them for the length of a slice of a product, or of a copy of a rank's rows, at most. A
// rank alone has no others, and notes no fault.
void shared_transport::settle() noexcept {
  if (kind_ != VELO_TRANSPORT_LOCAL || size() == 1) return;
  for (int peer = 0; peer < size(); ++peer)
    while (at_.area.state(peer).touching.load(std::memory_order_seq_cst) != 0) sched_yield();
}

void shared_transport::describe(std::string& json) const {
  json += '[';
  for (int rank = 0; rank < size(); ++rank) {
    const rank_state& s = at_.area.state(rank);
    const std::uint64_t done = s.done.load(std::memory_order_acquire);
    const mailbox& next = at_.area.box(rank, done + 1);
    const bool inside = next.sequence.load(std::memory_order_acquire) == done + 1;
    json += (rank == 0 ? "{\"rank\":" : ",{\"rank\":") + std::to_string(rank);
    json += ",\"completed\":" + std::to_string(done);
    json += ",\"arrived\":" + std::to_string(inside ? done + 1 : done);
    json += ",\"steps\":" + std::to_string(s.steps.load(std::memory_order_relaxed));
    json += s.left.load(std::memory_order_acquire) != 0 ? ",\"left\":true}" : ",\"left\":false}";
  }
  json += ']';
}

}  // namespace velo::comm
