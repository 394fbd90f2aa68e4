// The order in which groups combine elements, as group.h states it: inside a host by rank, then the
// hosts, for every size, reduction, collective and placing of the ranks; and how little leaves a
// host for that.
#include "comm/collective/sweep.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

const char* const placings[] = {"0011", "0101", "0110", "0001", "0111", "0012", "0000", "0123"};

constexpr float large = 1 << 24;

std::vector<float> sum(const rank_of_group& me, float mine, std::int64_t count, velo_status& done) {
  std::vector<float> x(at(count), mine);
  done = reduce_in_place(me.stream, me.group, x);
  return x;
}

}  // namespace

TEST_CASE("every collective, dtype and reduction has the order of its ranks' hosts") {
  for (const std::string hosts : placings) {
    const ranks_on_hosts ranks(hosts);
    std::vector<std::string> first(hosts.size());
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      sweep of(me, hosts);
      of.run();
      first[static_cast<std::size_t>(me.rank)] = of.first();
      return velo_status{of.wrong() == 0 ? VELO_OK : VELO_ERR_INTERNAL};
    });
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      INFO(hosts << ", rank " << rank << ": " << first[rank] << all[rank].got);
      CHECK(all[rank].code == VELO_OK);
    }
  }
}

// A 1 beside 2^24 is lost; two of them, and one beside -2^24, are not.
TEST_CASE("numbers of which each order has another sum") {
  const float given[] = {large, 1, 1, -large};
  const struct {
    const char* hosts;
    float sum;
  } cases[] = {{"0000", 0}, {"0011", 1}, {"0110", 2}, {"0101", 1}};
  for (const auto& one : cases) {
    const ranks_on_hosts ranks(one.hosts);
    for (const std::int64_t count : {1, 480, 481, 5000}) {
      INFO(one.hosts << ", " << count);
      ranks.require([&](const rank_of_group& me) {
        velo_status done = VELO_OK;
        const std::vector<float> got = sum(me, given[me.rank], count, done);
        const bool right = std::count(got.begin(), got.end(), one.sum) == count;
        return done != VELO_OK || right ? done : VELO_ERR_INTERNAL;
      });
    }
  }
}

// Ranks 3, 1, 0, 2 of hosts 0011: places 0 and 3 share a host, and 1 and 2.
TEST_CASE("a part has an order of its own, by its own ranks") {
  const ranks_on_hosts ranks("0011");
  const std::int32_t of[] = {3, 1, 0, 2}, pair[] = {2, 0, 1};
  ranks.require([&](rank_of_group me) {
    velo_group whole = me.group;
    velo_status done = velo_group_create_part(whole, of, 4, nullptr, &me.group);
    if (done != VELO_OK) return done;
    me.rank = static_cast<int>(std::find(of, of + 4, me.rank) - of);
    sweep all(me, "0110");
    all.run();
    velo_group_destroy(me.group);
    if (all.wrong() != 0) return velo_status{VELO_ERR_INTERNAL};
    const int rank = of[me.rank];
    if (rank == 3) return done;
    done = velo_group_create_part(whole, pair, 3, nullptr, &me.group);
    if (done != VELO_OK) return done;
    me.rank = static_cast<int>(std::find(pair, pair + 3, rank) - pair), me.size = 3;
    sweep some(me, "100");
    some.run();
    velo_group_destroy(me.group);
    return velo_status{some.wrong() == 0 ? VELO_OK : VELO_ERR_INTERNAL};
  });
}

// The least traffic between hosts: in an all_reduce each host sends and receives all elements once,
// in two halves; in a reduce_scatter it sends each remote rank its part of the host's sum.
TEST_CASE("reductions leave a host once") {
  const struct {
    const char* hosts;
    std::int64_t scattered;  // parts that leave hosts
    std::int64_t reduced;    // times what is reduced that leaves hosts
  } cases[] = {{"0011", 4, 2}, {"0101", 4, 2}, {"0001", 4, 2}, {"0012", 8, 4}};
  for (const auto& one : cases)
    for (const bool uneven : {false, true}) {
      const ranks_on_hosts ranks(one.hosts);
      const std::int64_t part = 1 << 18, whole = 4 * part;
      const std::int64_t counts[] = {part, part, part, part};
      const std::int64_t before = ranks.data_left(), all_before = ranks.left();
      ranks.require([&](const rank_of_group& me) {
        const float_tensor in({whole}, 1), out({part});
        return uneven
                   ? velo_group_reduce_scatter_v(me.stream, me.group, nullptr, &in.view, counts,
                                                 &out.view)
                   : velo_group_reduce_scatter(me.stream, me.group, nullptr, &in.view, &out.view);
      });
      INFO(one.hosts << ", uneven " << uneven);
      CHECK(ranks.data_left() - before == one.scattered * part * 4);
      CHECK(ranks.left() - all_before < one.scattered * part * 4 * 101 / 100);
      const std::int64_t then = ranks.data_left();
      ranks.require([&](const rank_of_group& me) {
        velo_status done = VELO_OK;
        sum(me, 1, whole, done);
        return done;
      });
      CHECK(ranks.data_left() - then == one.reduced * whole * 4);
    }
}
