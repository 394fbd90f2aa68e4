// Ranks of several hosts, or that pretend to be: what goes by way of hosts is right.
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "comm/mpi/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

// Sums of small whole numbers, which no order changes (sweep_test.cpp has others): with
// VELO_MPI_HOST ranks pretend to be of two hosts. Of other numbers all ranks must have the same
// bits, and again the same the next time.
TEST_CASE("operations by way of hosts have the results of threads", "[hosts]") {
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
      const velo_tensor x =
          view_of(narrow ? static_cast<void*>(half.data()) : sums.data(), dtype, count);
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

namespace {

// Rows of a rank of two hosts with two ranks each, for both ranks of the other host and one of its
// own: there, and back as their weighted sums.
class experts {
 public:
  // inside: those of one host, over MPI or through shared memory; across hosts it is MPI.
  explicit experts(const rank_of_group& me, velo_transport inside = VELO_TRANSPORT_MPI)
      : me_(me), x_(at(rows * width)), there_(at(3 * rows * width)), back_(x_) {
    const std::int32_t host = me.rank / 2, place = me.rank % 2;
    inside_ = inside == VELO_TRANSPORT_MPI ? part({2 * host, 2 * host + 1}) : here(host, place);
    across_ = part({place, 2 + place});
    for (std::int32_t i = 0; i < rows; ++i)
      targets_.insert(targets_.end(), {2 * (1 - host) + 1, 2 * host + i % 2, -1, 2 * (1 - host)});
    for (std::int32_t i = 0; i < rows; ++i) weights_.insert(weights_.end(), {1, 2, 100, 4});
  }
  ~experts() {
    velo_group_destroy(inside_);
    velo_group_destroy(across_);
  }
  experts(const experts&) = delete;

  void visit(int round) {
    for (std::int64_t i = 0; i < rows * width; ++i) x_[at(i)] = value(me_.rank, i, round);
    const std::int64_t shape[] = {rows, width}, gets[] = {3 * rows, width}, each[] = {rows, 4};
    const auto tensor = [](void* data, velo_dtype dtype, const std::int64_t* of) {
      return view_of(data, dtype, of, 2);
    };
    const velo_tensor x = tensor(x_.data(), f32, shape), there = tensor(there_.data(), f32, gets),
                      back = tensor(back_.data(), f32, shape),
                      to = tensor(targets_.data(), i32, each),
                      by = tensor(weights_.data(), f32, each);
    std::int64_t counts[4];
    for (int from = 0; from < 4; ++from) counts[from] = from / 2 == me_.rank / 2 ? rows / 2 : rows;
    REQUIRE(velo_group_dispatch(me_.stream, inside_, across_, &x, &to, counts, &there) == VELO_OK);
    CHECK(wrong_there(round) == 0);
    REQUIRE(velo_group_combine(me_.stream, inside_, across_, &there, counts, &to, &by, &back) ==
            VELO_OK);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) wrong += back_[i] != 7 * x_[i];
    CHECK(wrong == 0);
  }

 private:
  static constexpr std::int64_t rows = 256, width = 1024;
  static float value(int rank, std::int64_t i, int round) {
    return static_cast<float>((i + i / width + 5 * rank + round) % 61);
  }
  velo_group part(std::initializer_list<std::int32_t> ranks) const {
    velo_group made = nullptr;
    REQUIRE(velo_group_create_part(me_.group, ranks.begin(), 2, nullptr, &made) == VELO_OK);
    return made;
  }
  velo_group here(int host, int place) const {
    const std::string name = "experts-" + std::to_string(getppid()) + "-" + std::to_string(host);
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    desc.transport = VELO_TRANSPORT_SHM;
    desc.name = name.c_str();
    desc.rank = place, desc.size = 2;
    velo_group made = nullptr;
    REQUIRE(velo_group_create(me_.context, &desc, &made) == VELO_OK);
    return made;
  }
  std::int64_t wrong_there(int round) const {
    std::int64_t wrong = 0;
    auto got = there_.begin();
    for (int from = 0; from < 4; ++from)
      for (std::int64_t row = 0; row < rows; ++row) {
        if (from / 2 == me_.rank / 2 && row % 2 != me_.rank % 2) continue;
        for (std::int64_t i = 0; i < width; ++i)
          wrong += *got++ != value(from, row * width + i, round);
      }
    return wrong;
  }

  const rank_of_group me_;
  velo_group inside_ = nullptr, across_ = nullptr;
  std::vector<float> x_, there_, back_, weights_;
  std::vector<std::int32_t> targets_;
};

}  // namespace

TEST_CASE("rows visit experts of two hosts, whose ranks share memory or not", "[together]") {
  if (std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")) != 4) return;
  struct pretense {
    pretense() {
      const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
      setenv("VELO_MPI_HOST", rank < 2 ? "one" : "two", 1);
    }
    ~pretense() { unsetenv("VELO_MPI_HOST"); }
  };
  const pretense of_two_hosts;
  joined all;
  for (const velo_transport inside : {VELO_TRANSPORT_MPI, VELO_TRANSPORT_SHM}) {
    experts tokens(all.me, inside);
    for (int round = 2; round > 0; --round) tokens.visit(round);
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
  experts tokens(me);
  for (int round = std::atoi(std::getenv("VELO_TEST_ROUNDS")); round > 0; --round) {
    const velo_tensor whole = view_of(x.data(), f32, large);
    velo_tensor gathered = whole, mine = whole;
    gathered.data = parts.data();
    mine.shape = &part;
    for (std::int64_t i = 0; i < large; ++i) x[at(i)] = static_cast<float>(me.rank + i % 7);
    velo_tensor scattered = gathered;
    scattered.shape = &part;
    REQUIRE(velo_group_reduce_scatter(me.stream, me.group, nullptr, &whole, &scattered) == VELO_OK);
    CHECK(parts[3] == static_cast<float>(6 + 4 * ((me.rank * part + 3) % 7)));
    REQUIRE(velo_group_all_reduce(me.stream, me.group, nullptr, &whole, &whole) == VELO_OK);
    CHECK(x[large - 2] == static_cast<float>(6 + 4 * ((large - 2) % 7)));
    x[0] = static_cast<float>(100 + me.rank);
    REQUIRE(velo_group_all_gather(me.stream, me.group, &mine, &gathered) == VELO_OK);
    for (int r = 0; r < 4; ++r) CHECK(parts[at(r) * part] == static_cast<float>(100 + r));
    REQUIRE(velo_group_broadcast(me.stream, me.group, 0, &whole) == VELO_OK);
    CHECK(x[0] == 100);
    tokens.visit(round);
  }
}
