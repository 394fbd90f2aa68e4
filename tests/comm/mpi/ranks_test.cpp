// Ranks that mpirun started: every rank runs the same test cases, and holds what it got over MPI to
// the bits that threads of its own get in a group of as many.
#include "comm/mpi/ranks.hpp"

#include "tests/sched/executor/rank_model.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

TEST_CASE("every collective gives what threads of one process get, bit for bit", "[together]") {
  joined all;
  all.me.plans = all.me.rank % 2 == 1;
  for (const velo_dtype dtype : {f32, f16, bf16, i64, u8})
    for (const std::int64_t count : {0, 1, 37, 1000, 20011}) {
      INFO("rank " << all.me.rank << " of " << all.me.size << ", dtype " << int(dtype.code) << "/"
                   << int(dtype.bits) << ", " << count);
      bytes over;
      const velo_status done = every_collective(all.me, dtype, count, over).run();
      REQUIRE(done == VELO_OK);
      CHECK((over == locally(all.me.size, dtype, count)[at(all.me.rank)]));
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

// Around in a ring, each before it receives, which is the buffers' to hold; and all at the same
// time.
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

namespace {

// A caller's function, which another order of the ranks would change, and what it was called for.
struct appending {
  std::int64_t elements = 0;
  int wrong = 0;              // dtypes
  velo_group ends = nullptr;  // aborted from within
  static std::uint16_t next_of(std::uint16_t total, std::uint16_t next) {
    return static_cast<std::uint16_t>((7 * total + next) % 251);
  }
  static void fold(void* user, const void* next, void* total, std::int64_t count,
                   const velo_dtype* dtype) {
    auto& is = *static_cast<appending*>(user);
    is.elements += count;
    is.wrong += dtype->code != VELO_DTYPE_UINT || dtype->bits != 16;
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t a = 0, b = 0;
      std::memcpy(&a, static_cast<char*>(total) + 2 * i, 2);
      std::memcpy(&b, static_cast<const char*>(next) + 2 * i, 2);
      a = next_of(a, b);
      std::memcpy(static_cast<char*>(total) + 2 * i, &a, 2);
    }
    if (is.ends != nullptr) velo_group_abort(is.ends);
  }
};

std::uint16_t given_by(int rank, std::int64_t i) {
  return static_cast<std::uint16_t>((31 * rank + 5 * i) % 251);
}

std::uint16_t appended(int ranks, std::int64_t i) {
  std::uint16_t all = given_by(0, i);
  for (int rank = 1; rank < ranks; ++rank) all = appending::next_of(all, given_by(rank, i));
  return all;
}

velo_status append(const rank_of_group& me, velo_collective_kind kind, appending& how,
                   std::vector<std::uint16_t>& in, std::vector<std::uint16_t>& out) {
  const velo_dtype u16{VELO_DTYPE_UINT, 16, 1};
  const auto gives = static_cast<std::int64_t>(in.size()),
             gets = static_cast<std::int64_t>(out.size());
  const velo_tensor x = view_of(in.data(), u16, gives), y = view_of(out.data(), u16, gets);
  velo_reduction custom = VELO_REDUCTION_INIT;
  custom.op = VELO_REDUCE_CUSTOM, custom.fn = appending::fold, custom.user = &how;
  velo_collective_desc desc = collective_of(kind, &x, &y, me.size - 1);
  desc.reduction = &custom;
  return (me.plans ? plan_and_start : call)(me.stream, me.group, desc);
}

// In any group: each element in the order of its ranks, by the function and the pointer of whoever
// combines it, at least once for each rank but the first.
void append_all(const rank_of_group& me) {
  for (const std::int64_t part : {1, 60, 3000, 60001})
    for (const velo_collective_kind kind :
         {VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE, VELO_COLLECTIVE_REDUCE_SCATTER}) {
      INFO("rank " << me.rank << " of " << me.size << ", kind " << kind << ", " << part);
      const bool scatters = kind == VELO_COLLECTIVE_REDUCE_SCATTER;
      std::vector<std::uint16_t> in(at(scatters ? part * me.size : part)), out(at(part), 999);
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = given_by(me.rank, static_cast<std::int64_t>(i));
      appending how;
      REQUIRE(append(me, kind, how, in, out) == VELO_OK);
      const bool gets = kind != VELO_COLLECTIVE_REDUCE || me.rank == me.size - 1;
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < part; ++i)
        wrong += out[at(i)] !=
                 (gets ? appended(me.size, scatters ? part * me.rank + i : i) : std::uint16_t{999});
      CHECK(wrong == 0);
      CHECK(how.wrong == 0);
      std::int64_t combined = how.elements;  // here, and then anywhere
      if (scatters) CHECK(combined == (me.size - 1) * part);
      std::vector<std::int64_t> sum = {combined};
      REQUIRE(reduce_in_place(me.stream, me.group, sum) == VELO_OK);
      CHECK(sum[0] >= (me.size - 1) * static_cast<std::int64_t>(in.size()));
    }
}

}  // namespace

TEST_CASE("a caller's function combines in the order of the ranks, with the caller's pointer",
          "[together]") {
  joined all;
  append_all(all.me);
  all.me.plans = all.me.rank % 2 == 0;
  append_all(all.me);
  if (all.me.size < 2 || all.me.rank > 1) return;
  const std::int32_t ranks[] = {1, 0};  // the other way round
  rank_of_group pair = all.me;
  REQUIRE(velo_group_create_part(all.me.group, ranks, 2, nullptr, &pair.group) == VELO_OK);
  pair.rank = 1 - all.me.rank, pair.size = 2;
  append_all(pair);
}

TEST_CASE("a caller's function that cannot go on ends the group for all", "[together]") {
  joined all;
  if (all.me.size < 2) return;
  std::vector<std::uint16_t> in(60000), out(in);
  appending how;
  if (all.me.rank == 1) how.ends = all.me.group;
  velo_status done = VELO_OK;
  for (int round = 0; round < 1000 && done == VELO_OK; ++round)
    done = append(all.me, VELO_COLLECTIVE_ALL_REDUCE, how, in, out);
  CHECK(done == VELO_ERR_PEER);
  CHECK(last_record().got == "an abort by rank 1");
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
      CHECK(info_of(pair.group).rank == pair.rank);
      bytes over;
      REQUIRE(every_collective(pair, bf16, 5000, over).run() == VELO_OK);
      CHECK((over == locally(2, bf16, 5000)[at(pair.rank)]));
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
    CHECK(last_record().got == "rank " + std::to_string(me.size - 1) + " not there");
  }
  CHECK(sum_of(me, 1000) == VELO_OK);  // which ended nothing
  CHECK(velo_group_shrink(me.group, nullptr, &none) == VELO_ERR_STATE);
}

TEST_CASE("a schedule is carried out, and its first failure is that of all ranks", "[together]") {
  const joined all;
  const velo_schedule_desc desc = velo::testing::desc_of(VELO_SCHEDULE_ZBV, {all.me.size, 9});
  velo_schedule order = nullptr;
  REQUIRE(velo_schedule_create(&desc, &order) == VELO_OK);
  for (const std::int64_t scale : {1, 1 << 15}) {
    velo::testing::rank_part mine(order, all.me.context, all.me.group, scale);
    CHECK(velo_executor_run(all.me.stream, mine.executor) == VELO_OK);
    CHECK(mine.went_well());
  }
  velo::testing::rank_part mine(order, all.me.context, all.me.group, 1);
  mine.model.before = [&](const velo_executor_call& call) -> velo_status {
    return all.me.rank == 0 && call.action.microbatch == 5 ? VELO_ERR_IO : VELO_OK;
  };
  const velo_status done = velo_executor_run(all.me.stream, mine.executor);
  const call_record info = last_record();
  CHECK(done == (all.me.rank == 0 ? VELO_ERR_FOREIGN : VELO_ERR_PEER));
  if (all.me.rank != 0) CHECK(info.cause.find("of rank 0") != std::string::npos);
  velo_schedule_destroy(order);
}

TEST_CASE("mpirun's environment decides: one host uses shared memory", "[together]") {
  const velo_context context = new_context();
  velo_group group = nullptr;
  REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
  const velo_group_info info = info_of(group);
  CHECK(info.transport == (info.size == 1 ? VELO_TRANSPORT_SELF : VELO_TRANSPORT_SHM));
  velo_context_destroy(context);
  velo_group_desc desc = over_mpi();
  desc.size = info.size + 1;
  const velo_context other = new_context();
  CHECK(velo_group_create(other, &desc, &group) == VELO_ERR_ARGUMENT);
  velo_context_destroy(other);
}
