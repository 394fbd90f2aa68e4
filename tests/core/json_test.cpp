// JSON in and out: kinds, order, where an error stands, escapes.
#include "core/json.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/core/fails.hpp"

using velo::core::append_json_string;
using velo::core::failure;
using velo::core::json;
using velo::test::failure_of;

TEST_CASE("values keep their kinds and members their order") {
  const json root = json::parse(R"({"b": [1, 2.5, "x", true, null], "a": {}})", "text");
  REQUIRE(root.kind() == json::type::object);
  CHECK(root.size() == 2);
  std::string order;
  root.each([&](const char* key, const json&) { order += key; });
  CHECK(order == "ba");
  const json list = root.get("b");
  CHECK(list.size() == 5);
  CHECK(list.at(0).integer() == 1);
  CHECK(list.at(1).real() == 2.5);
  CHECK(std::string(list.at(2).string()) == "x");
  CHECK(list.at(3).boolean());
  CHECK(list.at(4).kind() == json::type::null);
  CHECK(std::string(root.get("a").kind_name()) == "an object");
  CHECK_FALSE(root.has("c"));
}

TEST_CASE("malformed text says where") {
  const failure f = failure_of([] { json::parse("{\"a\": 1,\n  oops}", "desc.config_json"); });
  CHECK(f.code == VELO_ERR_PARSE);
  CHECK(std::string(f.argument) == "desc.config_json");
  CHECK(std::string(f.got).find("line 2, column 6") == 0);
  CHECK(failure_of([] { json::parse("{\"a\": 1, \"a\": 2}", "text"); }).code == VELO_ERR_PARSE);
  CHECK(failure_of([] { json::parse("", "text"); }).code == VELO_ERR_PARSE);
}

TEST_CASE("written strings read back") {
  const std::string wild = "quote \" slash \\ tab \t line \n bell \a and \xc3\xa4";
  std::string text = "[";
  append_json_string(text, wild.c_str());
  text += "]";
  CHECK(json::parse(text.c_str(), "text").at(0).string() == wild);
}
