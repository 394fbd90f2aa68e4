// The first fault that a rank has met in a group or in one of its parts.
//
// A rank that has failed in one group does not come to the calls of its others. When it ends those,
// it passes on the fault that it has met: otherwise the ranks there would blame this one, which
// only waited. Ranks are numbered as in the outermost group, of which all others are parts, since a
// part's own numbers mean nothing in another. A host that makes another group from these has come
// to terms with the fault, which is then forgotten. Thread-safe. Cost: a lock where a call fails.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/operation/outermost_ranks.hpp"

namespace velo::comm {

class met_fault {
 public:
  met_fault() : first_(std::make_shared<record>()) {}   // of an outermost group
  met_fault part(const std::vector<int>& ranks) const;  // ranks: in this group

  bool is_of_part() const noexcept { return ranks_.is_part(); }
  // A fault of this group, whose name in faults is `label`, as the outermost group's.
  fault outermost(const fault& of, const char* label) const noexcept;
  // Returns whether it is the first one, which stays.
  bool meet(const fault& of, const char* label) const noexcept;
  bool get(fault& of) const noexcept;
  void forget() const noexcept;

 private:
  struct record {
    std::mutex lock;
    bool has = false;
    fault what;
  };
  std::shared_ptr<record> first_;  // of the outermost group and all parts
  outermost_ranks ranks_;
};

}  // namespace velo::comm
