// Splits of a sequence tile it, and the runs of packed documents show a split's queries all the
// keys of their document up to them, and nothing else.
#include "examples/decoder/data/sequence_split.hpp"

#include <catch2/catch.hpp>

using namespace decoder;

TEST_CASE("splits tile a sequence evenly, the first ones with a row more") {
  for (std::int64_t rows = 1; rows <= 40; ++rows)
    for (std::int64_t splits = 1; splits <= rows; ++splits) {
      const std::vector<sequence_split> all = cut_sequence(rows, splits);
      REQUIRE(all.size() == static_cast<std::size_t>(splits));
      std::int64_t end = 0;
      for (const sequence_split& each : all) {
        CHECK(each.begin == end);
        CHECK(each.count() >= rows / splits);
        CHECK(each.count() <= all.front().count());
        CHECK(each.rows.count() == each.count());
        CHECK(each.sequence() == rows);
        end = each.end;
      }
      CHECK(all.front().count() - all.back().count() <= 1);
      CHECK(end == rows);
    }
}

TEST_CASE("the rows of a split in all windows are those of each, one after another") {
  const sequence_split second = cut_sequence(5, 2)[1];
  const held_rows rows = rows_in_windows(second.rows, 3);
  CHECK(rows.sequence() == 15);
  CHECK(rows.positions() == std::vector<std::int64_t>{3, 4, 8, 9, 13, 14});
}

TEST_CASE("runs of documents end a query's keys at its own row and begin them with its document") {
  constexpr std::int64_t rows = 12, windows = 3;
  const std::vector<std::int64_t> ends = {1, 5, 12, 24, 25, 30, 36};
  for (std::int64_t splits = 1; splits <= rows; ++splits)
    for (const sequence_split& each : cut_sequence(rows, splits)) {
      INFO("split " << each.number << " of " << splits);
      const document_runs runs = document_runs_of(each.runs[0], rows, ends);
      REQUIRE(runs.keys.size() == runs.queries.size());
      CHECK(runs.keys.back() == rows * windows);
      const std::vector<std::int64_t> held = rows_in_windows(each.rows, windows).positions();
      REQUIRE(runs.queries.back() == static_cast<std::int64_t>(held.size()));
      std::int64_t query = 0, first_key = 0;
      for (std::size_t i = 0; i < runs.keys.size(); ++i) {
        CHECK(runs.keys[i] > first_key);
        for (; query < runs.queries[i]; ++query) {
          // The queries of a run are its last keys.
          const std::int64_t row = runs.keys[i] - (runs.queries[i] - query);
          CHECK(row == held[static_cast<std::size_t>(query)]);
          std::int64_t document = 0;
          for (const std::int64_t end : ends)
            if (end <= row) document = end;
          CHECK(first_key == document);
        }
        first_key = runs.keys[i];
      }
    }
}
