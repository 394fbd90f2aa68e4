// A transport: how one rank of a group reaches the others.
//
// run carries out one operation: it returns when the outputs are there and the inputs may change,
// or throws VELO_ERR_PEER once anything has ended the group. The group calls it for one operation
// at a time, in the same order on every rank. fail may be called from any thread at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/explanation.hpp"
#include "comm/group/fault.hpp"
#include "comm/group/operation.hpp"
#include "comm/transport/shared/relay.hpp"
#include "core/stream/execution.hpp"
#include "velo/group.h"

namespace velo::comm {

// A group to be made of some ranks of another: of those that are listed, or of the survivors.
struct part_terms {
  collective kind = collective::create_part;  // or shrink
  std::vector<int> ranks;                     // of the parent, in the part's order
  int place = 0;                              // of this rank among them
  std::size_t slot_bytes = 0;
  std::int64_t timeout_ns = 0;
  std::uint64_t round = 0;  // of a shrink: which attempt of the group

  // VELO_ERR_PEER: these ranks do not come.
  [[noreturn]] void raise(fault::how how, const rank_set& culprits, const char* cause) const;
};

// Ranks of a new group that did not come by the deadline, as it numbers them.
struct not_there {
  rank_set places;
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

  // Throws UNSUPPORTED: an operation that it cannot carry out. Asked when it is called.
  virtual void admit(const operation&) const {}
  virtual void run(const operation& what, core::execution& state) = 0;

  // The ways of an operation, of which one is chosen, without carrying it out.
  virtual void explain(const operation&, explanation&) const {}

  // Whether it carries out start_call, finish_call and borrow_call (calls.hpp).
  virtual bool starts_messages() const noexcept { return false; }

  // One operation in pieces (relay.hpp), in the place of run, and how many bytes a piece may have:
  // nullptr and 0 where ranks do not see each other's memory.
  virtual std::int64_t relay_room() const noexcept { return 0; }
  virtual std::unique_ptr<relay> begin_relay(const operation&, core::execution&) { return nullptr; }

  // When no more operations come: waits for what the last one did not wait for. Throws PEER.
  virtual void conclude() {}

  // After fail, when an operation of this rank failed: until no other rank uses its tensors.
  virtual void settle() noexcept {}

  // Ends the group on every rank, unless it has ended. Wakes all that wait.
  virtual void fail(const fault& why) noexcept = 0;
  virtual bool failed(fault& why) const noexcept = 0;  // and which fault it was
  virtual bool has_failed() const noexcept {           // asked before every operation
    fault why;
    return failed(why);
  }

  // The same for the listed ranks alone, which all call it, none while it runs an operation. Throws
  // PEER when they do not come, which ends nothing; UNSUPPORTED.
  virtual std::unique_ptr<transport> part(const part_terms& of);

  // Once the group has ended: the group of those that are still there and call it, in the order of
  // their ranks; `of` says how long it waits for others and what a rank stages. Throws PEER when
  // the others went on without this rank; UNSUPPORTED.
  virtual std::unique_ptr<transport> shrink(const part_terms& of);

  // Operations so far whose tensors were read where they lie.
  virtual std::uint64_t in_place() const noexcept { return 0; }

  // What is known of each rank: an array of objects.
  virtual void describe(std::string& json) const = 0;
};

}  // namespace velo::comm
