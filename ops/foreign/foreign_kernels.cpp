// The foreign kernels of one context, by name (foreign.hpp).
#include <algorithm>
#include <cstring>

#include "core/failure.hpp"
#include "ops/foreign/foreign.hpp"

namespace velo::ops {

using core::fail;
using core::text;

void foreign_kernels::add(const list& added) {
  const std::lock_guard<std::mutex> lock(lock_);
  list next = kernels_;
  for (const auto& one : added) {
    for (const auto& known : next) {
      if (std::strcmp(known->name(), one->name()) == 0)
        fail(VELO_ERR_ARGUMENT, "desc.op", "a name that is new in this context",
             text("\"%s\"", one->name()));
    }
    next.push_back(one);
  }
  kernels_.swap(next);
}

void foreign_kernels::remove(const foreign_kernel& kernel) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  kernels_.erase(std::remove_if(kernels_.begin(), kernels_.end(),
                                [&](const auto& one) { return one.get() == &kernel; }),
                 kernels_.end());
}

std::shared_ptr<foreign_kernel> foreign_kernels::find(const char* name) const {
  const std::lock_guard<std::mutex> lock(lock_);
  for (const auto& one : kernels_)
    if (std::strcmp(one->name(), name) == 0) return one;
  return nullptr;
}

foreign_kernels::list foreign_kernels::all() const {
  const std::lock_guard<std::mutex> lock(lock_);
  return kernels_;
}

}  // namespace velo::ops
