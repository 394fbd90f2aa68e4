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

namespace {

// Trains two steps of the best plan that velo tune finds for a job; the plan stays in plan.json.
outcome train_plan_of(const workplace& w, const std::string& job) {
  const std::string command = std::string(VELO_PROGRAM) + " tune " + put(w / "job.json", job) +
                              " --pretrain -o " + w / "plan.json";
  REQUIRE(std::system(command.c_str()) == 0);
  return run_program({"--config", w / "plan.json", "--paths", w / "text", "--transport", "local",
                      "--steps", "2", "--out", w / "out", "--sample_bytes", "8", "--measure",
                      "false"});
}

}  // namespace

TEST_CASE("pretrain trains with what velo tune prints") {
  workplace w;
  struct row {
    const char* search;
    std::vector<std::string> lines;  // that tell how the run is cut
  };
  const row rows[] = {
      {R"("tp": [2], "cp": [2], "pp": [1])",
       {"matrices cut over 2 ranks", "windows cut over 2 ranks"}},
      {R"("tp": [1], "cp": [4], "pp": [1], "cp_algorithm": ["hybrid"])",
       {"windows cut over 4 ranks: hybrid"}},
      {R"("tp": [1], "cp": [2], "pp": [2], "kind": ["1f1b"], "cp_algorithm": ["all_gather"])",
       {"windows cut over 2 ranks: all_gather", "layers cut over 2 ranks: 1f1b"}},
      {R"("tp": [1], "pp": [2], "kind": ["zbv"], "vpp": [2])", {"layers cut over 2 ranks: zbv"}},
      {R"("tp": [2], "pp": [2], "kind": ["1f1b"], "split": ["balanced"], "recompute": ["full"])",
       {"matrices cut over 2 ranks", "layers cut over 2 ranks: 1f1b"}},
      {R"("tp": [4], "tp_x": [2], "cp": [1], "pp": [1], "cp_algorithm": ["all_gather"])",
       {"matrices cut over 4 ranks, 2 by 2"}},
      {R"("tp": [2], "tp_x": [1], "cp": [1], "pp": [2], "kind": ["1f1b"])",
       {"matrices cut over 2 ranks, 1 by 2", "layers cut over 2 ranks: 1f1b"}},
      {R"("tp": [2], "tp_x": [2], "cp": [1], "pp": [2], "kind": ["seq1f1b"])",
       {"matrices cut over 2 ranks, 2 by 1", "layers cut over 2 ranks: seq1f1b"}},
      {R"("tp": [1], "cp": [1], "pp": [4], "kind": ["seq1f1b"], "sequence_splits": [8])",
       {"layers cut over 4 ranks: seq1f1b"}},
      {R"("tp": [1], "cp": [2], "pp": [2], "kind": ["seq1f1b"], "cp_algorithm": ["all_gather"])",
       {"windows cut over 2 ranks: all_gather", "layers cut over 2 ranks: seq1f1b"}},
      {R"("tp": [2], "tp_x": [1], "cp": [1], "pp": [2], "kind": ["seq1f1b"])",
       {"matrices cut over 2 ranks, 1 by 2", "layers cut over 2 ranks: seq1f1b"}},
      {R"("tp": [2], "cp": [1], "pp": [1], "sequence_parallel": [false], "zero": [0])",
       {"matrices cut over 2 ranks"}},
      {R"("tp": [2], "cp": [1], "pp": [2], "kind": ["1f1b"], "tp_slices": [4])",
       {"matrices cut over 2 ranks", "layers cut over 2 ranks: 1f1b"}},
      {R"("tp": [1], "pp": [1], "cp": [1])", {}}};
  for (const auto& [search, lines] : rows) {
    INFO(search);
    const std::string job = std::string(R"({"model": {"layers": 6, "hidden": 32,
      "heads": 4, "kv_heads": 2, "ffn_hidden": 64, "vocabulary": 260},
      "training": {"global_batch": 16, "sequence": 32}, "accelerators": 4,
      "profile": {"memory_gib": 1, "workspace_gib": 0.1}, "search": {)") +
                            search + "}}";
    const outcome done = train_plan_of(w, job);
    INFO(get(w / "plan.json"));
    INFO(done.text);
    CHECK(done.code == 0);
    CHECK_THAT(done.text, Contains("ranks  4"));
    for (const std::string& line : lines) CHECK_THAT(done.text, Contains(line));
    CHECK(count_of(" cut over ", done.text) == lines.size());
  }
}

TEST_CASE("pretrain trains plans whose ranks have parts of different sizes") {
  workplace w;
  const std::pair<const char*, const char*> rows[] = {
      {R"("tp": [3], "cp": [1], "pp": [1])", "matrices cut over 3 ranks"},
      {R"("tp": [1], "cp": [3], "pp": [1], "cp_algorithm": ["ring"])", "windows cut over 3 ranks"},
      {R"("tp": [3], "tp_x": [1], "cp": [1], "pp": [1], "cp_algorithm": ["ulysses"])",
       "matrices cut over 3 ranks, 1 by 3"},
      {R"("tp": [1], "cp": [1], "pp": [3], "kind": ["seq1f1b"], "sequence_splits": [3])",
       "layers cut over 3 ranks: seq1f1b"}};
  for (const auto& [search, line] : rows) {
    INFO(search);
    const std::string job = std::string(R"({"model": {"layers": 4, "hidden": 40,
      "heads": 10, "kv_heads": 5, "ffn_hidden": 65, "vocabulary": 262},
      "training": {"global_batch": 6, "sequence": 31}, "accelerators": 3,
      "profile": {"memory_gib": 1, "workspace_gib": 0.1}, "search": {)") +
                            search + "}}";
    const outcome done = train_plan_of(w, job);
    INFO(get(w / "plan.json"));
    INFO(done.text);
    CHECK(done.code == 0);
    CHECK_THAT(done.text, Contains(line));
  }
}

TEST_CASE("what velo tune prints keeps the optimizer's state in the bytes that were priced") {
  struct row {
    const char* bytes;
    std::vector<std::string> settings;
    const char* refusal;
  };
  const row rows[] = {
      {"\"optimizer_bytes\": 12", {"\"dtype\": \"bf16\""}, ""},
      {"\"optimizer_bytes\": 10", {"\"reuse_fp32_param\": true"}, ""},
      {"\"optimizer_bytes\": 8", {"\"o2_optimizer\": true", "\"reuse_fp32_param\": false"}, ""},
      {"\"optimizer_bytes\": 6, \"gradient_bytes\": 2",
       {"\"o2_optimizer\": true", "\"reuse_fp32_param\": true", "\"o2_gradient\": true"},
       ""},
      {"\"parameter_bytes\": 4, \"optimizer_bytes\": 8",
       {"\"dtype\": \"f32\"", "\"o2_optimizer\": false"},
       ""},
      {"\"optimizer_bytes\": 4", {}, "its optimizer takes 4 bytes a parameter, less than 6"},
      {"\"parameter_bytes\": 1", {}, "its weights take 1 bytes, not 2 or 4"},
      {"\"parameter_bytes\": 4, \"gradient_bytes\": 2", {}, "its gradients take 2 bytes"}};
  workplace w;
  for (const auto& [bytes, settings, refusal] : rows) {
    INFO(bytes);
    const std::string job = put(w / "job.json", std::string(R"({"model": {"layers": 2, "hidden": 32,
      "heads": 4, "kv_heads": 2, "ffn_hidden": 64, "vocabulary": 260},
      "training": {"global_batch": 4, "sequence": 32, )") +
                                                    bytes + R"(}, "accelerators": 1,
      "profile": {"memory_gib": 1, "workspace_gib": 0.1}})");
    const std::string command = std::string(VELO_PROGRAM) + " tune " + job + " --pretrain > " +
                                w / "plan.json" + " 2> " + w / "errors";
    const bool done = std::system(command.c_str()) == 0;
    const std::string plan = get(w / "plan.json"), errors = get(w / "errors");
    INFO(plan << errors);
    CHECK(done == (*refusal == 0));
    CHECK_THAT(errors, Contains(refusal));
    for (const std::string& each : settings) CHECK_THAT(plan, Contains(each));
  }
}
