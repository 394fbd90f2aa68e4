// A run's ranks may be started in one way and resumed in another; ends of runs that a launcher
// started.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "tests/examples/pretrain/mpirun.hpp"
#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

// Somebody who starts so many processes, and the flags that the program needs beside that.
struct start {
  std::string name;
  int ranks;
  std::vector<std::string> flags;
  enum class by { itself, variables, slurm, mpirun } who = by::itself;
};

// All ranks' words, and the worst of their codes.
outcome launch(const start& how, std::vector<std::string> words, const std::string& job) {
  words.insert(words.end(), how.flags.begin(), how.flags.end());
  if (how.who == start::by::itself) return run_program(words);
  if (how.who == start::by::mpirun)
    return run_program(words, [&] { become_mpirun(how.ranks, words); });
  std::vector<std::unique_ptr<child>> all;
  for (int rank = 0; rank < how.ranks; ++rank)
    all.push_back(std::make_unique<child>(words, [&] {
      const bool slurm = how.who == start::by::slurm;
      ::setenv(slurm ? "SLURM_PROCID" : "RANK", std::to_string(rank).c_str(), 1);
      ::setenv(slurm ? "SLURM_STEP_NUM_TASKS" : "WORLD_SIZE", std::to_string(how.ranks).c_str(), 1);
      ::setenv(slurm ? "SLURM_JOB_ID" : "TORCHELASTIC_RUN_ID", job.c_str(), 1);
    }));
  outcome sum{0, ""};
  for (const auto& each : all) {
    const outcome one = each->finish();
    sum.code = std::max(sum.code, one.code);
    sum.text += one.text;
  }
  return sum;
}

std::vector<double> last_numbers(const std::string& losses) {
  const std::size_t end = losses.find_last_not_of('\n');
  const std::size_t begin = losses.rfind('\n', end);
  return numbers(losses.substr(begin == std::string::npos ? 0 : begin + 1));
}

}  // namespace

TEST_CASE("whoever started a run, anybody goes on with it") {
  workplace w;
  REQUIRE(w.run({"--dtype", "f32", "--log", w / "whole", "--out", w / "other"}).code == 0);
  const std::vector<double> expected = last_numbers(w.losses("whole"));
  REQUIRE(!expected.empty());

  using by = start::by;
  std::vector<start> begins = {{"one", 1, {}},
                               {"processes", 2, {"--ranks", "2"}},
                               {"threads", 2, {"--ranks", "2", "--transport", "local"}},
                               {"stages", 2, {"--pp", "2"}},
                               {"torchrun", 2, {}, by::variables},
                               {"srun", 2, {}, by::slurm}};
  std::vector<start> resumes = {{"plain", 0, {}},
                                {"one", 1, {"--ranks", "1", "--pp", "1"}},
                                {"threads", 2, {"--ranks", "2", "--transport", "local"}},
                                {"processes", 4, {"--ranks", "4", "--transport", "shm"}},
                                {"stages", 2, {"--pp", "2"}},
                                {"torchrun", 4, {}, by::variables},
                                {"srun", 2, {}, by::slurm}};
  if (has_mpirun()) {
    begins.push_back({"mpirun", 2, {}, by::mpirun});
    resumes.push_back({"mpirun", 4, {}, by::mpirun});
  } else {
    WARN("not tested: no mpirun");
  }
  int job = 0;
  const auto id = [&] { return w.path + std::to_string(++job); };
  for (const start& first : begins) {
    const std::string from = w / ("from-" + first.name);
    INFO("begun by " << first.name);
    ended(0, launch(first, tiny(w.path, {"--dtype", "f32", "--stop_after", "2", "--out", from}),
                    id()));
    for (const start& second : resumes) {
      INFO("resumed by " << second.name);
      const std::string copy = w / (first.name + "-" + second.name);
      fs::copy(from, copy, fs::copy_options::recursive);
      const std::string log = first.name + "-" + second.name + ".log";
      const outcome done = ended(0, launch(second, {"--resume", copy, "--log", w / log}, id()));
      const std::vector<double> found = last_numbers(w.losses(log));
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(found[i] == Approx(expected[i]).epsilon(1e-5).margin(0));
      // As many as are started now; without a word as many as there were.
      const int ranks = second.ranks != 0 ? second.ranks : first.ranks;
      if (ranks == 1) {
        CHECK(done.text.find("ranks  ") == std::string::npos);
      } else {
        CHECK_THAT(done.text, Contains("ranks  " + std::to_string(ranks)));
      }
    }
  }
}

TEST_CASE("ranks over which a model in stages cannot be cut hear what lets them go on") {
  workplace w;
  REQUIRE(w.run({"--pp", "2", "--batch", "6", "--stop_after", "2"}).code == 0);
  int copies = 0;
  const auto resumed = [&](int ranks, std::vector<std::string> more) {
    const std::string copy = w / ("copy-" + std::to_string(++copies));
    fs::copy(w / "out", copy, fs::copy_options::recursive);
    more.insert(more.begin(), {"--resume", copy, "--stop_after", "3", "--threads", "1"});
    return launch({"torchrun", ranks, {}, start::by::variables}, more, copy);
  };
  const outcome one = resumed(1, {}), three = resumed(3, {});
  CHECK((one.code == 1 && three.code == 1));
  CHECK_THAT(one.text, Contains("pp = 2 must divide the 1 rank; --pp 1 gives each"));
  CHECK_THAT(three.text, Contains("pp = 2 must divide the 3 ranks; --pp 1 gives each"));
  const outcome whole = resumed(1, {"--pp", "1"}), wholes = resumed(3, {"--pp", "1"});
  CHECK((whole.code == 0 && wholes.code == 0));
  CHECK_THAT(whole.text, Contains(", 1 thread\n"));
  CHECK_THAT(wholes.text, Contains(", 1 thread a rank\n"));
}

TEST_CASE("a run keeps its ranks however often it is resumed, until somebody asks for others") {
  using by = start::by;
  std::vector<start> begins = {{"processes", 2, {"--ranks", "2"}},
                               {"threads", 2, {"--ranks", "2", "--transport", "local"}},
                               {"stages", 2, {"--pp", "2"}},
                               {"torchrun", 2, {}, by::variables}};
  if (has_mpirun()) begins.push_back({"mpirun", 2, {}, by::mpirun});
  for (const start& first : begins) {
    INFO("begun by " << first.name);
    workplace w;
    const auto words = [&](const char* step, std::vector<std::string> more) {
      more.insert(more.end(), {"--stop_after", step});
      return more;
    };
    REQUIRE(launch(first, tiny(w.path, words("1", {})), w.path).code == 0);
    const auto resume = [&](const char* step, const char* printed,
                            const std::vector<std::string>& more = {}) {
      std::vector<std::string> all = words(step, {"--resume", w / "out"});
      all.insert(all.end(), more.begin(), more.end());
      const outcome done = ended(0, run_program(all));
      CHECK_THAT(done.text, Contains(printed));
    };
    resume("2", "ranks  2");
    resume("3", "ranks  2");
    put(w / "cut.json", R"({"parallel": {"pp": 1}, "run": {"ranks": 4}})");
    resume("4", "ranks  4", {"--config", w / "cut.json"});
    resume("5", "ranks  4");
    put(w / "cut.json", R"({"parallel": {"pp": 2}})");
    resume("6", "ranks  2, 1 copy", {"--config", w / "cut.json"});
  }
}

TEST_CASE("half of a launcher's variables, and a batch script of several tasks, are refused") {
  workplace w;
  const auto refused = [&](const std::map<std::string, std::string>& variables, const char* why) {
    const outcome done = w.run({}, [&] {
      for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    });
    INFO(done.text);
    CHECK(done.code == 1);
    CHECK_THAT(done.text, Contains(why));
  };
  refused({{"WORLD_SIZE", "2"}}, "RANK: expected a value beside WORLD_SIZE = 2, got none");
  refused({{"RANK", "0"}}, "WORLD_SIZE: expected a value beside RANK = 0, got none");
  const std::map<std::string, std::string> batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  refused(batch, "Slurm runs a batch script once");
  const outcome printed = w.run({"--ranks", "2"}, [&] {
    for (const auto& [name, value] : batch) ::setenv(name.c_str(), value.c_str(), 1);
  });
  INFO(printed.text);
  CHECK(printed.code == 0);
  CHECK_THAT(printed.text, Contains("ranks  2"));
}

TEST_CASE("a rank that waits for others says who is missing, and ends at the first signal") {
  workplace w;
  const auto rank = [&](const char* number) {
    return [&w, number] {
      ::setenv("RANK", number, 1), ::setenv("WORLD_SIZE", "2", 1);
      ::setenv("TORCHELASTIC_RUN_ID", (w.path + number).c_str(), 1);  // the other never comes
    };
  };
  child first(tiny(w.path), rank("0")), second(tiny(w.path, {"--out", w / "two"}), rank("1"));
  first.wait_for("rank 1 of 2 not there");
  second.wait_for("rank 0 of 2 not there");
  const auto begin = std::chrono::steady_clock::now();
  first.send(SIGTERM), second.send(SIGINT);
  const outcome one = first.finish(), two = second.finish();
  INFO(one.text << two.text);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK(one.code == 128 + SIGTERM);
  CHECK(two.code == 128 + SIGINT);
  CHECK_THAT(one.text, Contains("after 5 s") && Contains("interrupted while it waited"));
}

TEST_CASE("an interrupt of mpirun saves, also where a shell stands between it and its ranks") {
  if (!has_mpirun()) {
    WARN("not tested: no mpirun");
    return;
  }
  const std::vector<std::string> shell = {"sh", "-c", R"("$0" "$@"; true)"};
  for (const auto& [signal, through_shell] :
       {std::pair(SIGINT, false), {SIGTERM, false}, {SIGINT, true}, {SIGTERM, true}}) {
    INFO("signal " << signal << (through_shell ? ", through a shell" : ""));
    const auto before = through_shell ? shell : std::vector<std::string>{};
    workplace w;
    const auto words = tiny(w.path, {"--steps", "400000", "--log_every", "100"});
    child running(words, [&] { become_mpirun(2, words, before); });
    running.wait_for("100/400000  ");
    running.send(signal);
    const outcome stopped = running.finish();
    INFO(stopped.text.substr(0, 2000));
    CHECK(fs::exists(w / "out/checkpoint/CHECKSUMS"));
    CHECK(!fs::exists(w / "out/checkpoint.saving"));
    CHECK_THAT(stopped.text, Contains("OMPI_MCA_odls_base_sigkill_timeout"));
    CHECK(run_program({"--resume", w / "out", "--steps", "400001", "--stop_after", "1"}).code == 0);
  }
}

TEST_CASE("a resumed run of fewer steps cuts the warm-up and the profile that it did not choose") {
  workplace w;
  ended(0, w.run({"--steps", "100", "--warmup", "50", "--stop_after", "2", "--profile", w / "p"}));
  const outcome refused =
      ended(1, run_program({"--resume", w / "out", "--steps", "4", "--warmup", "5"}));
  CHECK_THAT(refused.text, Contains("--warmup: warmup = 5 must not exceed steps = 4"));
  const outcome late =
      ended(1, run_program({"--resume", w / "out", "--steps", "4", "--profile_end", "9"}));
  CHECK_THAT(late.text, Contains("--profile_end: profile_end = 9 must not exceed steps = 4"));
  ended(0, run_program({"--resume", w / "out", "--steps", "4"}));
  const std::string cut = get(w / "out/checkpoint/trainer.json");
  CHECK_THAT(cut, Contains("\"warmup\": 4") && Contains("\"profile_end\": 4"));
}

TEST_CASE("what a killed save left half written is removed at the next start") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  const auto half = [&] {
    fs::create_directories(w / "out/checkpoint.saving");
    put(w / "out/checkpoint.saving/model.safetensors", "half");
  };
  half();
  REQUIRE(run_program({"--resume", w / "out", "--stop_after", "3"}).code == 0);
  CHECK(!fs::exists(w / "out/checkpoint.saving"));
  half();
  REQUIRE(w.run({"--steps", "1", "--warmup", "0"}).code == 0);
  CHECK(!fs::exists(w / "out/checkpoint.saving"));
}

TEST_CASE(
    "a checkpoint that a save killed between its renames left is gone on from, by any ranks") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  const std::string left = w / "out/checkpoint.saving";
  const std::vector<std::vector<std::string>> ways = {
      {"--resume", w / "out"},
      {"--resume", left},
      {"--resume", w / "out", "--ranks", "2"},
      {"--resume", w / "out", "--ranks", "2", "--transport", "local"},
      tiny(w.path, {"--load", w / "out", "--ranks", "1"})};
  for (std::vector<std::string> words : ways) {
    fs::rename(w / "out/checkpoint", left);
    words.insert(words.end(), {"--stop_after", "3"});
    ended(0, run_program(words));
    CHECK(!fs::exists(left));
    const bool resumed = words[0] == "--resume";
    CHECK(fs::exists(w / "out/checkpoint.1") ==
          !resumed);  // an earlier run's, where a new one began
  }
}

TEST_CASE("a folder of a killed save without all of its checksums is no checkpoint") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  const std::string left = w / "out/checkpoint.saving", sums = left + "/CHECKSUMS",
                    previous = w / "out/checkpoint.previous";
  const std::string whole = get(w / "out/checkpoint/CHECKSUMS");
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2),
                                     whole.substr(0, whole.size() - 2) + "x\n"}) {
    INFO("CHECKSUMS is \"" << damaged << '"');
    fs::rename(w / "out/checkpoint", left);
    fs::copy(left, previous);
    put(sums, damaged);
    ended(0, run_program({"--resume", w / "out", "--stop_after", "3"}));
    CHECK(!fs::exists(left));
    fs::remove_all(previous);

    fs::rename(w / "out/checkpoint", left);
    put(sums, damaged);
    CHECK_THAT(run_program({"--resume", w / "out"}).text, Contains("no checkpoint"));
    REQUIRE(w.run({"--stop_after", "2"}).code == 0);
    CHECK(!fs::exists(w / "out/checkpoint.1"));
  }
}
