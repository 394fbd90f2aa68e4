// --profile: traces of each rank and of all, of the steps and ranks asked for, with slices that
// nest.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

// What a trace has, by name: how often, and the ranks.
struct trace {
  explicit trace(const std::string& path) {
    json_t* all = json_loads(get(path).c_str(), 0, nullptr);
    REQUIRE(all != nullptr);
    const json_t* events = json_object_get(all, "traceEvents");
    for (std::size_t i = 0; i < json_array_size(events); ++i) {
      const json_t* each = json_array_get(events, i);
      ranks.insert(json_integer_value(json_object_get(each, "pid")));
      if (json_string_value(json_object_get(each, "ph")) != std::string("X")) continue;
      ++count[json_string_value(json_object_get(each, "name"))];
      add_slice(each);
      const json_t* arguments = json_object_get(each, "args");
      if (const json_t* group = json_object_get(arguments, "group"))
        groups.insert(json_string_value(group));
      has_work = has_work || json_object_get(arguments, "flops") != nullptr;
    }
    json_decref(all);
  }

  // The first pair of slices of one track that overlap without one holding the other; or "none".
  // Sets `depth`, the most slices of a track that are open at one time.
  std::string crossing() {
    for (auto& [track, slices] : tracks) {
      std::sort(slices.begin(), slices.end(), [](const slice& a, const slice& b) {
        return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
      });
      std::vector<const slice*> open;
      for (const slice& each : slices) {
        while (!open.empty() && open.back()->end <= each.begin) open.pop_back();
        if (!open.empty() && each.end > open.back()->end)
          return open.back()->name + ", " + each.name;
        open.push_back(&each);
        depth = std::max(depth, open.size());
      }
    }
    return "none";
  }

  std::map<std::string, int> count;
  std::set<std::int64_t> ranks;
  std::set<std::string> groups;
  bool has_work = false;
  std::size_t depth = 0;

 private:
  struct slice {
    double begin, end;
    std::string name;
  };
  void add_slice(const json_t* event) {
    const auto number = [&](const char* key) {
      return json_number_value(json_object_get(event, key));
    };
    // Times have 16 digits and durations 9: their sum is exact to a nanosecond.
    const double begin = std::round(1e3 * number("ts"));
    tracks[{number("pid"), number("tid")}].push_back(
        {begin, begin + std::round(1e3 * number("dur")),
         json_string_value(json_object_get(event, "name"))});
  }
  std::map<std::pair<double, double>, std::vector<slice>> tracks;
};

}  // namespace

TEST_CASE("a profile has the operators, collectives and passes of its steps and ranks") {
  workplace w;
  const outcome done =
      ended(0, w.run({"--tp", "2", "--pp", "2", "--accumulation", "4", "--transport", "local",
                      "--profile", w / "trace", "--profile_start", "2", "--profile_end", "3",
                      "--profile_level", "1", "--profile_ranks", "0,3"}));
  CHECK_THAT(done.text, Contains("trace/all.json, a trace of steps 2 to 3"));
  CHECK_THAT(get(w / "trace/all.svg"), Contains(">rank 0<") && Contains(">rank 3<") &&
                                           Contains(">step 3<") && Contains("collective of tp"));
  const trace all(w / "trace/all.json"), one(w / "trace/rank0.json");
  CHECK(all.ranks == std::set<std::int64_t>{0, 3});
  CHECK(one.ranks == std::set<std::int64_t>{0});
  CHECK(!std::filesystem::exists(w / "trace/rank1.json"));
  CHECK(one.count.count("step 1") == 0);
  CHECK(one.count.at("step 2") == 1);
  CHECK(one.count.at("step 3") == 1);
  CHECK(one.count.count("step 4") == 0);
  CHECK(one.count.at("0F0") == 2);
  CHECK(one.count.at("0B3") == 2);
  CHECK(one.count.at("optimizer") == 2);
  CHECK(one.count.at("fusion_attention") == 2 * 4);
  CHECK(one.count.at("all_reduce") == 2 * 4 * 4);  // two sums of a layer in each pass
  CHECK(one.groups.count("tp") == 1);
  CHECK(one.has_work);
  CHECK(all.count.at("1F0") == 2);
}

TEST_CASE("the slices of a track nest") {
  workplace w;
  const auto crossing = [&](std::vector<std::string> layout) {
    for (const char* each :
         {"--transport", "local", "--profile_start", "2", "--profile_level", "2"})
      layout.emplace_back(each);
    layout.insert(layout.end(), {"--profile", w / "trace"});
    ended(0, w.run(layout));
    trace all(w / "trace/all.json");
    std::string found = all.crossing();
    CHECK(all.depth >= 2);  // a step holds its operators
    return found;
  };
  CHECK(crossing({"--tp", "2", "--sequence_parallel", "true"}) == "none");
  CHECK(crossing({"--tp", "4", "--tp_x", "2"}) == "none");
  CHECK(crossing({"--cp", "2"}) == "none");
  CHECK(crossing({"--cp", "2", "--cp_algorithm", "ulysses", "--pp", "2"}) == "none");
  CHECK(crossing({"--ranks", "2", "--zero", "true"}) == "none");
}

TEST_CASE("a profile names the splits of windows") {
  workplace w;
  ended(0, w.run({"--pp", "2", "--pipeline", "seq1f1b", "--sequence_splits", "3", "--accumulation",
                  "2", "--transport", "local", "--profile", w / "trace", "--profile_start", "2",
                  "--profile_end", "2"}));
  const trace all(w / "trace/all.json");
  for (const char* name : {"0F0.0", "0F0.2", "0F1.1", "1F1.2", "0B0.2", "1B1.0"}) {
    INFO(name);
    CHECK(all.count.at(name) == 1);
  }
  CHECK(all.count.count("0F0") == 0);
}

TEST_CASE("a profile of processes, and of a run that ends or is resumed inside") {
  workplace w;
  ended(0, w.run({"--ranks", "2", "--transport", "shm", "--profile", w / "trace", "--profile_start",
                  "2", "--profile_end", "5", "--stop_after", "3"}));
  CHECK(trace(w / "trace/all.json").ranks == std::set<std::int64_t>{0, 1});
  CHECK(trace(w / "trace/rank1.json").count.at("step 3") == 1);
  ended(0, run_program({"--resume", w / "out"}));
  const trace later(w / "trace/rank1.json");
  CHECK(later.count.count("step 3") == 0);
  CHECK(later.count.at("step 4") == 1);
  CHECK(later.count.at("step 5") == 1);
  CHECK(later.count.at("forward") == 2);
  CHECK(later.count.at("backward") == 2);
  const outcome past = ended(0, run_program({"--resume", w / "out"}));
  CHECK_THAT(past.text, Contains("no profile: its last step is 5, and"));
}

TEST_CASE("profiles that cannot be are refused before training") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const char* why) {
    const outcome done = ended(1, w.run(more));
    CHECK_THAT(done.text, Contains(why) && !Contains("loss"));
  };
  refused({"--profile_level", "1"}, "is of a profile, which --profile DIR asks for");
  refused({"--profile", w / "t", "--profile_start", "4", "--profile_end", "3"},
          "profile_start = 4 must not exceed profile_end = 3");
  refused({"--profile", w / "t", "--profile_end", "7"},
          "profile_end = 7 must not exceed steps = 6");
  refused({"--profile", w / "t", "--profile_start", "7"},
          "profile_start = 7 must not exceed steps = 6");
  refused({"--profile", w / "t", "--profile_ranks", "0,1"}, "must name ranks below 1");
  refused({"--profile", w / "t", "--tp", "2", "--profile_ranks", "0,2"}, "must name ranks below 2");
  refused({"--profile", w / "t", "--profile_ranks", "0,x"}, "must be all, or a list like 0,2");
  refused({"--profile", w / "t", "--profile_ranks", "1"}, "must name ranks below 1");
  refused({"--profile", w / "t", "--profile_ranks", "2", "--tp", "2", "--transport", "local"},
          "must name ranks below 2");
  refused({"--profile", w / "text"}, "cannot create the directory: Not a directory");
  ended(0, w.run({"--profile", w / "defaults", "--ranks", "1"}));
  CHECK(trace(w / "defaults/all.json").count.at("step 6") == 1);
}
