// The layers of stages, dealt out evenly or as a list says.
#include "tools/velo/stage_layers.hpp"

#include <catch2/catch.hpp>

using command::stage_list;
using counts = std::vector<std::int64_t>;

TEST_CASE("the first stages have one layer more") {
  CHECK(command::even_layers(8, 4) == counts{2, 2, 2, 2});
  CHECK(command::even_layers(11, 4) == counts{3, 3, 3, 2});
  CHECK(command::even_layers(3, 5) == counts{1, 1, 1, 0, 0});
}

TEST_CASE("places without a layer are taken from the stages that they lie in") {
  CHECK(command::without_places({2, 2, 2}, {}) == counts{2, 2, 2});
  CHECK(command::without_places({2, 2, 2}, {0, 5}) == counts{1, 2, 1});
  CHECK(command::without_places({3, 0, 2}, {0, 1, 2, 3}) == counts{0, 0, 1});
}

TEST_CASE("a list has its counts in the order of stages or by rank") {
  const counts one_each = {0, 1, 2, 3}, interleaved = {0, 1, 2, 3, 0, 1, 2, 3},
               v = {0, 1, 2, 3, 3, 2, 1, 0};
  const auto of = [](const char* text, const counts& rank_of, std::int64_t layers) {
    const auto list = stage_list::read(text);
    REQUIRE(list);
    return list->of(rank_of, layers);
  };
  const char* const golden = "[[0,1],[1,1],[1,1],[3,0]]";
  CHECK(of("2,0,6,0", one_each, 8).counts == counts{2, 0, 6, 0});
  CHECK(of("[[2],[0],[6],[0]]", one_each, 8).counts == counts{2, 0, 6, 0});
  CHECK(of(golden, interleaved, 8).counts == counts{0, 1, 1, 3, 1, 1, 1, 0});
  CHECK(of("[[0, 1], [1, 1], [1, 1], [3, 0]]", v, 8).counts == counts{0, 1, 1, 3, 0, 1, 1, 1});
  const stage_list::result sum = of(golden, interleaved, 9);
  CHECK(sum.counts.empty());
  CHECK((sum.is_sum && sum.expected == "a sum of 9" && sum.got == "8"));
  CHECK(of(golden, one_each, 8).expected == "1 count, one a stage, of rank 0");
  CHECK(of("1,1", one_each, 2).expected == "4 counts, one a stage");
  CHECK(of("[[1],[1]]", one_each, 2).expected == "4 lists, one a rank");
}

TEST_CASE("texts that are no lists of counts are none") {
  for (const char* text : {"", ",", "1,", ",1", "-1", "1;2", "1.5", "[1,2]", "[[1,2]", "[[1],2]",
                           "[[]]", "[[1],]", "[[1]]]", "[[1]],", "[[", "9999999", "x"}) {
    INFO(text);
    CHECK_FALSE(stage_list::read(text));
  }
}
