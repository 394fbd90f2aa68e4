// Groups made of others: parts, and what survives; and what a group remembers.
#include "comm/board.hpp"
#include "comm/json.hpp"
#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "core/host/clock.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

velo_status sum(velo_stream stream, velo_group group, std::int64_t& value) {
  const std::int64_t one = 1;
  const velo_tensor x = view_of(&value, i64, one);
  return velo_group_all_reduce(stream, group, nullptr, &x, &x);
}

// A group made of another one, as one rank has it; it asserts nothing.
struct made_group {
  ~made_group() { velo_group_destroy(group); }
  made_group() = default;
  made_group(const made_group&) = delete;

  velo_group_info info() const {
    velo_group_info all = VELO_GROUP_INFO_INIT;
    velo_group_get_info(group, &all);
    return all;
  }

  velo_group group = nullptr;
  velo_status status = VELO_OK;
};

struct part_of : made_group {
  part_of(velo_group parent, const std::vector<std::int32_t>& ranks,
          const velo_group_desc* desc = nullptr) {
    status = velo_group_create_part(parent, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                    desc, &group);
  }
};

struct survivors_of : made_group {
  explicit survivors_of(velo_group parent, const velo_group_desc* desc = nullptr) {
    status = velo_group_shrink(parent, desc, &group);
  }
};

// Rows and columns of six ranks, and the lower three backwards: what is summed in each.
velo_status work_in_parts(velo_stream stream, velo_group group, int rank, std::int64_t& wrong) {
  const int row = rank / 3, column = rank % 3;
  const part_of across(group, {3 * row, 3 * row + 1, 3 * row + 2});
  if (across.status != VELO_OK) return across.status;
  const part_of down(group, {column, column + 3});
  if (down.status != VELO_OK) return down.status;
  wrong += across.info().rank != column || across.info().size != 3;
  wrong += down.info().rank != row || down.info().size != 2;
  for (int round = 0; round < 20; ++round) {
    std::int64_t in_row = rank + round, in_column = rank, in_all = 1;
    velo_status done = sum(stream, across.group, in_row);
    if (done == VELO_OK) done = sum(stream, down.group, in_column);
    if (done == VELO_OK) done = sum(stream, group, in_all);
    if (done != VELO_OK) return done;
    wrong += in_row != 9 * row + 3 + 3 * round || in_column != 2 * column + 3 || in_all != 6;
  }
  if (rank > 2) return VELO_OK;
  const part_of backwards(group, {2, 1, 0});
  if (backwards.status != VELO_OK) return backwards.status;
  wrong += backwards.info().rank != 2 - rank;
  const part_of pair(backwards.group, {0, 2});  // of a part: ranks 2 and 0
  wrong += (pair.status == VELO_OK) != (rank != 1);
  std::int64_t value = rank;
  wrong += rank != 1 && (sum(stream, pair.group, value) != VELO_OK || value != 2);
  return VELO_OK;
}

std::string history(velo_group group) {
  return written([group](char* text, std::uint64_t capacity, std::uint64_t* needed) {
    return velo_group_history(group, text, capacity, needed);
  });
}

}  // namespace

TEST_CASE("ranks of a group make groups of their own, and parts of these") {
  SECTION("threads") {
    const local_ranks ranks(6);
    std::vector<std::int64_t> wrong(6);
    ranks.require([&](const rank_of_group& me) {
      return work_in_parts(me.stream, me.group, me.rank, wrong[at(me.rank)]);
    });
    for (const std::int64_t one : wrong) CHECK(one == 0);
  }
  SECTION("processes") {
    processes ranks;
    ranks.start_all(6, group_desc(), [](const rank_of_group& me) {
      std::int64_t wrong = 0;
      const velo_status done = work_in_parts(me.stream, me.group, me.rank, wrong);
      return ending_of(done, wrong);
    });
    check_right(ranks.wait());
  }
}

TEST_CASE("a part and its parent end apart") {
  const local_ranks ranks(3);
  ranks.require([&](const rank_of_group& me) {
    const velo_stream stream = me.stream;
    const velo_group all = me.group;
    {
      const part_of alone(all, {me.rank});
      if (alone.info().transport != VELO_TRANSPORT_SELF) return velo_status{-1};
      velo_group_abort(alone.group);
    }
    const part_of pair(
        all, me.rank < 2 ? std::vector<std::int32_t>{0, 1} : std::vector<std::int32_t>{2});
    if (pair.status != VELO_OK) return pair.status;
    if (me.rank == 1) velo_group_abort(pair.group);
    const velo_status ended = me.rank < 2 ? velo_group_barrier(stream, pair.group) : VELO_ERR_PEER;
    if (ended != VELO_ERR_PEER) return velo_status{-2};
    const velo_status parent = velo_group_barrier(stream, all);
    if (parent != VELO_OK) return parent;
    const part_of again(all, {2, 0, 1});
    if (again.status != VELO_OK) return again.status;
    velo_group_destroy(all);
    return velo_group_barrier(stream, again.group);
  });
}

TEST_CASE("a part keeps its turn among the calls of its parent") {
  const local_ranks ranks(2);
  const velo_stream queues[] = {ranks.context(0).new_stream(), ranks.context(1).new_stream()};
  std::atomic<int> wrong{0};
  ranks.require([&](const rank_of_group& me) {
    const velo_stream queue = queues[me.rank];
    std::int64_t values[40];
    for (int i = 0; i < 40; ++i) {
      values[i] = i;
      const velo_status queued = sum(queue, me.group, values[i]);
      if (queued != VELO_OK) return queued;
    }
    const part_of both(me.group, {1, 0});
    if (both.status != VELO_OK) return both.status;
    for (int i = 0; i < 40; ++i) wrong += values[i] != 2 * i;  // called before: done
    return velo_stream_synchronize(queue);
  });
  CHECK(wrong == 0);
}

TEST_CASE("ranks that do not come to a part are named by the parent's numbers, and end nothing") {
  const local_ranks ranks(4);
  const velo_group_desc soon = group_desc(120);
  const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
    if (me.rank != 1 && me.rank != 3) return velo_status{VELO_OK};
    return part_of(me.group, {3, 0, 1, 2}, &soon).status;
  });
  for (const int rank : {1, 3}) {
    CHECK_PEER(all[at(rank)], 0, "ranks 0, 2 not there");
    CHECK(all[at(rank)].expected == "create_part of 4 ranks within 120 ms");
  }
  ranks.require([&](const rank_of_group& me) {
    const part_of now(me.group, {3, 0, 1, 2});
    return now.status != VELO_OK ? now.status : velo_group_barrier(me.stream, now.group);
  });

  const lateness late_by;
  const std::int64_t begin = monotonic_ns();
  const std::vector<call_record> left = ranks.run([&](int rank) {
    if (rank == 0) return part_of(ranks.group(0), {0, 2}).status;
    if (rank == 1) return part_of(ranks.group(1), {1, 3}).status;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (rank == 2) velo_group_destroy(ranks.group(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (rank == 3) velo_group_abort(ranks.group(3));
    return velo_status{VELO_OK};
  });
  CHECK(left[0].got == "rank 2 that left the group");
  CHECK(left[1].got == "an abort by rank 3");
  const auto took = static_cast<double>(monotonic_ns() - begin) / 1e6;
  CHECK(took < 400 + late_by.of_ms(4));
}

TEST_CASE("parts that make no sense are refused by name") {
  const local_ranks ranks(3);
  velo_group part = nullptr;
  const velo_group parent = ranks.group(1);
  const std::int32_t twice[] = {1, 0, 1}, beyond[] = {1, 3}, below[] = {-1}, others[] = {0, 2};
  CHECK_REFUSED(velo_group_create_part(parent, twice, 3, nullptr, &part), VELO_ERR_ARGUMENT,
                "ranks[2]");
  CHECK(last_record().got == "rank 1 again");
  CHECK_REFUSED(velo_group_create_part(parent, beyond, 2, nullptr, &part), VELO_ERR_ARGUMENT,
                "ranks[1]");
  CHECK_REFUSED(velo_group_create_part(parent, below, 1, nullptr, &part), VELO_ERR_ARGUMENT,
                "ranks[0]");
  CHECK_REFUSED(velo_group_create_part(parent, others, 2, nullptr, &part), VELO_ERR_ARGUMENT,
                "ranks");
  CHECK_REFUSED(velo_group_create_part(parent, twice, 0, nullptr, &part), VELO_ERR_ARGUMENT,
                "count");
  CHECK_REFUSED(velo_group_create_part(parent, twice, 4, nullptr, &part), VELO_ERR_ARGUMENT,
                "count");
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.rank = 0;
  CHECK_REFUSED(velo_group_create_part(parent, twice, 1, &desc, &part), VELO_ERR_ARGUMENT,
                "desc.rank");
  CHECK_REFUSED(velo_group_shrink(parent, &desc, &part), VELO_ERR_ARGUMENT, "desc.rank");
  CHECK_REFUSED(velo_group_shrink(parent, nullptr, &part), VELO_ERR_STATE, "group");
  CHECK(part == nullptr);
  ranks.require_barrier();
}

TEST_CASE("a group remembers its last 4096 operations, and how they ended") {
  const local_ranks ranks(2);
  std::int64_t called = 0, returned = 0;
  ranks.require([&](const rank_of_group& me) {
    velo_status done = VELO_OK;
    std::int64_t value = 3;
    for (int i = 0; i < 5000 && done == VELO_OK; ++i)
      done = velo_group_barrier(me.stream, me.group);
    if (me.rank == 0) called = velo::core::now_ns();
    if (done == VELO_OK) done = sum(me.stream, me.group, value);
    if (me.rank == 0) returned = velo::core::now_ns();
    return done;
  });
  const velo_stream queue = ranks.context(0).new_stream();
  const float_tensor x({4});
  REQUIRE(velo_group_receive(queue, ranks.group(0), 1, &x.view) == VELO_OK);
  REQUIRE(velo_group_barrier(queue, ranks.group(0)) == VELO_OK);
  {
    const json before(history(ranks.group(0)));
    json_t* all = json_object_get(before.root, "operations");
    REQUIRE(json_array_size(all) == 4096);
    CHECK(text_of(json_array_get(all, 4095), "state") == "called");
    CHECK(json_is_null(json_object_get(json_array_get(all, 4095), "sequence")));
  }
  velo_group_abort(ranks.group(1));
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_PEER);
  velo_stream_clear(queue);
  const json ended(history(ranks.group(0)));
  CHECK(number_of(ended.root, "rank") == 0);
  json_t* all = json_object_get(ended.root, "operations");
  REQUIRE(json_array_size(all) == 4096);
  json_t* first = json_array_get(all, 0);
  CHECK(number_of(first, "call") == 5003 - 4095);
  CHECK(number_of(first, "sequence") == 5003 - 4095);
  CHECK(text_of(first, "operation") == "barrier");
  json_t* reduced = json_array_get(all, 4093);
  CHECK(text_of(reduced, "operation") == "all_reduce of 1 int64, sum");
  CHECK(text_of(reduced, "state") == "done");
  CHECK(number_of(reduced, "bytes") == 8);
  CHECK(number_of(reduced, "sequence") == 5001);
  constexpr int scale_error = 100000;  // of ticks turned into nanoseconds
  CHECK(number_of(reduced, "begun_ns") >= called - scale_error);
  CHECK(number_of(reduced, "ended_ns") <= returned + scale_error);
  CHECK(number_of(reduced, "ended_ns") >= number_of(reduced, "begun_ns"));
  CHECK(number_of(reduced, "begun_ns") >= number_of(json_array_get(all, 4092), "ended_ns"));
  json_t* received = json_array_get(all, 4094);
  CHECK(text_of(received, "operation") == "receive of 4 float32 from rank 1");
  CHECK(text_of(received, "state") == "failed");
  CHECK(json_is_null(json_object_get(received, "sequence")));
  CHECK(text_of(json_array_get(all, 4095), "state") == "dropped");
}

TEST_CASE("the survivors of a group go on without the others") {
  SECTION("threads, of which one left") {
    const local_ranks ranks(5);
    std::atomic<int> wrong{0};
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      if (me.rank == 2) {
        velo_group_destroy(ranks.group(2));
        return velo_status{VELO_OK};
      }
      std::int64_t value = me.rank;
      if (sum(me.stream, me.group, value) != VELO_ERR_PEER) return velo_status{-1};
      const survivors_of old(me.group);
      if (old.status != VELO_OK) return old.status;
      wrong += old.info().size != 4 || old.info().rank != me.rank - (me.rank > 2);
      value = me.rank;
      const velo_status done = sum(me.stream, old.group, value);
      wrong += value != 8;
      return done;
    });
    for (const call_record& one : all) CHECK(one.code == VELO_OK);
    CHECK(wrong == 0);
  }
  SECTION("processes, of which two were killed, one after the other") {
    processes ranks;
    ranks.start_all(4, group_desc(), [](const rank_of_group& me) {
      std::int64_t value = 1;
      if (me.rank == 1) raise(SIGKILL);
      if (sum(me.stream, me.group, value) != VELO_ERR_PEER) return ending_of(-2);
      const survivors_of three(me.group);
      if (three.status != VELO_OK) return ending_of(three.status);
      value = 1;
      const velo_status done = sum(me.stream, three.group, value);
      if (done != VELO_OK || value != 3) return ending_of(done != VELO_OK ? done : -3);
      if (me.rank == 0) raise(SIGKILL);
      if (sum(me.stream, three.group, value) != VELO_ERR_PEER) return ending_of(-4);
      const survivors_of two(three.group);
      if (two.status != VELO_OK) return ending_of(two.status);
      value = me.rank;
      const velo_status last = sum(me.stream, two.group, value);
      return ending_of(last, value);
    });
    const std::vector<ending> all = ranks.wait();
    for (const int rank : {2, 3}) {
      INFO(all[at(rank)]);
      CHECK(all[at(rank)].code == VELO_OK);
      CHECK(all[at(rank)].value == 5);
    }
  }
  SECTION("a stopped process does not hold them up, and learns of it when it goes on") {
    processes ranks;
    ranks.start_all(3, group_desc(150), [](const rank_of_group& me) {
      std::int64_t value = 1;
      if (me.rank == 2) raise(SIGSTOP);
      if (sum(me.stream, me.group, value) != VELO_ERR_PEER) return ending_of(-2);
      const survivors_of rest(me.group);
      if (rest.status != VELO_OK) return ending_of(rest.status);
      value = 1;
      const velo_status done = sum(me.stream, rest.group, value);
      return ending_of(done, value);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    kill(ranks.pid(2), SIGCONT);
    const std::vector<ending> all = ranks.wait();
    CHECK(all[0].code == VELO_OK);
    CHECK(all[0].value == 2);
    CHECK(all[1].value == 2);
    CHECK(all[2].code == VELO_ERR_PEER);
    CHECK(all[2].rank == 2);
    CHECK(all[2].cause == "the others went on without this rank");
  }
  SECTION("an abort, of which all are left, and one that does not come") {
    const local_ranks ranks(3);
    const velo_group_desc soon = group_desc(100);
    velo_group_abort(ranks.group(1));
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const survivors_of same(me.group);
      if (same.status != VELO_OK) return same.status;
      if (same.info().size != 3) return velo_status{-1};
      velo_group_abort(same.group);
      if (me.rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
        return velo_status{VELO_OK};
      }
      const survivors_of fewer(same.group, &soon);
      return fewer.info().size == 2 ? fewer.status : velo_status{-2};
    });
    for (const call_record& one : all) CHECK(one.code == VELO_OK);
  }
}

namespace {

// What a rank of eight learns when rank 5 does not come. Ranks work in pairs of three kinds and all
// together, and each that fails ends all its groups. All deadlines end together.
velo_error_info learned(const rank_of_group& me, std::atomic<int>& failed) {
  velo_group_desc desc = group_desc();
  const auto labeled = [&](const char* label) {
    desc = group_desc(300);
    desc.label = label;
    return &desc;
  };
  const int r = me.rank;
  const part_of tp(me.group, {r & ~1, r | 1}, labeled("tp"));
  const part_of cp(me.group, {r & ~2, r | 2}, labeled("cp"));
  const part_of pp(me.group, {r & ~4, r | 4}, labeled("pp"));
  const part_of inner(cp.group, {0, 1}, labeled("cp-inner"));
  velo_error_info info = VELO_ERROR_INFO_INIT;
  std::int64_t value = 1;
  sum(me.stream, pp.group, value);
  while (r == 5 && failed.load() < 7) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const velo_group each : {tp.group, inner.group, pp.group, me.group}) {
    if (sum(me.stream, each, value) == VELO_OK) continue;
    velo_last_error(&info);
    failed.fetch_add(1);
    for (const velo_group end : {me.group, tp.group, cp.group, pp.group, inner.group})
      velo_group_abort(end);
    return info;
  }
  return info;
}

}  // namespace

TEST_CASE("all ranks name the one that was missed in a part, and the part") {
  const char* const parts_of_5[] = {"tp", "cp-inner", "pp"};  // with ranks 4, 7 and 1
  const local_ranks ranks(8);
  std::atomic<int> failed{0};
  std::vector<velo_error_info> all(8);
  ranks.require([&](const rank_of_group& me) {
    all[at(me.rank)] = learned(me, failed);
    return VELO_OK;
  });
  for (int rank = 0; rank < 8; ++rank) {
    INFO("rank " << rank << ": " << all[at(rank)].expected << ", " << all[at(rank)].got);
    CHECK(all[at(rank)].code == VELO_ERR_PEER);
    CHECK(all[at(rank)].rank == 5);
    const std::string expected = all[at(rank)].expected;
    CHECK(std::any_of(std::begin(parts_of_5), std::end(parts_of_5), [&](const char* each) {
      return expected.find(std::string(" in ") + each) != std::string::npos;
    }));
    CHECK(std::string(all[at(rank)].got).find("rank 5 not there") != std::string::npos);
  }
}

namespace {

velo_status barrier(const rank_of_group& me, velo_group in) {
  return velo_group_barrier(me.stream, in);
}
velo_status message_from(std::int32_t rank, const rank_of_group& me, velo_group in) {
  float value = 0;
  const std::int64_t one = 1;
  const velo_tensor x = view_of(&value, f32, one);
  return velo_group_receive(me.stream, in, rank, &x);
}
velo_status message(const rank_of_group& me, velo_group in) {
  return message_from(1, me, in);
}
velo_error_info last_error() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_last_error(&info);
  return info;
}
velo_group_desc labeled(const char* label, std::int64_t timeout_ms) {
  velo_group_desc desc = group_desc(timeout_ms);
  desc.label = label;
  return desc;
}

// Ranks 0 and 1 meet in "near"; 1, 2 and 3 in "far", to which 2 does not come. Rank 0 waits first,
// so its deadline is the first.
velo_error_info wait_in_chain(const rank_of_group& me,
                              velo_status (*wait)(const rank_of_group&, velo_group)) {
  const velo_group_desc nearby = labeled("near", 400), distant = labeled("far", 400);
  if (me.rank == 0) {
    const part_of near(me.group, {0, 1}, &nearby);
    wait(me, near.group);
    return last_error();
  }
  if (me.rank == 1) {
    const part_of near(me.group, {0, 1}, &nearby), far(me.group, {3, 2, 1}, &distant);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    barrier(me, far.group);
    return last_error();
  }
  const part_of far(me.group, {3, 2, 1}, &distant);
  std::this_thread::sleep_for(std::chrono::milliseconds(me.rank == 2 ? 1000 : 120));
  barrier(me, far.group);
  return last_error();
}

}  // namespace

// Rank 0 waits for 1 in "near", which waits in the whole group for a message of 2.
TEST_CASE("a whole group with a label is named where a rank was missed in it, also in its parts") {
  const velo_group_desc whole = labeled("job", 400), nearby = labeled("near", 400);
  const local_ranks ranks(3, whole);
  std::vector<velo_error_info> all(3);
  ranks.run([&](const rank_of_group& me) {
    if (me.rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      return velo_status{VELO_OK};
    }
    const part_of near(me.group, {0, 1}, &nearby);
    if (me.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const velo_status status =
        me.rank == 0 ? barrier(me, near.group) : message_from(2, me, me.group);
    all[at(me.rank)] = last_error();
    return status;
  });
  for (const int rank : {0, 1}) {
    INFO("rank " << rank << ": " << all[at(rank)].expected);
    CHECK(all[at(rank)].rank == 2);
    CHECK(std::string(all[at(rank)].expected) ==
          "receive of 1 float32 from rank 2 in job within 400 ms");
    CHECK(std::string(all[at(rank)].got) == "rank 2 not there");
  }
}

TEST_CASE("a rank that itself waits in another part is not accused, whichever deadline is first") {
  for (const bool by_message : {false, true}) {
    const local_ranks ranks(4);
    std::vector<velo_error_info> all(4);
    ranks.require([&](const rank_of_group& me) {
      all[at(me.rank)] = wait_in_chain(me, by_message ? message : barrier);
      return VELO_OK;
    });
    for (const velo_error_info& one : all) {
      INFO((by_message ? "message" : "barrier") << ": " << one.expected << ", " << one.got);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 2);
      CHECK(std::string(one.expected) == "barrier (operation 1) in far within 400 ms");
      CHECK(std::string(one.got) == "rank 2 not there");
    }
  }
}

// Rank 1 fails in "far", to which 2 does not come, and then comes to no call; its note of that wait
// would have lapsed when rank 0 reaches its deadline in "near".
TEST_CASE("a rank that has met a fault passes it on for as long as it comes to no other call") {
  const local_ranks ranks(3);
  std::vector<velo_error_info> all(3);
  ranks.require([&](const rank_of_group& me) {
    const velo_group_desc nearby = labeled("near", 1000), distant = labeled("far", 200);
    const auto fail_in = [&](velo_group in) {
      barrier(me, in);
      all[at(me.rank)] = last_error();
    };
    if (me.rank == 0) {
      const part_of near(me.group, {0, 1}, &nearby);
      fail_in(near.group);
    } else if (me.rank == 1) {
      const part_of near(me.group, {0, 1}, &nearby), far(me.group, {1, 2}, &distant);
      fail_in(far.group);
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    } else {
      const part_of far(me.group, {1, 2}, &distant);
      std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    }
    return VELO_OK;
  });
  for (const int rank : {0, 1}) {
    INFO("rank " << rank << ": " << all[at(rank)].expected << ", " << all[at(rank)].got);
    CHECK(all[at(rank)].rank == 2);
    CHECK(std::string(all[at(rank)].expected).find("barrier (operation 1) in far") == 0);
  }
}

TEST_CASE("a rank that is stopped where it has what it waited for does not count as waiting") {
  const board at_ranks;
  processes ranks;
  ranks.start_all(3, group_desc(900), [&](const rank_of_group& me) {
    const velo_group_desc by_label[] = {labeled("near", 900), labeled("far", 900),
                                        labeled("other", 900)};
    const auto failed = [&](velo_status done) { return ending_of(done); };
    if (me.rank == 0) {
      const part_of near(me.group, {0, 1}, &by_label[0]), other(me.group, {0, 2}, &by_label[2]);
      at_ranks.await(1, 1);
      const velo_status passed = barrier(me, other.group);
      return failed(passed == VELO_OK ? barrier(me, near.group) : passed);
    }
    if (me.rank == 1) {
      const part_of near(me.group, {0, 1}, &by_label[0]), far(me.group, {1, 2}, &by_label[1]);
      at_ranks.await(1, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return failed(barrier(me, far.group));
    }
    const part_of far(me.group, {1, 2}, &by_label[1]), other(me.group, {0, 2}, &by_label[2]);
    ++at_ranks.at[0];
    const velo_status passed = barrier(me, other.group);
    return failed(passed == VELO_OK ? barrier(me, far.group) : passed);
  });
  at_ranks.await(0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until it sleeps in "other"
  REQUIRE(kill(ranks.pid(2), SIGSTOP) == 0);
  ++at_ranks.at[1];
  std::this_thread::sleep_for(std::chrono::milliseconds(1400));
  REQUIRE(kill(ranks.pid(2), SIGCONT) == 0);
  const std::vector<ending> all = ranks.wait();
  for (const int rank : {0, 1}) {
    INFO("rank " << rank << ": " << all[at(rank)]);
    CHECK_PEER(all[at(rank)], 2, "rank 2 not there");
    CHECK(all[at(rank)].expected == "barrier (operation 1) in far within 900 ms");
  }
}

TEST_CASE("a rank that has made another part does not pass on a fault from before") {
  const local_ranks ranks(3);
  std::vector<velo_error_info> first(3), second(3);
  ranks.require([&](const rank_of_group& me) {
    const auto end_of_part = [&](int ends, velo_error_info& info) {
      info = VELO_ERROR_INFO_INIT;
      const part_of one(me.group, {2, 1, 0});
      std::int64_t value = 1;
      sum(me.stream, one.group, value);
      if (me.rank == ends) velo_group_abort(one.group);
      while (sum(me.stream, one.group, value) == VELO_OK) {
      }
      velo_last_error(&info);
      return velo_group_barrier(me.stream, me.group);
    };
    const velo_status done = end_of_part(1, first[at(me.rank)]);
    return done == VELO_OK ? end_of_part(0, second[at(me.rank)]) : done;
  });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(std::string(first[at(rank)].got) == "an abort by rank 1");
    CHECK(std::string(second[at(rank)].got) == "an abort by rank 0");
  }
}
