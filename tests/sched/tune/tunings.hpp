// Shared by tests of tunings: jobs in a line, read and searched.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "core/failure.hpp"
#include "sched/tune/stages.hpp"

namespace velo::testing {

inline sched::tune::job job_of(const std::string& config, const std::string& profile = "{}") {
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  desc.config = config.data();
  desc.config_length = config.size();
  desc.profile = profile.data();
  desc.profile_length = profile.size();
  return sched::tune::read_job(desc);
}

inline sched::tune::tuning searched(const std::string& config, const std::string& profile = "{}") {
  return sched::tune::search(job_of(config, profile));
}

// Parts of a config.
struct wanted {
  std::string model =
      R"("layers": 8, "hidden": 256, "heads": 8, "ffn_hidden": 1024, "vocabulary": 4000)";
  std::string training = R"("global_batch": 16, "sequence": 256)";
  std::string search = "";
  int accelerators = 8;

  std::string text() const {
    return R"({"model": {)" + model + R"(}, "training": {)" + training + R"(}, "accelerators": )" +
           std::to_string(accelerators) + R"(, "search": {)" + search + "}}";
  }
};

}  // namespace velo::testing
