// The rows of shardings.
#include "tests/calls/rows.hpp"

namespace velo::testing {
namespace {

constexpr const char* axis = "tp";

velo_status create(world& w) {
  return velo_sharding_create(w.topology, &w.sharding);
}
void open_topology(world& w) {
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  desc.tp = desc.dp = 2;
  must(velo_topology_create(&desc, &w.topology));
}
void open_empty(world& w) {
  open_topology(w);
  must(create(w));
}
// Key heads that neighbors share: several pieces, copies, a sum.
velo_status add(world& w) {
  static const std::int64_t shape[] = {56, 3};
  static const velo_sharding_block block = {56, 28, 4};
  static const velo_sharding_cut cut = {axis, 0, &block, 1, nullptr, 0};
  velo_sharding_parameter p = VELO_SHARDING_PARAMETER_INIT;
  p.name = "a name that is too long for a string to hold in itself";
  p.ndim = 2, p.shape = shape, p.cuts = &cut, p.cut_count = 1;
  return velo_sharding_add(w.sharding, &p, nullptr);
}
// Of experts, in a bucket, by bounds: for ranges and stages of their own.
velo_status add_experts(world& w) {
  static const std::int64_t shape[] = {7, 3}, bounds[] = {0, 7}, stages[] = {0};
  static const velo_sharding_cut cut = {"ep", 0, nullptr, 0, bounds, 2};
  velo_sharding_parameter p = VELO_SHARDING_PARAMETER_INIT;
  p.name = "experts", p.experts = 1, p.bucket = 0, p.partial = "etp";
  p.ndim = 2, p.shape = shape, p.cuts = &cut, p.cut_count = 1;
  p.stages = stages, p.stage_count = 1;
  return velo_sharding_add(w.sharding, &p, nullptr);
}
void open_sharding(world& w) {
  open_empty(w);
  must(add(w));
  must(add_experts(w));
}
constexpr auto count_parameters = &get<velo_sharding_get_info, &world::sharding>;

}  // namespace

std::vector<call_row> sharding_rows() {
  return {
      {"velo_sharding_create", open_topology, create},
      {"velo_sharding_destroy", open_sharding,
       destroy<velo_sharding_destroy, &world::sharding, count_parameters>},
      {"velo_sharding_add", open_empty, add},
      {"velo_sharding_add", open_empty, add_experts},
      {"velo_sharding_get_info", open_sharding, count_parameters},
      {"velo_sharding_parameter_name", open_sharding,
       get<velo_sharding_parameter_name, &world::sharding, 0>},
      {"velo_sharding_get_part", open_sharding,
       get<velo_sharding_get_part, &world::sharding, 0, 1>},
      {"velo_sharding_get_piece", open_sharding,
       get<velo_sharding_get_piece, &world::sharding, 0, 1, 0>},
      {"velo_sharding_get_sum", open_sharding,
       get<velo_sharding_get_sum, &world::sharding, 0, 1, 0>},
      {"velo_sharding_get_holders", open_sharding,
       [](world& w) {
         std::int32_t ranks[4] = {};
         return velo_sharding_get_holders(w.sharding, 0, 1, 0, ranks, 4, nullptr);
       }},
      {"velo_sharding_check", open_sharding,
       [](world& w) { return velo_sharding_check(w.sharding); }},
      {"velo_sharding_transfer", open_sharding,
       [](world& w) {
         velo_sharding_move moves[4] = {};
         return velo_sharding_transfer(w.sharding, w.sharding, 0, 1, VELO_SHARDING_RANGES, moves, 4,
                                       nullptr);
       }},
      {"velo_sharding_write", open_sharding,
       write_text<velo_sharding_write, &world::sharding, -1, VELO_SHARDING_SVG>},
      {"velo_sharding_write", open_sharding,
       write_text<velo_sharding_write, &world::sharding, -1, VELO_SHARDING_JSON>},
  };
}

}  // namespace velo::testing
