// velo tune, run as a program: tables, data, exit codes, and the jobs that come with it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

using velo::testing::temporary_folder;

namespace {

const std::string folder = VELO_TUNE_EXAMPLES;

outcome tune(const std::string& words) {
  return run_velo("tune " + words);
}

}  // namespace

TEST_CASE("the jobs that come with velo have plans from 16 to 2048 accelerators") {
  for (const char* job : {"llama2_7b.json", "deepseek_v3_small.json"}) {
    for (const char* count : {"16", "256", "2048"}) {
      const outcome o = tune(folder + job + " --json --top 3 --accelerators " + std::string(count));
      REQUIRE(o.code == 0);
      const json all = parsed(o.out);
      CHECK(number_of(all, "accelerators") == std::stoi(count));
      const json_t* plans = json_object_get(all.get(), "plans");
      REQUIRE(json_array_size(plans) == 3);
      const json_t* best = json_array_get(plans, 0);
      const json_t* ranks = json_object_get(best, "memory_bytes");
      const json_t* layout = json_object_get(best, "layout");
      CHECK(json_array_size(ranks) == static_cast<std::size_t>(number_of(layout, "pp")));
      for (std::size_t i = 0; i < json_array_size(ranks); ++i) {
        const json_t* one = json_array_get(ranks, i);
        double sum = 0;
        for (const char* item : {"parameters", "gradients", "optimizer", "activations", "workspace",
                                 "communication"}) {
          CHECK(number_of(one, item) > 0);
          sum += number_of(one, item);
        }
        CHECK(number_of(one, "total") == Approx(sum));
        CHECK(sum <= number_of(all, "memory_bytes"));
      }
      const json_t* assumed = json_object_get(all.get(), "assumptions");
      CHECK(json_object_get(assumed, "profile.peak_tflops"));
      CHECK(number_of(assumed, "config.accelerators") == std::stoi(count));
      CHECK(number_of(assumed, "config.search.keep") == 3);
    }
  }
}

TEST_CASE("a table has a unit over every column, and as many rows as asked for") {
  const outcome o = tune(folder + "llama2_7b.json --top 4");
  CHECK(o.code == 0);
  CHECK(o.out.find("Llama-2-7B, 6.738 billion parameters, 64 accelerators") == 0);
  for (const char* text : {"\n#   step", "\n1  ", "\n4  ", "Memory of the best", "Rejected:"})
    CHECK(o.out.find(text) != std::string::npos);
  CHECK(o.out.find("\n5  ") == std::string::npos);
}

TEST_CASE("a table fits a screen, and its last line says where its assumptions are") {
  const outcome o = tune(folder + "llama2_7b.json --top 4");
  CHECK(std::count(o.out.begin(), o.out.end(), '\n') < 40);
  CHECK(o.out.find("Korthikanti") == std::string::npos);
  const std::size_t last = o.out.rfind('\n', o.out.size() - 2);
  CHECK(o.out.find("--assumptions", last) != std::string::npos);

  const outcome assumed = tune(folder + "llama2_7b.json --top 4 --assumptions");
  CHECK(assumed.code == 0);
  for (const char* text :
       {"Korthikanti", "\nprofile.peak_tflops 312\n", "\nconfig.accelerators 64\n",
        "\nconfig.search.keep 4\n", "\nconfig.search.dp \"all\"\n"})
    CHECK(assumed.out.find(text) != std::string::npos);
  CHECK(assumed.out.find("Rejected:") == std::string::npos);
}

TEST_CASE("every rejected candidate has a row") {
  const outcome o = tune(folder + "deepseek_v3_small.json --rejected --top 1");
  CHECK(o.code == 0);
  const json all = parsed(tune(folder + "deepseek_v3_small.json --json --top 1").out);
  const auto rows = std::count(o.out.begin(), o.out.end(), '\n');
  CHECK(static_cast<double>(rows) == number_of(all, "candidates") - 1 + 1);  // and the titles
  CHECK(o.out.find("tp,pp,vpp,dp,cp,ep,micro_batch,microbatches,recompute,schedule,split,"
                   "code,reason,cp_algorithm,tp_slices,token_rearrange,tp_x,sequence_splits,"
                   "sequence_parallel,zero\n") == 0);
}

TEST_CASE("the page of schedules shows the plans that velo tune finds for DeepSeek-V3") {
  std::ifstream page(VELO_TUNE_EXAMPLES "../../sched/README.md");
  std::istringstream plans(tune(folder + "deepseek_v3.json --top 3").out);
  const auto next_row = [](std::istream& from, const std::string& number) {
    for (std::string line, first; std::getline(from, line);) {
      std::istringstream words(line);
      if (words >> first && first == number) return line;
    }
    return std::string();
  };
  const auto words_of = [](const std::string& line) {
    std::istringstream from(line);
    return std::vector<std::string>(std::istream_iterator<std::string>(from), {});
  };
  for (const char* number : {"1", "2", "3"}) {
    const std::vector<std::string> shown = words_of(next_row(page, number));
    std::vector<std::string> found = words_of(next_row(plans, number));
    REQUIRE(shown.size() == 14);
    REQUIRE(found.size() >= shown.size());
    found.resize(shown.size());
    CHECK(shown == found);
  }
}

TEST_CASE("a job for which nothing fits names the nearest, and ends with 2") {
  const outcome o = tune(folder + "deepseek_v3.json --accelerators 16");
  CHECK(o.code == 2);
  CHECK(o.out.find("velo: nothing fits; nearest is tp ") != std::string::npos);
  CHECK(o.out.find("more than there are") != std::string::npos);
  CHECK(parsed(run_velo("tune " + folder + "deepseek_v3.json --accelerators 16 --json", "/dev/null")
                   .out) != nullptr);
}

TEST_CASE("DeepSeek-V3 fits from 256 accelerators on, as its page says") {
  CHECK(tune(folder + "deepseek_v3.json --top 1 --accelerators 128").code == 2);
  CHECK(tune(folder + "deepseek_v3.json --top 1 --accelerators 256").code == 0);
}

TEST_CASE("Llama 3 405B fits on the accelerators that trained it") {
  const json all = parsed(tune(folder + "llama3_405b.json --json --top 1").out);
  const json_t* best = json_array_get(json_object_get(all.get(), "plans"), 0);
  REQUIRE(best != nullptr);
  CHECK(number_of(best, "utilization") > 0.4);
  const std::string help = tune("--help").out;  // says what the numbers rest on
  CHECK(help.find("0.6 of the peak for products") != std::string::npos);
}

TEST_CASE("bad input ends with 1, and says where it is") {
  const auto refused = [](const std::string& words, const char* reason) {
    check_refused("tune " + words, reason);
  };
  const std::string job = folder + "llama2_7b.json";
  refused("", "one CONFIG.json");
  refused("/nowhere.json", "cannot be read");
  refused(job + " --top 0", "--top wants a number from 1 to 10000, not 0");
  refused(job + " --accelerators", "--accelerators");
  refused(job + " --tops 3", "--top");
  refused(job + " --profile " + job, "profile.model: expected name, memory_gib");
  refused(job + " --json --rejected", "--json and --rejected ask for two texts: give one");
  refused(job + " --rejected --json", "--rejected and --json ask for two texts");
  refused(job + " --assumptions --pretrain", "--assumptions and --pretrain ask for two texts");
  refused(folder + "a100_80g.json", "config.model.layers: expected a whole number from 1 to 4096");
  CHECK(tune("--help").out.find("usage: velo tune") == 0);
}

TEST_CASE("the best plan that pretrain can run is written as its config") {
  const outcome o = tune(folder + "llama2_7b.json --pretrain --accelerators 64");
  REQUIRE(o.code == 0);
  const json config = parsed(o.out);
  const auto at = [&](const char* section, const char* name) {
    return json_integer_value(json_object_get(json_object_get(config.get(), section), name));
  };
  CHECK(at("model", "inner") == 11008);
  CHECK(at("model", "kv_heads") == 32);
  CHECK(at("data", "sequence") == 4096);
  CHECK(at("run", "ranks") == 64);
  const auto ranks = at("parallel", "tp") * at("parallel", "cp") * at("parallel", "pp");
  CHECK(64 % ranks == 0);
  CHECK(at("data", "batch") * at("data", "accumulation") == 2048);
  CHECK(at("data", "batch") % (64 / ranks) == 0);
}

TEST_CASE("a profile of this machine is measured in seconds, and plans are made by it") {
  const temporary_folder folder_of_test;
  const std::string job =
      folder_of_test.put("job.json", R"({"model": {"layers": 4, "hidden": 256, "heads": 4,
      "kv_heads": 2, "ffn_hidden": 768, "vocabulary": 260},
      "training": {"global_batch": 16, "sequence": 256}, "accelerators": 2})");
  const auto begin = std::chrono::steady_clock::now();
  const outcome measured = tune(job + " --measure -o " + folder_of_test.at("here.json"));
  INFO(measured.out);
  REQUIRE(measured.code == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // of a busy machine
  CHECK(measured.out.find("velo: measuring the machine's limits (1 of 7)\n") == 0);
  CHECK(measured.out.find("(7 of 7)\n") == measured.out.size() - 9);

  const outcome planned =
      tune(job + " --profile " + folder_of_test.at("here.json") + " --json --top 1");
  INFO(planned.out);
  REQUIRE(planned.code == 0);
  const json all = parsed(planned.out);
  const json_t* assumed = json_object_get(all.get(), "assumptions");
  for (const char* rate : {"peak_tflops", "matmul_efficiency", "attention_efficiency",
                           "memory_gb_per_s", "intra_gb_per_s", "intra_latency_us", "layer_us"})
    CHECK(number_of(assumed, ("profile." + std::string(rate)).c_str()) > 0);
  std::ifstream written(folder_of_test.at("here.json"));
  const json profile = parsed({std::istreambuf_iterator<char>(written), {}});
  for (const char* part : {"tp_overlap", "cp_overlap", "dp_overlap"}) {
    REQUIRE(json_is_number(json_object_get(profile.get(), part)));
    CHECK(number_of(profile.get(), part) >= 0);
    CHECK(number_of(profile.get(), part) <= 1);
  }
  CHECK(text_of(assumed, "profile.name").find("measured") != std::string::npos);
}

TEST_CASE("what cannot be measured is refused by its member") {
  const temporary_folder folder_of_test;
  const std::string job = folder_of_test.put("job.json", R"({"model": {"hidden": 256.5}})");
  check_refused("tune " + job + " --measure",
                "job.json: config.model.hidden: expected a whole number from 1 to 16777216, got "
                "256.5");
  const std::string less =
      folder_of_test.put("less.json", R"({"model": {"hidden": 256, "heads": 4}})");
  check_refused("tune " + less + " --measure", "config.model.ffn_hidden: expected a whole number");
  check_refused("tune " + less + " --measure", "got nothing");
  check_refused("tune " + folder_of_test.put("none.json", "{") + " --measure", "none.json: line 1");
  check_refused("tune " + less + " --measure --json", "--measure writes a profile, not plans");
}

namespace {

// A job of two ranks with four plans: dp 2, cp 2, tp 2, pp 2.
constexpr const char* four_plans = R"({"model": {"layers": 4, "hidden": 128, "heads": 4,
    "kv_heads": 2, "ffn_hidden": 384, "vocabulary": 260},
    "training": {"global_batch": 16, "sequence": 128}, "accelerators": 2,
    "search": {"micro_batch": [8], "recompute": ["none"], "split": ["even"], "kind": ["1f1b"],
               "cp_algorithm": ["ring"]}})";

// In place of pretrain: plans of pp 2 are the fastest, those of cp 2 fail.
constexpr const char* stand_in = R"(
echo "$@" >> "$(dirname "$0")/calls"
while [ $# -gt 0 ]; do
  case "$1" in --config) plan="$2";; --log) log="$2";; esac
  shift
done
if grep -q '"cp": 2' "$plan"; then echo "no such layout"; exit 3; fi
rate=100
if grep -q '"pp": 2' "$plan"; then rate=4096; fi
for step in 1 2 3 4 5; do
  echo "{\"step\": $step, \"tokens_per_s\": $rate}" >> "$log"
  rate=$((rate + rate * (step == 1)))
done
)";

}  // namespace

TEST_CASE("black runs every plan, and their steps decide; mixed runs the model's best") {
  const temporary_folder folder_of_test;
  const std::string job = folder_of_test.put("job.json", four_plans);
  const std::string trial = " --trial 'sh " + folder_of_test.put("trial.sh", stand_in) + "'";
  const outcome black =
      run_velo("tune " + job + " --type black --json" + trial, folder_of_test.at("errors"));
  REQUIRE(black.code == 0);
  const json all = parsed(black.out);
  CHECK(text_of(all.get(), "type") == "black");
  const json_t* plans = json_object_get(all.get(), "plans");
  REQUIRE(json_array_size(plans) == 4);
  const json_t* best = json_array_get(plans, 0);
  CHECK(number_of(json_object_get(best, "layout"), "pp") == 2);
  CHECK(number_of(best, "measured_step_seconds") == 16 * 128 / (2 * 4096.0));  // not of step 1
  const json_t* failed = json_array_get(plans, 3);
  CHECK(number_of(json_object_get(failed, "layout"), "cp") == 2);
  CHECK(text_of(failed, "trial_failure") == "exit code 3: no such layout");

  const outcome table = tune(job + " --type black" + trial);
  CHECK(table.out.find("velo: trial 4 of 4: ") != std::string::npos);
  CHECK(table.out.find("1  0.25 s") != std::string::npos);
  const outcome config =
      run_velo("tune " + job + " --type black --pretrain" + trial, folder_of_test.at("errors"));
  const json best_config = parsed(config.out);
  CHECK(number_of(json_object_get(best_config.get(), "parallel"), "pp") == 2);

  const outcome mixed = run_velo("tune " + job + " --type mixed --trials 1 --json" + trial,
                                 folder_of_test.at("errors"));
  const json rest = parsed(mixed.out);
  const json_t* mixed_plans = json_object_get(rest.get(), "plans");
  REQUIRE(json_array_size(mixed_plans) == 4);
  CHECK(number_of(json_array_get(mixed_plans, 0), "measured_step_seconds") > 0);
  CHECK(json_object_get(json_array_get(mixed_plans, 1), "measured_step_seconds") == nullptr);
  std::ifstream calls(folder_of_test.at("calls"));
  const std::string lines((std::istreambuf_iterator<char>(calls)), {});
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3 * 4 + 1);
}

TEST_CASE("a file that cannot be written is refused before anything is run or measured") {
  const temporary_folder folder_of_test;
  const std::string job = folder_of_test.put("job.json", four_plans);
  const std::string trial =
      " --type black --trial 'sh " + folder_of_test.put("trial.sh", stand_in) + "'";
  const std::string missing = folder_of_test.at("none/plan.json");
  check_refused("tune " + job + trial + " -o " + missing,
                missing + ": cannot be written: No such file or directory");
  check_refused("tune " + job + trial + " -o " + folder_of_test.at("."),
                "cannot be written: exists and is no regular file");
  CHECK_FALSE(std::ifstream(folder_of_test.at("calls")).is_open());
  CHECK(tune(job + " --measure -o " + missing).out.find("measuring") == std::string::npos);

  // A refusal that comes after the check leaves the file as it was, and nothing beside it.
  const std::string kept = folder_of_test.put("kept.json", "before");
  check_refused("tune " + job + " --profile /nowhere.json -o " + kept, "cannot be read");
  CHECK(contents_of(kept) == "before");
  CHECK(folder_of_test.files() == 3);  // the job, the trial and this one
  CHECK(run_velo("tune " + job + " --json -o " + kept).code == 0);
  CHECK(parsed(contents_of(kept)) != nullptr);
}

TEST_CASE("a type that cannot decide is refused") {
  const temporary_folder folder_of_test;
  const std::string job = folder_of_test.put("job.json", four_plans);
  const auto refused = [&](const std::string& words, const char* reason) {
    check_refused("tune " + job + words, reason);
  };
  refused(" --type gray", "--type wants white, black or mixed, not gray");
  refused(" --type", "--type wants white, black or mixed, not nothing");
  refused(" --type black", "--type black decides by measured steps and has none: --trial COMMAND");
  refused(" --type mixed", "--type mixed decides by measured steps and has none: --trial COMMAND");
  refused(" --trials 3", "--type white runs nothing");
  refused(" --type black --trial true --trials 2",
          "--type black runs every plan that pretrain can, which are 4, and --trials allows 2");
  refused(" --type black --trial true --rejected", "not with --rejected and --assumptions");
  refused(" --type black --trial true --measure", "--measure writes a profile, not plans");
  const outcome none = tune(job + " --type mixed --trials 1 --trial false");
  CHECK(none.code == 2);
  CHECK(none.out.find("velo: no plan ran\n") != std::string::npos);
  CHECK(none.out.find("exit code 1: it printed") != std::string::npos);
  const outcome experts = tune(folder + "deepseek_v3_small.json --type mixed --trial true");
  CHECK(experts.code == 2);
  CHECK(experts.out ==
        "velo: pretrain can run none of them: of the first, it has experts, which are not written "
        "into its configuration\n");
}

TEST_CASE("plans that pretrain cannot run are not written, and the reason is printed") {
  const outcome o = tune(folder + "deepseek_v3_small.json --pretrain");
  CHECK(o.code == 2);
  CHECK(o.out ==
        "velo: pretrain can run none of them: of the first, it has experts, which are not written "
        "into its configuration\n");
  const temporary_folder folder_of_test;
  const std::string job = R"({"model": {"layers": 4, "hidden": 256,
      "heads": 4, "ffn_hidden": 768, "vocabulary": 260},
      "training": {"global_batch": 16, "sequence": 256MORE}, "accelerators": 2,
      "search": {"tp": [2], "tp_slices": [2]}})";
  const auto with = [&](const char* more) {
    std::string made = job;
    return folder_of_test.put("job.json", made.replace(made.find("MORE"), 4, more));
  };
  CHECK(tune(with(R"(, "fp8": true)") + " --pretrain").out ==
        "velo: pretrain can run none of them: of the first, it trains in fp8\n");
  CHECK(tune(with("") + " --pretrain").out.find("\"tp_slices\": 2") != std::string::npos);
  const outcome table = tune(folder + "llama2_7b.json --top 2");
  CHECK(table.out.find("pretrain can run the marked plans; --pretrain writes the first of them") !=
        std::string::npos);
}

TEST_CASE("tables and data say which plans pretrain runs") {
  const temporary_folder folder_of_test;
  const std::string job =
      folder_of_test.put("job.json", R"({"model": {"layers": 1, "hidden": 64, "heads": 4,
      "ffn_hidden": 96, "vocabulary": 30000}, "training": {"global_batch": 4, "sequence": 64},
      "accelerators": 2, "search": {"tp": [1], "cp": [1], "pp": [1], "kind": ["1f1b"],
      "micro_batch": [2], "recompute": ["none", "norms"]}})");
  const json all = parsed(tune(job + " --json").out);
  const json_t* plans = json_object_get(all.get(), "plans");
  REQUIRE(json_array_size(plans) == 2);
  std::vector<std::string> marks;
  for (std::size_t i = 0; i < 2; ++i) {
    const json_t* plan = json_array_get(plans, i);
    const json_t* recompute = json_object_get(json_object_get(plan, "layout"), "recompute");
    const bool runs = json_string_value(recompute) == std::string("none");
    CHECK(json_is_true(json_object_get(plan, "runnable")) == runs);
    const json_t* why = json_object_get(plan, "not_runnable");
    CHECK((why == nullptr ? "" : std::string(json_string_value(why))) ==
          (runs ? "" : "it recomputes norms and activations"));
    marks.push_back(runs ? "runs" : "-");
  }
  std::istringstream lines(tune(job).out);
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string last = line.substr(line.find_last_of(' ') + 1);
    if (line.rfind('#', 0) == 0) CHECK(last == "pretrain");
    if (row < 2 && line.rfind(std::to_string(row + 1) + "  ", 0) == 0) CHECK(last == marks[row++]);
  }
  CHECK(row == 2);
}
