// Plans of velo tune as configs of the program: it trains with each.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

TEST_CASE("velo tune runs plans with pretrain and orders them by their steps") {
  workplace w;
  const std::string job = put(w / "job.json", R"({"model": {"layers": 2, "hidden": 32,
      "heads": 4, "kv_heads": 2, "ffn_hidden": 64, "vocabulary": 260},
      "training": {"global_batch": 8, "sequence": 32}, "accelerators": 2,
      "profile": {"memory_gib": 1, "workspace_gib": 0.1},
      "search": {"recompute": ["none"], "micro_batch": [4]}})");
  const std::string command = std::string(VELO_PROGRAM) + " tune " + job +
                              " --type mixed --trials 3 --json --trial '" + PRETRAIN_PROGRAM +
                              " --transport local --paths " + w / "text' -o " + w / "plans.json";
  REQUIRE(std::system(command.c_str()) == 0);
  const std::string plans = get(w / "plans.json");
  INFO(plans);
  CHECK(count_of("\"measured_step_seconds\"", plans) == 3);
  CHECK(count_of("\"trial_failure\"", plans) == 0);
}

TEST_CASE("pretrain trains with what velo tune prints") {
  workplace w;
  const char* const searches[] = {
      R"("tp": [2], "cp": [2], "pp": [1])",
      R"("tp": [1], "cp": [4], "pp": [1], "cp_algorithm": ["hybrid"])",
      R"("tp": [1], "cp": [2], "pp": [2], "kind": ["1f1b"], "cp_algorithm": ["all_gather"])",
      R"("tp": [1], "pp": [2], "kind": ["zbv"], "vpp": [2])",
      R"("tp": [2], "pp": [2], "kind": ["1f1b"], "split": ["balanced"], "recompute": ["full"])",
      R"("tp": [4], "tp_x": [2], "cp": [1], "pp": [1], "cp_algorithm": ["all_gather"])",
      R"("tp": [2], "tp_x": [1], "cp": [1], "pp": [2], "kind": ["1f1b"])",
      R"("tp": [2], "tp_x": [2], "cp": [1], "pp": [2], "kind": ["seq1f1b"])",
      R"("tp": [1], "cp": [1], "pp": [4], "kind": ["seq1f1b"], "sequence_splits": [8])",
      R"("tp": [1], "pp": [1], "cp": [1])"};
  for (const char* const search : searches) {
    INFO(search);
    const std::string job = put(w / "job.json", std::string(R"({"model": {"layers": 6, "hidden": 32,
      "heads": 4, "kv_heads": 2, "ffn_hidden": 64, "vocabulary": 260},
      "training": {"global_batch": 16, "sequence": 32}, "accelerators": 4,
      "profile": {"memory_gib": 1, "workspace_gib": 0.1}, "search": {)") +
                                                    search + "}}");
    const std::string command =
        std::string(VELO_PROGRAM) + " tune " + job + " --pretrain -o " + w / "plan.json";
    REQUIRE(std::system(command.c_str()) == 0);
    const outcome done = run_program({"--config", w / "plan.json", "--paths", w / "text",
                                      "--transport", "local", "--steps", "2", "--out", w / "out",
                                      "--sample_bytes", "8", "--measure", "false"});
    INFO(get(w / "plan.json"));
    INFO(done.text);
    CHECK(done.code == 0);
    CHECK_THAT(done.text, Contains("ranks  4"));
  }
}
