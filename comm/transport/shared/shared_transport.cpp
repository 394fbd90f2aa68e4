// The life of a rank in shared memory, and the description of all ranks.
#include "comm/transport/shared/shared_transport.hpp"

#include <sched.h>

#include <utility>

#include "comm/transport/round.hpp"
#include "comm/transport/shared/shared_relay.hpp"
#include "core/host/cpu.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t spin_ns = 20000;

}  // namespace

shared_transport::shared_transport(const setting& set, const shared_area& area,
                                   std::shared_ptr<void> memory,
                                   std::unique_ptr<liveness_watch> watch,
                                   std::shared_ptr<subgroup_rendezvous> subgroups,
                                   std::unique_ptr<peer_mappings> mappings)
    : kind_(set.kind),
      memory_(std::move(memory)),
      watch_(std::move(watch)),
      subgroups_(std::move(subgroups)),
      mappings_(std::move(mappings)),
      self_{area,
            set.rank,
            set.timeout_ns,
            area.ranks() <= core::usable_threads() ? spin_ns : 0,
            watch_.get(),
            std::vector<const void*>(static_cast<std::size_t>(area.ranks())),
            0,
            0,
            std::vector<char>(2 * static_cast<std::size_t>(area.ranks())),
            std::vector<std::uint64_t>(static_cast<std::size_t>(area.ranks()))} {
  self_.mappings = mappings_.get();
  self_.progress = set.progress;
}

// Wakes all peers, so that those that wait for this rank learn at once that it has left.
shared_transport::~shared_transport() {
  self_.area.state(self_.rank).left.store(1, std::memory_order_seq_cst);
  self_.area.wake_all();
}

void shared_transport::run(const operation& op, core::execution& state) {
  raise_recorded_fault(self_);
  shared_round round(self_, op, state);
  carry_out(round, op.traits());
  self_.area.state(self_.rank).done.store(self_.operations, std::memory_order_release);
  round.prefetch_next_mailbox();
}

void shared_transport::run_messages(const message_batch& batch, core::execution& state) {
  raise_recorded_fault(self_);
  comm::run_messages(self_, batch, state);
}

void shared_transport::conclude() {
  if (!has_failed()) wait_deferred(self_);
}

std::unique_ptr<relay> shared_transport::begin_relay(const operation& op, core::execution& state) {
  raise_recorded_fault(self_);
  return std::make_unique<shared_relay>(self_, op, state, shows_tensors());
}

// A peer uses this rank's tensors for one slice of a product, one copy of its rows or one part of
// its attention; the wait is as short. A single rank has no peers and records no fault.
void shared_transport::settle() noexcept {
  if (!shows_tensors() || size() == 1) return;
  for (int peer = 0; peer < size(); ++peer)
    while (self_.area.state(peer).in_peer_tensors.load(std::memory_order_seq_cst) != 0)
      sched_yield();
}

void shared_transport::describe(core::json_writer& to) const {
  for (int rank = 0; rank < size(); ++rank) {
    const rank_state& s = self_.area.state(rank);
    const std::uint64_t done = s.done.load(std::memory_order_acquire);
    const mailbox& next = self_.area.box(rank, done + 1);
    const bool inside = next.sequence.load(std::memory_order_acquire) == done + 1;
    to.object().member("rank", rank).member("completed", done);
    to.member("arrived", inside ? done + 1 : done);
    to.member("steps", s.steps.load(std::memory_order_relaxed));
    to.member("left", s.left.load(std::memory_order_acquire) != 0).end();
  }
}

}  // namespace velo::comm
