// Ranks that mpirun started, some of which are late, leave, abort or disagree.
#include <thread>

#include "comm/mpi/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

TEST_CASE("a rank that does not come is named at the deadline", "[faults]") {
  { const joined ready; }  // MPI_Init takes its time
  joined all(over_mpi(1000));
  const int missing = all.me.size - 1;
  CHECK(sum_of(all.me, 100) == VELO_OK);
  if (all.me.rank == missing) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  } else {
    const auto begun = std::chrono::steady_clock::now();
    CHECK(sum_of(all.me, 5000) == VELO_ERR_PEER);
    CHECK(last_record().got == "rank " + std::to_string(missing) + " not there");
    const auto took = std::chrono::steady_clock::now() - begun;
    CHECK(took > std::chrono::milliseconds(990));
    CHECK(took < std::chrono::milliseconds(2500));
  }
  CHECK(sum_of(all.me, 5000) == VELO_ERR_PEER);  // for good, on all
  CHECK(last_record().got == "rank " + std::to_string(missing) + " not there");
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
  CHECK(last_record().got == "an abort by rank 1");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}

TEST_CASE("ranks that disagree fail with the terms of the majority", "[faults]") {
  {
    joined all;
    CHECK(sum_of(all.me, all.me.rank == 1 ? 1001 : 1000) == VELO_ERR_PEER);
    CHECK(last_record().got == "rank 1 with all_reduce of 1001 float32, sum");
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

TEST_CASE("a count of rows that its rank does not give is named, with the call", "[faults]") {
  for (const int from : {2, 1}) {  // of another rank, and of its own
    joined all;
    velo_group alone = nullptr;
    const std::int32_t own = all.me.rank;
    REQUIRE(velo_group_create_part(all.me.group, &own, 1, nullptr, &alone) == VELO_OK);
    const std::int64_t size = all.me.size, rows[] = {size, 4}, one_each[] = {size, 1};
    std::vector<std::int64_t> counts(at(size), 1);
    if (all.me.rank == 1) ++counts[at(from)];
    const std::int64_t gets[] = {all.me.rank == 1 ? size + 1 : size, 4};
    std::vector<float> x(at(4 * size)), y(at(4 * size + 4));
    std::vector<std::int32_t> names;
    for (int rank = 0; rank < all.me.size; ++rank) names.push_back(rank);
    const velo_tensor in = view_of(x.data(), f32, rows), out = view_of(y.data(), f32, gets),
                      to = view_of(names.data(), i32, one_each);
    const velo_status done =
        velo_group_dispatch(all.me.stream, all.me.group, alone, &in, &to, counts.data(), &out);
    const call_record why = last_record();
    INFO("rank " << all.me.rank << ", " << from << ": " << why);
    if (all.me.rank == 1) {
      CHECK(done == (from == 1 ? VELO_ERR_ARGUMENT : VELO_ERR_PEER));
      CHECK(why.argument == "out_counts[" + std::to_string(from) + "]");
      CHECK(why.got == "2");
    } else if (done != VELO_OK) {  // unless its part was done before
      CHECK(done == VELO_ERR_PEER);
      CHECK(why.cause == "out_counts[" + std::to_string(from) + "] of rank 1");
    }
    CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
  }
}

TEST_CASE("a group that has lost a rank cannot go on with the others, and says so", "[faults]") {
  joined all;
  if (all.me.rank == 1) CHECK(velo_group_abort(all.me.group) == VELO_OK);
  velo_status done = VELO_OK;
  while (done == VELO_OK) done = sum_of(all.me, 100);
  CHECK(done == VELO_ERR_PEER);
  velo_group survivors = nullptr;
  CHECK(velo_group_shrink(all.me.group, nullptr, &survivors) == VELO_ERR_UNSUPPORTED);
  CHECK(last_record().got == "mpi");
  CHECK(survivors == nullptr);
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
      CHECK(last_record().got == "rank 0 with send of 5 float32 to rank 1");
    } else {
      CHECK(velo_group_barrier(all.me.stream, all.me.group) == VELO_ERR_PEER);
    }
  }
  joined all(over_mpi(1000));
  const numbers x(f32, 6, 0);
  const velo_tensor view = x.view();
  if (all.me.rank == 1) {
    CHECK(velo_group_receive(all.me.stream, all.me.group, 0, &view) == VELO_ERR_PEER);
    CHECK(last_record().got == "rank 0 not there");
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
  CHECK(last_record().got == "rank 1 that left the group");
}

TEST_CASE("a rank whose result differs is named with the call", "[faults]") {
  velo_group_desc desc = over_mpi();
  desc.flags = VELO_GROUP_VERIFY;
  joined all(desc);
  CHECK(sum_of(all.me, 5000) == VELO_OK);
  // Each rank leaves its own number of the two: 3, of rank 1 alone 4.
  int mine = all.me.rank == 1 ? 4 : 3;
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = VELO_REDUCE_CUSTOM, how.user = &mine;
  how.fn = [](void* user, const void*, void* total, std::int64_t count, const velo_dtype*) {
    std::memset(total, *static_cast<int*>(user), static_cast<std::size_t>(4 * count));
  };
  const numbers x(f32, 10, all.me.rank);
  const velo_tensor view = x.view();
  CHECK(velo_group_all_reduce(all.me.stream, all.me.group, &how, &view, &view) == VELO_ERR_PEER);
  const call_record info = last_record();
  CHECK(info.rank == 1);
  CHECK(info.got == "rank 1 with another result");
  CHECK(info.expected.find("all_reduce of 10 float32, custom") == 0);
}
