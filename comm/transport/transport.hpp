// A transport: how one rank of a group reaches the others.
//
// run carries out one operation: it returns when the outputs are there and the inputs may change, or
// throws VELO_ERR_PEER once anything has ended the group. The group calls it for one operation at a
// time, in the same order on every rank. fail may be called from any thread at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/fault.hpp"
#include "comm/operation.hpp"
#include "core/execution.hpp"
#include "velo/group.h"

namespace velo::comm {

class transport {
 public:
  transport() = default;
  virtual ~transport() = default;  // leaves the group
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  virtual velo_transport kind() const noexcept = 0;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  virtual void run(const operation& what, core::execution& state) = 0;

  // Ends the group on every rank, unless it has ended. Wakes all that wait.
  virtual void fail(const fault& why) noexcept = 0;
  virtual bool failed(fault& why) const noexcept = 0;  // and which fault it was

  // What is known of each rank: an array of objects.
  virtual void describe(std::string& json) const = 0;
};

}  // namespace velo::comm
