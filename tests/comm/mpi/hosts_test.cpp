// Ranks of several hosts, or that pretend to be: what goes by way of hosts is right.
#include <cmath>
#include <cstdlib>

#include "comm/mpi/ranks.hpp"

using namespace velo::test;

namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

// Sums of small whole numbers, which no order changes: with VELO_MPI_HOST ranks pretend to be of two
// hosts. Of other numbers all ranks must have the same bits, and again the same the next time.
TEST_CASE("what goes by way of hosts is what threads get", "[hosts]") {
  setenv("VELO_MPI_HOST", std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) < 3 ? "one" : "two", 1);
  joined all;
  rank_of_group me = all.me;
  for (const velo_dtype dtype : {bf16, i64}) {
    const std::int64_t count = 20011;
    INFO("rank " << me.rank << ", dtype " << int(dtype.code) << "/" << int(dtype.bits));
    bytes over, again;
    me.plans = false;
    REQUIRE(every_collective(me, dtype, count, over).run() == VELO_OK);
    me.plans = me.rank % 2 == 1;
    REQUIRE(every_collective(me, dtype, count, again).run() == VELO_OK);
    CHECK((over == again));
    if (dtype.code == VELO_DTYPE_INT || dtype.code == VELO_DTYPE_UINT)
      CHECK((over == locally(me.size, dtype, count)[at(me.rank)]));
  }
  for (const velo_dtype dtype : {f32, bf16}) {
    for (const velo_reduce_op op : {VELO_REDUCE_SUM, VELO_REDUCE_AVG, VELO_REDUCE_MAX}) {
      std::vector<float> sums(3000);
      std::vector<std::uint16_t> half(3000,
                                      static_cast<std::uint16_t>(0x3f80 + 0x80 * (me.rank % 2)));
      const std::int64_t count = 3000;
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = static_cast<float>((me.rank + 1) * (i % 9));
      const bool narrow = dtype.bits == 16;
      const velo_tensor x{narrow ? static_cast<void*>(half.data()) : sums.data(),
                          {VELO_DEVICE_CPU, 0},
                          1,
                          dtype,
                          &count,
                          nullptr,
                          0};
      velo_reduction how = VELO_REDUCTION_INIT;
      how.op = op;
      REQUIRE(velo_group_all_reduce(me.stream, me.group, &how, &x, &x) == VELO_OK);
      const float ranks = static_cast<float>(me.size);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::uint32_t word = std::uint32_t{half[i]} << 16;
        float got = sums[i], one;
        std::memcpy(&one, &word, 4);
        const float least = narrow ? 1.0f : static_cast<float>(i % 9);
        float expected = least * (ranks + 1) * ranks / 2;  // of 1, 2, 3 .. ranks
        if (narrow) {
          const int twos = me.size / 2;  // every second rank gives 2, the others 1
          expected = ranks + static_cast<float>(twos), got = one;
        }
        if (op == VELO_REDUCE_AVG) expected /= ranks;
        if (op == VELO_REDUCE_MAX) expected = narrow ? 2.0f : least * ranks;
        wrong += std::abs(got - expected) > 0.004f * expected;
      }
      CHECK(wrong == 0);
    }
  }
}

// Ranks of two hosts that two_hosts.sh makes; it counts what their link carries.
TEST_CASE("ranks of two hosts get what threads get", "[two_hosts]") {
  joined all;
  const rank_of_group& me = all.me;
  REQUIRE(me.size == 4);
  bytes over;
  REQUIRE(every_collective(me, i64, 20011, over).run() == VELO_OK);
  CHECK((over == locally(me.size, i64, 20011)[at(me.rank)]));
  const std::int64_t large = 1 << 20;
  std::vector<float> x(large), parts(large);
  const std::int64_t part = large / 4;
  for (int round = std::atoi(std::getenv("VELO_TEST_ROUNDS")); round > 0; --round) {
    const velo_tensor whole{x.data(), {VELO_DEVICE_CPU, 0}, 1, f32, &large, nullptr, 0};
    velo_tensor gathered = whole, mine = whole;
    gathered.data = parts.data();
    mine.shape = &part;
    for (std::int64_t i = 0; i < large; ++i)
      x[static_cast<std::size_t>(i)] = static_cast<float>(me.rank + i % 7);
    REQUIRE(velo_group_all_reduce(me.stream, me.group, nullptr, &whole, &whole) == VELO_OK);
    CHECK(x[large - 2] == static_cast<float>(6 + 4 * ((large - 2) % 7)));
    x[0] = static_cast<float>(100 + me.rank);
    REQUIRE(velo_group_all_gather(me.stream, me.group, &mine, &gathered) == VELO_OK);
    for (int r = 0; r < 4; ++r) CHECK(parts[at(r) * part] == static_cast<float>(100 + r));
    REQUIRE(velo_group_broadcast(me.stream, me.group, 0, &whole) == VELO_OK);
    CHECK(x[0] == 100);
  }
}
