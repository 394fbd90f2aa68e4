// Ranks that share splits have each row once and, with all_gather, as many cells; the heads of an
// exchange are cut so that each is computed once, beside the head of keys that it reads.
#include "examples/decoder/parallel/shared_splits.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

namespace {

std::vector<std::vector<sequence_split>> splits_of_ranks(settings s) {
  s.run.ranks = s.parallel.ranks_of_copy();
  s.run.transport = "local", s.run.threads = 1;
  const part_widths widths = weight_layout(s.model).widths;
  std::vector<std::vector<sequence_split>> all(static_cast<std::size_t>(s.run.ranks));
  on_all_ranks(s, {}, [&](member& rank) {
    split(rank, s);
    all[static_cast<std::size_t>(rank.rank())] = cut_shared_sequence(rank, s, widths);
    return 0;
  });
  return all;
}

settings shared(const char* algorithm, std::int64_t ranks, std::int64_t rows, std::int64_t splits) {
  settings s = small_settings("f32");
  s.model.heads = 6, s.model.kv_heads = 3, s.model.hidden = 96;
  s.data.sequence = rows;
  s.parallel.cp = ranks, s.parallel.cp_algorithm = algorithm;
  s.parallel.sequence_splits = splits;
  return s;
}

}  // namespace

TEST_CASE("ranks that share splits have each row of each split once") {
  const char* const algorithm = GENERATE("all_gather", "ulysses");
  for (const std::int64_t ranks : {2, 3, 4})
    for (const std::int64_t splits : {2, 3, 5})
      for (const std::int64_t rows : {splits * ranks, splits * ranks + 1, std::int64_t{97}}) {
        INFO(algorithm << ", " << ranks << " ranks, " << splits << " splits of " << rows);
        const auto all = splits_of_ranks(shared(algorithm, ranks, rows, splits));
        std::vector<std::int64_t> before(static_cast<std::size_t>(ranks));
        for (std::size_t i = 0; i < static_cast<std::size_t>(splits); ++i) {
          std::set<std::int64_t> seen;
          for (std::size_t rank = 0; rank < all.size(); ++rank) {
            const sequence_split& each = all[rank][i];
            CHECK(each.before == before[rank]);
            before[rank] += each.count();
            CHECK(each.count() > 0);
            CHECK(each.parts[rank].positions() == each.rows.positions());
            for (const std::int64_t row : each.rows.positions()) {
              CHECK((row >= each.begin && row < each.end));
              CHECK(seen.insert(row).second);
            }
            CHECK(each.parts.size() == all.size());
          }
          CHECK(static_cast<std::int64_t>(seen.size()) == all[0][i].all_rows());
        }
      }
}

// A query sees the keys up to its own row, in all splits up to its own.
TEST_CASE("ranks that gather keys see as many cells in each split") {
  for (const std::int64_t ranks : {2, 4}) {
    const auto all = splits_of_ranks(shared("all_gather", ranks, 96, 3));
    for (std::size_t i = 0; i < 3; ++i) {
      std::set<std::int64_t> cells;
      for (const auto& rank : all) {
        std::int64_t sum = 0, queries = 0;
        for (const row_run& run : rank[i].runs) {
          CHECK(run.first == queries);
          queries += run.count();
          for (std::int64_t row = run.begin; row < run.end; ++row) sum += row + 1;
        }
        CHECK(queries == rank[i].count());
        cells.insert(sum);
      }
      CHECK(cells.size() == 1);
    }
  }
}

TEST_CASE("ranks that exchange heads compute the queries of all rows, in order") {
  for (const auto& rank : splits_of_ranks(shared("ulysses", 3, 50, 4)))
    for (const sequence_split& each : rank) {
      std::int64_t row = each.begin;
      for (const row_run& run : each.runs) {
        CHECK(run.begin == row);
        CHECK(run.first == row - each.begin);
        row = run.end;
      }
      CHECK(row == each.end);
    }
}

TEST_CASE("each head is some rank's, with the head of keys that it reads") {
  for (const std::int64_t readers : {1, 2, 3, 4})
    for (std::int64_t kv_heads = 1; kv_heads <= 7; ++kv_heads)
      for (std::int64_t ranks = 2; ranks <= std::min<std::int64_t>(8, readers * kv_heads);
           ++ranks) {
        INFO(readers << " readers of " << kv_heads << " heads, " << ranks << " ranks");
        const std::int64_t heads = readers * kv_heads;
        const head_cuts cuts = cut_heads(heads, kv_heads, ranks);
        std::int64_t next = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const auto at = 2 * static_cast<std::size_t>(rank);
          CHECK(cuts.queries[at] == next);
          std::int64_t queries = 0, keys = 0;
          for (const head_range& each : ranges_of(cuts, rank, heads, kv_heads)) {
            CHECK(each.query == queries);
            CHECK(each.key == keys);
            CHECK(each.queries % each.keys == 0);
            for (std::int64_t i = 0; i < each.queries; ++i)
              CHECK((cuts.queries[at] + each.query + i) / readers ==
                    cuts.keys[at] + each.key + i / (each.queries / each.keys));
            queries += each.queries;
            keys += each.keys;
          }
          CHECK(queries == cuts.queries[at + 1] - cuts.queries[at]);
          CHECK(keys == cuts.keys[at + 1] - cuts.keys[at]);
          next = cuts.queries[at + 1];
        }
        CHECK(next == heads);
      }
}
