// Configuration: values with their origins, the environment over code, bad keys and values named.
#include "core/config.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>

#include "core/text/json.hpp"
#include "tests/core/environment.hpp"
#include "tests/core/fails.hpp"

using namespace velo::core;
using velo::testing::bare_environment;
using velo::testing::environment;
using velo::testing::failure_of;

namespace {

std::string knows(const char* op) {
  if (std::strcmp(op, "rms_norm") == 0) return "avx2, scalar, reference";
  return std::strcmp(op, "matmul") == 0 ? "scalar, reference" : "";
}

std::string shown(const config& c, const char* key) {
  const config::value found = c.get(key);
  return found.text + " by " + origin_name(found.from);
}

}  // namespace

TEST_CASE("defaults, then code, each with its origin") {
  config c(isa::avx512, VELO_LOG_OFF, nullptr);
  CHECK(shown(c, "threads") == "0 by default");
  CHECK(shown(c, "isa") == "avx512 by default");
  CHECK(shown(c, "level") == "2 by default");
  CHECK(shown(c, "closures") == "on by default");
  CHECK(shown(c, "log") == "off by default");
  c.set("level", "1", "value");
  c.set("closures", "off", "value");
  CHECK(shown(c, "level") == "1 by code");
  CHECK(c.now().optimization == 1);
  CHECK_FALSE(c.now().closures);
}

TEST_CASE("isa only lowers") {
  config c(isa::avx512, VELO_LOG_OFF, nullptr);
  c.set("isa", "amx", "value");
  CHECK(c.now().isa == isa::avx512);
  c.set("isa", "avx2", "value");
  CHECK(c.now().isa == isa::avx2);
  CHECK(shown(c, "isa") == "avx2 by code");
}

TEST_CASE("the environment rules over code, visibly") {
  const bare_environment bare;
  const environment isa_variable("VELO_ISA", "scalar"), closures("VELO_CLOSURES", "off"),
      nothing("VELO_LEVEL", ""), forced("VELO_KERNEL_RMS_NORM", "reference");
  config c(isa::avx512, VELO_LOG_OFF, &knows);
  c.set("isa", "avx2", "value");
  c.read_environment();
  CHECK(shown(c, "isa") == "scalar by environment");
  CHECK(shown(c, "closures") == "off by environment");
  CHECK(shown(c, "level") == "2 by default");
  CHECK(shown(c, "kernel.rms_norm") == "reference by environment");
  const auto late = failure_of([&] { c.set("isa", "avx2", "value"); });
  CHECK(late.code == VELO_ERR_STATE);
  CHECK(late.expected.find("VELO_ISA") != std::string::npos);
  CHECK(failure_of([&] { c.set("kernel.rms_norm", "avx2", "value"); }).code == VELO_ERR_STATE);
  CHECK(c.now().isa == isa::scalar);
}

TEST_CASE("a bad environment variable is named") {
  const bare_environment bare;
  {
    const environment variable("VELO_THREADS", "many");
    config c(isa::avx2, VELO_LOG_OFF, &knows);
    const auto f = failure_of([&] { c.read_environment(); });
    CHECK_REFUSED(f, VELO_ERR_ARGUMENT, "VELO_THREADS");
    CHECK(f.got == R"("many")");
  }
  {
    const environment variable("VELO_KERNEL_RMSNORM", "avx2");
    config c(isa::avx2, VELO_LOG_OFF, &knows);
    CHECK_REFUSED(failure_of([&] { c.read_environment(); }), VELO_ERR_NOT_FOUND,
                  "VELO_KERNEL_RMSNORM");
  }
}

TEST_CASE("unknown keys and bad values change nothing") {
  config c(isa::avx2, VELO_LOG_OFF, &knows);
  CHECK_REFUSED(failure_of([&] { c.set("speed", "high", "value"); }), VELO_ERR_NOT_FOUND, "key");
  CHECK(failure_of([&] { c.set("kernel.", "x", "value"); }).code == VELO_ERR_NOT_FOUND);
  CHECK(failure_of([&] { c.set("kernel.rms", "x", "value"); }).code == VELO_ERR_NOT_FOUND);
  CHECK(failure_of([&] { c.get("speed"); }).code == VELO_ERR_NOT_FOUND);
  CHECK(failure_of([&] { c.get("kernel.rms"); }).code == VELO_ERR_NOT_FOUND);
  for (const auto& each : {std::pair{"threads", "-1"},
                           {"threads", "2x"},
                           {"threads", ""},
                           {"threads", "99999999999"},
                           {"threads", "+1"},
                           {"threads", " 1"},
                           {"threads", "01"},
                           {"threads", "-01"},
                           {"kernel.rms_norm", "avx"},
                           {"kernel.rms_norm", "avx2, scalar"},
                           {"kernel.rms_norm", ", "},
                           {"kernel.matmul", "avx2"},
                           {"isa", "sse"},
                           {"level", "3"},
                           {"queue", "0"},
                           {"closures", "maybe"},
                           {"log", "loud"}}) {
    CHECK_REFUSED(failure_of([&] { c.set(each.first, each.second, "value"); }), VELO_ERR_ARGUMENT,
                  "value");
    CHECK(c.get(each.first).from == origin::standard);
  }
}

TEST_CASE("a kernel that an operator lacks is refused with those it has, from wherever it comes") {
  const bare_environment bare;
  const std::string names = "one of rms_norm's kernels (avx2, scalar, reference), or an empty text";
  config c(isa::avx2, VELO_LOG_OFF, &knows);
  for (const char* kernel : {"avx2", "scalar", "reference", ""})
    CHECK_NOTHROW(c.set("kernel.rms_norm", kernel, "value"));
  const auto by_code = failure_of([&] { c.set("kernel.rms_norm", "avx9", "value"); });
  CHECK(by_code.expected == names);
  CHECK(by_code.got == R"("avx9")");
  const auto by_json =
      failure_of([&] { c.set_json(R"({"kernel.rms_norm": "avx9"})", "desc.config_json"); });
  CHECK_REFUSED(by_json, VELO_ERR_ARGUMENT, "desc.config_json.kernel.rms_norm");
  CHECK(by_json.expected == names);
  const environment variable("VELO_KERNEL_RMS_NORM", "avx9");
  const auto by_environment = failure_of([&] { c.read_environment(); });
  CHECK_REFUSED(by_environment, VELO_ERR_ARGUMENT, "VELO_KERNEL_RMS_NORM");
  CHECK(by_environment.expected == names);
}

TEST_CASE("JSON sets keys by their own types and says what is wrong with it") {
  config c(isa::avx512, VELO_LOG_OFF, &knows);
  c.set_json(R"({"threads": 3, "isa": "avx2", "closures": false, "kernel.matmul": "scalar"})",
             "desc.config_json");
  CHECK(c.now().threads == 3);
  CHECK(c.now().isa == isa::avx2);
  CHECK_FALSE(c.now().closures);
  CHECK(shown(c, "kernel.matmul") == "scalar by code");
  const auto fails = [&](const char* text) {
    return failure_of([&] { c.set_json(text, "desc.config_json"); });
  };
  CHECK(fails(R"({"threads": })").code == VELO_ERR_PARSE);
  CHECK(fails("[]").code == VELO_ERR_PARSE);
  CHECK(fails(R"({"level": [1]})").argument == "desc.config_json.level");
  CHECK(fails(R"({"level": 1.5})").code == VELO_ERR_ARGUMENT);
  CHECK(fails(R"({"speed": 1})").argument == "desc.config_json.speed");
  CHECK(fails(R"({"speed": 1})").code == VELO_ERR_NOT_FOUND);
}

TEST_CASE("the list is JSON and holds every key once") {
  config c(isa::avx2, VELO_LOG_WARN, nullptr);
  c.set("kernel.matmul", "scalar", "value");
  const json all = json::parse(c.list().c_str(), "list");
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const json row = all.at(i);
    CHECK(std::strlen(row.get("doc").string()) > 20);
    CHECK(values.emplace(row.get("key").string(), row.get("value").string()).second);
    const bool forced = std::strcmp(row.get("key").string(), "kernel.matmul") == 0;
    CHECK(std::string(row.get("origin").string()) == (forced ? "code" : "default"));
  }
  CHECK(values.at("threads") == "0");
  CHECK(values.at("isa") == "avx2");
  CHECK(values.at("level") == "2");
  CHECK(values.at("log") == "warn");
  CHECK(values.at("kernel.matmul") == "scalar");
}

TEST_CASE("each key alone changes its own value and no other") {
  const std::map<std::string, const char*> changed = {{"threads", "3"},
                                                      {"isa", "scalar"},
                                                      {"level", "1"},
                                                      {"queue", "7"},
                                                      {"closures", "off"},
                                                      {"log", "debug"},
                                                      {"plugin_path", "/a:/b"},
                                                      {"kernel.matmul", "scalar"},
                                                      {"counters", "recompute"},
                                                      {"check.mode", "sample"},
                                                      {"check.share", "0.5"},
                                                      {"check.capsules", "/a"},
                                                      {"check.data", "off"},
                                                      {"overlap.mode", "whole"},
                                                      {"overlap.slices", "8x*x4:2,*:1"},
                                                      {"limits.f32_gflops", "1.5"},
                                                      {"limits.bf16_gflops", "3"},
                                                      {"limits.read_gbytes", "20"},
                                                      {"limits.copy_gbytes", "1e+20"}};
  CHECK(json::parse(config(isa::avx2, VELO_LOG_OFF, nullptr).list(), "list").size() + 1 ==
        changed.size());
  for (const auto& [key, value] : changed) {
    CAPTURE(key);
    config c(isa::avx2, VELO_LOG_OFF, nullptr);
    std::map<std::string, std::string> before;
    for (const auto& each : changed) before[each.first] = c.get(each.first.c_str()).text;
    REQUIRE(before[key] != value);
    c.set(key.c_str(), value, "value");
    for (const auto& each : changed) {
      const bool is_set = each.first == key;
      CHECK(c.get(each.first.c_str()).text == (is_set ? value : before[each.first]));
      CHECK(c.get(each.first.c_str()).from == (is_set ? origin::code : origin::standard));
    }
  }
}

TEST_CASE("settings once read stay valid after a change") {
  config c(isa::avx2, VELO_LOG_OFF, nullptr);
  c.set("kernel.matmul", "scalar", "value");
  const settings& before = c.now();
  c.set("kernel.matmul", "other", "value");
  const settings& after = c.now();
  CHECK(before.kernels[0].kernel == "scalar");
  CHECK(after.kernels[0].kernel == "other");
  c.set("kernel.matmul", "scalar", "value");
  CHECK(&c.now() == &before);  // settings that were there before are not kept twice
  c.set("kernel.matmul", "other", "value");
  CHECK(&c.now() == &after);
}
