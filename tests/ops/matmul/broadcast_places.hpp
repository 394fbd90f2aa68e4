// Where each element of a compact tensor of shape `all` finds its own in one of shape `some`, which
// broadcasts to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace velo::testing {

using shape = std::vector<std::int64_t>;

inline std::vector<std::size_t> places(const shape& some, const shape& all) {
  std::size_t count = 1;
  for (const std::int64_t size : all) count *= static_cast<std::size_t>(size);
  std::vector<std::size_t> found(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t left = i, stride = 1;
    for (std::size_t d = 0; d < some.size(); ++d) {
      const auto size = static_cast<std::size_t>(all[all.size() - 1 - d]);
      const auto own = static_cast<std::size_t>(some[some.size() - 1 - d]);
      if (own != 1) found[i] += left % size * stride;
      left /= size, stride *= own;
    }
  }
  return found;
}

}  // namespace velo::testing
