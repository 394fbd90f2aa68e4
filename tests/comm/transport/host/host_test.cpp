// Groups over a host's own collectives: whatever the host has, the bits are those of threads; what
// it does wrong is named, on every rank, and no memory of a caller is touched afterwards.
#include <atomic>
#include <thread>

#include "comm/transport/host/host_ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

void require_good(const std::vector<call_record>& all) {
  for (const call_record& one : all) {
    INFO(one);
    REQUIRE(one.code == VELO_OK);
  }
}

velo_status sum(const rank_of_group& me, std::int64_t count) {
  const numbers x(f32, count, me.rank);
  const velo_tensor view = x.view();
  return velo_group_all_reduce(me.stream, me.group, nullptr, &view, &view);
}

}  // namespace

TEST_CASE(
    "every collective over a host has the bits of the one over threads, for every set of "
    "functions") {
  for (const char* functions : {"gather", "to_all", "broadcast", "messages", "gather to_all",
                                "gather to_all broadcast messages"})
    for (const int size : {1, 2, 3}) {
      fake_host host(size, functions);
      for (const velo_dtype dtype : {bf16, i64})
        for (const std::int64_t count : {37, 20011}) {
          INFO(functions << ", " << size << " ranks, " << int(dtype.code) << ", " << count);
          const std::vector<bytes> expected = locally(size, dtype, count);
          std::vector<bytes> got(at(size));
          require_good(on_ranks(host, 20000, [&](rank_of_group me) {
            me.plans = me.rank % 2 == 1;
            return every_collective(me, dtype, count, got[at(me.rank)]).run();
          }));
          CHECK((got == expected));
        }
      CHECK(host.await_released(4 * size));
      CHECK(host.aborted() == 0);
    }
}

TEST_CASE("a host's own reduction is taken as it is, and what it declines is velo's") {
  fake_host host(3, "gather reduce");
  std::atomic<int> reductions{0};
  for (int rank = 0; rank < 3; ++rank)
    host.inject(rank, [&](const char* name, int) {
      reductions += std::string(name) == "all_reduce";
      return fake_host::answer();
    });
  std::vector<float> sums(9000);
  std::vector<double> most(3);
  require_good(on_ranks(host, 20000, [&](const rank_of_group& me) {
    std::vector<float> x(9000, me.rank == 2 ? 1.0f : me.rank == 1 ? 16777216.0f : -16777216.0f);
    velo_status done = reduce_in_place(me.stream, me.group, x);
    if (me.rank == 0) sums = x;
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = VELO_REDUCE_MAX;  // declined
    x[5] = static_cast<float>(me.rank);
    if (done == VELO_OK) done = reduce_in_place(me.stream, me.group, x, &how);
    most[at(me.rank)] = x[5];
    return done;
  }));
  CHECK(sums[0] == 0);  // (1 + 2^24) - 2^24; in the order of the ranks it is 1
  CHECK(sums[8999] == 0);
  CHECK(most == std::vector<double>{2, 2, 2});
  CHECK(reductions == 3 * (2 + 1));  // 36000 bytes in slots of 32768; and what was declined
}

TEST_CASE("messages and parts are the host's, or refused by the function that is missing") {
  fake_host host(3, "messages part");
  const std::vector<bytes> of_two = locally(2, u8, 5000);  // made here: it requires
  require_good(on_ranks(host, 20000, [&](const rank_of_group& me) -> velo_status {
    const int next = (me.rank + 1) % 3, before = (me.rank + 2) % 3;
    const numbers mine(f32, 20000, me.rank), theirs(f32, 20000, before), got(f32, 20000, 77);
    const velo_tensor out = mine.view(), in = got.view();
    const velo_group_message both[] = {{&out, next, VELO_MESSAGE_SEND},
                                       {&in, before, VELO_MESSAGE_RECEIVE}};
    velo_status done = velo_group_exchange(me.stream, me.group, both, 2);
    bytes a, b;
    theirs.append_to(a);
    got.append_to(b);
    if (done != VELO_OK || a != b) return done != VELO_OK ? done : VELO_ERR_INTERNAL;
    if (me.rank == 1) return sum(me, 10);
    rank_of_group pair = me;  // the others alone, the higher one first
    const std::int32_t ranks[] = {2, 0};
    done = velo_group_create_part(me.group, ranks, 2, nullptr, &pair.group);
    if (done != VELO_OK) return done;
    pair.rank = me.rank == 2 ? 0 : 1, pair.size = 2;
    bytes over_part;
    done = every_collective(pair, u8, 5000, over_part).run();
    velo_group_destroy(pair.group);
    if (done != VELO_OK || over_part != of_two[at(pair.rank)])
      return done != VELO_OK ? done : VELO_ERR_INTERNAL;
    return sum(me, 10);
  }));
  fake_host without(2, "gather");
  require_good(on_ranks(without, 20000, [&](const rank_of_group& me) -> velo_status {
    const numbers x(f32, 3, me.rank);
    const velo_tensor view = x.view();
    const call_record one = record_of(velo_group_send(me.stream, me.group, 1 - me.rank, &view));
    const std::int32_t all[] = {0, 1};
    velo_group none = nullptr;
    const call_record other = record_of(velo_group_create_part(me.group, all, 2, nullptr, &none));
    const bool right = one.code == VELO_ERR_UNSUPPORTED &&
                       one.expected == "a host with the functions send and receive" &&
                       other.code == VELO_ERR_UNSUPPORTED &&
                       other.expected == "a host with the function part";
    return right ? sum(me, 3) : VELO_ERR_INTERNAL;  // which ended nothing
  }));
}

TEST_CASE("the functions of a part that velo cannot use are released") {
  const std::int32_t both[] = {0, 1};
  SECTION("they are too few") {
    fake_host host(2, "gather part", "reduce abort");
    const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
      velo_group none = nullptr;
      return velo_group_create_part(me.group, both, 2, nullptr, &none);
    });
    for (const call_record& one : all) {
      CHECK_REFUSED(one, VELO_ERR_NULL, "part.all_gather");
    }
    CHECK(host.part_of({0, 1}).await_released(2));
  }
  SECTION("they come late on one rank, and the other does not meet it") {
    fake_host host(2, "gather part");
    std::atomic<bool> go{false};
    host.inject(1, [&](const char* name, int) {
      while (std::string(name) == "part" && !go)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return fake_host::answer();
    });
    const std::vector<call_record> all = on_ranks(host, 150, [&](const rank_of_group& me) {
      velo_group none = nullptr;
      return velo_group_create_part(me.group, both, 2, nullptr, &none);
    });
    for (const call_record& one : all) CHECK(one.code == VELO_ERR_PEER);
    CHECK(all[0].got == "a failure of its functions");
    CHECK(all[1].cause == "a function of the host has not returned after 150 ms");
    go = true;
    CHECK(host.part_of({0, 1}).await_released(2));
    CHECK(host.await_released(2));
  }
}

TEST_CASE("a part that is waited for when its parent ends says what ended that") {
  fake_host host(2, "gather part");
  std::atomic<int> inside{0};
  std::atomic<bool> go{false};
  for (int rank = 0; rank < 2; ++rank)
    host.inject(rank, [&](const char* name, int) {
      if (std::string(name) == "part") ++inside;
      while (std::string(name) == "part" && !go)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return fake_host::answer();
    });
  const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
    std::thread other([&] {
      while (inside < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      velo_group_abort(me.group);
    });
    const std::int32_t both[] = {0, 1};
    velo_group none = nullptr;
    const velo_status done = velo_group_create_part(me.group, both, 2, nullptr, &none);
    other.join();
    return done;
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(all[at(rank)].code == VELO_ERR_PEER);
    CHECK(all[at(rank)].got == "an abort by rank " + std::to_string(rank));
  }
  go = true;
  CHECK(host.await_released(2));  // the functions have returned
  CHECK(host.part_of({0, 1}).await_released(2));
}

TEST_CASE("a failure of the host is named to every rank, and to whoever waits") {
  struct failing {
    fake_host::answer says;
    const char* cause;
  };
  for (const failing& one :
       {failing{{true, -5}, "all_gather returned -5: injected"},
        failing{{true, 100}, "all_gather returned 100 of 3072 bytes: injected"},
        failing{{true, 0}, "all_gather returned 0 of 3072 bytes: injected"}}) {
    INFO(one.cause);
    fake_host host(3, "gather");
    host.inject(1, [&](const char*, int call) {  // the rendezvous, the first sum, the second
      return call == 2 ? one.says : fake_host::answer();
    });
    std::atomic<int> waited{0};
    const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
      velo_status done = sum(me, 100);
      if (done != VELO_OK) return done;
      done = sum(me, 100);
      if (done == VELO_ERR_PEER) {  // for good, in other streams, too
        velo_stream other = nullptr;
        velo_stream_create(me.context, &other);
        waited += velo_group_barrier(other, me.group) == VELO_ERR_PEER;
      }
      return sum(me, 100);
    });
    for (const call_record& got : all) {
      CHECK_PEER(got, 1, "rank 1 whose host failed");
      CHECK(got.cause == one.cause);
    }
    CHECK(waited == 3);
    CHECK(host.await_released(3));
  }
}

TEST_CASE("a function that throws, and one that does not return") {
  {
    fake_host host(2, "broadcast abort");
    host.inject(0, [](const char*, int call) -> fake_host::answer {
      if (call == 2) throw std::runtime_error("no more");
      return {};
    });
    const std::vector<call_record> all =
        on_ranks(host, 20000, [&](const rank_of_group& me) { return sum(me, 100); });
    for (const call_record& got : all) CHECK(got.code == VELO_ERR_PEER);
    CHECK(all[0].cause == "broadcast threw an exception: no more");
    CHECK(host.aborted() > 0);
    CHECK(host.await_released(2));
  }
  fake_host host(2, "gather");
  std::atomic<bool> go{false};
  for (int rank = 0; rank < 2; ++rank)
    host.inject(rank, [&](const char*, int call) -> fake_host::answer {
      while (call == 1 && !go) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return {};
    });
  const std::vector<call_record> all =
      on_ranks(host, 1500, [&](const rank_of_group& me) { return sum(me, 100); });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(all[at(rank)].code == VELO_ERR_PEER);
    CHECK(all[at(rank)].cause == "a function of the host has not returned after 1500 ms");
  }
  CHECK(host.released() == 0);  // its thread is still in it
  go = true;
  CHECK(host.await_released(2));
}

TEST_CASE("an abort and a rank with other terms are reported by way of the host") {
  {
    fake_host host(3, "gather");
    const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
      if (me.rank == 2) velo_group_abort(me.group);
      return sum(me, 100);
    });
    for (const call_record& got : all) CHECK(got.got == "an abort by rank 2");
    CHECK(host.await_released(3));  // no thread is in its functions any more
  }
  {
    fake_host host(3, "gather abort");  // one that is in the middle, with nobody else there
    const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
      if (me.rank != 2) return sum(me, 100);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return velo_group_abort(me.group);
    });
    for (int rank = 0; rank < 2; ++rank) CHECK(all[at(rank)].code == VELO_ERR_PEER);
    CHECK(host.await_released(3));
  }
  fake_host host(3, "to_all");
  const std::vector<call_record> all =
      on_ranks(host, 20000, [&](const rank_of_group& me) { return sum(me, me.rank == 1 ? 7 : 8); });
  for (const call_record& got : all) {
    INFO(got.cause);
    CHECK(got.got == "rank 1 with all_reduce of 7 float32, sum");
  }
  CHECK(host.await_released(3));
}

TEST_CASE("the parts that ranks send must be those that their peers expect, over a host, too") {
  fake_host host(3, "gather");
  const std::vector<call_record> all = on_ranks(host, 20000, [&](const rank_of_group& me) {
    const std::vector<std::int64_t> four(3, 4);
    const numbers in(f32, me.rank == 2 ? 5 : 4, 1), out(f32, 12, 1);
    const velo_tensor from = in.view(), to = out.view();
    return velo_group_gather_v(me.stream, me.group, 0, &from, four.data(), nullptr, &to);
  });
  for (const call_record& got : all) {
    CHECK(got.rank == 2);
    CHECK(got.expected == "gather of 4 float32 to rank 0 (operation 1)");
    CHECK(got.got == "rank 2 with gather of 5 float32 to rank 0");
  }
  CHECK(host.await_released(3));
}

TEST_CASE("ranks whose hosts have other functions, and tables that are none, are refused") {
  fake_host few(2, "gather"), many(2, "gather broadcast");
  velo_host_collectives table = few.table(0);
  const live_context context;
  velo_group group = nullptr;
  const auto refused = [&](const velo_group_desc& desc, velo_status code, const char* argument) {
    CHECK_REFUSED(velo_group_create(context, &desc, &group), code, argument);
  };
  velo_group_desc desc = over(table, 0, 2);
  desc.host = nullptr;
  refused(desc, VELO_ERR_NULL, "desc.host");
  table.all_gather = nullptr;
  refused(over(table, 0, 2), VELO_ERR_NULL, "desc.host.all_gather");
  table = fake_host(2, "messages").table(0);
  table.receive = nullptr;
  refused(over(table, 0, 2), VELO_ERR_NULL, "desc.host.receive");
  table = few.table(0);
  table.reserved = 1;
  refused(over(table, 0, 2), VELO_ERR_ARGUMENT, "desc.host.reserved");
  table.reserved = 0;
  table.struct_size = 16;
  refused(over(table, 0, 2), VELO_ERR_STRUCT, "desc.host.struct_size");
  refused(over(few.table(0), 2, 2), VELO_ERR_ARGUMENT, "desc.rank");
  CHECK(few.released() == 0);

  std::vector<call_record> all(2);
  std::thread other([&] {
    const live_context its;
    velo_host_collectives mixed = few.table(1);
    mixed.broadcast = many.table(1).broadcast;
    velo_group none = nullptr;
    const velo_group_desc with = over(mixed, 1, 2);
    all[1] = record_of(velo_group_create(its, &with, &none));
  });
  const velo_host_collectives own = few.table(0);
  const velo_group_desc with = over(own, 0, 2);
  all[0] = record_of(velo_group_create(context, &with, &group));
  other.join();
  CHECK(all[0].code == VELO_ERR_PEER);
  CHECK(all[0].got == "rank 1 with others");
  CHECK(all[1].got == "rank 0 with others");
  CHECK(few.await_released(2));
}
