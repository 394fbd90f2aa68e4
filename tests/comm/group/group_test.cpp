// Groups: how they are made, the order of their calls beside streams, and what is refused.
#include "comm/ranks.hpp"
#include "tests/refusals.hpp"
#include "tests/stream_work.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

velo_tensor floats(float* data, const std::int64_t& size) {
  return view_of(data, f32, size);
}

velo_status sum(velo_stream stream, velo_group group, float* data, const std::int64_t& size) {
  const velo_tensor x = floats(data, size);
  return velo_group_all_reduce(stream, group, nullptr, &x, &x);
}

constexpr std::int64_t ten = 10;

}  // namespace

TEST_CASE("a group of one rank combines with itself") {
  const group_of_one alone;
  const velo_group_info info = info_of(alone.group);
  CHECK(info.transport == VELO_TRANSPORT_SELF);
  CHECK(info.rank == 0);
  CHECK(info.size == 1);
  float in[10], out[10] = {};
  for (int i = 0; i < 10; ++i) in[i] = static_cast<float>(i);
  velo_reduction how = VELO_REDUCTION_INIT;
  how.scale = 2;
  const velo_tensor from = floats(in, ten), to = floats(out, ten);
  REQUIRE(velo_group_all_reduce(alone.stream, alone.group, &how, &from, &to) == VELO_OK);
  for (int i = 0; i < 10; ++i) CHECK(out[i] == 2 * in[i]);
  CHECK(velo_group_barrier(alone.stream, alone.group) == VELO_OK);
  CHECK(info_of(alone.group).finished == 2);
}

TEST_CASE("ranks of a process know their places") {
  const local_ranks ranks(3);
  for (int r = 0; r < 3; ++r) {
    const velo_group_info info = info_of(ranks.group(r));
    CHECK(info.transport == VELO_TRANSPORT_LOCAL);
    CHECK(info.rank == r);
    CHECK(info.size == 3);
    CHECK(info.failed == 0);
  }
}

TEST_CASE("no rank leaves a barrier before all have come") {
  const local_ranks ranks(4);
  std::atomic<int> come{0};
  std::atomic<bool> early{false};
  ranks.require([&](const rank_of_group& me) {
    for (int round = 1; round <= 100; ++round) {
      if (me.rank == round % 4) std::this_thread::sleep_for(std::chrono::microseconds(300));
      ++come;
      const velo_status met = velo_group_barrier(me.stream, me.group);
      if (met != VELO_OK) return met;
      if (come < 4 * round) early = true;
      const velo_status left = velo_group_barrier(me.stream, me.group);
      if (left != VELO_OK) return left;
    }
    return velo_status{VELO_OK};
  });
  CHECK_FALSE(early);
}

TEST_CASE("a collective on a queue returns at once, and what is queued behind it sees its result") {
  const local_ranks ranks(2);
  float data[2][10];
  for (auto& of : data)
    for (float& x : of) x = 1;
  velo_stream queue = ranks.context(0).new_stream();
  velo_event done = ranks.context(0).new_event();
  REQUIRE(sum(queue, ranks.group(0), data[0], ten) == VELO_OK);
  REQUIRE(sum(queue, ranks.group(0), data[0], ten) == VELO_OK);
  REQUIRE(velo_event_record(done, queue) == VELO_OK);
  CHECK(velo_event_synchronize(done, 20000000) == VELO_ERR_TIMEOUT);
  CHECK(data[0][0] == 1);
  REQUIRE(sum(ranks.stream(1), ranks.group(1), data[1], ten) == VELO_OK);
  REQUIRE(sum(ranks.stream(1), ranks.group(1), data[1], ten) == VELO_OK);
  REQUIRE(velo_event_synchronize(done, 20000000000) == VELO_OK);
  CHECK(data[0][9] == 4);
  CHECK(data[1][9] == 4);
  CHECK(info_of(ranks.group(0)).finished == 2);
}

TEST_CASE("products of the context go on while a collective waits") {
  const local_ranks ranks(2);
  float data[2][10] = {};
  velo_stream queue = ranks.context(0).new_stream();
  REQUIRE(sum(queue, ranks.group(0), data[0], ten) == VELO_OK);
  float a[10] = {1}, y[10] = {};
  const velo_tensor view_a = floats(a, ten), view_y = floats(y, ten);
  velo_add_args add = VELO_ADD_ARGS_INIT;
  add.a = add.b = &view_a;
  add.y = &view_y;
  REQUIRE(velo_add(ranks.stream(0), &add) == VELO_OK);
  CHECK(y[0] == 2);
  REQUIRE(sum(ranks.stream(1), ranks.group(1), data[1], ten) == VELO_OK);
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
}

TEST_CASE("collectives of a group keep the order of their calls across streams") {
  const local_ranks ranks(2);
  float first[2][10] = {}, second[2][1] = {};
  const std::int64_t one = 1;
  std::atomic<bool> open{false};
  velo_stream held = ranks.context(0).new_stream(), free = ranks.context(0).new_stream();
  hold(held, open);
  REQUIRE(sum(held, ranks.group(0), first[0], ten) == VELO_OK);
  REQUIRE(sum(free, ranks.group(0), second[0], one) == VELO_OK);  // called later: waits
  std::thread other([&] {
    sum(ranks.stream(1), ranks.group(1), first[1], ten);
    sum(ranks.stream(1), ranks.group(1), second[1], one);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(info_of(ranks.group(0)).finished == 0);
  open = true;
  CHECK(velo_stream_synchronize(free) == VELO_OK);
  CHECK(velo_stream_synchronize(held) == VELO_OK);
  other.join();
  CHECK(info_of(ranks.group(1)).finished == 2);
}

TEST_CASE("several threads may call on one stream") {
  const local_ranks ranks(2);
  std::vector<velo_stream> queues = {ranks.context(0).new_stream(), ranks.context(1).new_stream()};
  std::atomic<int> refused{0};
  on_threads(6, [&](int caller) {
    const int rank = caller % 2;
    for (int i = 0; i < 50; ++i)
      refused += velo_group_barrier(queues[at(rank)], ranks.group(rank)) != VELO_OK;
  });
  CHECK(refused == 0);
  for (const velo_stream queue : queues) CHECK(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(info_of(ranks.group(0)).finished == 150);
}

TEST_CASE("destroying a group finishes what was called") {
  const velo_context_desc one = context_desc(1);
  const live_context a(one), b(one);
  const velo_context both[] = {a, b};
  velo_group groups[2] = {};
  REQUIRE(velo_group_create_local(both, 2, nullptr, groups) == VELO_OK);
  float data[2][10];
  for (auto& of : data)
    for (float& x : of) x = 3;
  velo_stream queues[2] = {a.new_stream(), b.new_stream()};
  for (int r = 0; r < 2; ++r) REQUIRE(sum(queues[r], groups[r], data[r], ten) == VELO_OK);
  for (const velo_group group : groups) velo_group_destroy(group);
  CHECK(data[0][5] == 6);
  CHECK(data[1][5] == 6);
}

TEST_CASE("a context ends its group with it") {
  const velo_context_desc one = context_desc(1);
  velo_group groups[2] = {};
  {
    const live_context a(one), b(one);
    const velo_context both[] = {a, b};
    REQUIRE(velo_group_create_local(both, 2, nullptr, groups) == VELO_OK);
  }
  CHECK(velo_group_abort(groups[0]) == VELO_ERR_HANDLE);
}

TEST_CASE("groups that make no sense are refused, with the argument named") {
  const velo_context_desc one = context_desc(1);
  const live_context a(one), b(one);
  velo_group group = nullptr, groups[3] = {};
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  SECTION("a context twice") {
    const velo_context twice[] = {a, b, a};
    CHECK_REFUSED(velo_group_create_local(twice, 3, nullptr, groups), VELO_ERR_ARGUMENT,
                  "contexts[2]");
    CHECK(last_record().got == "contexts[0] again");
  }
  SECTION("no ranks, and too many") {
    const velo_context both[] = {a, b};
    CHECK_REFUSED(velo_group_create_local(both, 0, nullptr, groups), VELO_ERR_ARGUMENT, "count");
    CHECK_REFUSED(velo_group_create_local(both, 1025, nullptr, groups), VELO_ERR_ARGUMENT, "count");
  }
  SECTION("a context that is none") {
    const velo_context some[] = {a, nullptr};
    CHECK_REFUSED(velo_group_create_local(some, 2, nullptr, groups), VELO_ERR_NULL, "contexts[1]");
  }
  SECTION("transports") {
    desc.transport = VELO_TRANSPORT_LOCAL;
    CHECK_REFUSED(velo_group_create(a, &desc, &group), VELO_ERR_UNSUPPORTED, "desc.transport");
    desc.transport = 99;
    CHECK_REFUSED(velo_group_create(a, &desc, &group), VELO_ERR_ARGUMENT, "desc.transport");
    desc.transport = VELO_TRANSPORT_SELF;
    const velo_context both[] = {a, b};
    CHECK_REFUSED(velo_group_create_local(both, 2, &desc, groups), VELO_ERR_UNSUPPORTED,
                  "desc.transport");
  }
  SECTION("numbers") {
    desc.timeout_ns = 0;
    CHECK_REFUSED(velo_group_create(a, &desc, &group), VELO_ERR_ARGUMENT, "desc.timeout_ns");
    desc.timeout_ns = 1;
    desc.buffer = 4096;
    CHECK_REFUSED(velo_group_create(a, &desc, &group), VELO_ERR_ARGUMENT, "desc.buffer");
  }
  CHECK(group == nullptr);
  CHECK(groups[0] == nullptr);
}

TEST_CASE("a collective with wrong arguments is refused before any rank learns of it") {
  const local_ranks ranks(2);
  float x[10] = {}, y[10] = {};
  const std::int64_t nine = 9, five = 5, below = -1, two = 2, huge[] = {1 << 30, 1 << 30, 1 << 10};
  struct arguments {
    velo_tensor in, out;
    velo_reduction how = VELO_REDUCTION_INIT;
  };
  const auto call = [&](const arguments& a) {
    return velo_group_all_reduce(ranks.stream(0), ranks.group(0), &a.how, &a.in, &a.out);
  };
  check_refusals(
      arguments{floats(x, ten), floats(y, ten)}, call,
      {{[&](auto& a) { a.out.shape = &nine; }, VELO_ERR_SHAPE, "out",
        "10 elements, as many as in has"},
       {[&](auto& a) { a.in.shape = &below; }, VELO_ERR_SHAPE, "in.shape[0]"},
       {[](auto& a) { a.in.ndim = 9; }, VELO_ERR_RANK, "in.ndim"},
       {[&](auto& a) { a.in.ndim = 3, a.in.shape = huge; }, VELO_ERR_SHAPE, "in.shape"},
       {[](auto& a) { a.in.data = nullptr; }, VELO_ERR_NULL, "in.data"},
       {[](auto& a) {
          a.in.dtype = a.out.dtype = velo_dtype{VELO_DTYPE_INT, 16, 1};
        },
        VELO_ERR_DTYPE, "in.dtype"},
       {[](auto& a) { a.in.dtype = i4; }, VELO_ERR_DTYPE, "in.dtype"},
       {[](auto& a) { a.out.dtype = i32; }, VELO_ERR_DTYPE, "out.dtype", "float32", "int32"},
       {[&](auto& a) { a.in.shape = a.out.shape = &five, a.in.strides = &two; }, VELO_ERR_LAYOUT,
        "in.strides"},
       {[](auto& a) { a.in.byte_offset = 2; }, VELO_ERR_LAYOUT, "in.data"},
       {[](auto& a) { a.in.device.type = 2; }, VELO_ERR_DEVICE, "in.device"},
       {[&](auto& a) { a.in.shape = a.out.shape = &nine, a.out.data = x + 1; }, VELO_ERR_OVERLAP,
        "out"},
       {[](auto& a) { a.how.op = 7; }, VELO_ERR_ARGUMENT, "reduction.op"},
       {[](auto& a) { a.how.op = VELO_REDUCE_MIN, a.how.scale = 2; }, VELO_ERR_ARGUMENT,
        "reduction.scale"},
       {[](auto& a) { a.how.op = VELO_REDUCE_MIN, a.how.scale = 1.0 / 0.0; }, VELO_ERR_ARGUMENT,
        "reduction.scale"}});
  CHECK_REFUSED(velo_group_barrier(ranks.stream(1), ranks.group(0)), VELO_ERR_ARGUMENT, "stream");
  CHECK(info_of(ranks.group(0)).called == 0);
  ranks.require_barrier();
}
