// The rows of tunings.
#include <cstring>

#include "tests/faults/rows.hpp"

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
void close_tuning(world& w) {
  velo_tuning_destroy(w.tuning);
  w.tuning = nullptr;
}
velo_status get_info(world& w) {
  velo_tuning_info info = VELO_TUNING_INFO_INIT;
  return velo_tuning_get_info(w.tuning, &info);
}
template <velo_tuning_format format>
velo_status write(world& w) {
  return velo_tuning_write(w.tuning, format, text, sizeof text, nullptr);
}

}  // namespace

std::vector<entry> tune_rows() {
  return {
      {"velo_tune", nothing, tune, close_tuning},
      {"velo_tuning_destroy", open_tuning,
       [](world& w) {
         velo_tuning_destroy(w.tuning);
         const velo_status told = gone(get_info(w));
         w.tuning = nullptr;
         return told;
       },
       close_tuning},
      {"velo_tuning_get_info", open_tuning, get_info, close_tuning},
      {"velo_tuning_get_plan", open_tuning,
       [](world& w) {
         velo_tuning_plan plan = VELO_TUNING_PLAN_INIT;
         return velo_tuning_get_plan(w.tuning, 1, &plan);
       },
       close_tuning},
      {"velo_tuning_get_memory", open_tuning,
       [](world& w) {
         velo_tuning_memory memory = VELO_TUNING_MEMORY_INIT;
         return velo_tuning_get_memory(w.tuning, 0, 0, &memory);
       },
       close_tuning},
      {"velo_tuning_get_rejection", open_tuning,
       [](world& w) {
         velo_tuning_rejection rejection = VELO_TUNING_REJECTION_INIT;
         return velo_tuning_get_rejection(w.tuning, 0, &rejection);
       },
       close_tuning},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_SUMMARY>, close_tuning},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_JSON>, close_tuning},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_REJECTED>, close_tuning},
      {"velo_tuning_write", open_tuning, write<VELO_TUNING_ASSUMPTIONS>, close_tuning},
  };
}

}  // namespace velo::testing
