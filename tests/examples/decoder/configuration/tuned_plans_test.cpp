// Plans of velo_tune: velo tune says of each whether pretrain runs it, and pretrain's own checks of
// the plan as a config say the same.
//
// The plans are all that searches over small jobs find, with shapes at the bounds of pretrain's
// rules: more ranks than heads of keys, sizes that do not divide, stages without a layer, every
// kind of schedule and of sequence plan that a search can list.
#include <catch2/catch.hpp>
#include <velo/velo.hpp>

#include "examples/decoder/configuration/configuration.hpp"
#include "tests/examples/decoder/temporary.hpp"
#include "tools/velo/commands/tune/pretrain.hpp"

using decoder::configuration;

namespace {

struct searched_job {
  const char* model;
  const char* training;
  int accelerators;
  const char* search;
};

constexpr const char* usual_model =
    R"("layers": 6, "hidden": 48, "heads": 12, "kv_heads": 3, "ffn_hidden": 96, "vocabulary": 260)";
constexpr const char* usual_training = R"("global_batch": 8, "sequence": 64)";

command::json plans_of(const searched_job& of) {
  const std::string config =
      std::string(R"({"model": {)") + of.model + R"(}, "training": {)" + of.training +
      R"(}, "accelerators": )" + std::to_string(of.accelerators) +
      R"(, "profile": {"workspace_gib": 0.1}, "search": {"keep": 10000, )" + of.search + "}}";
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  desc.config = config.data();
  desc.config_length = config.size();
  command::json all =
      command::parse(velo::tuning::search(desc).write<std::string>(VELO_TUNING_JSON));
  command::mark_plans(all.get());
  return all;
}

// The reason for which pretrain refuses a plan's config, or "accepted".
std::string refusal_by_pretrain(const json_t* all, std::size_t plan) {
  configuration c;
  return refusal_of([&] {
    c.read_text(command::pretrain_config(all, plan), "plan.json");
    c.check();
  });
}

struct tally {
  int run = 0, refused = 0;
};

tally compared(const searched_job& of) {
  INFO(of.model << " " << of.training << " " << of.search);
  const command::json all = plans_of(of);
  const json_t* plans = command::member(all.get(), "plans");
  REQUIRE(json_array_size(plans) > 0);
  tally sum;
  for (std::size_t i = 0; i < json_array_size(plans); ++i) {
    const json_t* plan = json_array_get(plans, i);
    const bool runnable = json_is_true(command::member(plan, "runnable"));
    ++(runnable ? sum.run : sum.refused);
    const std::string why = refusal_by_pretrain(all.get(), i);
    if (runnable == (why == "accepted")) continue;
    INFO(command::pretrain_config(all.get(), i));
    INFO("pretrain: " << why << "; velo tune: " << command::text(plan, "not_runnable"));
    FAIL_CHECK("velo tune and pretrain disagree");
  }
  return sum;
}

}  // namespace

TEST_CASE("velo tune marks the plans that pretrain takes, and no others") {
  const searched_job jobs[] = {
      {usual_model, usual_training, 8, R"("tp": [1, 2, 4, 8], "kind": ["1f1b"])"},
      {usual_model, R"("global_batch": 12, "sequence": 96)", 12,
       R"("tp": [1, 2, 3, 4, 6, 12], "tp_x": [0, 1, 2, 3, 6, 12], "cp": [1, 2],)"
       R"( "pp": [1, 2], "kind": ["1f1b", "zbv"], "micro_batch": [1])"},
      {usual_model, usual_training, 4,
       R"("tp": [1], "cp": [1, 2], "cp_algorithm": ["all_gather"], "recompute": ["none"],)"
       R"( "kind": ["1f1b", "interleaved", "zbh1", "zb1p", "zbv", "vhalf", "vmin", "dualpipev",)"
       R"( "1f1b-v", "gpipe", "looped-bfs", "seq1f1b", "zbh2", "zbv-greedy", "auto"])"},
      {R"("layers": 6, "hidden": 56, "heads": 14, "kv_heads": 7, "ffn_hidden": 97,)"
       R"( "vocabulary": 263)",
       R"("global_batch": 24, "sequence": 53)", 24,
       R"("tp": [1, 3, 4, 6, 8, 12, 24], "tp_x": [0, 1, 3, 4, 6], "cp": [1, 2, 3, 4, 6],)"
       R"( "pp": [1, 2], "kind": ["1f1b", "seq1f1b"], "micro_batch": [1],)"
       R"( "recompute": ["none"], "sequence_splits": [3])"},
      {usual_model, usual_training, 8,
       R"("tp": [1, 2], "tp_x": [0, 1], "sequence_parallel": [false, true], "zero": [0, 1],)"
       R"( "pp": [1, 2, 4], "kind": ["1f1b"], "micro_batch": [1])"},
      {usual_model, usual_training, 4,
       R"("tp": [1, 2, 4], "tp_x": [0, 2], "tp_slices": [1, 2, 1024], "pp": [1],)"
       R"( "kind": ["1f1b"])"},
      {usual_model, R"("global_batch": 8, "sequence": 64, "sequence_parallel": false)", 8,
       R"("pp": [1, 2, 8], "recompute": ["none", "norms", "full", "activation"],)"
       R"( "kind": ["1f1b"], "micro_batch": [1])"},
      {R"("layers": 6, "hidden": 24, "heads": 4, "ffn_hidden": 96, "vocabulary": 258)",
       usual_training, 2, R"("kind": ["1f1b"])"},
      {R"("layers": 2, "hidden": 36, "heads": 4, "ffn_hidden": 96, "vocabulary": 260)",
       usual_training, 2, R"("kind": ["1f1b"])"},
      {usual_model, R"("global_batch": 2, "sequence": 1)", 2, R"("kind": ["1f1b"])"},
      {R"("layers": 1025, "hidden": 8, "heads": 2, "ffn_hidden": 8, "vocabulary": 260)",
       usual_training, 1, R"("kind": ["1f1b"])"},
      {usual_model, R"("global_batch": 4096, "sequence": 64)", 2048,
       R"("tp": [1], "cp": [1], "pp": [1], "kind": ["1f1b"])"}};
  tally sum;
  for (const searched_job& each : jobs) {
    const tally some = compared(each);
    sum.run += some.run;
    sum.refused += some.refused;
  }
  CHECK(sum.run > 500);
  CHECK(sum.refused > 50);
}

TEST_CASE("a plan of what pretrain has no setting for is marked with the reason") {
  const std::pair<searched_job, const char*> rows[] = {
      {{R"("layers": 2, "hidden": 32, "heads": 4, "ffn_hidden": 64, "vocabulary": 260,
           "gated": false)",
        usual_training, 1, R"("pp": [1])"},
       "its feed-forwards are not gated"},
      {{usual_model, R"("global_batch": 8, "sequence": 64, "fp8": true)", 1, R"("pp": [1])"},
       "it trains in fp8"},
      {{usual_model, R"("global_batch": 8, "sequence": 64, "zero": 2)", 1, R"("pp": [1])"},
       "it shares gradients (zero 2)"}};
  for (const auto& [job, why] : rows) {
    const command::json all = plans_of(job);
    const json_t* first = json_array_get(command::member(all.get(), "plans"), 0);
    CHECK(json_is_false(command::member(first, "runnable")));
    CHECK(command::text(first, "not_runnable") == why);
  }
}
