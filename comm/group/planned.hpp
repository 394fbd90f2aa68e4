// A planned collective: an operation checked and made once, called again and again.
//
// Calls share the operation and the scratch of whoever carries it out, and hold both, so that they
// come to their end whatever becomes of the plan. They are calls of the group as any others: their
// turns keep them apart, which is why one operation and one scratch suffice. Cost of a call: that
// of the group and the transport; no memory after the first.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "comm/group/operation.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/host/arena.hpp"
#include "velo/collective.h"

namespace velo::core {
class context;
class inside_scope;
class stream;
}  // namespace velo::core

namespace velo::comm {

struct planned_operation {
  planned_operation(operation given, core::memory_source& memory)
      : what(std::move(given)), scratch(memory) {}

  const operation what;
  core::arena scratch;                    // of the call that has its turn
  std::atomic<std::uint64_t> started{0};  // written under the group's lock
};

class planned {
 public:
  planned(velo_group home, core::context& owner, operation what);

  core::context& owner() const noexcept { return owner_; }
  // Throws as group::submit does; HANDLE once the group is destroyed.
  void start(const core::inside_scope& here, core::stream& on) const;
  std::string describe() const;  // JSON
  std::string explain() const;   // JSON; throws HANDLE once the group is destroyed

 private:
  const velo_group home_;  // which may go before this
  core::context& owner_;
  const std::shared_ptr<planned_operation> all_;
};

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::planned> {
  using handle = velo_collective;
  static constexpr handle_kind& kind = kinds::collective;
};
