// Planned collectives: what they give is what calls give, on every transport, whoever plans and
// whoever calls; starts in flight; and what becomes of them when their group, or its process, goes.
#include <cstring>

#include "comm/collective/every_collective.hpp"
#include "comm/processes.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

velo_tensor floats(std::vector<float>& of, const std::int64_t& count) {
  return view_of(of.data(), f32, count);
}

// A plan of one rank for the sum of x in place.
class sum_in_place {
 public:
  sum_in_place(velo_group group, std::int64_t count, float value)
      : x(at(count), value), count_(count) {
    const velo_tensor view = floats(x, count_);
    const velo_collective_desc desc = collective_of(VELO_COLLECTIVE_ALL_REDUCE, &view, &view);
    made = velo_collective_create(group, &desc, &handle);
  }
  ~sum_in_place() { velo_collective_destroy(handle); }
  sum_in_place(const sum_in_place&) = delete;

  std::vector<float> x;
  velo_collective handle = nullptr;
  velo_status made;

 private:
  const std::int64_t count_;
};

bytes every(const rank_of_group& me, velo_dtype dtype, std::int64_t count, velo_status& done) {
  bytes all;
  done = every_collective(me, dtype, count, all).run();
  return all;
}

std::int64_t hash_of(const bytes& all) {
  std::uint64_t hash = 14695981039346656037u;
  for (const unsigned char one : all) hash = (hash ^ one) * 1099511628211u;
  return static_cast<std::int64_t>(hash);
}

}  // namespace

TEST_CASE("every collective gives what its call gives, planned on all threads or on some") {
  for (const int size : {2, 3})
    for (const std::int64_t count : {3, 5000})
      for (const bool all_plan : {true, false}) {
        INFO(size << " ranks, " << count << (all_plan ? ", all plan" : ", some plan"));
        const std::vector<bytes> called = locally(size, bf16, count);
        std::vector<bytes> got(called.size());
        const local_ranks ranks(size);
        ranks.require([&](int rank) {
          rank_of_group me{ranks.context(rank), ranks.stream(rank), ranks.group(rank), rank, size};
          me.plans = all_plan || rank % 2 == 1;
          velo_status done;
          got[at(rank)] = every(me, bf16, count, done);
          return done;
        });
        CHECK(got == called);
      }
}

TEST_CASE("a group of one rank plans, too") {
  const group_of_one alone;
  const rank_of_group me{alone.context, alone.stream, alone.group, 0, 1, true};
  velo_status done;
  const bytes got = every(me, f32, 300, done);
  CHECK(done == VELO_OK);
  CHECK(got == locally(1, f32, 300)[0]);
}

TEST_CASE("ranks that are processes plan, or call, to the same bits") {
  std::vector<bytes> called;
  {
    processes of_threads;  // nothing of velo is in the parent
    of_threads.start([] {
      std::uint64_t hash = 0;
      for (const bytes& one : locally(2, f32, 5000))
        hash = hash * 31 + static_cast<std::uint64_t>(hash_of(one));
      return ending_of(VELO_OK, static_cast<std::int64_t>(hash));
    });
    processes planned;
    planned.start_all(2, group_desc(), [](const rank_of_group& one) {
      const rank_of_group me{one.context, one.stream, one.group, one.rank, one.size, one.rank == 0};
      velo_status done;
      const bytes got = every(me, f32, 5000, done);
      return ending_of(done, hash_of(got));
    });
    const std::vector<ending> those = planned.wait(), these = of_threads.wait();
    std::uint64_t hash = 0;
    for (const ending& one : those) {
      CHECK(one.code == VELO_OK);
      hash = hash * 31 + static_cast<std::uint64_t>(one.value);
    }
    CHECK(these[0].value == static_cast<std::int64_t>(hash));
  }
}

TEST_CASE("starts see what is in memory at their turn, and those in flight follow each other") {
  const local_ranks ranks(2);
  std::vector<float> ends(2);
  // Made here: they require, which is for one thread.
  std::vector<velo_stream> firsts, seconds;
  std::vector<velo_event> events;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    firsts.push_back(ranks.context(rank).new_stream());
    seconds.push_back(ranks.context(rank).new_stream());
    events.push_back(ranks.context(rank).new_event());
  }
  ranks.require([&](const rank_of_group& me) {
    sum_in_place sum(me.group, 3000, 1);
    const velo_stream one = firsts[at(me.rank)], other = seconds[at(me.rank)];
    const velo_event event = events[at(me.rank)];
    velo_status done = sum.made;
    // 1, 2, 4, 8 on one queue, on to 16 on another, and to 32 at once; an event for each.
    for (int i = 0; i < 3 && done == VELO_OK; ++i) done = velo_collective_start(one, sum.handle);
    if (done == VELO_OK) done = velo_collective_start(other, sum.handle);
    if (done == VELO_OK) done = velo_collective_start(me.stream, sum.handle);
    if (done == VELO_OK) done = velo_event_record(event, other);
    if (done == VELO_OK) done = velo_event_synchronize(event, 20000000000);
    if (done == VELO_OK && sum.x[2999] != 32) done = VELO_ERR_INTERNAL;
    sum.x.assign(sum.x.size(), 3);
    if (done == VELO_OK) done = velo_collective_start(one, sum.handle);
    if (done == VELO_OK) done = velo_stream_synchronize(one);
    ends[at(me.rank)] = sum.x[0];
    velo_stream_destroy(one);
    velo_stream_destroy(other);
    return done;
  });
  CHECK(ends == std::vector<float>{6, 6});
}

TEST_CASE("messages are planned, one and several, and start as often as they like") {
  const local_ranks ranks(2);
  ranks.require([&](const rank_of_group& me) {
    constexpr std::int64_t count = 40000;
    std::vector<float> mine(count, static_cast<float>(me.rank)), theirs(count, -1.0f);
    const velo_tensor give = floats(mine, count), take = floats(theirs, count);
    const velo_group_message both[] = {{&give, 1 - me.rank, VELO_MESSAGE_SEND},
                                       {&take, 1 - me.rank, VELO_MESSAGE_RECEIVE}};
    velo_collective_desc several = collective_of(VELO_COLLECTIVE_EXCHANGE, nullptr, nullptr);
    several.messages = both;
    several.message_count = 2;
    const velo_collective_desc one =
        collective_of(me.rank == 0 ? VELO_COLLECTIVE_SEND : VELO_COLLECTIVE_RECEIVE,
                      me.rank == 0 ? &give : &take, nullptr, 1 - me.rank);
    velo_collective exchange = nullptr, way = nullptr;
    velo_status done = velo_collective_create(me.group, &several, &exchange);
    if (done == VELO_OK) done = velo_collective_create(me.group, &one, &way);
    for (int round = 0; round < 3 && done == VELO_OK; ++round) {
      mine.assign(count, static_cast<float>(10 * round + me.rank));
      done = velo_collective_start(me.stream, exchange);
      if (done == VELO_OK && theirs[count - 1] != static_cast<float>(10 * round + 1 - me.rank))
        done = VELO_ERR_INTERNAL;
      mine.assign(count, static_cast<float>(round));
      if (done == VELO_OK) done = velo_collective_start(me.stream, way);
      if (done == VELO_OK && me.rank == 1 && theirs[0] != static_cast<float>(round))
        done = VELO_ERR_INTERNAL;
    }
    velo_collective_destroy(exchange);
    velo_collective_destroy(way);
    return done;
  });
}

TEST_CASE("a plan may go before what it started, and be described until then") {
  const local_ranks ranks(2);
  std::vector<float> x(100, 1.0f), y(100, 1.0f);
  const std::int64_t count = 100;
  const velo_tensor mine = floats(x, count), theirs = floats(y, count);
  const velo_collective_desc desc = collective_of(VELO_COLLECTIVE_ALL_REDUCE, &mine, &mine);
  velo_collective sum = nullptr;
  REQUIRE(velo_collective_create(ranks.group(0), &desc, &sum) == VELO_OK);
  const velo_stream queue = ranks.context(0).new_stream();
  REQUIRE(velo_collective_start(queue, sum) == VELO_OK);
  char text[200];
  REQUIRE(velo_collective_describe(sum, text, sizeof text, nullptr) == VELO_OK);
  CHECK(std::string(text) ==
        R"({"operation":"all_reduce of 100 float32, sum","bytes":400,"started":1})");
  velo_collective_destroy(sum);
  CHECK(velo_collective_start(queue, sum) == VELO_ERR_HANDLE);
  REQUIRE(velo_group_all_reduce(ranks.stream(1), ranks.group(1), nullptr, &theirs, &theirs) ==
          VELO_OK);
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(x[99] == 2);
  velo_stream_destroy(queue);
}

TEST_CASE("a start is refused once its group has ended or is destroyed; survivors plan anew") {
  local_ranks ranks(2);
  sum_in_place sum(ranks.group(0), 10, 1);
  REQUIRE(sum.made == VELO_OK);
  REQUIRE(velo_group_abort(ranks.group(1)) == VELO_OK);
  const call_record ended = record_of(velo_collective_start(ranks.stream(0), sum.handle));
  CHECK(ended.code == VELO_ERR_PEER);
  CHECK(ended.rank == 1);
  const live_context alone;
  velo_group first = nullptr, second = nullptr;
  REQUIRE(velo_group_create(alone, nullptr, &first) == VELO_OK);
  sum_in_place of_first(first, 10, 5);
  REQUIRE(velo_collective_start(alone.inline_stream(), of_first.handle) == VELO_OK);
  REQUIRE(velo_group_abort(first) == VELO_OK);
  CHECK(velo_collective_start(alone.inline_stream(), of_first.handle) == VELO_ERR_PEER);
  REQUIRE(velo_group_shrink(first, nullptr, &second) == VELO_OK);
  velo_group_destroy(first);
  const call_record gone = record_of(velo_collective_start(alone.inline_stream(), of_first.handle));
  CHECK_REFUSED(gone, VELO_ERR_HANDLE, "group");
  CHECK(gone.got == "a destroyed group");
  sum_in_place of_second(second, 10, 5);
  CHECK(velo_collective_start(alone.inline_stream(), of_second.handle) == VELO_OK);
  velo_group_destroy(second);
}

TEST_CASE("a rank whose plan does not fit the others' call fails with the mismatch") {
  const local_ranks ranks(2);
  const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
    sum_in_place sum(me.group, me.rank == 0 ? 10 : 11, 1);
    return sum.made != VELO_OK ? sum.made : velo_collective_start(me.stream, sum.handle);
  });
  CHECK(all[0].code == VELO_ERR_PEER);
  CHECK(all[1].code == VELO_ERR_PEER);
  CHECK(all[1].got.find("all_reduce of 11 float32") != std::string::npos);
}

TEST_CASE("a plan that makes no sense is refused by the names of its function, and tells nobody") {
  const live_context stranger;
  const group_of_one alone;
  const velo_group group = alone.group;
  std::vector<float> x(6), y(6);
  const std::int64_t six = 6, five = 5, few[] = {5};
  const velo_tensor in = floats(x, six), out = floats(y, six), less = floats(y, five);
  const auto refused = [&](velo_status code, const char* argument, velo_collective_desc desc) {
    velo_collective made = nullptr;
    CHECK_REFUSED(velo_collective_create(group, &desc, &made), code, argument);
    CHECK(made == nullptr);
  };
  refused(VELO_ERR_ARGUMENT, "desc.kind", collective_of(VELO_COLLECTIVE_EXCHANGE + 1, &in, &out));
  refused(VELO_ERR_ARGUMENT, "desc.kind", collective_of(-1, &in, &out));
  refused(VELO_ERR_ARGUMENT, "desc.kind", collective_of(VELO_COLLECTIVE_BARRIER, &in, nullptr));
  refused(VELO_ERR_ARGUMENT, "desc.kind", collective_of(VELO_COLLECTIVE_BARRIER, nullptr, &out));
  refused(VELO_ERR_NULL, "in", collective_of(VELO_COLLECTIVE_ALL_REDUCE, nullptr, &out));
  refused(VELO_ERR_SHAPE, "out", collective_of(VELO_COLLECTIVE_ALL_REDUCE, &in, &less));
  refused(VELO_ERR_ARGUMENT, "root", collective_of(VELO_COLLECTIVE_BROADCAST, &in, nullptr, 1));
  refused(VELO_ERR_ARGUMENT, "to", collective_of(VELO_COLLECTIVE_SEND, &in, nullptr, 1));
  refused(VELO_ERR_NULL, "counts", collective_of(VELO_COLLECTIVE_GATHER_V, &in, &out));
  velo_collective_desc uneven = collective_of(VELO_COLLECTIVE_REDUCE_SCATTER_V, &in, &out);
  uneven.in_counts = few;
  refused(VELO_ERR_SHAPE, "in", uneven);
  velo_collective_desc short_struct = collective_of(VELO_COLLECTIVE_BARRIER, nullptr, nullptr);
  short_struct.struct_size = 80;
  refused(VELO_ERR_STRUCT, "desc.struct_size", short_struct);
  velo_collective_desc newer = collective_of(VELO_COLLECTIVE_BARRIER, nullptr, nullptr);
  newer.reserved = 1;
  refused(VELO_ERR_ARGUMENT, "desc.reserved", newer);
  sum_in_place sum(group, 6, 1);
  REQUIRE(sum.made == VELO_OK);
  CHECK_REFUSED(velo_collective_start(stranger.inline_stream(), sum.handle), VELO_ERR_ARGUMENT,
                "stream");
  CHECK(info_of(group).called == 0);
}

TEST_CASE("a child of a fork can start nothing of its parent's") {
  const group_of_one alone;
  sum_in_place sum(alone.group, 6, 1);
  REQUIRE(sum.made == VELO_OK);
  processes child;
  child.start([&] { return ending_of(velo_collective_start(alone.stream, sum.handle)); });
  CHECK(child.wait()[0].code == VELO_ERR_STATE);
}
