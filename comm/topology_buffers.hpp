// How large the staging buffer of each family's groups should be.
//
// 200 MiB unless something says otherwise. What a step sends says it for most families (MindSpeed's
// adaptive sizes: two bytes an element, rounded up to MiB), and a text of the caller's says it for
// any ("dp:200;tp:300", which wins). Keys are MindSpeed's names of groups.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "velo/topology.h"

namespace velo::comm {

class buffer_sizes {
 public:
  static constexpr std::int64_t usual = 200;

  buffer_sizes() { sizes_.fill(usual); }
  // By desc.traffic and desc.buffers; the sizes of the axes have been checked. Throws ARGUMENT.
  explicit buffer_sizes(const velo_topology_desc& desc);

  std::uint64_t of(std::string_view key) const;  // in bytes; what is no key has the default

 private:
  void set(std::string_view key, std::int64_t mebibytes);
  void adapt(const velo_topology_desc& desc);
  void adapt_context(const velo_topology_desc& desc);
  void read(const char* given);

  std::array<std::int64_t, 26> sizes_;  // in MiB, by key
};

}  // namespace velo::comm
