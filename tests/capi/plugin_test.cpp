// Plugins: libraries that bring kernels of their own.
#include "capi/foreign.hpp"

using namespace fixture;

TEST_CASE("a plugin brings all its kernels, whatever the age of its description") {
  context c;
  tensor y({3}, 4.0f);
  REQUIRE(velo_plugin_load(c.handle, module("good").c_str()) == VELO_OK);
  REQUIRE(op_call(c.stream, "good_scale", {{"y", of(y)}, {"by", real(0.5)}}) == VELO_OK);
  REQUIRE(op_call(c.stream, "good_shift", {{"y", of(y)}, {"by", real(1)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  CHECK_THAT(listed(c), Catch::Contains("\"plugin\":\"good 2.1\""));
  REQUIRE(velo_plugin_load(c.handle, module("old").c_str()) == VELO_OK);
  REQUIRE(op_call(c.stream, "old_double", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 6.0f);
  REQUIRE(op_call(c.stream, "old_halve", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  const std::string before = listed(c);
  CHECK(velo_plugin_load(c.handle, module("good").c_str()) ==
        VELO_ERR_ARGUMENT);  // names are taken
  CHECK(listed(c) == before);
}

TEST_CASE("a plugin that does not fit brings nothing") {
  context c;
  const char* which = nullptr;
  wrong w{};
  SECTION("another major version") {
    which = "wrong_major";
    w = {VELO_ERR_ABI, "path", "ABI 2.0"};
  }
  SECTION("one that refuses this library") {
    which = "refuses";
    w = {VELO_ERR_ABI, "path", "status 14"};
  }
  SECTION("a library without velo_plugin_query") {
    which = "no_query";
    w = {VELO_ERR_NOT_FOUND, "path", "velo_plugin_query"};
  }
  SECTION("one bad kernel among good ones") {
    which = "one_bad";
    w = {VELO_ERR_PARSE, "kernels[1].signature", "'q'"};
  }
  SECTION("no such file") {
    which = "absent";
    w = {VELO_ERR_IO, "path", "plugin_absent.so"};
  }
  CHECK(velo_plugin_load(c.handle, module(which).c_str()) == w.code);
  expect(w, "velo_plugin_load");
  CHECK(listed(c) == "[]");
}

TEST_CASE("a plugin's path and context are needed") {
  context c;
  CHECK(velo_plugin_load(c.handle, nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "path");
  CHECK(velo_plugin_load(nullptr, "x") == VELO_ERR_NULL);
  CHECK(last().argument == "context");
  CHECK(velo_plugin_load(c.handle, "") ==
        VELO_ERR_ARGUMENT);  // not the process itself, as to dlopen
  expect({VELO_ERR_ARGUMENT, "path", "an empty text"}, "velo_plugin_load");
}
