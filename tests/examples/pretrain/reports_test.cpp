// The log's keys and the curve's text.
#include <jansson.h>

#include <catch2/catch.hpp>
#include <limits>

#include "failure.hpp"
#include "loss_curve.hpp"
#include "progress.hpp"
#include "temporary.hpp"

using Catch::Matchers::Contains;
using namespace pretrain;

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

TEST_CASE("the log has a line a step with fixed keys, and a last line") {
  temporary t;
  {
    progress p(2, {4096, 1e9, 1e11, 0.05}, t / "log", 0);
    p.step({1, 5.5, 1e-3, 0.5, 0.1});
    p.step({2, std::numeric_limits<double>::quiet_NaN(), 1e-3, 0.5, 0.1});
    p.finish(2.0, 2.9);
  }
  std::istringstream lines(get(t / "log"));
  std::string first, second, last;
  std::getline(lines, first), std::getline(lines, second), std::getline(lines, last);
  const std::vector<std::string> expected = {"step",      "loss",         "lr",
                                             "grad_norm", "tokens_per_s", "flops_per_s",
                                             "mfu",       "roofline",     "elapsed_s"};
  CHECK(keys(first) == expected);
  CHECK(keys(second) == expected);
  CHECK_THAT(first, Contains("\"mfu\": 0.1000") && Contains("\"roofline\": 0.5000"));
  CHECK_THAT(second, Contains("\"loss\": null"));
  CHECK(keys(last) == std::vector<std::string>{"val_bits_per_byte", "zlib_bits_per_byte"});
}

TEST_CASE("a resumed run keeps the log of its first steps, a new one begins anew") {
  temporary t;
  for (const std::int64_t done : {0, 1, 2, 1}) {
    progress(3, one, t / "log", done).step({done + 1, 1, 1, 1, 0.5});
  }
  const std::string two = get(t / "log");
  CHECK(std::count(two.begin(), two.end(), '\n') == 2);
  CHECK_THAT(two, Contains("\"step\": 2") && Contains("\"elapsed_s\": 1.000"));
  progress(1, one, t / "log", 0);
  CHECK(get(t / "log").empty());
}

TEST_CASE("a log that cannot be written is refused") {
  CHECK_THROWS_WITH(progress(1, one, "/nonexistent/log", 0), Contains("/nonexistent/log"));
  progress full(1, one, "/dev/full", 0);
  CHECK_THROWS_WITH(full.step({1, 1, 1, 1, 1}), Contains("No space left"));
}

TEST_CASE("the curve is drawn with axes, labels and all points") {
  loss_curve curve{"a < b & c", "sub", {8, 6, 5, 4.5, 4, 3.9}, {{6, 3.95}}, 2.91};
  const std::string text = svg(curve);
  CHECK_THAT(text, Contains("a &lt; b &amp; c"));
  CHECK_THAT(text, Contains("zlib -9 2.91"));
  CHECK_THAT(text, Contains("validation 3.95"));
  CHECK_THAT(text, Contains("bits per byte"));
  CHECK_THAT(text, Catch::Matchers::StartsWith("<svg"));
  CHECK_THAT(text, Catch::Matchers::EndsWith("</svg>\n"));
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
