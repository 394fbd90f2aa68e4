// The rows of topologies.
#include "tests/faults/rows.hpp"

namespace velo::testing {
namespace {

velo_status create(world& w) {
  static const std::int64_t levels[] = {2, 2};
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  desc.tp = 2;
  desc.cp = 4;
  desc.dp = 2;
  desc.cp_levels = levels;
  desc.cp_level_count = 2;
  desc.hybrid = desc.twins = 1;
  return velo_topology_create(&desc, &w.topology);
}
void open_topology(world& w) {
  must(create(w));
}
void close_topology(world& w) {
  velo_topology_destroy(w.topology);
  w.topology = nullptr;
}
velo_status count_families(world& w) {
  velo_topology_info info = VELO_TOPOLOGY_INFO_INIT;
  return velo_topology_get_info(w.topology, &info);
}
// A name too long for a string to hold in itself, of axes that no family is listed for.
constexpr const char* axes = "pp-dp-cp-gtp-tp";

}  // namespace

std::vector<entry> topology_rows() {
  return {
      {"velo_topology_create", nothing, create, close_topology},
      {"velo_topology_destroy", open_topology,
       [](world& w) {
         velo_topology_destroy(w.topology);
         return gone(count_families(w));
       },
       nothing},
      {"velo_topology_get_info", open_topology, count_families, close_topology},
      {"velo_topology_family_name", open_topology,
       [](world& w) {
         const char* name = nullptr;
         return velo_topology_family_name(w.topology, 0, &name);
       },
       close_topology},
      {"velo_topology_get_family", open_topology,
       [](world& w) {
         velo_topology_family info = VELO_TOPOLOGY_FAMILY_INIT;
         return velo_topology_get_family(w.topology, axes, &info);
       },
       close_topology},
      {"velo_topology_get_place", open_topology,
       [](world& w) {
         velo_topology_place place = VELO_TOPOLOGY_PLACE_INIT;
         return velo_topology_get_place(w.topology, axes, 3, &place);
       },
       close_topology},
      {"velo_topology_get_group", open_topology,
       [](world& w) {
         std::int32_t ranks[16] = {};
         return velo_topology_get_group(w.topology, axes, 0, ranks, 16, nullptr);
       },
       close_topology},
      {"velo_topology_write", open_topology,
       [](world& w) {
         return velo_topology_write(w.topology, nullptr, VELO_TOPOLOGY_SVG, text, sizeof text,
                                    nullptr);
       },
       close_topology},
  };
}

}  // namespace velo::testing
