// Entries of velo/topology.h.
#include "velo/topology.h"

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "comm/topology/topology.hpp"
#include "core/handle/guard.hpp"
#include "core/index.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t desc_size = 144;
constexpr std::uint32_t info_size = 40;
constexpr std::uint32_t family_size = 32;
constexpr std::uint32_t place_size = 24;
static_assert(sizeof(velo_topology_desc) >= desc_size && sizeof(velo_topology_info) >= info_size &&
              sizeof(velo_topology_family) >= family_size &&
              sizeof(velo_topology_place) >= place_size);

constexpr std::int64_t most_levels = 64;

const comm::topology& topology_of(velo_topology handle) {
  return core::use<comm::topology>(handle, "topology");
}

const comm::family& family_of(const comm::topology& from, const char* name, comm::family& made) {
  return from.find(&capi::required(name, "family"), made);
}

void require_flag(const char* field, std::int32_t value) {
  if (value != 0 && value != 1) fail(VELO_ERR_ARGUMENT, field, "0 or 1", text("%d", value));
}

void require_at_most(const char* argument, std::int64_t value, std::int64_t count) {
  if (value < 0 || value >= count)
    fail(VELO_ERR_ARGUMENT, argument, core::concat("0 to ", count - 1), core::number(value));
}

// Checks a desc field by field. The topology checks that its sizes fit together.
velo_topology_desc read_desc(const velo_topology_desc* given) {
  const velo_topology_desc defaults = VELO_TOPOLOGY_DESC_INIT;
  if (given == nullptr) return defaults;
  const velo_topology_desc desc = capi::read_struct(given, desc_size, "desc", defaults);
  if (desc.cp_level_count < 0 || desc.cp_level_count > most_levels)
    fail(VELO_ERR_ARGUMENT, "desc.cp_level_count", core::concat("0 to ", most_levels),
         core::number(desc.cp_level_count));
  if (desc.cp_levels == nullptr && desc.cp_level_count > 0)
    fail(VELO_ERR_NULL, "desc.cp_levels", "a list of cp_level_count", "NULL");
  require_flag("desc.hybrid", desc.hybrid);
  require_flag("desc.twins", desc.twins);
  return desc;
}

}  // namespace

extern "C" {

velo_status velo_topology_create(const velo_topology_desc* desc, velo_topology* topology) {
  return core::guard("velo_topology_create", [&] {
    capi::required(topology, "topology");
    *topology = core::handle_of(core::make_object<comm::topology>(nullptr, read_desc(desc)));
  });
}

void velo_topology_destroy(velo_topology topology) {
  capi::destroy<comm::topology>("velo_topology_destroy", topology, "topology");
}

velo_status velo_topology_get_info(velo_topology topology, velo_topology_info* info) {
  return core::guard("velo_topology_get_info", [&] {
    velo_topology_info found{};
    topology_of(topology).fill(found);
    capi::write_struct(info, info_size, "info", found);
  });
}

velo_status velo_topology_family_name(velo_topology topology, int64_t index, const char** name) {
  return core::guard("velo_topology_family_name", [&] {
    const std::vector<comm::family>& all = topology_of(topology).families();
    capi::required(name, "name");
    require_at_most("index", index, static_cast<std::int64_t>(all.size()));
    *name = all[core::at(index)].name.c_str();
  });
}

velo_status velo_topology_get_family(velo_topology topology, const char* family,
                                     velo_topology_family* info) {
  return core::guard("velo_topology_get_family", [&] {
    const comm::topology& from = topology_of(topology);
    comm::family made;
    velo_topology_family found{};
    from.fill(family_of(from, family, made), found);
    capi::write_struct(info, family_size, "info", found);
  });
}

velo_status velo_topology_get_place(velo_topology topology, const char* family, int64_t rank,
                                    velo_topology_place* place) {
  return core::guard("velo_topology_get_place", [&] {
    const comm::topology& from = topology_of(topology);
    comm::family made;
    const comm::family& of = family_of(from, family, made);
    require_at_most("rank", rank, from.ranks());
    const comm::membership at = of.find(rank);
    velo_topology_place found{};
    found.group = at.group;
    found.position = at.position;
    capi::write_struct(place, place_size, "place", found);
  });
}

velo_status velo_topology_get_group(velo_topology topology, const char* family, int64_t group,
                                    int32_t* ranks, int64_t capacity, int64_t* count) {
  return core::guard("velo_topology_get_group", [&] {
    const comm::topology& from = topology_of(topology);
    comm::family made;
    const comm::family& of = family_of(from, family, made);
    require_at_most("group", group, of.groups());
    capi::require_room(ranks, capacity, "ranks", "ranks");
    const std::int64_t size = of.size_of(group);
    for (std::int64_t i = 0; i < std::min(size, capacity); ++i)
      ranks[i] = static_cast<std::int32_t>(of.rank_at(group, i));
    if (count != nullptr) *count = size;
  });
}

velo_status velo_topology_write(velo_topology topology, const char* family,
                                velo_topology_format format, char* buffer, uint64_t capacity,
                                uint64_t* needed) {
  return core::guard("velo_topology_write", [&] {
    const comm::topology& from = topology_of(topology);
    comm::family made;
    const comm::family* one = family == nullptr ? nullptr : &from.find(family, made);
    if (format != VELO_TOPOLOGY_JSON && format != VELO_TOPOLOGY_SVG)
      fail(VELO_ERR_ARGUMENT, "format", "VELO_TOPOLOGY_JSON or VELO_TOPOLOGY_SVG",
           text("%d", format));
    const std::string all =
        format == VELO_TOPOLOGY_JSON ? from.json(one) : from.picture(one, family);
    capi::write_text(all.c_str(), buffer, capacity, needed);
  });
}
}
