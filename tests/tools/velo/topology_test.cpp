// velo topology, run as a program: its texts, its JSON, what it refuses and in which words.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

// Both streams are in `out`.
outcome topology(const std::string& words) {
  return run_velo("topology " + words, "&1");
}

std::string groups_of(const json& all, const char* family) {
  const std::unique_ptr<char, void (*)(void*)> text(
      json_dumps(json_object_get(all.get(), family), JSON_COMPACT), &free);
  return text != nullptr ? text.get() : "none";
}

}  // namespace

TEST_CASE("topology prints the groups of every family as JSON") {
  const outcome o = topology("--tp 2 --cp 1 --ep 2 --dp 2 --pp 2 --json");
  REQUIRE(o.code == 0);
  const json all = parsed(o.out);
  std::vector<std::string> names;
  const char* name = nullptr;
  json_t* value = nullptr;
  json_object_foreach(all.get(), name, value) names.emplace_back(name);
  CHECK(names == std::vector<std::string>{"tp", "pp", "dp", "cp", "dp-cp", "tp-cp", "tp-dp",
                                          "tp-dp-cp", "mp", "embedding", "position-embedding", "ep",
                                          "etp", "tp-ep", "tp-ep-pp", "edp"});
  CHECK(groups_of(all, "tp") == "[[0,1],[2,3],[4,5],[6,7]]");
  CHECK(groups_of(all, "pp") == "[[0,4],[1,5],[2,6],[3,7]]");
  CHECK(groups_of(all, "dp") == "[[0,2],[1,3],[4,6],[5,7]]");
  CHECK(groups_of(all, "cp") == "[[0],[1],[2],[3],[4],[5],[6],[7]]");
  CHECK(groups_of(all, "mp") == "[[0,1,4,5],[2,3,6,7]]");
  CHECK(groups_of(all, "embedding") == "[[0,4],[1,5],[2,6],[3,7]]");
  CHECK(groups_of(all, "ep") == "[[0,2],[1,3],[4,6],[5,7]]");
  CHECK(groups_of(all, "edp") == "[[0],[1],[2],[3],[4],[5],[6],[7]]");
}

TEST_CASE("topology follows the order and takes options for more families") {
  const json other = parsed(topology("--tp 2 --dp 2 --pp 2 --order tp-pp-dp --json").out);
  CHECK(groups_of(other, "dp") == "[[0,4],[1,5],[2,6],[3,7]]");
  const json etp = parsed(topology("--tp 2 --dp 2 --ep 4 --etp 1 --json").out);
  CHECK(groups_of(etp, "ep") == "[[0,1,2,3]]");
  const json more = parsed(topology("--tp 4 --cp 4 --dp 2 --instances 2 --cp-levels 2,2 --hybrid "
                                    "--tp-x 2 --twins --cp-window 2 --json")
                               .out);
  for (const char* family : {"intra-dp-cp", "optimizer-instance", "cp-level-2", "dp-cp-4",
                             "nd1-dim2", "cp-ring-intra-overlap", "pp-new-stream"}) {
    INFO(family);
    CHECK(json_array_size(json_object_get(more.get(), family)) > 0);
  }
  CHECK(parsed(topology("--gtp 2 --egtp 2 --json").out) != nullptr);
}

TEST_CASE("topology shows one rank's groups") {
  const outcome o = topology("--tp 2 --dp 2 --pp 4 --rank 5");
  CHECK(o.code == 0);
  CHECK(o.out.find("pp                  1      1         1 5 9 13\n") != std::string::npos);
  CHECK(o.out.find("embedding           none\n") != std::string::npos);
  const json all = parsed(topology("--tp 2 --dp 2 --pp 4 --rank 5 --json").out);
  CHECK(groups_of(all, "pp") == "[1,5,9,13]");
  CHECK(groups_of(all, "embedding") == "[]");
}

TEST_CASE("topology prints a table and draws a picture") {
  const velo::testing::temporary_folder folder;
  const std::string file = folder.put("picture.svg", "");
  const outcome o = topology("--tp 2 --cp 2 --dp 4 --twins --svg " + file);
  CHECK(o.code == 0);
  CHECK(o.out.find("16 ranks\n") == 0);
  CHECK(o.out.find("tp                  8       2   0 1 | 2 3 | 4 5 | 6 7 | ..\n") !=
        std::string::npos);
  CHECK(o.out.find("as dp-cp\n") != std::string::npos);
  CHECK(topology("--tp 16").out.find("0 1 2 3 4 5 6 7 .. (16)\n") != std::string::npos);
  CHECK(contents_of(file).find("dp-cp: 2 of 8") != std::string::npos);
  CHECK(topology("--tp 2 --svg /nowhere/picture.svg").code == 1);
}

TEST_CASE("topology ends with 1 and names what it cannot use") {
  const std::pair<const char*, const char*> wrong[] = {
      {"--tp 0", "tp: expected 1 or more, got 0"},
      {"--pp -1", "pp: expected 1 or more, got -1"},
      {"--cp two", R"(--cp: expected a whole number, got "two")"},
      {"--dp 1e3", R"(--dp: expected a whole number, got "1e3")"},
      {"--dp 99999999999999999999", "--dp: expected a whole number"},
      {"--tp", "--tp wants a word behind it"},
      {"--tp 65536 --dp 65536", "dp: expected at most 32767"},
      {"--tp 2 --dp 3 --ep 2", "ep: expected a divisor of tp * cp * dp * gtp / etp, 3, got 2"},
      {"--tp 2 --etp 3", "etp: expected a divisor of tp * cp * dp * gtp, 2, got 3"},
      {"--tp 2 --etp 0", "etp: expected 1 or more, got 0"},
      {"--tp 2 --ep 0", "ep: expected a divisor"},
      {"--order tp-zz",
       R"(order: expected tp, cp, ep, dp and pp with hyphens between them, got "zz")"},
      {"--order tp-dp-tp", "order: expected each axis once, got tp twice"},
      {"--order tp-pp --dp 2", "order: expected dp in it: dp is 2, got tp-pp"},
      {"--dp 4 --ep 2 --pp 2 --order ep-pp-dp", "order: expected pp last"},
      {"--cp 4 --cp-levels 2,x", R"(--cp-levels: expected a whole number, got "x")"},
      {"--cp 4 --cp-levels 2,3", "cp_levels[1]: expected what the others leave, 2"},
      {"--tp 2 --rank 2", "rank: expected 0 to 1, got 2"},
      {"--tp 2 --rank -1", "rank: expected 0 or more, got -1"},
      {"--oder tp-dp", "unknown option --oder; did you mean --order?"},
      {"tp 2", "topology takes options alone, got tp"}};
  for (const auto& [words, reason] : wrong) {
    INFO(words);
    for (const char* json : {"", "--json "}) {
      const outcome o = topology(json + std::string(words));
      INFO(o.out);
      CHECK(o.code == 1);
      CHECK(o.out.rfind(std::string("velo: ") + reason, 0) == 0);
    }
  }
}

TEST_CASE("a million ranks are no reason to wait for one rank's groups") {
  const outcome o = topology("--tp 8 --cp 16 --dp 1024 --pp 8 --ep 64 --rank 1000000 --json");
  CHECK(o.code == 0);
  CHECK(groups_of(parsed(o.out), "pp").find("1000000") != std::string::npos);
}
