// Topologies: which ranks of a job form which groups.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/topology.h"

VELO_CPP_BEGIN

namespace detail {
struct destroy_topology {
  static void call(velo_topology topology) noexcept { VELO_FN(topology_destroy)(topology); }
};
}  // namespace detail

// Owns a topology.
class topology : public detail::owner<velo_topology, detail::destroy_topology> {
 public:
  // desc: initialized with VELO_TOPOLOGY_DESC_INIT.
  static outcome<topology> create(const velo_topology_desc& desc) {
    velo_topology handle = nullptr;
    const velo_status status = VELO_FN(topology_create)(&desc, &handle);
    topology made;
    made.reset(handle);
    return detail::finish<topology>(status, std::move(made));
  }

  operator velo_topology() const noexcept { return get(); }

  // The number of ranks and of families.
  outcome<velo_topology_info> info() const {
    velo_topology_info info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(topology_get_info)(get(), &info);
    return detail::finish<velo_topology_info>(status, info);
  }

  // The name of a family by its index; valid as long as the topology.
  outcome<const char*> family_name(int64_t index) const {
    const char* name = nullptr;
    const velo_status status = VELO_FN(topology_family_name)(get(), index, &name);
    return detail::finish<const char*>(status, name);
  }

  // The number and size of a family's groups.
  outcome<velo_topology_family> family(const char* name) const {
    velo_topology_family info = {};
    info.struct_size = sizeof info;
    const velo_status status = VELO_FN(topology_get_family)(get(), name, &info);
    return detail::finish<velo_topology_family>(status, info);
  }

  // The number of a rank's group and the rank's position in it; both are -1 if it is in no group.
  outcome<velo_topology_place> place(const char* family, int64_t rank) const {
    velo_topology_place place = {};
    place.struct_size = sizeof place;
    const velo_status status = VELO_FN(topology_get_place)(get(), family, rank, &place);
    return detail::finish<velo_topology_place>(status, place);
  }

  // Fills `ranks`, with room for `capacity`, with the ranks of a group; returns the group's size.
  outcome<int64_t> group(const char* family, int64_t group, int32_t* ranks,
                         int64_t capacity) const {
    int64_t count = 0;
    const velo_status status =
        VELO_FN(topology_get_group)(get(), family, group, ranks, capacity, &count);
    return detail::finish<int64_t>(status, count);
  }

  // A family, or all with nullptr, as a text of the caller's string type.
  template <class String>
  outcome<String> write(const char* family, velo_topology_format format) const {
    return detail::text<String>([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return VELO_FN(topology_write)(get(), family, format, buffer, capacity, needed);
    });
  }
};

static_assert(sizeof(topology) == sizeof(void*));

VELO_CPP_END
