// A list in order of arrival, searched from the front: contexts have few foreign operators.
#include "core/roster.hpp"

#include <algorithm>
#include <cstring>

#include "core/failure.hpp"

namespace velo::core {

void roster::add(const members& added) {
  const std::lock_guard<std::mutex> lock(lock_);
  members next = members_;
  for (const auto& one : added) {
    for (const auto& known : next) {
      if (std::strcmp(known->name(), one->name()) == 0)
        fail(VELO_ERR_ARGUMENT, "desc.op", "a name that is new in this context",
             text("\"%s\"", one->name()));
    }
    next.push_back(one);
  }
  members_.swap(next);
}

void roster::remove(const member& gone) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  members_.erase(std::remove_if(members_.begin(), members_.end(),
                                [&](const auto& one) { return one.get() == &gone; }),
                 members_.end());
}

std::shared_ptr<roster::member> roster::find(const char* name) const {
  const std::lock_guard<std::mutex> lock(lock_);
  for (const auto& one : members_)
    if (std::strcmp(one->name(), name) == 0) return one;
  return nullptr;
}

roster::members roster::all() const {
  const std::lock_guard<std::mutex> lock(lock_);
  return members_;
}

}  // namespace velo::core
