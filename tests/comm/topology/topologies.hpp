// A topology with an owner, and its groups as lists, for the tests of topologies.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "velo/topology.h"

namespace velo::testing {

using groups = std::vector<std::vector<std::int32_t>>;

class topology {
 public:
  explicit topology(const velo_topology_desc& desc) {
    REQUIRE(velo_topology_create(&desc, &handle_) == VELO_OK);
  }
  ~topology() { velo_topology_destroy(handle_); }
  topology(const topology&) = delete;
  topology& operator=(const topology&) = delete;
  operator velo_topology() const { return handle_; }

  velo_topology_info info() const {
    velo_topology_info info = VELO_TOPOLOGY_INFO_INIT;
    REQUIRE(velo_topology_get_info(handle_, &info) == VELO_OK);
    return info;
  }
  velo_topology_family family(const std::string& name) const {
    velo_topology_family info = VELO_TOPOLOGY_FAMILY_INIT;
    REQUIRE(velo_topology_get_family(handle_, name.c_str(), &info) == VELO_OK);
    return info;
  }
  velo_topology_place place(const std::string& family, std::int64_t rank) const {
    velo_topology_place place = VELO_TOPOLOGY_PLACE_INIT;
    REQUIRE(velo_topology_get_place(handle_, family.c_str(), rank, &place) == VELO_OK);
    return place;
  }
  std::vector<std::int32_t> group(const std::string& family, std::int64_t group) const {
    std::int64_t count = 0;
    REQUIRE(velo_topology_get_group(handle_, family.c_str(), group, nullptr, 0, &count) == VELO_OK);
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(count));
    REQUIRE(velo_topology_get_group(handle_, family.c_str(), group, ranks.data(), count, nullptr) ==
            VELO_OK);
    return ranks;
  }
  groups all(const std::string& name) const {
    groups found;
    for (std::int64_t g = 0; g < family(name).groups; ++g) found.push_back(group(name, g));
    return found;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (std::int64_t i = 0; i < info().families; ++i) {
      const char* name = nullptr;
      REQUIRE(velo_topology_family_name(handle_, i, &name) == VELO_OK);
      found.emplace_back(name);
    }
    return found;
  }

 private:
  velo_topology handle_ = nullptr;
};

inline velo_topology_desc sizes(std::int64_t tp, std::int64_t cp, std::int64_t ep, std::int64_t dp,
                                std::int64_t pp, const char* order = nullptr) {
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  desc.tp = tp;
  desc.cp = cp;
  desc.ep = ep;
  desc.dp = dp;
  desc.pp = pp;
  desc.order = order;
  return desc;
}

}  // namespace velo::testing
