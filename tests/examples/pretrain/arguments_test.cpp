// The command line: what is taken, and a sentence for each thing that is not.
#include "examples/pretrain/arguments.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "examples/decoder/failure.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace pretrain;

namespace {

using words = std::vector<std::string>;

std::string answer(const words& given) {
  arguments into;
  return refusal_of([&] { parse_arguments(given, into); });
}

}  // namespace

TEST_CASE("every mistake on the command line has its sentence") {
  struct row {
    words given;
    const char* sentence;
  };
  const row rows[] = {
      {{"steps"}, "steps: not a flag; --help lists them"},
      {{"-steps"}, "-steps: not a flag"},
      {{"--stepps", "5"}, "--stepps: no such flag; did you mean --steps?"},
      {{"--stepps"}, "--stepps: no such flag; did you mean --steps?"},
      {{"--setps=5"}, "--setps: no such flag; did you mean --steps?"},
      {{"--learning-rat", "5"}, "did you mean --learning_rate?"},
      {{"--warm-up", "5"}, "did you mean --warmup?"},
      {{"--warm", "5"}, "did you mean --warmup?"},
      {{"--prompt", "x"}, "did you mean --sample_prompt?"},
      {{"--hlep"}, "did you mean --help?"},
      {{"--genrate", "x"}, "did you mean --generate?"},
      {{"--data", "x"},
       "--data: no such flag; the settings of data are --paths --sequence --batch --accumulation "
       "--documents --validation_bytes"},
      {{"--xyzzy", "x"}, "--xyzzy: no such flag; --help lists them"},
      {{"--", "x"}, "--: no such flag"},
      {{"--=5"}, "--: no such flag"},
      {{"--steps"}, "--steps: its value is missing"},
      {{"--resume"}, "--resume: its value is missing"},
      {{"--steps", "five"}, R"(--steps: steps must be an integer, not "five")"},
      {{"--steps", "0"}, "--steps: steps must be from 1 to 1000000000, not 0"},
      {{"--log_every", "0"}, "--log_every: log_every must be from 1"},
      {{"--kv-heads", "0"}, "--kv_heads: kv_heads must be from 1"},
      {{"--hidden", "100", "--heads", "3"}, "must be a multiple of heads"},
      {{"--steps", "5", "--warmup", "6"}, "warmup = 6 must not exceed steps = 5"},
      {{"--out", ""}, "must name a directory"},
      {{"--generate", "x"}, "--generate needs --load DIR"},
      {{"--load", "/proc/nonexistent"}, "/proc/nonexistent: no such checkpoint directory"},
      {{"--resume", "/proc/nonexistent"}, "/proc/nonexistent: no such checkpoint directory"},
      {{"--resume", "/"}, R"(/: no checkpoint: neither it nor a folder "checkpoint" in it)"},
      {{"--generate", "x", "--load", "y", "--resume", "z"}, "exclude each other"},
      {{"--load", "y", "--resume", "z"}, "--resume and --load exclude each other"},
      {{"--resume", "y", "--resume", "z"}, "--resume: given twice"},
      {{"--config", "/proc/nonexistent"}, "/proc/nonexistent: cannot open"},
  };
  for (const row& each : rows) CHECK_THAT(answer(each.given), Contains(each.sentence));
}

TEST_CASE("dashes and underscores, spaces and equals signs are the same in a flag") {
  for (const words& given :
       {words{"--kv_heads", "1", "--batch", "3"}, words{"--kv-heads=1", "--batch=3"},
        words{"--kv-heads", "1", "--batch=3"}}) {
    arguments into;
    parse_arguments(given, into);
    CHECK(into.config.values.model.kv_heads == 1);
    CHECK(into.config.values.data.batch == 3);
  }
}

TEST_CASE("a setting has the same name as a flag, in a file and in the help") {
  temporary t;
  arguments into;
  const std::string all = configuration().json();
  parse_arguments({"--config", put(t / "all.json", all)}, into);
  CHECK(into.config.json() == all);
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find('"') + 1, end = line.find("\":");
    if (line.compare(0, 4, "    ") != 0 || end == std::string::npos) continue;
    const std::string name = line.substr(begin, end - begin);
    CHECK_NOTHROW(configuration().require_flag(name));
    CHECK_THAT(help_text(), Contains("  --" + name));
  }
}

TEST_CASE("help fits a terminal and is given for help, -h and --help") {
  for (const char* word : {"help", "-h", "--help"}) {
    arguments into;
    parse_arguments({word}, into);
    CHECK(into.help);
  }
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  CHECK_THAT(help_text(), Contains("--resume DIR") && Contains("--load DIR") && Contains("130"));
}
