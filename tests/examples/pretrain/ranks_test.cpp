// Several ranks train as one does, end together, and say why.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <random>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

// The processes that a launcher started, in the order of their ranks.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string own = std::to_string(parent);
  std::ifstream list("/proc/" + own + "/task/" + own + "/children");
  std::vector<pid_t> all;
  for (pid_t each; list >> each;) all.push_back(each);
  return all;
}

// Stops a process, which may finish a system call before it stops.
void stop(pid_t process) {
  ::kill(process, SIGSTOP);
  for (char state = 0; state != 'T' && state != 'Z';) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    REQUIRE(std::getline(file, line));
    state = line.at(line.rfind(')') + 2);
  }
}

// Whether a rank has begun to meet the others. It opens descriptors of processes before its first
// socket, and keeps some in the group, when its sockets are closed.
bool has_begun_to_meet(pid_t rank) {
  namespace fs = std::filesystem;
  const fs::directory_iterator files("/proc/" + std::to_string(rank) + "/fd");
  return std::any_of(fs::begin(files), fs::end(files), [](const fs::directory_entry& each) {
    std::error_code closed;
    return fs::read_symlink(each, closed).string().find("pidfd") != std::string::npos;
  });
}

// whole: also four ranks, and sharded optimizers.
void train_alike(const char* steps, bool whole) {
  workplace w;
  const auto run = [&](const char* name, std::vector<std::string> more) {
    ended(0, w.run(std::move(more), {"--dtype", "f32", "--steps", steps, "--log", w / name, "--out",
                                     w / name + ".out"}));
    return w.losses(name);
  };
  const std::string one = run("one", {});
  for (const std::string transport : {"local", "shm"})
    for (const char* ranks : {"2", "4"})
      for (const char* zero : {"false", "true"}) {
        if (!whole && (*ranks != '2' || *zero != 'f')) continue;
        INFO(ranks << " ranks, " << transport << ", zero " << zero);
        const std::string name = transport + ranks + zero;
        compare_logs(
            one, run(name.c_str(), {"--ranks", ranks, "--transport", transport, "--zero", zero}));
      }
}

}  // namespace

TEST_CASE("ranks as threads and as processes have the losses of one rank") {
  const bool whole = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  train_alike(whole ? "50" : "6", whole);
}

TEST_CASE("ranks that a launcher started train together, and rank 0 alone tells") {
  for (const bool fits : {true, false}) {
    workplace w;
    const auto words =
        tiny(w.path, {"--threads", "1", "--batch", fits ? "4" : "3", "--measure", "true"});
    const auto rank = [&](const char* number) {
      return [&w, number] {
        ::setenv("RANK", number, 1), ::setenv("WORLD_SIZE", "2", 1);
        ::setenv("TORCHELASTIC_RUN_ID", w.path.c_str(), 1);
      };
    };
    child first(words, rank("0")), second(words, rank("1"));
    const outcome one = first.finish(), two = second.finish();
    INFO(one.text << two.text);
    CHECK((one.code == !fits && two.code == !fits));
    if (fits) {
      CHECK_THAT(one.text, Contains("ranks  2, each with 2 of") && Contains("model writes") &&
                               Contains("this machine: ") && Contains(" % of the roofline"));
      CHECK(two.text.empty());
    } else {
      CHECK_THAT(one.text, Contains("batch = 3 must be a multiple of the 2 ranks"));
    }
  }
}

TEST_CASE("ranks that a launcher started with other settings are refused by the setting's name") {
  workplace w;
  const auto rank = [&](const char* number) {
    return [&w, number] {
      ::setenv("RANK", number, 1), ::setenv("WORLD_SIZE", "2", 1);
      ::setenv("TORCHELASTIC_RUN_ID", w.path.c_str(), 1);
    };
  };
  const auto check = [&](const std::vector<std::string>& of_second, const char* why) {
    std::vector<std::string> others = {"--threads", "1", "--out", w / "second"};
    others.insert(others.end(), of_second.begin(), of_second.end());
    child first(tiny(w.path, {"--threads", "1"}), rank("0")),
        second(tiny(w.path, others), rank("1"));
    const outcome one = first.finish(), two = second.finish();
    INFO(one.text << two.text);
    CHECK(one.code == (*why != 0));
    CHECK(two.code == (*why != 0));
    CHECK_THAT(one.text + two.text, Contains(why));
    CHECK(count_of("pretrain: ", one.text + two.text) == (*why != 0));
  };
  check({"--learning_rate", "0.1"},
        "learning_rate = 0.002 of rank 0, but learning_rate = 0.1 of rank 1");
  check({"--seed", "7"}, "seed = 1 of rank 0, but seed = 7 of rank 1");
  check({"--batch", "8"}, "batch = 4 of rank 0, but batch = 8 of rank 1");
  check({"--top_k", "3", "--log_every", "2"}, "");
}

TEST_CASE("what several ranks began one goes on with, and the other way") {
  workplace w;
  REQUIRE(w.run({"--dtype", "f32", "--log", w / "whole", "--out", w / "other"}).code == 0);
  REQUIRE(w.run({"--dtype", "f32", "--log", w / "log", "--ranks", "2", "--stop_after", "2"}).code ==
          0);
  REQUIRE(run_program({"--resume", w / "out", "--ranks", "1", "--stop_after", "4"}).code == 0);
  ended(0, run_program({"--resume", w / "out", "--ranks", "2", "--transport", "local"}));
  compare_logs(w.losses("whole"), w.losses("log"));
}

TEST_CASE("a sharded optimizer has the bits of another, in less memory") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    const auto run = [&](const char* name, const std::vector<std::string>& more) {
      const outcome done =
          ended(0, w.run(more, {"--dtype", dtype, "--ranks", "2", "--transport", "local", "--log",
                                w / name, "--out", w / name + ".out"}));
      const std::size_t at = done.text.find("optimizer ");
      REQUIRE(at != std::string::npos);
      return std::atof(&done.text[at + std::strlen("optimizer ")]);
    };
    const double whole = run("whole", {});
    const double sharded = run("sharded", {"--zero", "true"});
    CHECK(sharded < 0.6 * whole);
    CHECK(w.losses("sharded") == w.losses("whole"));
    check_same_state(w / "sharded.out/checkpoint/", w / "whole.out/checkpoint/");
  }
}

TEST_CASE("slices of any size that ranks gather save the same files and are read again") {
  workplace w;
  const auto run = [&](const char* slice, const char* out) {
    return w.run({"--ranks", "2", "--transport", "local", "--zero", "true", "--stop_after", "2",
                  "--save_slice", slice, "--out", w / out});
  };
  ended(0, run("4194304", "large"));
  ended(0, run("4096", "small"));
  check_same_state(w / "large/checkpoint/", w / "small/checkpoint/");
  ended(0, run_program({"--resume", w / "small", "--save_slice", "5000", "--stop_after", "3"}));
  ended(1, run("4000", "none"));
}

TEST_CASE("a sharded run goes on from its own checkpoint, in slices that wait elsewhere") {
  workplace w;
  const std::vector<std::string> two = {"--ranks", "2", "--transport", "local"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), two.begin(), two.end());
    return more;
  };
  REQUIRE(w.run(with({"--out", w / "whole"})).code == 0);
  REQUIRE(w.run(with({"--zero", "true", "--stop_after", "3"})).code == 0);
  ended(0, run_program({"--resume", w / "out", "--swap_optimizer", "host"}));
  check_same_state(w / "out/checkpoint/", w / "whole/checkpoint/");
}

TEST_CASE("what ranks cannot do is refused once") {
  workplace w;
  for (const char* transport : {"local", "shm"}) {
    const auto refused = [&](const std::vector<std::string>& more, const char* why) {
      const outcome done = ended(1, w.run(more, {"--ranks", "2", "--transport", transport}));
      CHECK_THAT(done.text, Contains(why));
      CHECK(done.text.find("pretrain: ") == done.text.rfind("pretrain: "));
    };
    refused({"--batch", "5"}, "--batch: batch = 5 must be a multiple of the 2 ranks");
    refused({"--trace", w / "trace"}, "is of one rank, not of 2");
    refused({"--paths", w / "nothing"}, "nothing");
  }
  const outcome diverged = w.run({"--learning_rate", "1e3", "--clip", "0", "--ranks", "2"});
  CHECK(diverged.code == 1);
  CHECK_THAT(diverged.text, Contains("is not finite"));
  CHECK(diverged.text.find("pretrain: ") == diverged.text.rfind("pretrain: "));
  const outcome wrong = w.run({"--transport", "pigeon"});
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.text, Contains("must be auto, local or shm"));
}

namespace {

using steady = std::chrono::steady_clock;

// A job of which one rank is stopped or killed while it trains. Others can run meanwhile.
class hurt_job {
 public:
  hurt_job(std::vector<std::string> layout, std::size_t ranks, std::size_t victim)
      : victim_(victim) {
    layout.insert(layout.end(), {"--steps", "400000", "--accumulation", "2", "--transport", "shm",
                                 "--timeout", "2"});
    job_ = std::make_unique<child>(tiny(place_.path, std::move(layout)));
    job_->wait_for("3/400000  ");
    ranks_ = children_of(job_->id());
    REQUIRE(ranks_.size() == ranks);
  }

  void hurt(bool kills) {
    kills_ = kills;
    kills ? (void)::kill(ranks_[victim_], SIGKILL) : stop(ranks_[victim_]);
    begin_ = steady::now();
    end_ = std::async(std::launch::async, [this] {
      const outcome all = job_->finish();
      return std::pair(all, steady::now());
    });
  }

  void check_end() {
    const auto [ended, now] = end_.get();
    INFO(ended.text);
    // The deadline, and the time that a launcher leaves a rank which does not end.
    CHECK(now - begin_ < std::chrono::seconds(kills_ ? 8 : 16));
    CHECK(ended.code != 0);
    const std::string victim = "rank " + std::to_string(victim_);
    CHECK_THAT(ended.text, Contains(kills_        ? victim + " was ended by signal 9"
                                    : victim_ > 0 ? "got " + victim + " "
                                                  : victim + " "));
    CHECK(count_of("got rank ", ended.text) == count_of("got " + victim + " ", ended.text));
    for (const pid_t rank : ranks_) CHECK(::kill(rank, 0) != 0);
  }

 private:
  const std::size_t victim_;
  const workplace place_;
  std::unique_ptr<child> job_;
  std::vector<pid_t> ranks_;
  bool kills_ = false;
  steady::time_point begin_;
  std::future<std::pair<outcome, steady::time_point>> end_;
};

}  // namespace

// VELO_PRETRAIN_LONG: at many moments, so that any collective of any group may be the one. Three
// jobs at a time, which mostly wait.
TEST_CASE("a rank that is stopped or killed at any moment ends the others, who name it") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::size_t rows = is_long ? 42 : 3;
  std::mt19937 random(11);
  for (std::size_t first = 0; first < rows; first += 3) {
    std::vector<std::unique_ptr<hurt_job>> jobs;
    for (std::size_t row = first; row < first + 3; ++row) {
      if (row < 2)
        jobs.push_back(
            std::make_unique<hurt_job>(std::vector<std::string>{"--ranks", "2"}, 2, 1 - row));
      else
        jobs.push_back(std::make_unique<hurt_job>(
            std::vector<std::string>{"--tp", "2", "--pp", "2", "--cp", "2"}, 8,
            (5 + 3 * (row - 2)) % 8));
      ::usleep(static_cast<useconds_t>(random() % 100000));
      jobs.back()->hurt(is_long && random() % 2 == 0);
    }
    for (const auto& job : jobs) job->check_end();
  }
}

TEST_CASE("a rank that is killed ends the others, and alone is reported") {
  struct row {
    std::vector<std::string> layout;
    std::size_t ranks, victim;
  };
  for (const row& each : {row{{"--ranks", "2"}, 2, 0}, row{{"--ranks", "2"}, 2, 1},
                          row{{"--tp", "4", "--tp_x", "2"}, 4, 3},
                          row{{"--tp", "2", "--pp", "2", "--cp", "2"}, 8, 5}}) {
    workplace w;
    std::vector<std::string> words = each.layout;
    words.insert(words.end(), {"--steps", "400000", "--accumulation", "2", "--transport", "shm"});
    child running(tiny(w.path, words));
    running.wait_for("3/400000  ");
    const std::vector<pid_t> ranks = children_of(running.id());
    REQUIRE(ranks.size() == each.ranks);
    const auto begin = std::chrono::steady_clock::now();
    ::kill(ranks[each.victim], SIGKILL);
    const outcome ended = running.finish();
    INFO(ended.text);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    CHECK(ended.code == 128 + SIGKILL);
    const std::string victim = "rank " + std::to_string(each.victim);
    CHECK_THAT(ended.text, Contains(victim + " was ended by signal 9"));
    CHECK(count_of("pretrain: ", ended.text) == 1);
    for (const pid_t rank : ranks) CHECK(::kill(rank, 0) != 0);
  }
}

TEST_CASE("a rank that ends while the ranks meet ends the others at once, and alone is reported") {
  struct row {
    std::size_t victim;
    int signal;
  };
  for (const row each : {row{2, SIGKILL}, row{0, SIGINT}}) {
    INFO("signal " << each.signal << " for rank " << each.victim);
    workplace w;
    std::unique_ptr<child> run;
    std::vector<pid_t> ranks;
    for (bool too_late = true; too_late;) {
      if (run) {
        for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
        run->finish();
      }
      run = std::make_unique<child>(tiny(w.path, {"--batch", "3", "--ranks", "3"}));
      for (ranks.clear(); ranks.size() < 3;) ranks = children_of(run->id());
      stop(ranks[2]);
      too_late = has_begun_to_meet(ranks[2]);
    }
    child& running = *run;
    running.wait_for("rank 2 of 3 not there");
    const auto begin = std::chrono::steady_clock::now();
    ::kill(ranks[each.victim], each.signal);
    ::kill(ranks[2], SIGCONT);
    const outcome ended = running.finish();
    INFO(ended.text);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    CHECK(ended.code == 128 + each.signal);
    const bool killed = each.signal == SIGKILL;
    CHECK(count_of("pretrain: rank 2 was ended by signal 9", ended.text) == (killed ? 1 : 0));
    CHECK(count_of(" was ended by", ended.text) == (killed ? 1 : 0));
    CHECK(count_of("interrupted while it waited", ended.text) == (killed ? 0 : 1));
    for (const pid_t rank : ranks) CHECK(::kill(rank, 0) != 0);
  }
}

TEST_CASE("an interrupt while the ranks are started ends them all") {
  for (int i = 0; i < 30; ++i) {
    workplace w;
    child running(tiny(w.path, {"--ranks", "2", "--steps", "400000"}));
    const std::size_t started = 1 + static_cast<std::size_t>(i % 2);
    while (children_of(running.id()).size() < started) {
    }
    ::usleep(static_cast<useconds_t>(i * 40));
    const auto begin = std::chrono::steady_clock::now();
    running.send(SIGINT);
    const outcome ended = running.finish();
    INFO("attempt " << i << ": " << ended.text);
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    REQUIRE(ended.code == 130);
    CHECK(ended.text.find(" was ended by") == std::string::npos);
  }
}

TEST_CASE("an interrupt of ranks saves once, exits with 130, and they can go on") {
  for (const char* transport : {"local", "shm"}) {
    workplace w;
    child running(tiny(w.path, {"--steps", "400000", "--ranks", "2", "--transport", transport}));
    running.wait_for("3/400000  ");
    running.send(SIGINT);
    const outcome stopped = ended(130, running.finish());
    CHECK_THAT(stopped.text, Contains("interrupted; go on with --resume " + (w / "out")));
    CHECK(stopped.text.find("saved ") == stopped.text.rfind("saved "));
    if (*transport == 'l') continue;
    const char* words = "after step ";
    const long step = std::atol(&stopped.text[stopped.text.find(words) + std::strlen(words)]);
    const outcome resumed =
        ended(0, run_program({"--resume", w / "out", "--stop_after", std::to_string(step + 1)}));
    CHECK_THAT(resumed.text, Contains("ranks  2"));
  }
}
