// Operations from which a rank returns before its peers have posted: the peers' results, and the
// failure of a later call if a peer has other terms or never posts.
#include "comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

velo_status broadcast(const local_ranks& ranks, int rank, int root, std::vector<float>& x) {
  const auto size = static_cast<std::int64_t>(x.size());
  const velo_tensor view = view_of(x.data(), f32, size);
  return velo_group_broadcast(ranks.stream(rank), ranks.group(rank), root, &view);
}

velo_status barrier(const local_ranks& ranks, int rank) {
  return velo_group_barrier(ranks.stream(rank), ranks.group(rank));
}

velo_status broadcast_four(const local_ranks& ranks, int rank, int root) {
  std::vector<float> x(4, 1.0f);
  return broadcast(ranks, rank, root, x);
}

bool has_ended(velo_group group) {
  return info_of(group).failed == 1;
}

}  // namespace

TEST_CASE(
    "the root of a short broadcast between two ranks returns before the other rank has posted") {
  for (const std::size_t count : {0, 1, 4, 5, 256}) {  // none, inlined, a whole mailbox
    INFO(count << " elements");
    const local_ranks ranks(2, group_desc(5000));
    std::atomic<bool> has_left{false};
    std::vector<float> got(count, 0.0f);
    ranks.require([&](int rank) {
      if (rank == 1) {
        while (!has_left) std::this_thread::yield();
        return broadcast(ranks, 1, 0, got);
      }
      std::vector<float> x(count, 7.0f);
      const velo_status done = broadcast(ranks, 0, 0, x);
      x.assign(count, 8.0f);
      has_left = true;
      return done;
    });
    CHECK(got == std::vector<float>(count, 7.0f));
  }
}

TEST_CASE("a root that returned early learns at its next call that its peer has other terms") {
  const bool both_lead = GENERATE(false, true);
  const local_ranks ranks(2);
  std::vector<velo_status> first(2);
  const std::vector<call_record> all = ranks.run([&](int rank) {
    first[at(rank)] =
        rank == 0 || both_lead ? broadcast_four(ranks, rank, rank) : barrier(ranks, rank);
    return barrier(ranks, rank);
  });
  CHECK(first[0] == VELO_OK);
  CHECK(first[1] == (both_lead ? VELO_OK : VELO_ERR_PEER));
  for (const call_record& one : all) {
    CHECK_PEER(
        one, 1,
        (both_lead ? "rank 1 with broadcast of 4 float32 from rank 1" : "rank 1 with barrier"));
    CHECK(one.expected == "broadcast of 4 float32 from rank 0 (operation 1)");
  }
}

TEST_CASE("a root that returned early and destroys its group ends it if its peer has other terms") {
  const local_ranks ranks(2);
  ranks.require([&](int rank) { return broadcast_four(ranks, rank, rank); });
  CHECK_FALSE(has_ended(ranks.group(1)));
  velo_group_destroy(ranks.group(0));
  CHECK(has_ended(ranks.group(1)));
  CHECK(record_of(barrier(ranks, 1)).got == "rank 1 with broadcast of 4 float32 from rank 1");
}

TEST_CASE("a root that returned early names at its next call the peer that is missing") {
  const local_ranks ranks(2, group_desc(50));
  CHECK(broadcast_four(ranks, 0, 0) == VELO_OK);
  const call_record next = record_of(barrier(ranks, 0));
  CHECK_PEER(next, 1, "rank 1 not there");
  CHECK(next.expected == "broadcast of 4 float32 from rank 0 (operation 1) within 50 ms");
}

TEST_CASE("a root that destroyed its group is not missing for a peer that calls later") {
  const local_ranks ranks(2);
  std::atomic<bool> has_left{false};
  ranks.require([&](int rank) {
    if (rank == 1) {
      while (!has_left) std::this_thread::yield();
      return broadcast_four(ranks, 1, 0);
    }
    const velo_status done = broadcast_four(ranks, 0, 0);
    has_left = true;
    velo_group_destroy(ranks.group(0));  // which waits for the other
    return done;
  });
}

TEST_CASE("ranks that return at different times read what was written for them") {
  constexpr int rounds = 3000;
  const local_ranks ranks(2);
  std::atomic<int> wrong{0};
  ranks.require([&](int rank) {
    cheap_random draw(12345);  // the same on both
    velo_status done = VELO_OK;
    for (int round = 0; round < rounds && done == VELO_OK; ++round) {
      const std::uint32_t state = draw();
      const int root = static_cast<int>(state >> 30 & 1);
      const std::size_t count = (state >> 8 & 7) == 0 ? 300 : state >> 12 & 255;
      const auto value = static_cast<float>(round);
      if ((state >> 25 & 15) == static_cast<std::uint32_t>(rank)) std::this_thread::yield();
      if ((state >> 20 & 15) == 0) done = barrier(ranks, rank);
      std::vector<float> x(count, rank == root ? value : -1.0f);
      if (done == VELO_OK) done = broadcast(ranks, rank, root, x);
      wrong += x != std::vector<float>(count, value);
    }
    return done;
  });
  CHECK(wrong == 0);
}
