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

constexpr const char* deepseek_v3 =  // its model, as published
    R"("layers": 61, "hidden": 7168, "heads": 128, "head_dim": 128, "ffn_hidden": 18432, )"
    R"("vocabulary": 129280, "latent_attention": {"q_rank": 1536, "kv_rank": 512, )"
    R"("rope_dim": 64, "value_dim": 128}, "moe": {"experts": 256, "active": 8, )"
    R"("hidden": 2048, "shared_hidden": 2048, "first": 3})";

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
