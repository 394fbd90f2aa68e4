// Transfers: carried out on elements that know where they belong, they give each rank its part, of
// parameters and of the states of a sharded optimizer, from any sharding to any other.
#include <cstdlib>

#include "comm/sharding/enumeration.hpp"
#include "tests/record.hpp"

using namespace velo::testing;

namespace {

std::int64_t flat(const std::int64_t* at, const std::int64_t* shape, std::int32_t ndim) {
  std::int64_t index = 0;
  for (int d = 0; d < ndim; ++d) index = index * shape[d] + at[d];
  return index;
}

// Calls body(position in the source, position at the rank, element) for each element of a move.
template <class Body>
void each_element(const velo_sharding_move& move, std::int32_t ndim, const Body& body) {
  std::vector<std::int64_t> e(move.begin, move.begin + ndim);
  for (;;) {
    std::int64_t from[8], to[8];
    for (int d = 0; d < ndim; ++d) {
      const std::int64_t offset = e[static_cast<std::size_t>(d)] - move.begin[d];
      from[d] = move.source_at[d] + offset, to[d] = move.at[d] + offset;
    }
    body(from, to, e);
    int d = ndim - 1;
    while (d >= 0 && ++e[static_cast<std::size_t>(d)] == move.end[d]) {
      e[static_cast<std::size_t>(d)] = move.begin[d];
      --d;
    }
    if (d < 0) return;
  }
}

std::vector<velo_sharding_move> moves_of(velo_sharding from, velo_sharding to, std::int64_t rank,
                                         velo_sharding_content content) {
  std::int64_t count = 0;
  REQUIRE(velo_sharding_transfer(from, to, 0, rank, content, nullptr, 0, &count) == VELO_OK);
  std::vector<velo_sharding_move> all(static_cast<std::size_t>(count));
  REQUIRE(velo_sharding_transfer(from, to, 0, rank, content, all.data(), count, nullptr) ==
          VELO_OK);
  return all;
}

void check_rank(const sharding& from, const enumeration& before, std::int64_t ranks_before,
                const sharding& to, const enumeration& after, std::int64_t rank,
                velo_sharding_content content) {
  const velo_sharding_part part = to.part(0, rank);
  const std::vector<element> own = after.elements(rank);
  const bool ranges = content == VELO_SHARDING_RANGES;
  const std::int64_t begin = ranges ? part.range_begin : 0;
  const std::int64_t end = ranges ? part.range_end : part.elements;
  std::vector<element> got(own.size());
  std::int64_t taken = 0;
  for (const velo_sharding_move& move : moves_of(from, to, rank, content)) {
    REQUIRE(move.source >= 0);
    REQUIRE(move.source < ranks_before);
    const velo_sharding_part source = from.part(0, move.source);
    const std::vector<element> has = before.elements(move.source);
    each_element(move, part.ndim,
                 [&](const std::int64_t* at, const std::int64_t* to_at, const element& e) {
                   const std::int64_t here = flat(at, source.shape, part.ndim);
                   REQUIRE(has[static_cast<std::size_t>(here)] == e);
                   if (ranges) {
                     REQUIRE(source.range_begin <= here);
                     REQUIRE(here < source.range_end);
                   }
                   got[static_cast<std::size_t>(flat(to_at, part.shape, part.ndim))] = e;
                   ++taken;
                 });
    // what the rank had it takes from itself
    if (!ranges && rank < ranks_before && move.source != rank) {
      element first(move.begin, move.begin + part.ndim);
      REQUIRE(!before.holds(rank, first));
    }
  }
  REQUIRE(taken == end - begin);  // each element once
  for (std::int64_t i = begin; i < end; ++i)
    REQUIRE(got[static_cast<std::size_t>(i)] == own[static_cast<std::size_t>(i)]);
}

}  // namespace

TEST_CASE("a transfer gives each rank its part from any sharding") {
  const char* asked = std::getenv("VELO_SHARDINGS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 80;
  for (int round = 0; round < rounds; ++round) {
    shown_random_numbers<std::mt19937_64> random(static_cast<std::uint64_t>(round) + 77);
    INFO("round " << round);
    const small_job first = random_job(random), second = random_job(random);
    const described_parameter p = random_parameter(random, first, "p");
    const described_parameter q = random_parameter(random, second, "p", &p.shape());
    sharding from(first.desc());
    from.add(p);
    sharding to(second.desc());
    to.add(q);
    const enumeration before(first, p), after(second, q);
    for (std::int64_t rank = 0; rank < second.ranks(); ++rank)
      for (const velo_sharding_content content : {VELO_SHARDING_PARTS, VELO_SHARDING_RANGES})
        check_rank(from, before, first.ranks(), to, after, rank, content);
  }
}

TEST_CASE("a transfer from a sharding without the parameter, or with holes, is refused by name") {
  sharding from(sizes(2, 1, 1, 1, 1)), to(sizes(1, 1, 1, 1, 1));
  to.add(described_parameter("w", {4}));
  std::int64_t count = -1;
  const auto transfer = [&] {
    return velo_sharding_transfer(from, to, 0, 0, VELO_SHARDING_PARTS, nullptr, 0, &count);
  };
  CHECK(transfer() == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "from");
  CHECK(last_record().expected == "a parameter w");
  from.add(described_parameter("w", {4}).bounds(0, "tp", {0, 2, 3, 4}));
  CHECK(transfer() == VELO_ERR_ARGUMENT);
  CHECK(last_record().expected == "a rank that holds element [2] of w");
  CHECK(count == -1);

  sharding other(sizes(1, 1, 1, 1, 1));
  other.add(described_parameter("w", {2, 2}));
  CHECK(velo_sharding_transfer(other, to, 0, 0, VELO_SHARDING_PARTS, nullptr, 0, &count) ==
        VELO_ERR_ARGUMENT);
  CHECK(last_record().expected == "the shape of w as in `to`");
}
