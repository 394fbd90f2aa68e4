// The texts of placement problems: what is read, written, drawn, and refused with its place.
#include "memory/plan/csv.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "memory/plan/picture.hpp"
#include "tests/core/fails.hpp"

using namespace velo::memory;
using velo::testing::failure_of;

namespace {

constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();

plan_table placement_of(const std::string& text, std::int64_t most = any) {
  plan_table table;
  read_placement(text, most, table);
  return table;
}

plan_table log_of(const std::string& text) {
  plan_table table;
  read_rmm_log(text, any, table);
  return table;
}

// The position at which a text is refused, as the failure names it.
template <class F>
std::string place_of(F&& body) {
  const auto f = failure_of(body);
  CHECK(f.code == VELO_ERR_ARGUMENT);
  return f.argument;
}

const std::string head = "id,lower,upper,size\n";
const std::string log_head = "Thread,Time,Action,Pointer,Size,Stream\n";

}  // namespace

TEST_CASE("a placement CSV is read, with any order of columns and either end of lines") {
  for (const char* text : {"id,lower,upper,size\na,0,5,100\nb,-3,9,7\n",
                           "\xEF\xBB\xBFid,lower,upper,size\r\na,0,5,100\r\n\r\nb,-3,9,7",
                           "size,offset,upper,id,lower\n100,0,5,a,0\n7,64,9,b,-3\n"}) {
    const plan_table table = placement_of(text);
    REQUIRE(table.buffers.size() == 2);
    CHECK(table.names == std::vector<std::string>{"a", "b"});
    CHECK(table.buffers[0].upper == 5);
    CHECK(table.buffers[0].size == 100);
    CHECK(table.buffers[1].lower == -3);
  }
  CHECK(placement_of(head).buffers.empty());
}

TEST_CASE("what is written can be read again") {
  const plan_table table = placement_of(head + "x,0,5,100\ny,2,9,7\n");
  const std::string text = write_placement(table, {0, 100});
  CHECK(text == "id,lower,upper,size,offset\nx,0,5,100,0\ny,2,9,7,100\n");
  CHECK(placement_of(text).names == table.names);
}

TEST_CASE("a row that makes no sense is refused with its line and column") {
  const struct {
    std::string rows;
    const char* place;
  } cases[] = {{"a,0,5,1\na,1,2,3\n", "text, line 3, column 1"},
               {"a,0,5,1\r\n\r\nb,5,5,1\r\n", "text, line 4, column 5"},
               {"a,7,5,1\n", "text, line 2, column 5"},
               {"a,0,5,0\n", "text, line 2, column 7"},
               {"a,0,5,-1\n", "text, line 2, column 7"},
               {"a,0,5,1001\n", "text, line 2, column 7"},
               {"a,0,5,99999999999999999999\n", "text, line 2, column 7"},
               {"a,0,99999999999999999999,5\n", "text, line 2, column 5"},
               {"a,x,5,1\n", "text, line 2, column 3"},
               {"a,0,5.5,1\n", "text, line 2, column 5"},
               {"a,0,,1\n", "text, line 2, column 5"},
               {"a, 0,5,1\n", "text, line 2, column 3"},
               {",0,5,1\n", "text, line 2, column 1"},
               {"a,0,5\n", "text, line 2, column 5"},
               {"a,0,5,1,9\n", "text, line 2, column 9"}};
  for (const auto& c : cases) {
    INFO(c.rows);
    CHECK(place_of([&] { placement_of(head + c.rows, 1000); }) == c.place);
  }
}

TEST_CASE("bytes that cannot be seen are shown by their numbers") {
  const auto got = [](const std::string& field) {
    return std::string(failure_of([&] { placement_of(head + "a,0," + field + ",1\n"); }).got);
  };
  CHECK(got(std::string("5\0x", 3)) == "a zero byte");
  CHECK(got("5\x02x") == "5\\x02x");
  CHECK(got("5\r") == "5\\x0d");
  CHECK(got("\x1b[2J\x7f") == "\\x1b[2J\\x7f");
  CHECK(got(std::string(5000, '\x02')).substr(0, 8) == "\\x02\\x02");
}

TEST_CASE("every time that a number can say is read, written and drawn") {
  const std::string least = std::to_string(std::numeric_limits<std::int64_t>::min());
  const std::string most = std::to_string(any);
  const std::string row = "a," + least + "," + most + ",7";
  const plan_table table = placement_of(head + row + "\n");
  CHECK(write_placement(table, {0}) == "id,lower,upper,size,offset\n" + row + ",0\n");
  const plan_table late = placement_of(head + "a," + std::to_string(any - 1) + "," + most + ",7\n");
  for (const plan_table* each : {&table, &late}) {
    const std::string picture = draw_placement(*each, {0}, 7);
    CHECK(picture.find("nan") == std::string::npos);
    CHECK(picture.find("inf") == std::string::npos);
  }
}

TEST_CASE("columns that are missing, unknown or there twice are refused") {
  CHECK(place_of([] { placement_of(""); }) == "text, line 1, column 1");
  CHECK(place_of([] { placement_of("id,lower,upper\n"); }) == "text, line 1, column 1");
  CHECK(place_of([] { placement_of("id,lower,upper,size,alignment\n"); }) ==
        "text, line 1, column 21");
  CHECK(place_of([] { placement_of("id,lower,lower,size\n"); }) == "text, line 1, column 10");
  CHECK(place_of([] { log_of(head); }) == "text, line 1, column 1");
}

TEST_CASE("sizes whose sum leaves 63 bits are refused where it does") {
  const std::string half = std::to_string((any >> 1) + 1);
  CHECK(place_of([&] { placement_of(head + "a,0,1," + half + "\nb,4,5," + half + "\n"); }) ==
        "text, line 3, column 7");
  plan_table table = placement_of(head + "a,0,1," + half + "\n");
  CHECK(place_of([&] { read_placement(head + "b,4,5," + half + "\n", any, table); }) ==
        "text, line 2, column 7");
}

TEST_CASE("a log becomes the lifetimes of its allocations") {
  const plan_table table = log_of(log_head +
                                  "0,0,allocate,0x1,100,0\n"
                                  "0,1,allocate,0x2,50,0\n"
                                  "0,2,allocate failure,0x0,9999,0\n"
                                  "0,3,free,0x1,100,0\n"
                                  "0,4,allocate,0x1,30,0\n"
                                  "0,5,allocate,0x9,0,0\n"
                                  "0,6,free,0x9,0,0\n");
  REQUIRE(table.buffers.size() == 3);
  CHECK(table.buffers[0].lower == 0);
  CHECK(table.buffers[0].upper == 3);
  CHECK(table.buffers[1].upper == 7);  // never freed: to the end
  CHECK(table.buffers[2].lower == 4);
  CHECK(table.buffers[2].size == 30);
}

TEST_CASE("an event that makes no sense is refused with its line and column") {
  const std::string one = "0,0,allocate,0x1,100,0\n";
  const auto place = [&](const std::string& rows) {
    return place_of([&] { log_of(log_head + rows); });
  };
  CHECK(place("0,0,free,0x1,100,0\n") == "text, line 2, column 10");
  CHECK(place(one + one) == "text, line 3, column 14");
  CHECK(place(one + "0,0,free,0x1,99,0\n") == "text, line 3, column 14");
  CHECK(place(one + "0,0,free,0x1,100,0\n0,0,free,0x1,100,0\n") == "text, line 4, column 10");
  CHECK(place("0,0,realloc,0x1,100,0\n") == "text, line 2, column 5");
  CHECK(place("0,0,allocate,0x1,-1,0\n") == "text, line 2, column 18");
}

TEST_CASE("a picture has a rectangle for every buffer, and names that cannot break it") {
  const plan_table table = placement_of(head + "<a>&,0,5,100\nb,2,9,7\n");
  const std::string picture = draw_placement(table, {0, 100}, 200);
  std::size_t rectangles = 0;
  for (std::size_t at = 0; (at = picture.find("<rect x=", at)) != std::string::npos; ++at)
    ++rectangles;
  CHECK(rectangles == 2);
  CHECK(picture.find("&lt;a&gt;&amp;: 100 bytes at 0, alive [0, 5)") != std::string::npos);
  CHECK(picture.find("capacity 200 B") != std::string::npos);
  CHECK(picture.find("<a>") == std::string::npos);
  CHECK(draw_placement({}, {}, 0).find("0 buffers") != std::string::npos);
}
