// The table of combinations in the program's page: each works with the losses of one rank, or is
// refused with the words that the page has.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

struct combination {
  std::vector<std::string> model, ranks;
  std::string result;
};

// The words of a cell `--a 1 --b 2`; "-" has none.
std::vector<std::string> words_in(std::string cell) {
  for (char& c : cell)
    if (c == '`') c = ' ';
  std::vector<std::string> all = words_of(cell);
  if (all == std::vector<std::string>{"-"}) all.clear();
  return all;
}

std::vector<combination> combinations_of_page() {
  std::istringstream page(get(PRETRAIN_PAGE));
  std::vector<combination> all;
  std::string line;
  while (std::getline(page, line) && line.rfind("| model and data | ranks |", 0) != 0) continue;
  std::getline(page, line);  // the rule below the head
  while (std::getline(page, line) && line.rfind("| ", 0) == 0) {
    std::istringstream cells(line.substr(1));
    std::string model, ranks, result;
    std::getline(cells, model, '|');
    std::getline(cells, ranks, '|');
    std::getline(cells, result, '|');
    const auto first = result.find_first_not_of(' ');
    result = result.substr(first, result.find_last_not_of(' ') + 1 - first);
    all.push_back({words_in(model), words_in(ranks), result});
  }
  return all;
}

}  // namespace

TEST_CASE("the page's combinations work with the losses of one rank, or are refused as it says") {
  const std::vector<combination> all = combinations_of_page();
  REQUIRE(all.size() > 12);
  for (const combination& each : all) {
    const workplace w;
    std::vector<std::string> words = each.model;
    words.insert(words.end(), {"--dtype", "f32", "--transport", "local", "--validate_every", "0"});
    std::string text;
    for (const auto* part : {&each.model, &each.ranks})
      for (const std::string& word : *part) text += word + " ";
    INFO(text);
    std::vector<std::string> cut = words;
    cut.insert(cut.end(), each.ranks.begin(), each.ranks.end());
    const outcome done = w.run(cut, {"--log", w / "cut", "--out", w / "cut.out"});
    INFO(done.text);
    if (each.result != "works") {
      CHECK(done.code == 1);
      CHECK_THAT(done.text, Contains(each.result.substr(1, each.result.size() - 2)));
      continue;
    }
    REQUIRE(done.code == 0);
    ended(0, w.run(words, {"--log", w / "whole", "--out", w / "whole.out"}));
    compare_logs(w.losses("whole"), w.losses("cut"));
  }
}
