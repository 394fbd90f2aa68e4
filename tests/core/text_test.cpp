// Texts of a fixed length, put together from pieces, and JSON written piece by piece.
#include "core/text/text.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "core/text/json_writer.hpp"

using namespace velo::core;

TEST_CASE("pieces of a text are integers of any type and other texts") {
  const std::string name = "rank";
  CHECK(concat(name, " ", 2, " of ", std::uint64_t{8}).buffer == std::string("rank 2 of 8"));
  CHECK(concat(number(-1), text(" %.1f", 2.5)).buffer == std::string("-1 2.5"));
  CHECK(number(std::numeric_limits<std::int64_t>::min()).buffer ==
        std::string("-9223372036854775808"));
  CHECK(number(std::numeric_limits<std::uint64_t>::max()).buffer ==
        std::string("18446744073709551615"));
  CHECK(concat().buffer == std::string());
}

TEST_CASE("a text that is too long is cut") {
  const std::string half(150, 'a');
  const text whole = concat(half, half, 7);
  CHECK(std::string(whole.buffer) == std::string(sizeof whole.buffer - 1, 'a'));
}

TEST_CASE("a JSON writer sets commas, quotes and ends") {
  std::string all;
  json_writer to(all);
  to.object().member("name", "a \"b\"\n").member("count", 3).member("yes", true);
  to.key("none").null().key("reason").value(static_cast<const char*>(nullptr));
  to.key("empty").array().end().key("ranks").array().value(1).value(2).object().end().end();
  to.member("share", 0.1).key("third").value(1.0 / 3, 3).key("made").raw("{}").end();
  CHECK(all ==
        "{\"name\":\"a \\\"b\\\"\\n\",\"count\":3,\"yes\":true,\"none\":null,\"reason\":null,"
        "\"empty\":[],\"ranks\":[1,2,{}],\"share\":0.1,\"third\":0.333,\"made\":{}}");
}

TEST_CASE("a JSON writer breaks lines where it is asked to") {
  std::string all;
  json_writer to(all, json_writer::spacing::wide);
  to.object().member("a", 1).member("b", 2).line(" ").key("rows").array();
  for (int i = 0; i < 2; ++i) to.line("  ").array().value(i).end();
  to.line().end().key("list").array();
  for (int i = 0; i < 2; ++i) to.next_line(" ").value(i);
  to.end().end();
  CHECK(all == "{\"a\": 1, \"b\": 2,\n \"rows\": [\n  [0],\n  [1]\n], \"list\": [0,\n 1]}");
}
