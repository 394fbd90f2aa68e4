// JSON in and out: kinds, order, where an error stands, escapes.
#include "core/text/json.hpp"

#include <jansson.h>

#include <catch2/catch.hpp>
#include <string>

#include "core/text/json_syntax.hpp"
#include "tests/core/fails.hpp"

using velo::core::append_json_string;
using velo::core::failure;
using velo::core::json;
using velo::testing::failure_of;

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
  const auto f = failure_of([] { json::parse("{\"a\": 1,\n  oops}", "desc.config_json"); });
  CHECK_REFUSED(f, VELO_ERR_PARSE, "desc.config_json");
  CHECK(f.got.find("line 2, column 6") == 0);
  CHECK(failure_of([] { json::parse(R"({"a": 1, "a": 2})", "text"); }).code == VELO_ERR_PARSE);
  CHECK(failure_of([] { json::parse("", "text"); }).code == VELO_ERR_PARSE);
}

// jansson says of what it refuses whether it is the grammar.
TEST_CASE("the grammar checked without memory is the reader's") {
  const std::string samples[] = {
      R"({"a": [1, -2.5e+3, 0, -0.1E-2], "b": {"c": "d\\\"\/\b\u00e4\ud83d\ude00"}, "e": []})",
      R"([true, false, null, {}, [[[]]], "", " \t", 12345])",
      R"("\ud800")",
      R"("\udc00\ud800")",
      "  [1 , 2]  ",
      "01",
      "1.",
      "-",
      "[1,]",
      R"({"a" 1})",
      "",
      "nul",
      "truex",
      "\"\x01\"",
      "[1] 2"};
  const char letters[] = "{}[]:,\"\\ud8c09aeE+-.1 tfn\n";
  std::uint64_t state = 1;
  const auto draw = [&](std::size_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  int right = 0, wrong = 0;
  for (const std::string& sample : samples) {
    for (int i = 0; i < 4000; ++i) {
      std::string text = sample;
      for (std::size_t k = draw(4); k > 0 && !text.empty(); --k) {
        const std::size_t at = draw(text.size());
        if (draw(3) == 0) {
          text.erase(at, 1);
        } else {
          text[at] = letters[draw(sizeof letters - 1)];
        }
      }
      json_error_t error;
      json_t* made = json_loads(text.c_str(), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
      INFO(text);
      if (made != nullptr) {
        ++right;
        CHECK(velo::core::is_json(text.c_str()));
      } else if (const int why = json_error_code(&error);
                 why == json_error_invalid_syntax || why == json_error_premature_end_of_input ||
                 why == json_error_end_of_input_expected) {
        ++wrong;
        CHECK_FALSE(velo::core::is_json(text.c_str()));
      }
      json_decref(made);
    }
  }
  CHECK(right > 1000);
  CHECK(wrong > 1000);
}

TEST_CASE("written strings read back") {
  const std::string wild = "quote \" slash \\ tab \t line \n bell \a and \xc3\xa4";
  std::string text = "[";
  append_json_string(text, wild.c_str());
  text += "]";
  CHECK(json::parse(text.c_str(), "text").at(0).string() == wild);
}
