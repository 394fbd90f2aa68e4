// The picture of experts: its cells, and how it stays small.
#include <catch2/catch.hpp>

#include "examples/decoder/report/expert_picture.hpp"

using Catch::Matchers::Contains;
using decoder::expert_picture;

namespace {

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

// The ground, the scale's five, and the cells.
std::size_t cells_of(const std::string& svg) {
  return count_of("<rect", svg) - 6;
}

}  // namespace

TEST_CASE("a picture has a cell for each expert and step, darker for more choices") {
  expert_picture of(2, 3);
  CHECK(of.is_empty());
  for (int step = 5; step <= 8; ++step) of.add(step, {0, 0, 3, 1, 1, 1});
  const std::string svg = of.svg("experts");
  CHECK(cells_of(svg) == 2 * 3 * 4);
  CHECK_THAT(svg, Contains("layer 0") && Contains("layer 1") && Contains("step 5<") &&
                      Contains("step 8<") && Contains(">experts</text>"));
  CHECK(count_of("fill=\"#ffffff\"", svg) == 2 + 2 * 4);  // ground, scale, two experts
  expert_picture other(2, 3);
  for (int step = 5; step <= 8; ++step) other.add(step, {1, 1, 1, 1, 1, 1});
  CHECK(count_of("fill=\"#ffffff\"", other.svg("experts")) == 2);
}

TEST_CASE("a picture of many steps and experts has a bounded number of cells") {
  expert_picture of(60, 256);
  std::vector<float> shares(60 * 256, 1);
  shares[1] = 4;  // the busiest of its row
  for (int step = 1; step <= 1000; ++step) of.add(step, shares);
  const std::string svg = of.svg("many");
  CHECK(cells_of(svg) <= expert_picture::columns * expert_picture::rows);
  CHECK(cells_of(svg) >= 60 * expert_picture::columns / 2);
  CHECK_THAT(svg, Contains("step 1<") && Contains("step 1000<"));
  CHECK(count_of("fill=\"#08306b\"", svg) == 1 + 125);  // scale, a row of columns of 8 steps
}
