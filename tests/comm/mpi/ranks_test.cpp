// Ranks that mpirun started: every rank runs the same test cases, and holds what it got over MPI to
// the bits that threads of its own get in a group of as many.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/sched/rank_model.hpp"
#include "velo/velo.h"

namespace {

using bytes = std::vector<unsigned char>;

struct rank_of_group {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group group = nullptr;
  int rank = 0, size = 1;
};

velo_context new_context() {
  velo_context_desc one = VELO_CONTEXT_DESC_INIT;
  one.threads = 1;
  velo_context context = nullptr;
  REQUIRE(velo_context_create(&one, &context) == VELO_OK);
  return context;
}

velo_group_desc over_mpi(std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_MPI;
  desc.timeout_ns = timeout_ms * 1000000;
  desc.buffer = 32 << 10;
  return desc;
}

// What a rank got over MPI, or why it did not.
struct joined {
  rank_of_group me;
  explicit joined(const velo_group_desc& desc = over_mpi()) {
    me.context = new_context();
    REQUIRE(velo_context_stream(me.context, &me.stream) == VELO_OK);
    const velo_status done = velo_group_create(me.context, &desc, &me.group);
    velo_error_info why = VELO_ERROR_INFO_INIT;
    velo_last_error(&why);
    INFO(why.argument << ": expected " << why.expected << ", got " << why.got << " " << why.cause);
    REQUIRE(done == VELO_OK);
    velo_group_info info = VELO_GROUP_INFO_INIT;
    REQUIRE(velo_group_get_info(me.group, &info) == VELO_OK);
    me.rank = info.rank, me.size = info.size;
    CHECK(info.transport == VELO_TRANSPORT_MPI);
  }
  ~joined() { velo_context_destroy(me.context); }
  joined(const joined&) = delete;
};

constexpr velo_dtype f32{VELO_DTYPE_FLOAT, 32, 1}, f16{VELO_DTYPE_FLOAT, 16, 1},
    bf16{VELO_DTYPE_BFLOAT, 16, 1}, i64{VELO_DTYPE_INT, 64, 1}, u8{VELO_DTYPE_UINT, 8, 1};

// A tensor of numbers whose sums depend on their order; of bytes that differ everywhere.
class numbers {
 public:
  numbers(velo_dtype dtype, std::int64_t count, int seed) : dtype_(dtype), count_(count) {
    data_.resize(static_cast<std::size_t>(count * (dtype.bits / 8)) + 8);
    std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
    for (std::int64_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)) / 65536.0f;
      unsigned char* at = data_.data() + i * (dtype.bits / 8);
      std::uint32_t word;
      std::memcpy(&word, &value, 4);
      const std::uint16_t high = static_cast<std::uint16_t>(word >> 16),
                          half = static_cast<std::uint16_t>(state >> 18 & 0x3bff);
      if (dtype.code == VELO_DTYPE_FLOAT && dtype.bits == 32) std::memcpy(at, &value, 4);
      if (dtype.code == VELO_DTYPE_FLOAT && dtype.bits == 16) std::memcpy(at, &half, 2);
      if (dtype.code == VELO_DTYPE_BFLOAT) std::memcpy(at, &high, 2);
      if (dtype.code == VELO_DTYPE_INT || dtype.code == VELO_DTYPE_UINT)
        for (int b = 0; b < dtype.bits / 8; ++b) at[b] = static_cast<unsigned char>(state >> 3 * b);
    }
  }
  velo_tensor view() const {
    return {const_cast<unsigned char*>(data_.data()),
            {VELO_DEVICE_CPU, 0},
            1,
            dtype_,
            &count_,
            nullptr,
            0};
  }
  void append_to(bytes& all) const { all.insert(all.end(), data_.begin(), data_.end() - 8); }

 private:
  velo_dtype dtype_;
  std::int64_t count_;
  bytes data_;
};

// Every collective once, on tensors of about `count` elements; what came out is appended.
class every_collective {
 public:
  every_collective(const rank_of_group& me, velo_dtype dtype, std::int64_t count, bytes& all)
      : me_(me), dtype_(dtype), count_(count), all_(all) {}

  velo_status run() {
    velo_status done = velo_group_barrier(me_.stream, me_.group);
    for (int op = VELO_REDUCE_SUM; op <= VELO_REDUCE_MAX && done == VELO_OK; ++op) {
      velo_reduction how = VELO_REDUCTION_INIT;
      how.op = op;
      done = combine(how);
    }
    if (done == VELO_OK) done = move();
    if (done == VELO_OK) done = move_uneven();
    return done;
  }

 private:
  numbers filled(std::int64_t count) const {
    return numbers(dtype_, count, me_.rank * 31 + static_cast<int>(count % 1000));
  }
  velo_status keep(velo_status done, const numbers& out) {
    out.append_to(all_);
    return done;
  }

  velo_status combine(const velo_reduction& how) {
    const numbers in = filled(count_), whole = filled(count_ * me_.size), part = filled(count_),
                  out = filled(count_), wide(f32, count_, 0);
    const velo_tensor from = in.view(), to = out.view(), all = whole.view(), own = part.view(),
                      larger = wide.view();
    const int root = static_cast<int>(count_ % me_.size);
    velo_status done = keep(velo_group_all_reduce(me_.stream, me_.group, &how, &from, &to), out);
    if (done == VELO_OK && dtype_.bits == 16)
      done = keep(velo_group_all_reduce(me_.stream, me_.group, &how, &from, &larger), wide);
    if (done == VELO_OK)
      done = keep(velo_group_reduce(me_.stream, me_.group, root, &how, &from,
                                    me_.rank == root ? &to : nullptr),
                  out);
    if (done == VELO_OK)
      done = keep(velo_group_reduce_scatter(me_.stream, me_.group, &how, &all, &own), part);
    const std::vector<std::int64_t> counts = uneven();
    std::int64_t sum = 0;
    for (const std::int64_t one : counts) sum += one;
    const numbers several = filled(sum), mine = filled(counts[static_cast<std::size_t>(me_.rank)]);
    const velo_tensor before = several.view(), after = mine.view();
    if (done == VELO_OK)
      done = keep(
          velo_group_reduce_scatter_v(me_.stream, me_.group, &how, &before, counts.data(), &after),
          mine);
    if (done == VELO_OK)
      done = keep(velo_group_all_reduce(me_.stream, me_.group, &how, &from, &from), in);
    return done;
  }

  velo_status move() {
    const numbers in = filled(count_), x = filled(count_), whole = filled(count_ * me_.size),
                  gathered = filled(count_ * me_.size), part = filled(count_);
    const velo_tensor from = in.view(), shared = x.view(), all = whole.view(),
                      wide = gathered.view(), own = part.view();
    const int root = me_.size - 1;
    const bool is_root = me_.rank == root;
    velo_status done = keep(velo_group_broadcast(me_.stream, me_.group, root, &shared), x);
    if (done == VELO_OK)
      done = keep(velo_group_all_gather(me_.stream, me_.group, &from, &wide), gathered);
    if (done == VELO_OK)
      done = keep(velo_group_all_to_all(me_.stream, me_.group, &all, &wide), gathered);
    if (done == VELO_OK)
      done = keep(velo_group_all_to_all(me_.stream, me_.group, &all, &all), whole);
    if (done == VELO_OK)
      done = keep(velo_group_gather(me_.stream, me_.group, root, &from, is_root ? &wide : nullptr),
                  gathered);
    if (done == VELO_OK)
      done = keep(velo_group_scatter(me_.stream, me_.group, root, is_root ? &wide : nullptr, &own),
                  part);
    return done;
  }

  // Of some ranks nothing.
  std::vector<std::int64_t> uneven() const {
    std::vector<std::int64_t> all;
    for (int r = 0; r < me_.size; ++r) all.push_back(r % 3 == 1 ? 0 : count_ * (r + 1) / me_.size);
    return all;
  }

  velo_status move_uneven() {
    const std::vector<std::int64_t> counts = uneven();
    std::vector<std::int64_t> offsets(counts.size()), give, take;
    std::int64_t end = 2;
    for (std::size_t r = counts.size(); r-- > 0; end += counts[r] + 3) offsets[r] = end;
    std::int64_t giving = 0, taking = 0;
    for (int r = 0; r < me_.size; ++r) {
      give.push_back((me_.rank + 2 * r) % 3 * count_ / 4);
      take.push_back((r + 2 * me_.rank) % 3 * count_ / 4);
      giving += give.back(), taking += take.back();
    }
    const numbers in = filled(counts[static_cast<std::size_t>(me_.rank)]), all = filled(end),
                  gifts = filled(giving), taken = filled(taking);
    const velo_tensor from = in.view(), to = all.view(), gift = gifts.view(), got = taken.view();
    velo_status done = keep(
        velo_group_all_gather_v(me_.stream, me_.group, &from, counts.data(), offsets.data(), &to),
        all);
    if (done == VELO_OK)
      done = keep(velo_group_all_to_all_v(me_.stream, me_.group, &gift, give.data(), nullptr,
                                          take.data(), nullptr, &got),
                  taken);
    if (done == VELO_OK)
      done = keep(
          velo_group_gather_v(me_.stream, me_.group, 0, &from, counts.data(), offsets.data(), &to),
          all);
    if (done == VELO_OK)
      done = keep(
          velo_group_scatter_v(me_.stream, me_.group, 0, &to, counts.data(), offsets.data(), &from),
          in);
    return done;
  }

  const rank_of_group& me_;
  const velo_dtype dtype_;
  const std::int64_t count_;
  bytes& all_;
};

// The same by threads of this process; what the rank `mine` got.
bytes locally(int size, int mine, velo_dtype dtype, std::int64_t count) {
  std::vector<velo_context> contexts;
  for (int r = 0; r < size; ++r) contexts.push_back(new_context());
  std::vector<velo_group> groups(contexts.size());
  REQUIRE(velo_group_create_local(contexts.data(), size, nullptr, groups.data()) == VELO_OK);
  std::vector<bytes> all(contexts.size());
  std::vector<std::thread> threads;
  std::vector<velo_status> said(contexts.size());
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      rank_of_group me{contexts[i], nullptr, groups[i], r, size};
      velo_context_stream(me.context, &me.stream);
      said[i] = every_collective(me, dtype, count, all[i]).run();
    });
  for (std::thread& one : threads) one.join();
  for (const velo_status one : said) CHECK(one == VELO_OK);
  for (const velo_context one : contexts) velo_context_destroy(one);
  return all[static_cast<std::size_t>(mine)];
}

std::string last_got() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_last_error(&info);
  return info.got;
}

velo_status sum_of(const rank_of_group& me, std::int64_t count) {
  const numbers x(f32, count, me.rank);
  const velo_tensor view = x.view();
  return velo_group_all_reduce(me.stream, me.group, nullptr, &view, &view);
}

}  // namespace

TEST_CASE("every collective gives what threads of one process get, bit for bit", "[together]") {
  joined all;
  for (const velo_dtype dtype : {f32, f16, bf16, i64, u8})
    for (const std::int64_t count : {0, 1, 37, 1000, 20011}) {
      INFO("rank " << all.me.rank << " of " << all.me.size << ", dtype " << int(dtype.code) << "/"
                   << int(dtype.bits) << ", " << count);
      bytes over;
      const velo_status done = every_collective(all.me, dtype, count, over).run();
      REQUIRE(done == VELO_OK);
      CHECK((over == locally(all.me.size, all.me.rank, dtype, count)));
    }
}

TEST_CASE("groups of one communicator have messages and orders of their own", "[together]") {
  joined first, second;
  for (int round = 0; round < 20; ++round) {
    CHECK(sum_of(first.me, 5000) == VELO_OK);
    CHECK(velo_group_barrier(second.me.stream, second.me.group) == VELO_OK);
    const joined third;
    CHECK(sum_of(third.me, 3) == VELO_OK);
  }
}

// Around in a ring, each before it receives, which is the buffers' to hold; and all at the same time.
TEST_CASE("messages arrive whole and in order, small and large, one and many", "[together]") {
  joined all;
  const rank_of_group& me = all.me;
  if (me.size == 1) return;
  const int next = (me.rank + 1) % me.size, before = (me.rank + me.size - 1) % me.size;
  for (const std::int64_t count : {0, 1, 100, 3000}) {
    const numbers mine(f32, count, me.rank), theirs(f32, count, before), got(f32, count, 77);
    const velo_tensor out = mine.view(), in = got.view();
    REQUIRE(velo_group_send(me.stream, me.group, next, &out) == VELO_OK);
    REQUIRE(velo_group_receive(me.stream, me.group, before, &in) == VELO_OK);
    bytes a, b;
    theirs.append_to(a);
    got.append_to(b);
    CHECK((a == b));
  }
  std::vector<numbers> give, take, expected;
  for (int peer = 0; peer < me.size; ++peer)
    for (const std::int64_t count : {7, 200003, 0, 20000}) {
      const int to = 10 * me.rank + peer, from = 10 * peer + me.rank;
      give.emplace_back(u8, count, to);
      take.emplace_back(u8, count, 0);
      expected.emplace_back(u8, count, from);
    }
  std::vector<velo_tensor> views;
  views.reserve(give.size() + take.size());
  std::vector<velo_group_message> messages;
  for (std::size_t i = 0; i < give.size(); ++i) {
    const auto peer = static_cast<std::int32_t>(i / 4);
    if (peer == me.rank) continue;
    views.push_back(give[i].view());
    messages.push_back({&views.back(), peer, VELO_MESSAGE_SEND});
    views.push_back(take[i].view());
    messages.push_back({&views.back(), peer, VELO_MESSAGE_RECEIVE});
  }
  for (int round = 0; round < 3; ++round)
    REQUIRE(velo_group_exchange(me.stream, me.group, messages.data(),
                                static_cast<std::int64_t>(messages.size())) == VELO_OK);
  for (std::size_t i = 0; i < take.size(); ++i) {
    if (static_cast<int>(i / 4) == me.rank) continue;
    bytes a, b;
    take[i].append_to(a);
    expected[i].append_to(b);
    CHECK((a == b));
  }
  CHECK(sum_of(me, 100) == VELO_OK);
}

TEST_CASE("parts have ranks, messages and faults of their own", "[together]") {
  joined all;
  const rank_of_group& me = all.me;
  if (me.size < 2) return;
  for (int round = 0; round < 3; ++round)
    for (int first = 0; first + 1 < me.size; ++first) {  // neighbors, the higher rank first
      if (me.rank < first || me.rank > first + 1) continue;
      const std::int32_t ranks[] = {first + 1, first};
      rank_of_group pair = me;
      REQUIRE(velo_group_create_part(me.group, ranks, 2, nullptr, &pair.group) == VELO_OK);
      pair.rank = first + 1 - me.rank, pair.size = 2;
      velo_group_info info = VELO_GROUP_INFO_INIT;
      REQUIRE(velo_group_get_info(pair.group, &info) == VELO_OK);
      CHECK(info.rank == pair.rank);
      bytes over;
      REQUIRE(every_collective(pair, bf16, 5000, over).run() == VELO_OK);
      CHECK((over == locally(2, pair.rank, bf16, 5000)));
      if (round == 2) CHECK(velo_group_abort(pair.group) == VELO_OK);
      velo_group_destroy(pair.group);
    }
  CHECK(sum_of(me, 1000) == VELO_OK);
  velo_group none = nullptr;  // the last rank does not come
  std::vector<std::int32_t> ranks;
  for (int r = 0; r < me.size; ++r) ranks.push_back(r);
  velo_group_desc soon = VELO_GROUP_DESC_INIT;
  soon.timeout_ns = 100000000;
  if (me.rank < me.size - 1) {
    CHECK(velo_group_create_part(me.group, ranks.data(), me.size, &soon, &none) == VELO_ERR_PEER);
    CHECK(last_got() == "rank " + std::to_string(me.size - 1) + " not there");
  }
  CHECK(sum_of(me, 1000) == VELO_OK);  // which ended nothing
  CHECK(velo_group_shrink(me.group, nullptr, &none) == VELO_ERR_STATE);
}

TEST_CASE("a schedule is carried out, and its first failure is that of all ranks", "[together]") {
  const joined all;
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = VELO_SCHEDULE_ZBV;
  desc.ranks = all.me.size;
  desc.microbatches = 9;
  velo_schedule order = nullptr;
  REQUIRE(velo_schedule_create(&desc, &order) == VELO_OK);
  for (const std::int64_t scale : {1, 1 << 15}) {
    velo::test::rank_part mine(order, all.me.context, all.me.group, scale);
    CHECK(velo_executor_run(all.me.stream, mine.executor) == VELO_OK);
    CHECK(mine.went_well());
  }
  velo::test::rank_part mine(order, all.me.context, all.me.group, 1);
  mine.model.before = [&](const velo_executor_call& call) -> velo_status {
    return all.me.rank == 0 && call.action.microbatch == 5 ? VELO_ERR_IO : VELO_OK;
  };
  const velo_status done = velo_executor_run(all.me.stream, mine.executor);
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_last_error(&info);
  CHECK(done == (all.me.rank == 0 ? VELO_ERR_FOREIGN : VELO_ERR_PEER));
  if (all.me.rank != 0) CHECK(std::string(info.cause).find("of rank 0") != std::string::npos);
  velo_schedule_destroy(order);
}

TEST_CASE("what mpirun says decides: one host is shared memory", "[together]") {
  const velo_context context = new_context();
  velo_group group = nullptr;
  REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
  velo_group_info info = VELO_GROUP_INFO_INIT;
  REQUIRE(velo_group_get_info(group, &info) == VELO_OK);
  CHECK(info.transport == (info.size == 1 ? VELO_TRANSPORT_SELF : VELO_TRANSPORT_SHM));
  velo_context_destroy(context);
  velo_group_desc desc = over_mpi();
  desc.size = info.size + 1;
  const velo_context other = new_context();
  CHECK(velo_group_create(other, &desc, &group) == VELO_ERR_ARGUMENT);
  velo_context_destroy(other);
}

// Sums of small whole numbers, which no order changes: with VELO_MPI_HOST ranks pretend to be of two
// hosts. Of other numbers all ranks must have the same bits, and again the same the next time.
TEST_CASE("what goes by way of hosts is what threads get", "[hosts]") {
  setenv("VELO_MPI_HOST", std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) < 3 ? "one" : "two", 1);
  joined all;
  const rank_of_group& me = all.me;
  for (const velo_dtype dtype : {bf16, i64}) {
    const std::int64_t count = 20011;
    INFO("rank " << me.rank << ", dtype " << int(dtype.code) << "/" << int(dtype.bits));
    bytes over, again;
    REQUIRE(every_collective(me, dtype, count, over).run() == VELO_OK);
    REQUIRE(every_collective(me, dtype, count, again).run() == VELO_OK);
    CHECK((over == again));
    if (dtype.code == VELO_DTYPE_INT || dtype.code == VELO_DTYPE_UINT)
      CHECK((over == locally(me.size, me.rank, dtype, count)));
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

TEST_CASE("a rank that does not come is named at the deadline", "[faults]") {
  joined all(over_mpi(1000));
  const int missing = all.me.size - 1;
  CHECK(sum_of(all.me, 100) == VELO_OK);
  if (all.me.rank == missing) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  } else {
    const auto begun = std::chrono::steady_clock::now();
    CHECK(sum_of(all.me, 5000) == VELO_ERR_PEER);
    CHECK(last_got() == "rank " + std::to_string(missing) + " not there");
    const auto took = std::chrono::steady_clock::now() - begun;
    CHECK(took > std::chrono::milliseconds(990));
    CHECK(took < std::chrono::milliseconds(2500));
  }
  CHECK(sum_of(all.me, 5000) == VELO_ERR_PEER);  // for good, on all
  CHECK(last_got() == "rank " + std::to_string(missing) + " not there");
}

TEST_CASE("an abort on any rank ends the calls of all", "[faults]") {
  joined all;
  CHECK(sum_of(all.me, 100) == VELO_OK);
  if (all.me.rank == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(velo_group_abort(all.me.group) == VELO_OK);
    CHECK(velo_group_abort(all.me.group) == VELO_OK);
  }
  const auto begun = std::chrono::steady_clock::now();
  CHECK(sum_of(all.me, 5000) == VELO_ERR_PEER);
  CHECK(last_got() == "an abort by rank 1");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}

TEST_CASE("ranks that disagree are told so, and who is right", "[faults]") {
  {
    joined all;
    CHECK(sum_of(all.me, all.me.rank == 1 ? 1001 : 1000) == VELO_ERR_PEER);
    CHECK(last_got() == "rank 1 with all_reduce of 1001 float32, sum");
  }
  joined all;  // what terms do not show: a rank gives another than that expects
  const std::int64_t mine = all.me.rank == 1 ? 5 : 4;
  const std::vector<std::int64_t> four(static_cast<std::size_t>(all.me.size), 4);
  const numbers in(f32, mine, 1), out(f32, 4 * all.me.size, 1);
  const velo_tensor from = in.view(), to = out.view();
  const velo_status done =
      velo_group_gather_v(all.me.stream, all.me.group, 0, &from, four.data(), nullptr, &to);
  if (all.me.rank == 0) CHECK(done == VELO_ERR_PEER);
  CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
}

TEST_CASE("a message that is not what was expected, and one that never comes", "[faults]") {
  {
    joined all;
    const numbers x(f32, all.me.rank == 0 ? 5 : 6, 0);
    const velo_tensor view = x.view();
    if (all.me.rank == 0) {
      CHECK(velo_group_send(all.me.stream, all.me.group, 1, &view) == VELO_OK);
      CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
    } else if (all.me.rank == 1) {
      CHECK(velo_group_receive(all.me.stream, all.me.group, 0, &view) == VELO_ERR_PEER);
      CHECK(last_got() == "rank 0 with send of 5 float32 to rank 1");
    } else {
      CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
    }
  }
  joined all(over_mpi(1000));
  const numbers x(f32, 6, 0);
  const velo_tensor view = x.view();
  if (all.me.rank == 1) {
    CHECK(velo_group_receive(all.me.stream, all.me.group, 0, &view) == VELO_ERR_PEER);
    CHECK(last_got() == "rank 0 not there");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
  }
}

TEST_CASE("a rank that leaves in good order is named as such", "[faults]") {
  joined all;
  CHECK(sum_of(all.me, 20000) == VELO_OK);
  if (all.me.rank == 1) return;
  CHECK(sum_of(all.me, 20000) == VELO_ERR_PEER);
  CHECK(last_got() == "rank 1 that left the group");
}

// A survivor's word is what the test looks for: mpirun reports the dead one as an error.
TEST_CASE("a killed rank is named by the others, at once where it was of their host", "[killed]") {
  joined all;
  CHECK(sum_of(all.me, 100) == VELO_OK);
  if (all.me.rank == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    raise(SIGKILL);
  }
  velo_status done = VELO_OK;
  while (done == VELO_OK) done = sum_of(all.me, 300000);
  CHECK(done == VELO_ERR_PEER);
  CHECK(last_got() == "rank 1 whose process ended");
  if (done == VELO_ERR_PEER && last_got() == "rank 1 whose process ended" && all.me.rank == 0)
    std::fprintf(stderr, "the survivors know\n");
}

TEST_CASE("MPI of a host: its communicators, its end", "[host]") {
  int level = 0;
  REQUIRE(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // in reverse order
    velo_group_desc desc = over_mpi();
    desc.transport = VELO_TRANSPORT_AUTO;
    desc.communicator = MPI_Comm_c2f(half);
    joined part(desc), whole;
    MPI_Comm_free(&half);  // the group goes on
    int inside = 0;
    for (int r = rank + 2; r < size; r += 2) ++inside;
    CHECK(part.me.rank == inside);
    CHECK(whole.me.rank == rank);
    for (int round = 0; round < 5; ++round) {
      CHECK(sum_of(part.me, 3000) == VELO_OK);
      CHECK(sum_of(whole.me, 3000) == VELO_OK);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the host's own messages, beside ours
  }
  for (int round = 0; round < 3; ++round) {  // freed after its groups
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    {
      velo_group_desc desc = over_mpi();
      desc.communicator = MPI_Comm_c2f(other);
      const joined group(desc);
      CHECK(sum_of(group.me, 3000) == VELO_OK);
    }
    MPI_Comm_free(&other);
  }
  joined late;
  CHECK(sum_of(late.me, 10) == VELO_OK);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  CHECK(sum_of(late.me, 10) == VELO_ERR_PEER);
  const velo_context context = new_context();
  velo_group group = nullptr;
  const velo_group_desc desc = over_mpi();
  CHECK(velo_group_create(context, &desc, &group) == VELO_ERR_UNSUPPORTED);
  velo_context_destroy(context);
}

TEST_CASE("MPI that is not for all threads is refused", "[single]") {
  REQUIRE(MPI_Init(nullptr, nullptr) == MPI_SUCCESS);
  const velo_context context = new_context();
  velo_group group = nullptr;
  const velo_group_desc desc = over_mpi();
  CHECK(velo_group_create(context, &desc, &group) == VELO_ERR_UNSUPPORTED);
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_last_error(&info);
  CHECK(std::string(info.cause) == "MPI initialized without MPI_THREAD_MULTIPLE");
  velo_context_destroy(context);
  MPI_Finalize();
}
