// Documents in windows: nothing is lost, nothing is cut that fits, and little is padding.
#include "examples/decoder/data/packing.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>

#include "examples/decoder/data/training_windows.hpp"

using namespace decoder;

namespace {

std::vector<std::string_view> cut(std::string_view text, std::int64_t rows) {
  std::vector<piece> all;
  cut_document(text, rows, all);
  std::vector<std::string_view> bytes;
  for (const piece& each : all) {
    CHECK(each.rows() <= rows);
    CHECK(each.ends == (&each == &all.back()));
    bytes.push_back(each.bytes);
  }
  return bytes;
}

using texts = std::vector<std::string_view>;

}  // namespace

TEST_CASE("a document that fits with its end stays whole, a longer one fills windows") {
  CHECK(cut("abc", 4) == texts{"abc"});
  CHECK(cut("abcd", 4) == texts{"abc", "d"});  // eos never stands alone
  CHECK(cut("abcde", 4) == texts{"abcd", "e"});
  CHECK(cut("abcdefghij", 4) == texts{"abcd", "efgh", "ij"});
  CHECK(cut("", 2) == texts{""});
  CHECK(cut("ab", 2) == texts{"a", "b"});
}

TEST_CASE("pieces are packed from the longest to the shortest where they fit best") {
  const std::string text(9, 'x');
  std::vector<piece> pieces;
  for (const std::size_t bytes : {3, 9, 5, 2, 7, 1})
    pieces.push_back({std::string_view(text).substr(0, bytes)});
  const packing made = pack(pieces, 10);
  // 9 + 1, 7 + 3, 5 + 2
  REQUIRE(made.windows() == 3);
  CHECK(made.rows(0) == 10);
  CHECK(made.rows(1) == 10);
  CHECK(made.rows(2) == 7);
  CHECK(made.at(1).count == 2);
  CHECK(made.at(1).pieces[1].bytes.size() == 3);
  CHECK(pack({}, 10).windows() == 0);
}

TEST_CASE("every byte of every document is in one window, once an epoch") {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    const std::int64_t rows = 2 + static_cast<std::int64_t>(random() % 40);
    corpus text;
    for (std::size_t n = 0, count = 1 + random() % 60; n < count; ++n) {
      const std::size_t bytes = 1 + random() % (random() % 5 == 0 ? 200 : 20);
      for (std::size_t k = 0; k < bytes; ++k) text.training += static_cast<char>(random());
      text.training_ends.push_back(text.training.size());
    }
    training_windows windows(text, rows, i);
    REQUIRE(windows.has_documents());
    const std::int64_t per_epoch = windows.packed().windows();
    std::map<const char*, std::size_t> seen;
    std::set<const char*> ends;
    std::int64_t used = 0;
    for (std::int64_t number = per_epoch; number < 2 * per_epoch; ++number) {
      const window one = windows.at(number);
      std::int64_t of_window = 0;
      for (std::size_t k = 0; k < one.count; ++k) {
        const piece& each = one.pieces[k];
        CHECK(seen.emplace(each.bytes.data(), each.bytes.size()).second);
        if (each.ends) ends.insert(each.bytes.data() + each.bytes.size());
        of_window += each.rows();
      }
      CHECK(of_window <= rows);
      CHECK(windows.targets(number, 1) == of_window);
      used += of_window;
    }
    const char* at = text.training.data();
    for (const auto& [begin, bytes] : seen) {
      CHECK(begin == at);
      at = begin + bytes;
    }
    CHECK(at == text.training.data() + text.training.size());
    CHECK(ends.size() == text.training_ends.size());
    const auto documents = static_cast<std::int64_t>(text.training_ends.size());
    CHECK(used == static_cast<std::int64_t>(text.training.size()) + documents);
    CHECK(windows.targets(per_epoch, per_epoch) == used);
    CHECK(2 * used > (per_epoch - 1) * rows);  // best fit leaves at most one window half empty
  }
}
