// Parts, copies, sums and ranges: known cases, and random parameters against an enumeration of
// their elements.
#include <cmath>
#include <cstdlib>
#include <map>

#include "comm/sharding/enumeration.hpp"

using namespace velo::testing;

namespace {

// The first and last key head that a rank holds of `groups`, with `heads` query heads.
std::pair<std::int64_t, std::int64_t> key_heads(std::int64_t heads, std::int64_t groups,
                                                std::int64_t tp, std::int64_t rank) {
  sharding s(sizes(tp, 1, 1, 1, 1));
  const std::int64_t k = s.add(described_parameter("k", {groups * 8, 4})
                                   .cut(0, "tp", {{groups * 8, heads, heads / groups}}));
  const std::int64_t pieces = s.part(k, rank).pieces;
  return {s.piece(k, rank, 0).begin[0] / 8, s.piece(k, rank, pieces - 1).end[0] / 8 - 1};
}

using range = std::pair<std::int64_t, std::int64_t>;

}  // namespace

TEST_CASE("heads that a group does not divide are cut by the uneven rule") {
  // h 3200, d 128, 25 heads: rows of query, key and value together, columns of the output product
  sharding s(sizes(4, 1, 1, 1, 1));
  const std::int64_t rows = 25 * 128;
  const std::int64_t qkv = s.add(described_parameter("qkv", {3 * rows, 3200})
                                     .cut(0, "tp", {{rows, 25, 1}, {rows, 25, 1}, {rows, 25, 1}}));
  const std::int64_t dense =
      s.add(described_parameter("dense", {3200, rows}).cut(1, "tp", {{rows, 25, 1}}));
  const std::int64_t heads[] = {7, 6, 6, 6};
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(s.part(qkv, rank).shape[0] == 3 * heads[rank] * 128);
    CHECK(s.part(qkv, rank).pieces == 3);
    CHECK(s.part(dense, rank).shape[1] == heads[rank] * 128);
  }
  CHECK(s.piece(qkv, 1, 1).begin[0] == rows + 7 * 128);
  CHECK(s.piece(qkv, 1, 1).at[0] == 6 * 128);
  CHECK(velo_sharding_check(s) == VELO_OK);
}

TEST_CASE("query heads need the key heads of their groups, and neighbors may hold copies") {
  CHECK(key_heads(28, 7, 2, 0) == range(0, 3));
  CHECK(key_heads(28, 7, 2, 1) == range(3, 6));
  CHECK(key_heads(12, 3, 4, 0) == range(0, 0));
  CHECK(key_heads(12, 3, 4, 1) == range(0, 1));
  CHECK(key_heads(12, 3, 4, 2) == range(1, 2));
  CHECK(key_heads(12, 3, 4, 3) == range(2, 2));
  CHECK(key_heads(32, 2, 8, 3) == range(0, 0));
  CHECK(key_heads(32, 2, 8, 4) == range(1, 1));

  sharding s(sizes(2, 1, 1, 3, 1));
  const std::int64_t k = s.add(described_parameter("k", {7 * 8}).cut(0, "tp", {{56, 28, 4}}));
  REQUIRE(s.part(k, 0).pieces == 2);
  CHECK(s.part(k, 0).copies == 0);
  CHECK(s.piece(k, 0, 0).copies == 3);
  CHECK(s.piece(k, 0, 1).copies == 6);
  CHECK(s.holders(k, 0, 0) == std::vector<std::int32_t>{0, 2, 4});
  CHECK(s.holders(k, 0, 1) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  CHECK(s.sums(k, 0) == std::vector<std::string>{"dp-cp", "copies"});
  CHECK(velo_sharding_check(s) == VELO_OK);
}

TEST_CASE("a gradient is a sum over the ranks that computed parts of it") {
  velo_topology_desc desc = sizes(4, 2, 2, 2, 2);
  desc.tp_x = 2;
  sharding s(desc);
  const auto of = [&](described_parameter p) { return s.sums(s.add(std::move(p)), 0); };
  using names = std::vector<std::string>;
  CHECK(of(described_parameter("w", {8, 8}).cut(0, "tp").stages({0})) == names{"dp-cp"});
  CHECK(of(described_parameter("norm", {8}).partial("tp").stages({0})) == names{"dp-cp", "tp"});
  CHECK(of(described_parameter("norm 2d", {8}).cut(0, "tp_y").partial("tp_x").stages({0})) ==
        names{"dp-cp", "nd1-dim1"});
  CHECK(of(described_parameter("tied", {8, 8}).cut(0, "tp").stages({0, 1})) ==
        names{"dp-cp", "embedding"});
  CHECK(of(described_parameter("everywhere", {8})) == names{"dp-cp", "pp"});
  CHECK(of(described_parameter("experts", {4, 8}).cut(0, "ep").experts().stages({0})) ==
        names{"edp"});
  CHECK(of(described_parameter("elsewhere", {8}).stages({1})).empty());
  CHECK(of(described_parameter("no gradient", {8}).no_gradient()).empty());
  CHECK(
      of(described_parameter("shared heads", {8}).cut(0, "tp", {{8, 4, 4}}).no_gradient()).empty());
}

TEST_CASE("each element counts once in a norm") {
  // experts with gradients 2, 4 | 6, 8 on two ranks; sqrt(120), not the mean of the ranks' norms
  sharding s(sizes(1, 1, 2, 2, 1));
  const std::int64_t experts = s.add(described_parameter("e", {4}).cut(0, "ep").experts());
  const std::int64_t norm = s.add(described_parameter("n", {1}));
  const double gradient[] = {2, 4, 6, 8};
  double squares = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const velo_sharding_piece piece = s.piece(experts, rank, 0);
    for (std::int64_t i = piece.begin[0]; i < piece.end[0]; ++i)
      squares += gradient[i] * gradient[i] / static_cast<double>(piece.copies);
  }
  CHECK(std::abs(std::sqrt(squares) - 10.954451) < 1e-6);
  for (int rank = 0; rank < 2; ++rank)
    squares += 1.0 / static_cast<double>(s.part(norm, rank).copies);
  CHECK(squares == 121);
}

TEST_CASE("ranges of the sharded optimizer follow the rule of buckets") {
  sharding s(sizes(1, 1, 1, 4, 1));
  const std::int64_t alone = s.add(described_parameter("alone", {10, 10}));
  const std::int64_t a = s.add(described_parameter("a", {30}).bucket(7));
  const std::int64_t b = s.add(described_parameter("b", {50}).bucket(7));
  const range alone_at[] = {{0, 32}, {32, 64}, {64, 96}, {96, 100}};
  const range a_at[] = {{0, 30}, {30, 30}, {30, 30}, {30, 30}};
  const range b_at[] = {{0, 2}, {2, 34}, {34, 50}, {50, 50}};  // 80 elements, 32 a rank
  for (int rank = 0; rank < 4; ++rank) {
    const auto of = [&](std::int64_t parameter) {
      const velo_sharding_part part = s.part(parameter, rank);
      return range(part.range_begin, part.range_end);
    };
    CHECK(of(alone) == alone_at[rank]);
    CHECK(of(a) == a_at[rank]);
    CHECK(of(b) == b_at[rank]);
  }
  CHECK(velo_sharding_check(s) == VELO_OK);
}

TEST_CASE("bounds of a caller are taken, and check says where they are wrong") {
  const auto check = [](std::vector<std::int64_t> bounds) {
    sharding s(sizes(3, 1, 1, 1, 1));
    s.add(described_parameter("w", {2, 10}).bounds(1, "tp", std::move(bounds)));
    return velo_sharding_check(s);
  };
  CHECK(check({0, 5, 5, 5, 5, 10}) == VELO_OK);
  CHECK(check({4, 10, 0, 4, 10, 10}) == VELO_OK);
  for (const auto& wrong : std::vector<std::vector<std::int64_t>>{{0, 5, 6, 8, 8, 10},
                                                                  {0, 5, 4, 8, 8, 10},
                                                                  {0, 5, 5, 8, 8, 9},
                                                                  {1, 5, 5, 8, 8, 10},
                                                                  {0, 10, 0, 10, 0, 10}})
    CHECK(check(wrong) == VELO_ERR_ARGUMENT);
}

TEST_CASE("blocks and bounds of the same numbers are not alike") {
  sharding s(sizes(3, 1, 1, 1, 1));
  s.add(described_parameter("right", {8}).cut(0, "tp", {{4, 4, 1}, {4, 3, 3}}));
  CHECK(velo_sharding_check(s) == VELO_OK);
  s.add(described_parameter("wrong", {8}).bounds(0, "tp", {4, 4, 1, 4, 3, 3}));
  CHECK(velo_sharding_check(s) == VELO_ERR_ARGUMENT);
}

TEST_CASE("units without number cost nothing, and a bucket has at most 2^60 elements") {
  sharding s(sizes(2, 1, 1, 2, 1));
  const std::int64_t huge = std::int64_t{1} << 58;
  const std::int64_t k =
      s.add(described_parameter("k", {huge}).cut(0, "tp", {{huge, 2 * huge, 2}}).bucket(0));
  CHECK(s.part(k, 1).elements == huge / 2);
  s.add(described_parameter("w", {3 * huge}).cut(0, "tp").bucket(0));
  CHECK(velo_sharding_check(s) == VELO_OK);
  described_parameter more("more", {1});
  const velo_sharding_parameter desc = more.bucket(0).desc();
  CHECK(velo_sharding_add(s, &desc, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(s.part(k, 3).range_end == huge / 2);
}

TEST_CASE("a bucket of many parameters is proven and written in one pass") {
  sharding s(sizes(2, 1, 1, 2, 1));
  for (int i = 0; i < 3000; ++i)
    s.add(described_parameter("p" + std::to_string(i), {7}).cut(0, "tp").bucket(1));
  CHECK(velo_sharding_check(s) == VELO_OK);
  CHECK(s.text(3, VELO_SHARDING_JSON).find("\"p2999\"") != std::string::npos);
}

TEST_CASE("random parameters lie where an enumeration of their elements says") {
  const char* asked = std::getenv("VELO_SHARDINGS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 150;
  for (int round = 0; round < rounds; ++round) {
    shown_random_numbers<std::mt19937_64> random(static_cast<std::uint64_t>(round));
    INFO("round " << round);
    const small_job job = random_job(random);
    sharding s(job.desc());
    std::vector<described_parameter> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(random_parameter(random, job, "p" + std::to_string(i)));
      s.add(all.back());
    }
    CHECK(velo_sharding_check(s) == VELO_OK);
    for (std::size_t p = 0; p < all.size(); ++p) {
      const auto parameter = static_cast<std::int64_t>(p);
      const enumeration truth(job, all[p]);
      std::map<element, std::vector<std::int32_t>> holders;
      for (std::int64_t rank = 0; rank < job.ranks(); ++rank)
        for (const element& e : truth.elements(rank))
          holders[e].push_back(static_cast<std::int32_t>(rank));
      for (const element& e : truth.elements()) REQUIRE(!holders[e].empty());
      const std::string updaters = all[p].of_experts() ? "edp" : "dp-cp";
      std::map<element, std::int64_t> ends;  // of ranges, by group of updating ranks
      for (std::int64_t rank = 0; rank < job.ranks(); ++rank) {
        INFO("parameter " << p << " rank " << rank);
        const std::vector<element> own = truth.elements(rank);
        const velo_sharding_part part = s.part(parameter, rank);
        REQUIRE(part.elements == static_cast<std::int64_t>(own.size()));
        std::vector<element> found(own.size());
        for (std::int64_t i = 0; i < part.pieces; ++i) {
          const velo_sharding_piece piece = s.piece(parameter, rank, i);
          for (const element& e : own) {
            std::int64_t at = 0;
            bool within = true;
            for (std::size_t d = 0; d < e.size(); ++d) {
              within = within && piece.begin[d] <= e[d] && e[d] < piece.end[d];
              at = at * part.shape[d] + piece.at[d] + e[d] - piece.begin[d];
            }
            if (!within) continue;
            REQUIRE(static_cast<std::int64_t>(holders[e].size()) == piece.copies);
            REQUIRE(found[static_cast<std::size_t>(at)].empty());
            found[static_cast<std::size_t>(at)] = e;
          }
          if (rank % 7 == 0) {
            element first(all[p].shape().size());
            std::copy_n(piece.begin, first.size(), first.begin());
            CHECK(s.holders(parameter, rank, i) == holders[first]);
          }
        }
        REQUIRE(found == own);  // every element in a piece, in the order of the whole
        // the ranges of an instance's ranks follow each other
        const std::int64_t place = job.index(updaters, rank);
        const std::int64_t each = job.size(updaters) / job.instances;
        element group = {place / each};
        for (const char* axis : {"tp", "gtp", "pp"})
          group.push_back(job.index(all[p].of_experts() && axis[0] == 't'   ? "etp"
                                    : all[p].of_experts() && axis[0] == 'g' ? "egtp"
                                                                            : axis,
                                    rank));
        if (all[p].of_experts()) group.push_back(job.index("ep", rank));
        std::int64_t& next = ends[group];
        if (part.range_begin < part.range_end) CHECK(part.range_begin == next);
        next = std::max(next, part.range_end);
        if (place % each == each - 1) CHECK(next == part.elements);
      }
    }
  }
}

TEST_CASE("a sharding is written as JSON and drawn") {
  sharding s(sizes(2, 1, 1, 1, 1));
  s.add(described_parameter("w", {4, 6}).cut(0, "tp"));
  s.add(described_parameter("gate_up", {8, 2}).cut(0, "tp", {{4, 0, 0}, {4, 0, 0}}));
  s.add(described_parameter("k", {3}).cut(0, "tp", {{3, 6, 2}}));
  s.add(described_parameter("norm", {6}).partial("tp"));
  s.add(described_parameter("no_gradient", {5}).no_gradient());
  CHECK(velo_sharding_check(s) == VELO_OK);
  CHECK(s.text(1, VELO_SHARDING_JSON) ==
        "{\"1\": {\"w\": {\"part\": [[2, 4], [0, 6]], \"sum\": [], \"copies\": 1, \"range\": [0, "
        "12]},\n"
        "  \"gate_up\": {\"part\": [[[2, 4], [6, 8]], [0, 2]], \"sum\": [], \"copies\": 1, "
        "\"range\": [0, 8]},\n"
        "  \"k\": {\"part\": [[1, 3]], \"sum\": [\"copies\"], \"copies\": [{\"part\": [[1, 2]], "
        "\"copies\": 2}, {\"part\": [[2, 3]], \"copies\": 1}], \"range\": [0, 2]},\n"
        "  \"norm\": {\"part\": [[0, 6]], \"sum\": [\"tp\"], \"copies\": 2, \"range\": [0, 6]},\n"
        "  \"no_gradient\": {\"part\": [[0, 5]], \"sum\": [], \"copies\": 2, \"range\": [0, 0]}}}");
  const std::string picture = s.text(-1, VELO_SHARDING_SVG);
  CHECK(picture.find("<svg ") == 0);
  CHECK(picture.find("gate_up") != std::string::npos);
}
