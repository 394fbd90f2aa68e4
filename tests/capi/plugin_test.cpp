// Plugins: libraries that bring kernels of their own.
#include "capi/foreign.hpp"

using namespace velo::testing;

TEST_CASE("a plugin brings all its kernels, whatever the age of its description") {
  live_context c;
  float_tensor y({3}, 4.0f);
  REQUIRE(velo_plugin_load(c, module("good").c_str()) == VELO_OK);
  REQUIRE(op_call(c, "good_scale", {{"y", of(y)}, {"by", real(0.5)}}) == VELO_OK);
  REQUIRE(op_call(c, "good_shift", {{"y", of(y)}, {"by", real(1)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  CHECK_THAT(listed(c), Catch::Contains("\"plugin\":\"good 2.1\""));
  REQUIRE(velo_plugin_load(c, module("old").c_str()) == VELO_OK);
  REQUIRE(op_call(c, "old_double", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 6.0f);
  REQUIRE(op_call(c, "old_halve", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  const std::string before = listed(c);
  CHECK(velo_plugin_load(c, module("good").c_str()) == VELO_ERR_ARGUMENT);  // names are taken
  CHECK(listed(c) == before);
}

TEST_CASE("a plugin that does not fit brings nothing") {
  const struct {
    const char* library;
    wrong how;
  } rows[] = {
      {"wrong_major", {VELO_ERR_ABI, "path", "ABI 2.0"}},
      {"refuses", {VELO_ERR_ABI, "path", "status 14"}},
      {"no_query", {VELO_ERR_NOT_FOUND, "path", "velo_plugin_query"}},
      {"one_bad", {VELO_ERR_PARSE, "kernels[1].signature", "'q'"}},
      {"absent", {VELO_ERR_IO, "path", "plugin_absent.so"}},
  };
  live_context c;
  for (const auto& row : rows) {
    INFO(row.library);
    expect(velo_plugin_load(c, module(row.library).c_str()), row.how, "velo_plugin_load");
    CHECK(listed(c) == "[]");
  }
}

TEST_CASE("a plugin's path and context are needed") {
  live_context c;
  CHECK_REFUSED(velo_plugin_load(c, nullptr), VELO_ERR_NULL, "path");
  CHECK_REFUSED(velo_plugin_load(nullptr, "x"), VELO_ERR_NULL, "context");
  // dlopen takes an empty path for the process itself, so velo refuses it.
  expect(velo_plugin_load(c, ""), {VELO_ERR_ARGUMENT, "path", "an empty text"}, "velo_plugin_load");
}
