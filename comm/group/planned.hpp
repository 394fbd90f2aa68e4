// A planned collective: a call that is checked and made once, and started again and again.
//
// All starts share the operation and its scratch memory, and keep both alive, so that they finish
// even if the plan is destroyed. One operation and one scratch memory suffice because starts run
// one after another, as all calls of the group do. A start costs what the group and the transport
// cost; only the first allocates memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "comm/operation/message.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/host/arena.hpp"
#include "velo/collective.h"

namespace velo::core {
class context;
class inside_scope;
class stream;
}  // namespace velo::core

namespace velo::comm {

using planned_call = std::variant<operation, message_batch>;

struct planned_operation {
  planned_operation(planned_call given, core::memory_source& memory)
      : what(std::move(given)),
        about(std::visit([](const request& one) -> const request& { return one; }, what)),
        scratch(memory) {}

  const planned_call what;
  const request& about;
  core::arena scratch;                    // of the running start
  std::atomic<std::uint64_t> started{0};  // written under the group's lock
};

class planned {
 public:
  planned(velo_group home, core::context& owner, planned_call what);

  core::context& owner() const noexcept { return owner_; }
  // Throws as group::submit does; HANDLE once the group is destroyed.
  void start(const core::inside_scope& here, core::stream& on) const;
  std::string describe() const;  // JSON
  std::string explain() const;   // JSON; throws HANDLE once the group is destroyed

 private:
  const velo_group home_;  // the group may be destroyed before this object
  core::context& owner_;
  const std::shared_ptr<planned_operation> all_;
};

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::planned> {
  using handle = velo_collective;
  static constexpr handle_kind& kind = kinds::collective;
};
