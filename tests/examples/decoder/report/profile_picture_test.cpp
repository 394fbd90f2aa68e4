// Profiles as pictures: slices, strips, shares.
#include <catch2/catch.hpp>
#include <set>

#include "examples/decoder/report/profile_picture.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

namespace {

std::string event(const char* category, const char* name, double begin, double took, int rank = 0,
                  const char* arguments = "", int thread = 1) {
  return R"({"ph":"X","pid":)" + std::to_string(rank) + R"(,"tid":)" + std::to_string(thread) +
         R"(,"ts":)" + std::to_string(begin) + R"(,"dur":)" + std::to_string(took) + R"(,"cat":")" +
         category + R"(","name":")" + name + R"(","args":{)" + arguments + "}}";
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : ",\n") + each;
  return text;
}

std::size_t count_of(const std::string& words, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
  return count;
}

// 1 ms: a pass of 0.8 with a product of 0.5, and a layer that waits 0.2 for its all_reduce.
std::string small(int rank) {
  return joined({event("range", "step 7", 5000, 1000, rank), event("range", "0F0", 5000, 800, rank),
                 event("operator", "matmul", 5000, 500, rank),
                 event("operator", "row_parallel", 5500, 250, rank),
                 event("collective", "all_reduce", 5520, 200, rank, R"("group":"a<b")"),
                 event("wait", "event", 5000, 1000, rank),
                 R"({"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"x"}})"});
}

}  // namespace

TEST_CASE("slices of a profile have their ranks, kinds, times and groups") {
  const auto slices = slices_of(small(3));
  REQUIRE(slices.size() == 5);
  CHECK(slices[0].name == "step 7");
  CHECK(slices[0].what == profile_slice::kind::range);
  CHECK(slices[3].what == profile_slice::kind::operation);
  CHECK(slices[4].what == profile_slice::kind::collective);
  CHECK(slices[4].group == "a<b");
  CHECK(slices[4].rank == 3);
  CHECK(slices[4].begin == 5520);
  CHECK(slices[4].end == 5720);
  CHECK_THROWS_WITH(slices_of("{"), Contains("events of a profile"));
}

TEST_CASE("a profile's picture has a row a rank, passes by name and the shares of time") {
  const std::string text = svg(slices_of(small(0) + ",\n" + small(2)));
  for (const char* words : {">rank 0</text>", ">rank 2</text>", ">step 7</text>", ">0F0</text>",
                            "operators 50 %", "collectives 20 %", "collective of a&lt;b",
                            "<title>all_reduce of a&lt;b, 200.0 us</title>"})
    CHECK_THAT(text, Contains(words));
  CHECK_THAT(text, !Contains("rank 1"));
  CHECK(count_of(">0F0</text>", text) == 2);
  CHECK(count_of("<title>row_parallel", text) == 2);
}

TEST_CASE("slices of ranks that were read one by one are drawn as those of one text") {
  std::vector<profile_slice> all = slices_of(small(0));
  for (const profile_slice& each : slices_of(small(2))) all.push_back(each);
  CHECK(svg(all) == svg(slices_of(small(0) + ",\n" + small(2))));
}

TEST_CASE("each group has a color of its own") {
  std::vector<std::string> events;
  for (int i = 0; i < 40; ++i)
    events.push_back(event("collective", "all_reduce", 10.0 * i, 8, 0,
                           (R"("group":"g)" + std::to_string(100 + i) + "\"").c_str()));
  const std::string text = svg(slices_of(joined(events)));
  std::set<std::string> colors;
  for (int i = 0; i < 40; ++i) {
    const std::size_t title = text.find("<title>all_reduce of g" + std::to_string(100 + i) + ",");
    REQUIRE(title != std::string::npos);
    const std::size_t fill = text.rfind("fill=\"", title) + 6;
    colors.insert(text.substr(fill, text.find('"', fill) - fill));
  }
  CHECK(colors.size() == 40);
}

TEST_CASE("slices of two threads that overlap count once in a share") {
  const std::string text = svg(slices_of(
      joined({event("operator", "matmul", 0, 60), event("operator", "add", 30, 70),
              event("operator", "add", 10, 50, 0, "", 2), event("range", "all", 0, 200)})));
  CHECK_THAT(text, Contains("operators 50 %"));
}

TEST_CASE("a picture's size is bounded, and a profile without slices is one, too") {
  std::vector<std::string> many;
  for (int i = 0; i < 50000; ++i) many.push_back(event("operator", "add", 2.0 * i, 1.5));
  CHECK(svg(slices_of(joined(many))).size() < 400000);
  for (const std::string& few : {std::string(), event("operator", "add", 5, 0)}) {
    const std::string text = svg(slices_of(few));
    CHECK_THAT(text, Contains("<svg") && Contains("</svg>"));
    CHECK_THAT(text, !Contains("nan") && !Contains("inf"));
  }
}
