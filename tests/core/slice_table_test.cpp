// The table of slices by shape: which entry decides, where its value came from, and texts that are
// no table.
#include "core/slice_table.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "core/config.hpp"
#include "tests/core/environment.hpp"
#include "tests/core/fails.hpp"

using namespace velo::core;
using velo::testing::bare_environment;
using velo::testing::environment;
using velo::testing::failure_of;

TEST_CASE("the first entry of a table that fits a shape decides") {
  const slice_table table("4096x512x1024:4,4096x*x1024:8,*x*x7:0,*:2", "value");
  CHECK(table.slices_of(4096, 512, 1024) == 4);
  CHECK(table.slices_of(4096, 511, 1024) == 8);
  CHECK(table.slices_of(1024, 512, 4096) == 2);
  CHECK(table.slices_of(4096, 512, 7) == 0);
  CHECK(table.text() == "4096x512x1024:4,4096x*x1024:8,*x*x7:0,*:2");
  CHECK(slice_table("0x0x0:1024", "value").slices_of(0, 0, 0) == 1024);
  CHECK(slice_table("8x8x8:1", "value").slices_of(8, 8, 9) == 0);
  CHECK(slice_table("", "value").slices_of(1, 1, 1) == 0);
  CHECK(slice_table().slices_of(1, 1, 1) == 0);
}

TEST_CASE("a text that is no table is refused with its entry, and changes nothing") {
  for (const auto& [wrong, entry] : {std::pair{"4", "4"},
                                     {"4:4", "4:4"},
                                     {"4x4:4", "4x4:4"},
                                     {"4x4x4", "4x4x4"},
                                     {"4x4x4x4:4", "4x4x4x4:4"},
                                     {"4x4x4:", "4x4x4:"},
                                     {"4x4x4:1025", "4x4x4:1025"},
                                     {"4x4x4:-1", "4x4x4:-1"},
                                     {"-4x4x4:1", "-4x4x4:1"},
                                     {"4xx4:1", "4xx4:1"},
                                     {":2", ":2"},
                                     {"*:2:3", "*:2:3"},
                                     {"*:*", "*:*"},
                                     {"*x*:1", "*x*:1"},
                                     {"4x4x4:2, *:2", " *:2"},
                                     {"*:2,", "*:2"},
                                     {",*:2", ""},
                                     {"*:2,,*:3", ""},
                                     {"99999999999999999999x1x1:2", "99999999999999999999x1x1:2"},
                                     {"4x4x4:2.5", "4x4x4:2.5"},
                                     {"**:1", "**:1"}}) {
    CAPTURE(wrong);
    config c(isa::avx2, VELO_LOG_OFF, nullptr);
    c.set("overlap.slices", "*:3", "value");
    const auto refused = failure_of([&, text = wrong] { c.set("overlap.slices", text, "value"); });
    CHECK(refused.code == VELO_ERR_ARGUMENT);
    CHECK(std::string(refused.argument) == "value");
    CHECK(std::string(refused.expected).find("overlap.slices: ROWSxDEPTHxCOLUMNS:SLICES") !=
          std::string::npos);
    CHECK(std::string(refused.got) == "\"" + std::string(entry) + "\" in \"" + wrong + "\"");
    CHECK(c.get("overlap.slices").text == "*:3");
  }
  config c(isa::avx2, VELO_LOG_OFF, nullptr);
  const auto mode = failure_of([&] { c.set("overlap.mode", "1", "value"); });
  CHECK(mode.code == VELO_ERR_ARGUMENT);
  CHECK(std::string(mode.expected) == "for overlap.mode: auto, whole or sliced");
  CHECK(std::string(mode.got) == "\"1\"");
}

TEST_CASE("keys of overlap come from JSON and the environment, which rules") {
  const bare_environment bare;
  config c(isa::avx2, VELO_LOG_OFF, nullptr);
  c.set_json(R"({"overlap.slices": "8x8x8:4", "overlap.mode": "whole"})", "json");
  CHECK(c.now().overlap.table.slices_of(8, 8, 8) == 4);
  CHECK(c.now().overlap.mode == overlap_mode::whole);
  CHECK(c.get("overlap.slices").from == origin::code);
  const environment table("VELO_OVERLAP_SLICES", "*:2"), mode("VELO_OVERLAP_MODE", "sliced");
  c.read_environment();
  CHECK(c.now().overlap.table.slices_of(8, 8, 8) == 2);
  CHECK(c.now().overlap.mode == overlap_mode::sliced);
  CHECK(c.get("overlap.slices").from == origin::environment);
  CHECK(failure_of([&] { c.set("overlap.slices", "*:3", "value"); }).code == VELO_ERR_STATE);
  const environment wrong("VELO_OVERLAP_SLICES", "two");
  const auto refused =
      failure_of([] { config(isa::avx2, VELO_LOG_OFF, nullptr).read_environment(); });
  CHECK(refused.code == VELO_ERR_ARGUMENT);
  CHECK(std::string(refused.argument) == "VELO_OVERLAP_SLICES");
}
