// Settings: where they come from, and how each mistake is refused.
#include "examples/decoder/configuration/configuration.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;
using decoder::configuration;

namespace {

std::string refusal(const std::string& json) {
  configuration c;
  return refusal_of([&] { c.read_text(json, "c.json"), c.check(); });
}

std::string flag_refusal(const std::string& flag, const std::string& text) {
  configuration c;
  return refusal_of([&] { c.set(flag, text), c.check(); });
}

}  // namespace

TEST_CASE("the defaults do not contradict each other") {
  configuration c;
  c.check();
  CHECK(c.values.data.step_tokens() == 4096);
}

TEST_CASE("a file overrides defaults and a flag overrides the file") {
  configuration c;
  c.read_text(R"({"model": {"hidden": 128, "tied": true}, "data": {"paths": ["a", "b"]},
                  "optimizer": {"learning_rate": 1}})",
              "c.json");
  CHECK(c.values.model.hidden == 128);
  CHECK(c.values.model.tied);
  CHECK(c.values.optimizer.learning_rate == 1.0);
  CHECK(c.values.data.paths == std::vector<std::string>{"a", "b"});
  c.set("hidden", "64");
  c.set("paths", "x");
  c.set("paths", "y");
  c.set("kv-heads", "1");
  CHECK(c.values.model.kv_heads == 1);
  CHECK(c.values.model.hidden == 64);
  CHECK(c.values.data.paths == std::vector<std::string>{"x", "y"});
}

TEST_CASE("settings written as JSON read back equal") {
  configuration c, d;
  c.set("learning_rate", "0.1");
  c.set("paths", R"(with "quotes")");
  c.set("out", "12");
  d.read_text(c.json(), "again");
  CHECK(c.json() == d.json());
  CHECK(d.values.optimizer.learning_rate == 0.1);
  CHECK(d.values.run.out == "12");
}

TEST_CASE("malformed JSON is refused with line and column") {
  CHECK_THAT(refusal("{\n  \"model\": {\n    \"hidden\": 12,,\n"), StartsWith("c.json:3:18: "));
  CHECK_THAT(refusal(""), StartsWith("c.json:1:"));
  CHECK_THAT(refusal(R"({"model": {"hidden": 64, "hidden": 64}})"), Contains("duplicate"));
}

TEST_CASE("what a file may not say is refused where it stands") {
  CHECK_THAT(refusal("[1]"), StartsWith("c.json:1:1: "));
  CHECK_THAT(refusal("{\n \"modell\": {}}"),
             StartsWith(R"(c.json:2:12: no section is called "modell")"));
  CHECK_THAT(
      refusal("{\"model\":\n  {\"hiden\": 5}}"),
      StartsWith(R"(c.json:2:13: section "model" has no setting "hiden"; did you mean hidden?)"));
  CHECK_THAT(refusal(R"({"model": {"lr": 5}})"), Contains(R"(has no setting "lr")"));
  CHECK_THAT(refusal(R"({"data": {"hidden": 64}})"),
             Contains(R"(section "data" has no setting "hidden"; it belongs to "model")"));
  CHECK_THAT(refusal(R"({"model": {"\u001b[31mhid\nden": 5}})"),
             Contains(R"(section "model" has no setting "?[31mhid?den")"));
  CHECK_THAT(refusal("{\"" + std::string(50, 'x') + "\": {}}"),
             EndsWith("no section is called \"" + std::string(40, 'x') + "..\""));
  CHECK_THAT(refusal(R"({"data": {"paths": ["x", ""]}})"),
             Contains(R"(paths = ["x", ""] must name a file or a directory)"));
  CHECK_THAT(refusal("{\"model\":\n\n{\"hidden\": \"64\"}}"),
             Equals(R"(c.json:3:12: hidden must be an integer, not "64")"));
  CHECK_THAT(refusal(R"({"model": {"hidden": 64.5}})"), Contains("not a number with a fraction"));
  CHECK_THAT(refusal(R"({"model": {"tied": 1}})"), Contains("true or false"));
  CHECK_THAT(refusal(R"({"data": {"paths": "x"}})"), Contains("an array of strings"));
  CHECK_THAT(refusal(R"({"data": {"paths": ["x", null]}})"), Contains("not null"));
  CHECK_THAT(refusal(R"({"model": 3})"), Contains("model must be an object"));
}

TEST_CASE("numbers out of their bounds are refused") {
  CHECK_THAT(refusal(R"({"model": {"hidden": 0}})"),
             Contains("hidden must be from 2 to 65536, not 0"));
  CHECK_THAT(refusal(R"({"model": {"layers": -1}})"), Contains("layers must be from"));
  CHECK_THAT(refusal(R"({"model": {"vocab": 256}})"), Contains("vocab must be from 259"));
  CHECK_THAT(flag_refusal("steps", "99999999999999999999"), Contains("steps must be"));
  CHECK_THAT(flag_refusal("learning_rate", "nan"), Contains("learning_rate must be a number"));
  CHECK_THAT(flag_refusal("hidden", "64x"), StartsWith("--hidden: hidden must be an integer"));
  CHECK_THAT(flag_refusal("hidden", ""), StartsWith("--hidden: hidden must be an integer"));
}

TEST_CASE("contradictions are refused with both sides and their places") {
  CHECK_THAT(refusal("{\"model\": {\"hidden\": 100, \"heads\":\n 3}}"),
             Equals("c.json:1:22: hidden = 100 must be a multiple of heads = 3 (c.json:2:2)"));
  CHECK_THAT(refusal(R"({"model": {"kv_heads": 3}})"),
             Equals("c.json:1:24: heads = 4 must be a multiple of kv_heads = 3"));
  CHECK_THAT(refusal(R"({"model": {"hidden": 60, "kv_heads": 4}})"),
             Contains("must be even for the rotary embedding; heads = 4"));
  CHECK_THAT(refusal(R"({"model": {"dtype": "f16"}})"), Contains("must be bf16 or f32"));
  CHECK_THAT(refusal(R"({"model": {"kv_share": 1}})"),
             Equals("c.json:1:24: kv_share = 1 leaves no layer with keys and values of its own; "
                    "must be 0, or 2 or more"));
  CHECK_THAT(refusal(R"({"model": {"kv_share": 5}})"),
             Equals("c.json:1:24: kv_share = 5 must not exceed layers = 4"));
  CHECK_THAT(refusal(R"({"model": {"kv_share": -1}})"), Contains("kv_share must be from 0"));
  CHECK(refusal(R"({"model": {"kv_share": 2}})") == "accepted");
  CHECK_THAT(refusal(R"({"schedule": {"steps": 5, "warmup": 6}})"),
             Contains("c.json:1:37: warmup = 6 must not exceed steps = 5 (c.json:1:24)"));
  CHECK_THAT(refusal(R"({"data": {"paths": []}})"), Contains("must name a file"));
  CHECK_THAT(flag_refusal("stop_after", "201"),
             Contains("--stop_after: stop_after = 201 must not exceed steps = 200"));
}

TEST_CASE("what cannot be recomputed is refused") {
  const auto memory = [](const char* inside) {
    return refusal(std::string(R"({"memory": {)") + inside + "}}");
  };
  CHECK_THAT(memory(R"("recompute": "everything")"),
             Equals(R"(c.json:1:26: recompute = "everything" must be none, full, block, uniform, )"
                    R"(selective, activation, norm, mlp, experts, dispatch or adaptive)"));
  CHECK_THAT(memory(R"("recompute": "block", "recompute_layers": -1)"),
             Contains("recompute_layers must be from 0 to 1024, not -1"));
  CHECK_THAT(memory(R"("recompute": "block", "recompute_layers": 5)"),
             Contains("recompute_layers = 5 must not exceed layers = 4"));
  for (const char* kind : {"none", "full", "selective"})
    CHECK_THAT(
        memory((R"("recompute_layers": 2, "recompute": ")" + std::string(kind) + '"').c_str()),
        Contains("recompute_layers = 2 means nothing with recompute = \"" + std::string(kind)));
  for (const char* kind : {"block", "uniform", "activation", "norm", "mlp"})
    CHECK(memory((R"("recompute_layers": 2, "recompute": ")" + std::string(kind) + '"').c_str()) ==
          "accepted");
  CHECK_THAT(memory(R"("recompute": "uniform", "recompute_layers": 2,
                       "recompute_layers_per_rank": true)"),
             Contains("is of block, activation, norm, mlp, experts and dispatch, not with "
                      "recompute = \"uniform\""));
  CHECK_THAT(memory(R"("recompute": "mlp", "recompute_layers_per_rank": true)"),
             Contains("is of a number of layers, not with recompute_layers = 0"));
  CHECK_THAT(memory(R"("recompute": "adaptive")"),
             Contains(R"(recompute = "adaptive" needs a budget; memory_budget = 0)"));
  CHECK_THAT(memory(R"("memory_budget": -1)"), Contains("memory_budget must be from 0"));
  CHECK_THAT(memory(R"("memory_budget": "1G")"), Contains("memory_budget must be an integer"));
}

TEST_CASE("tensor ranks in two dimensions that no rank could have are refused") {
  const auto parallel = [](const std::string& inside) {
    return refusal(R"({"parallel": {)" + inside + "}}");
  };
  CHECK(parallel(R"("tp": 8, "tp_x": 2, "cp_algorithm": "all_gather")") == "accepted");
  CHECK(parallel(R"("tp": 3, "tp_x": 1)") == "accepted");
  CHECK_THAT(parallel(R"("tp_x": 1)"), Contains("tp_x = 1 is of ranks that share matrices, not"));
  CHECK_THAT(parallel(R"("tp": 4, "tp_x": 3)"), Contains("tp_x = 3 must be a divisor of tp = 4"));
  CHECK_THAT(parallel(R"("tp": 2, "tp_x": 4)"), Contains("tp_x = 4 must be a divisor of tp = 2"));
  CHECK_THAT(parallel(R"("tp": 6, "tp_x": 3)"),
             Contains("kv_heads = 2 must be at least, or a divisor of, tp_x = 3"));
  CHECK_THAT(parallel(R"("tp": 2, "tp_x": 2, "cp_algorithm": "ulysses")"),
             Contains("is of ranks that share windows, not with cp = 1"));
  CHECK_THAT(parallel(R"("tp": 8, "tp_x": 2, "cp_window": 3)"),
             Contains("cp_window = 3 must be a divisor of 4, which is cp * tp / tp_x, with tp_x"));
  CHECK_THAT(parallel(R"("tp": 8, "tp_x": 2, "cp": 2, "cp_algorithm": "hybrid", "cp_ulysses": 2,
                         "cp_window": 3)"),
             Contains("cp_window = 3 must be a divisor of 4, which is cp * tp / tp_x / cp_ulysses, "
                      "with cp_ulysses = 2"));
  CHECK_THAT(parallel(R"("tp": 8, "tp_x": 2, "cp_algorithm": "hybrid", "cp_ulysses": 3)"),
             Contains("cp_ulysses = 3 must be a divisor of 4, which is cp * tp / tp_x, with tp_x"));
  CHECK_THAT(parallel(R"("tp": 8, "tp_x": 2, "cp": 2, "cp_algorithm": "ulysses")"),
             Contains("on a rank, which must be at least 8, which is cp * tp / tp_x, with tp_x"));
  CHECK_THAT(refusal(R"({"data": {"sequence": 65537},
                         "parallel": {"cp": 2, "cp_algorithm": "adaptive"}})"),
             Contains("sequence = 65537 must be at most 65536 with a mask or of an adaptive kind, "
                      "with cp_algorithm = \"adaptive\""));
  CHECK_THAT(refusal(R"({"data": {"sequence": 512},
                         "parallel": {"cp": 258, "cp_algorithm": "adaptive"}})"),
             Contains("cp = 258 must be at most 256 blocks of rows of an adaptive kind, with"));
  CHECK_THAT(parallel(R"("tp": 2, "tp_x": 1, "sequence_parallel": true)"),
             Contains("sequence_parallel = true is of matrices that are cut one way, not with"));
  CHECK_THAT(refusal(R"({"parallel": {"tp": 512, "tp_x": 1}})"),
             Contains("hidden = 256 must be at least 512, which is tp / tp_x, with tp_x = 1"));
  CHECK_THAT(refusal(R"({"data": {"sequence": 7}, "parallel": {"tp": 4, "tp_x": 1, "cp": 2}})"),
             Contains("sequence = 7 must be at least 8, which is cp * tp / tp_x, with tp_x = 1"));
  CHECK_THAT(refusal(R"({"data": {"documents": "lines"}, "memory": {"plan": true},
                         "parallel": {"tp": 2, "tp_x": 1}})"),
             Contains("plan = true is of ranks with as many rows in each step, not with tp_x"));
  CHECK_THAT(refusal(R"({"memory": {"recompute": "full", "distribute_saved_activations": true},
                         "parallel": {"tp": 2, "tp_x": 2}})"),
             Contains("is of rows that all ranks have, not with tp_x = 2"));
}

TEST_CASE("a flag of one tensor rank drops what several save for recompute") {
  configuration c;
  c.read_text(R"({"memory": {"recompute": "full", "recompute_communication_level": 2},
                  "parallel": {"tp": 2}})",
              "c.json");
  c.check();
  CHECK(c.values.memory.recompute_level == 2);
  c.set("tp", "1");
  c.check();
  CHECK(c.values.memory.recompute_level == 1);
  CHECK(c.values.memory.recompute == "full");
}

TEST_CASE("flags that leave one tensor rank drop the settings of more from a file") {
  const auto with = [](const char* flag, const char* value) {
    configuration c;
    c.read_text(R"({"model": {"kv_heads": 4},
                    "parallel": {"tp": 4, "tp_x": 2, "cp_algorithm": "all_gather"}})",
                "c.json");
    c.set(flag, value);
    c.check();
    return c.values.parallel;
  };
  CHECK(with("tp", "1").tp_x == 0);
  CHECK(with("tp", "1").cp_algorithm == "ring");
  CHECK(with("tp", "2").cp_algorithm == "ring");  // 2 by 1
  CHECK(with("tp_x", "0").cp_algorithm == "ring");
  CHECK(with("tp_x", "1").cp_algorithm == "all_gather");
  configuration one;
  one.read_text(R"({"parallel": {"cp_algorithm": "all_gather"}})", "c.json");
  one.set("tp", "2");
  CHECK_THROWS_WITH(one.check(), Contains("is of ranks that share windows, not with cp = 1"));
}

TEST_CASE("a warm-up that nobody asked for ends with a run that is shorter") {
  configuration c;
  c.set("steps", "5");
  c.check();
  CHECK(c.values.schedule.warmup == 5);
  c.set("warmup", "20");
  CHECK_THROWS_WITH(c.check(), "--warmup: warmup = 20 must not exceed steps = 5 (--steps)");
}

TEST_CASE("one section is taken from another configuration, with its places") {
  configuration saved, now;
  saved.read_text(R"({"s": {"model": {"heads": 3}, "data": {"batch": 3}}})", "c.json", "s");
  now.adopt(saved, "model");
  CHECK(now.values.model.heads == 3);
  CHECK(now.values.data.batch == configuration().values.data.batch);
  CHECK_THROWS_WITH(now.check(), "c.json:1:27: hidden = 256 must be a multiple of heads = 3");
}

TEST_CASE("settings that a resumed run may not change are compared") {
  configuration saved, now;
  now.set("layers", "5");
  CHECK_THROWS_WITH(now.require_same(saved, "model", "the checkpoint"),
                    "--layers: layers = 5, but the checkpoint has 4");
  now.set("layers", "4");
  now.set("threads", "3");
  CHECK_NOTHROW(now.require_same(saved, "model", "the checkpoint"));
}

TEST_CASE("the help names every setting with its default") {
  const std::string help = configuration().help();
  for (const char* flag :
       {"--hidden", "--paths", "--learning_rate", "--steps", "--log", "--threads"}) {
    CHECK_THAT(help, Contains(flag));
  }
  CHECK_THAT(help, Contains("[256]"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  CHECK_THAT(help, Contains("/usr/share/common-licenses"));
}

TEST_CASE("flags for other stages drop layers of stages that do not fit") {
  const auto layers_with = [](const std::vector<std::pair<const char*, const char*>>& flags) {
    configuration c;
    c.read_text(R"({"model": {"layers": 4}, "parallel": {"pp": 2, "stage_layers": "4,0"},
                    "data": {"accumulation": 8}})",
                "c.json");
    for (const auto& [name, value] : flags) c.set(name, value);
    c.check();
    return c.values.parallel.stage_layers;
  };
  CHECK(layers_with({}) == "4,0");
  CHECK(layers_with({{"seed", "2"}}) == "4,0");
  CHECK(layers_with({{"pipeline", "zbh1"}}) == "4,0");
  CHECK(layers_with({{"pipeline", "zbv"}}).empty());
  CHECK(layers_with({{"pp", "4"}}).empty());
  CHECK(layers_with({{"pp", "1"}}).empty());
  CHECK(layers_with({{"pp", "4"}, {"stage_layers", "0,4,0,0"}}) == "0,4,0,0");
  CHECK_THROWS_WITH(layers_with({{"pp", "4"}, {"stage_layers", "4,0"}}),
                    Contains("must have 4 counts, one a stage, not 2, with pp = 4"));
}
