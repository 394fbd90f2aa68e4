// The log's keys and the curve's text.
#include <fcntl.h>
#include <jansson.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <limits>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"
#include "examples/decoder/report/loss_curve.hpp"
#include "examples/decoder/report/progress.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

namespace {

constexpr step_work one = {1, 1, 1, 1};

std::vector<std::string> keys(const std::string& line) {
  json_t* root = json_loads(line.c_str(), 0, nullptr);
  REQUIRE(root);
  std::vector<std::string> found;
  const char* key;
  json_t* value;
  json_object_foreach(root, key, value) found.emplace_back(key);
  json_decref(root);
  return found;
}

}  // namespace

TEST_CASE("the log has a line a step with fixed keys, one a validation, and a last line") {
  temporary t;
  {
    console screen;
    progress p(screen, {2, 0, 2, 10}, {4096, 1e9, 1e11, 0.05}, t / "log");
    p.step({1, 5.5, 1e-3, 0.5, 0.1});
    p.validation(1, 2.5);
    p.step({2, std::numeric_limits<double>::quiet_NaN(), 1e-3, 0.5, 0.1});
    p.finish(2.0, 2.9);
  }
  std::istringstream lines(get(t / "log"));
  std::string first, validation, second, last;
  std::getline(lines, first), std::getline(lines, validation);
  std::getline(lines, second), std::getline(lines, last);
  const std::vector<std::string> expected = {"step",      "loss",         "lr",
                                             "grad_norm", "tokens_per_s", "flops_per_s",
                                             "mfu",       "roofline",     "elapsed_s"};
  CHECK(keys(first) == expected);
  CHECK(keys(second) == expected);
  CHECK_THAT(first, Contains(R"("mfu": 0.1000)") && Contains(R"("roofline": 0.5000)"));
  CHECK_THAT(second, Contains(R"("loss": null)"));
  CHECK(validation == R"({"step": 1, "val_bits_per_byte": 2.5})");
  CHECK(keys(last) == std::vector<std::string>{"val_bits_per_byte", "zlib_bits_per_byte"});
}

TEST_CASE("a resumed run keeps the log of its first steps, a new one begins anew") {
  temporary t;
  console screen;
  for (const std::int64_t done : {0, 1, 2, 1}) {
    progress p(screen, {3, done, 3, 1}, one, t / "log");
    p.step({done + 1, 1, 1, 1, 0.5});
    p.validation(done + 1, 7);
  }
  const std::string two = get(t / "log");
  CHECK(std::count(two.begin(), two.end(), '\n') == 4);
  CHECK_THAT(two, Contains(R"("step": 2)") && Contains(R"("elapsed_s": 1.000)"));
  const progress afresh(screen, {1, 0, 1, 1}, one, t / "log");
  CHECK(get(t / "log").empty());
}

TEST_CASE("a log that cannot be opened is refused; one that cannot be written ends alone") {
  console screen;
  const temporary t;
  CHECK_THROWS_WITH(progress(screen, {1, 0, 1, 1}, one, t / "missing/log"),
                    Contains(t / "missing/log"));
  progress full(screen, {1, 0, 1, 1}, one, t / "log");
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  CHECK_NOTHROW(full.step({1, 1, 1, 1, 1}));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, before);
  CHECK(get(t / "log").empty());
}

TEST_CASE("rows stand under their heading and fit a terminal, whatever the numbers") {
  CHECK(heading(200) ==
        "   step    loss  bits/byte       lr    grad   tok/s  of roofline     left");
  CHECK(row(200, {40, 2.4112, 1.96e-3, 0.847, 0.25}, {4096, 1e9, 1e11, 0.2}, 41) ==
        " 40/200  2.4112     3.4786  2.0e-03  0.8470  16.4 k         80 %     0:41");
  CHECK_THAT(row(9, {9, -std::nan(""), 1, 1, 1}, one, 0), Contains("   nan        nan  "));
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::int64_t steps : {1LL, 200LL, 999'999LL, 1'000'000LL, 1'000'000'000LL}) {
    CHECK(heading(steps).size() <= 79);
    for (const double value : {0.0, 1e-30, 5.5, 12.3456789, 99999.5, 1e9, 1e30, inf, std::nan("")})
      for (const double seconds : {1e-6, 1.0, 1e6})
        for (const double left : {0.0, 35999.6, 36000.0, 1e6, 1e9})
          CHECK(row(steps, {steps, value, 1e-30, value, seconds}, {4096, 1e9, 1e11, 1e-5}, left)
                    .size() == heading(steps).size());
  }
}

TEST_CASE("rows of a model with experts have the busiest one") {
  const step_work work = {4096, 1e9, 1e11, 0.2, true};
  CHECK(heading(200, true) ==
        "   step    loss  bits/byte       lr    grad   tok/s   roof  busy     left");
  step_report of = {40, 2.4112, 1.96e-3, 0.847, 0.25, 1.523, "[[3, 1]]"};
  CHECK(row(200, of, work, 41) ==
        " 40/200  2.4112     3.4786  2.0e-03  0.8470  16.4 k   80 %  1.52     0:41");
  of.busiest = 256;
  CHECK_THAT(row(200, of, work, 41), Contains("80 %   256 "));
  of.expert_tokens.clear();
  CHECK_THAT(row(200, of, {4096, 1e9, 0, 0, true}, 41), Contains("  -     - "));
  temporary t;
  console screen;
  progress p(screen, {2, 0, 2, 10}, work, t / "log");
  p.step({1, 5.5, 1e-3, 0.5, 0.5, 1.5, "[[3, 1], [2, 2]]"});
  CHECK_THAT(get(t / "log"), Contains(R"("elapsed_s": 0.500, "busiest_expert": 1.5000, )"
                                      R"("expert_tokens": [[3, 1], [2, 2]]})"
                                      "\n"));
}

TEST_CASE("shares of a machine that was not measured are not reported") {
  temporary t;
  const step_work unmeasured = {4096, 1e9, 0, 0};
  CHECK(row(200, {40, 2.4112, 1.96e-3, 0.847, 0.25}, unmeasured, 41) ==
        " 40/200  2.4112     3.4786  2.0e-03  0.8470  16.4 k            -     0:41");
  console screen;
  progress p(screen, {2, 0, 2, 10}, unmeasured, t / "log");
  p.step({1, 5.5, 1e-3, 0.5, 0.5});
  CHECK(p.speed() == "8.19 ktok/s, 2 GFLOP/s");
  CHECK_THAT(get(t / "log"), Contains(R"("mfu": null, "roofline": null, "elapsed_s": 0.500})"));
}

TEST_CASE("numbers and durations are written short") {
  CHECK(scaled(853, "tok/s") == "853 tok/s");
  CHECK(scaled(16700, "tok/s") == "16.7 ktok/s");
  CHECK(scaled(999.6) == "1 k");
  CHECK(scaled(3.47e11, "FLOP/s") == "347 GFLOP/s");
  CHECK(duration(0) == "0:00");
  CHECK(duration(112) == "1:52");
  CHECK(duration(7384) == "2:03:04");
  CHECK(duration(36000) == "10h 00m");
  CHECK(duration(360000) == "4d 04h");
  CHECK(duration(8640000) == "100d");
}

TEST_CASE("rows that stay are the first, the last and every so manyth; a page has a heading") {
  temporary t;
  std::fflush(stdout);
  const descriptor before(::dup(STDOUT_FILENO)), file(::creat((t / "seen").c_str(), 0600));
  ::dup2(file.get(), STDOUT_FILENO);
  {
    console screen;
    progress p(screen, {200, 3, 124, 4}, one, "");
    for (std::int64_t step = 4; step <= 123; ++step) p.step({step, 1, 1, 1, 1});
    p.step({124, 1, 1, 1, 5});
    screen.show("not in a file");
  }
  ::dup2(before.get(), STDOUT_FILENO);
  std::istringstream lines(get(t / "seen"));
  std::string line;
  for (std::int64_t step = 4, rows = 0; step <= 124; step += 4, ++rows) {
    if (rows % 25 == 0) {
      std::getline(lines, line);
      CHECK(line == heading(200));
    }
    std::getline(lines, line);
    CHECK_THAT(line, Contains(std::to_string(step) + "/200  "));
    // The roofline is a second a step; the last four steps took 1, 1, 1 and 5 s.
    CHECK_THAT(line, Contains(step == 124 ? "  50 %  " : "  100 %  "));
  }
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("the curve is drawn with axes, labels and all points") {
  loss_curve curve{"a < b & c", "sub", {8, 6, 5, 4.5, 4, 3.9}, {{6, 3.95}}, 2.91};
  const std::string text = svg(curve);
  CHECK_THAT(text, Contains("a &lt; b &amp; c"));
  CHECK_THAT(text, Contains("zlib -9 2.91"));
  CHECK_THAT(text, Contains("validation 3.95"));
  CHECK_THAT(text, Contains("bits/byte"));
  CHECK_THAT(text, Catch::Matchers::StartsWith("<svg"));
  CHECK_THAT(text, Catch::Matchers::EndsWith("</svg>\n"));
}

TEST_CASE("a curve's lowest line keeps off the axis") {
  const std::string text = svg({"t", "s", {8, 6, 5}, {}, 3.01});
  const std::size_t dashes = text.find("stroke-dasharray"), line = text.rfind("y1=\"", dashes);
  REQUIRE(dashes != std::string::npos);
  CHECK(std::atof(&text[line + 4]) < 470);  // the axis lies at 476
}

TEST_CASE("curves without points, and with losses that are no numbers, are still drawings") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const loss_curve& curve : {loss_curve{}, loss_curve{"t", "s", {5}, {}, 0},
                                  loss_curve{"t", "s", {inf, std::nan(""), 3}, {{3, inf}}, 3}}) {
    const std::string text = svg(curve);
    CHECK(text.find("nan") == std::string::npos);
    CHECK(text.find("inf") == std::string::npos);
  }
}
