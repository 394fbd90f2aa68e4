// The program with a memory plan: its last lines, and losses as without.
#include <catch2/catch.hpp>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

TEST_CASE("a run with a plan, in stages or within a budget, tells what it came to") {
  const workplace w;
  const auto run = [&](const char* out, std::vector<std::string> more) {
    outcome done = w.run(std::move(more), {"--layers", "4", "--out", w / out, "--log",
                                           w / (std::string(out) + ".jsonl")});
    INFO(done.text);
    REQUIRE(done.code == 0);
    return done.text;
  };
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"--memory_budget", "12000000"},
      {"--pp", "2", "--pipeline", "1f1b", "--accumulation", "4", "--transport", "local"},
      {"--pp", "2", "--pipeline", "zbv", "--accumulation", "4", "--transport", "local"},
      // The norm of the first stage alone does not clip the last steps, that of both does: the
      // first forwards of the step after are done again.
      {"--pp", "2", "--accumulation", "4", "--transport", "local", "--post_validation", "true",
       "--clip", "2"}};
  const auto losses = [&](const char* out) {
    const std::string log = get(w / (std::string(out) + ".jsonl"));
    std::string all;
    for (std::size_t at = 0; (at = log.find(R"("loss":)", at)) != std::string::npos; ++at)
      all += log.substr(at, log.find(',', at) - at);
    return all;
  };
  for (const std::vector<std::string>& way : ways) {
    std::vector<std::string> with = way;
    with.insert(with.end(), {"--plan", "true"});
    CHECK_THAT(run("usual", way), !Contains("at their addresses"));
    const std::string printed = run("planned", with);
    CHECK_THAT(printed, Matches("[^]* the least; ([0-9]+) of \\1 at their addresses\n[^]*") &&
                            Contains("from the system"));
    CHECK(losses("planned") == losses("usual"));
    CHECK(!losses("planned").empty());
  }
}
