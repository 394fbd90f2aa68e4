// The program stays below the roofline that it measures.
#include <jansson.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <sstream>

#include "tests/examples/pretrain/workplace.hpp"

namespace {

// The peak in GFLOP/s, from "this machine: 233 GFLOP/s at its peak, ..".
double printed_peak(const std::string& text) {
  const std::size_t at = text.find("this machine: ");
  REQUIRE(at != std::string::npos);
  double number = 0;
  char prefix = 0;
  REQUIRE(std::sscanf(&text[at], "this machine: %lf %cFLOP/s", &number, &prefix) == 2);
  REQUIRE((prefix == 'G' || prefix == 'T'));
  return prefix == 'T' ? 1000 * number : number;
}

}  // namespace

TEST_CASE("a run stays below the peak and the roofline, and says how far") {
  workplace w;
  for (const char* dtype : {"f32", "bf16"}) {
    std::vector<std::string> words =
        tiny(w.path, {"--dtype", dtype, "--log", w / "log", "--measure", "true"});
    for (const char* more : {"--hidden", "128", "--inner", "384", "--sequence", "64"})
      words.emplace_back(more);
    const outcome done = ended(0, run_program(words));
    CHECK(done.text.find("roofline") != std::string::npos);
    std::istringstream lines(get(w / "log"));
    std::string line;
    for (int step = 0; step < 6 && std::getline(lines, line); ++step) {
      json_t* root = json_loads(line.c_str(), 0, nullptr);
      const double mfu = json_number_value(json_object_get(root, "mfu"));
      const double roofline = json_number_value(json_object_get(root, "roofline"));
      json_decref(root);
      CHECK(mfu > 0);
      CHECK(roofline >= mfu);
      CHECK(roofline <= 1.05);
    }
  }
}

TEST_CASE("the peak is the machine's: it does not move with the kernels velo runs") {
  workplace w;
  const auto words = tiny(w.path, {"--measure", "true"});
  const double usual = printed_peak(run_program(words).text);
  const outcome slow = run_program(words, [] { ::setenv("VELO_LEVEL", "0", 1); });
  // Level 0 multiplies by plain loops, many times slower.
  CHECK(printed_peak(slow.text) > 0.5 * usual);
}
