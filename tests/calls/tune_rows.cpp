// The rows of tunings.
#include <cstring>

#include "tests/calls/rows.hpp"

namespace velo::testing {
namespace {

// Two accelerators: some layouts fit, some have no valid shape.
constexpr const char* config =
    "{\"model\": {\"layers\": 4, \"hidden\": 64, \"heads\": 4, \"ffn_hidden\": 128, "
    "\"vocabulary\": 100},"
    "\"training\": {\"global_batch\": 8, \"sequence\": 32},"
    "\"accelerators\": 2,"
    "\"search\": {\"tp\": [1, 8], \"cp\": [1], \"pp\": [1, 2], \"vpp\": [2], \"micro_batch\": [1],"
    "\"recompute\": [\"full\"], \"kind\": [\"1f1b\", \"zbv\"]}}";

velo_status tune(world& w) {
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  desc.config = config;
  desc.config_length = std::strlen(config);
  return velo_tune(&desc, &w.tuning);
}
void open_tuning(world& w) {
  must(tune(w));
}
constexpr auto get_info = &get<velo_tuning_get_info, &world::tuning>;
template <velo_tuning_format format>
velo_status write(world& w) {
  return velo_tuning_write(w.tuning, format, text, sizeof text, nullptr);
}

}  // namespace

std::vector<call_row> tune_rows() {
  return {
      {"velo_tune", nothing, tune},
      {"velo_tuning_destroy", open_tuning, destroy<velo_tuning_destroy, &world::tuning, get_info>},
      {"velo_tuning_get_info", open_tuning, get_info},
      {"velo_tuning_get_plan", open_tuning, get<velo_tuning_get_plan, &world::tuning, 1>},
      {"velo_tuning_get_memory", open_tuning, get<velo_tuning_get_memory, &world::tuning, 0, 0>},
      {"velo_tuning_get_rejection", open_tuning, get<velo_tuning_get_rejection, &world::tuning, 0>},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_SUMMARY>},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_JSON>},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_REJECTED>},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_ASSUMPTIONS>},
  };
}

}  // namespace velo::testing
