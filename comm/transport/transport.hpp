// A transport: the way in which one rank of a group reaches the others.
//
// run() carries out one operation. It returns when the outputs are complete and the inputs may
// change, or throws VELO_ERR_PEER once the group has ended for any reason. The group runs one
// operation at a time, in the same order on every rank. fail() may be called from any thread at any
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/operation/explanation.hpp"
#include "comm/operation/fault.hpp"
#include "comm/operation/message.hpp"
#include "comm/transport/shared/relay.hpp"
#include "comm/transport/wait_board.hpp"
#include "core/stream/execution.hpp"
#include "core/text/json_writer.hpp"
#include "velo/group.h"

namespace velo::comm {

const char* name_of(velo_transport kind) noexcept;  // "shm"

// A subgroup of a group: of the listed ranks, or of the survivors of a fault.
struct subgroup_terms {
  other_call kind = other_call::create_part;  // or shrink
  std::vector<int> ranks;                     // of the parent, in the subgroup's order
  int rank = 0;                               // this one in the subgroup
  std::size_t slot_bytes = 0;
  std::int64_t timeout_ns = 0;
  std::uint64_t round = 0;  // number of the shrink attempt in the group

  // Throws VELO_ERR_PEER: the culprits do not join.
  [[noreturn]] void raise(fault::how how, const rank_set& culprits, const char* cause) const;
};

// Ranks of a new group, in its numbering, that did not join before the deadline.
struct missing_ranks {
  rank_set ranks;
};

class transport {
 public:
  transport() = default;
  virtual ~transport() = default;  // leaves the group
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  virtual velo_transport kind() const noexcept = 0;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  virtual void run(const operation& op, core::execution& state) = 0;
  virtual void run_messages(const message_batch& batch, core::execution& state) = 0;
  // Throws UNSUPPORTED if the transport carries no messages. Calls that send messages to other
  // ranks check this first.
  virtual void require_messages() const {}

  // Lists the algorithms for a call and the chosen one, without running it.
  virtual void explain(const operation&, explanation&) const {}
  virtual void explain_messages(const message_batch&, explanation&) const {}

  // Whether start_call, finish_call and borrow_call (calls.hpp) are supported.
  virtual bool starts_messages() const noexcept { return false; }

  // begin_relay runs one operation in pieces (relay.hpp) instead of run(); a piece has at most
  // relay_slot_bytes. The defaults stand for ranks that do not see each other's memory.
  virtual std::int64_t relay_slot_bytes() const noexcept { return 0; }
  virtual bool shows_tensors() const noexcept { return false; }  // to a relay, of every rank
  virtual std::unique_ptr<relay> begin_relay(const operation&, core::execution&) { return nullptr; }

  // The host of each rank, counted from 0, where ranks are on several; else empty.
  virtual std::vector<int> hosts() const { return {}; }

  // Follows the last operation: waits for the peers that it did not wait for. Throws PEER.
  virtual void conclude() {}

  // Follows fail() after an operation of this rank: waits until no other rank uses its tensors.
  virtual void settle() noexcept {}

  // Ends the group on every rank unless it has ended, and wakes all waiting ranks.
  virtual void fail(const fault& why) noexcept = 0;
  virtual bool failed(fault& why) const noexcept = 0;  // and the fault
  virtual bool has_failed() const noexcept {           // checked before every operation
    fault why;
    return failed(why);
  }

  // Makes a transport of the listed ranks alone. Each of them calls it, and none during an
  // operation. Throws PEER if some do not join, which does not end this group, and UNSUPPORTED.
  virtual std::unique_ptr<transport> subgroup(const subgroup_terms& of);

  // After the group has ended: makes a transport of the surviving ranks that call it, in rank
  // order. `of` gives the timeout and the size of a staging slot. Throws PEER if the others
  // continued without this rank, and UNSUPPORTED.
  virtual std::unique_ptr<transport> shrink(const subgroup_terms& of);

  // The board of an outermost group, and the board on which this rank notes its waits.
  virtual wait_board make_wait_board() const { return {}; }
  virtual void note_waits_on(const wait_board&) {}

  // The number of operations in which peers have read tensors in place.
  virtual std::uint64_t in_place() const noexcept { return 0; }

  // Writes the state of each rank as a JSON object, in rank order.
  virtual void describe(core::json_writer& to) const = 0;
};

}  // namespace velo::comm
