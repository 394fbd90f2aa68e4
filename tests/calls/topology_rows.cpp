// The rows of topologies.
#include "tests/calls/rows.hpp"

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
constexpr auto count_families = &get<velo_topology_get_info, &world::topology>;
// A name too long for a string to hold in itself, of axes that no family is listed for.
constexpr char axes[] = "pp-dp-cp-gtp-tp";

}  // namespace

std::vector<call_row> topology_rows() {
  return {
      {"velo_topology_create", nothing, create},
      {"velo_topology_destroy", open_topology,
       destroy<velo_topology_destroy, &world::topology, count_families>},
      {"velo_topology_get_info", open_topology, count_families},
      {"velo_topology_family_name", open_topology,
       get<velo_topology_family_name, &world::topology, 0>},
      {"velo_topology_get_family", open_topology,
       get<velo_topology_get_family, &world::topology, axes>},
      {"velo_topology_get_place", open_topology,
       get<velo_topology_get_place, &world::topology, axes, 3>},
      {"velo_topology_get_group", open_topology,
       [](world& w) {
         std::int32_t ranks[16] = {};
         return velo_topology_get_group(w.topology, axes, 0, ranks, 16, nullptr);
       }},
      {"velo_topology_write", open_topology,
       write_text<velo_topology_write, &world::topology, nullptr, VELO_TOPOLOGY_SVG>},
  };
}

}  // namespace velo::testing
