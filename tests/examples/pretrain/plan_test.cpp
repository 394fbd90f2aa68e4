// Activations at the addresses of a memory plan: the same bits, every buffer where it was planned,
// no more memory at the peak than without, and as much from the system: the recorded step leaves
// holes that are too small for the arena, up to 4 % in these models of a few MB.
#include <catch2/catch.hpp>

#include "tests/examples/decoder/trained.hpp"
#include "tests/examples/pretrain/program.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::Matches;
using namespace decoder;

TEST_CASE("with a plan losses and weights have the same bits, and no more is in use") {
  const temporary t;
  for (const char* dtype : {"bf16", "f32"})
    for (const char* recompute : {"none", "uniform", "selective", "norm"})
      for (const char* away : {"off", "host", "disk"}) {
        INFO(dtype << ", " << recompute << ", " << away);
        settings s = small_settings(dtype);
        s.memory.swap_dir = t.path;
        s.memory.recompute = recompute;
        s.memory.recompute_layers = recompute == std::string("uniform") ? 2 : 0;
        s.memory.swap_activations = s.memory.swap_optimizer = away;
        const trained usual = train(s, 5);
        s.memory.plan = true;
        const trained planned = train(s, 5);
        CHECK(planned.losses == usual.losses);
        CHECK((planned.state == usual.state));
        CHECK(planned.peak <= usual.peak);
        CHECK(planned.reserved <= 1.05 * usual.reserved);
        CHECK(planned.last.mode == VELO_PLAN_REPLAY);
        CHECK(planned.last.allocations > 0);
        CHECK(planned.last.matched == planned.last.allocations);
        CHECK((planned.last.missing == 0 && planned.last.bytes_live == 0));
      }
}

TEST_CASE("a run with a plan, in stages or within a budget, tells what it came to") {
  const temporary t;
  put(t / "text", some_text(60000));
  const auto run = [&](const char* out, std::vector<std::string> more) {
    more.insert(more.end(),
                {"--layers", "4", "--out", t / out, "--log", t / (std::string(out) + ".jsonl")});
    outcome done = run_program(tiny(t.path, more));
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
    const std::string log = get(t / (std::string(out) + ".jsonl"));
    std::string all;
    for (std::size_t at = 0; (at = log.find("\"loss\":", at)) != std::string::npos; ++at)
      all += log.substr(at, log.find(',', at) - at);
    return all;
  };
  for (const std::vector<std::string>& way : ways) {
    std::vector<std::string> with = way;
    with.insert(with.end(), {"--plan", "true"});
    CHECK_THAT(run("usual", way), !Contains("at their addresses"));
    const std::string told = run("planned", with);
    CHECK_THAT(told, Matches("[^]* the least; ([0-9]+) of \\1 at their addresses\n[^]*") &&
                         Contains("from the system"));
    CHECK(losses("planned") == losses("usual"));
    CHECK(!losses("planned").empty());
  }
}
