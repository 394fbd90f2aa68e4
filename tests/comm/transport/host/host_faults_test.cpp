// Faults in the middle of every call of a group over a host's functions: a rank is lost, late,
// calls something else, or aborts. A rank knows of others only what its own host reports.
#include <atomic>
#include <chrono>
#include <thread>

#include "comm/collective/every_call.hpp"
#include "comm/transport/host/host_ranks.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

using scene = std::function<std::vector<call_record>(const named_call&, fake_host&)>;

// The records of the ranks in each call's scene. The scenes run concurrently, since most wait.
std::vector<std::vector<call_record>> in_every_call(const scene& play) {
  const std::vector<named_call> calls = every_call();
  std::vector<std::vector<call_record>> all(calls.size());
  on_threads(static_cast<int>(calls.size()), [&](std::size_t i) {
    fake_host host(3, "gather to_all broadcast messages");
    all[i] = play(calls[i], host);
    if (!host.await_released(3)) all[i].clear();
  });
  return all;
}

template <class Check>
void check_each(const std::vector<std::vector<call_record>>& all, Check&& check) {
  const std::vector<named_call> calls = every_call();
  REQUIRE(all.size() == calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    REQUIRE(all[i].size() == 3);
    for (int rank = 0; rank < 3; ++rank) {
      const call_record& one = all[i][at(rank)];
      INFO(calls[i].name << ", rank " << rank << ": " << one);
      CHECK(one.code == VELO_ERR_PEER);
      check(std::string(calls[i].name), rank, one);
    }
  }
}

rank_of_three place_of(const rank_of_group& me) {
  return {me.stream, me.group, me.rank};
}

bool ends_in(const std::string& all, const std::string& end) {
  return all.size() >= end.size() && all.compare(all.size() - end.size(), end.size(), end) == 0;
}

std::string own_host(int rank) {
  return "rank " + std::to_string(rank) + " whose host failed";
}

// Milliseconds that ranks wait: long, but where it is the deadline that ends a call.
std::int64_t deadline_of(const named_call& is) {
  return std::string(is.name) == "messages" ? 400 : 20000;
}

}  // namespace

TEST_CASE("a rank lost to its host inside any collective ends it on all ranks at once") {
  const auto begin = std::chrono::steady_clock::now();
  const auto all = in_every_call([](const named_call& is, fake_host& host) {
    host.inject(1, [&](const char*, int call) -> fake_host::answer {
      if (call < 7) return {};
      host.lose_a_rank();
      return {true, -104};
    });
    return on_ranks(host, 20000, [&](const rank_of_group& me) {
      call_tensors v(7000, 3);
      velo_status done = VELO_OK;
      while (done == VELO_OK) done = is.call(place_of(me), v);
      return done;
    });
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));  // not the deadline
  check_each(all, [](const std::string&, int rank, const call_record& one) {
    CHECK(one.rank == rank);
    CHECK(one.got == own_host(rank));
    CHECK(
        ends_in(one.cause, rank == 1 ? "returned -104: injected" : "returned -110: rank missing"));
  });
}

TEST_CASE("a rank that is late for any collective ends it by the host's word at the deadline") {
  const auto all = in_every_call([](const named_call& is, fake_host& host) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<int> over{0};
    std::atomic<bool> waited{true};
    std::vector<call_record> each = on_ranks(host, 400, [&](const rank_of_group& me) {
      call_tensors v(7000, 3);
      if (me.rank == 1)
        while (over < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const velo_status done = is.call(place_of(me), v);
      if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(400)) waited = false;
      ++over;
      return done;
    });
    if (!waited) each.clear();
    return each;
  });
  check_each(all, [](const std::string&, int rank, const call_record& one) {
    CHECK(one.got == own_host(rank));
    CHECK(ends_in(one.cause, "returned -110: rank missing"));
  });
}

TEST_CASE("a late rank that the host names is the one at fault") {
  const auto all = in_every_call([](const named_call& is, fake_host& host) {
    host.name_late_ranks();
    std::atomic<int> over{0};
    return on_ranks(host, 400, [&](const rank_of_group& me) {
      call_tensors v(7000, 3);
      if (me.rank == 1)
        while (over < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const velo_status done = is.call(place_of(me), v);
      ++over;
      return done;
    });
  });
  check_each(all, [](const std::string& name, int rank, const call_record& one) {
    if (rank == 1 || name == "messages") return;  // of messages a host knows the two ranks alone
    CHECK(one.rank == 1);
    CHECK(one.got == "rank 1 not there");
    CHECK(one.expected.find(" within 400 ms") != std::string::npos);
    CHECK(ends_in(one.cause, "returned -110: rank missing"));
  });
}

TEST_CASE("a rank that the host finds late for a group, a part or a message is named") {
  fake_host host(3, "gather messages part");
  host.name_late_ranks();
  std::atomic<int> over{0};
  const std::vector<call_record> made = on_ranks(host, 400, [&](const rank_of_group& me) {
    const numbers x(f32, 10, 0);
    const velo_tensor view = x.view();
    velo_status done = VELO_OK;
    if (me.rank == 0) done = velo_group_receive(me.stream, me.group, 2, &view);
    ++over;
    while (over < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done;
  });
  CHECK(made[0].rank == 2);
  CHECK(made[0].expected == "receive of 10 float32 from rank 2 within 400 ms");
  CHECK(made[0].got == "rank 2 not there");
  fake_host other(2, "gather");
  other.name_late_ranks();
  const live_context context;
  const velo_host_collectives table = other.table(0);
  const velo_group_desc desc = velo::testing::over(table, 0, 2, 200);
  velo_group none = nullptr;
  const call_record alone = record_of(velo_group_create(context, &desc, &none));
  CHECK_PEER(alone, 1, "rank 1 not there");
  CHECK(ends_in(alone.cause, "returned -110: rank missing"));
}

TEST_CASE("a rank that calls something other than a collective is named to all over a host") {
  const auto all = in_every_call([](const named_call& is, fake_host& host) {
    const bool is_barrier = std::string(is.name) == "barrier";
    const bool is_message = std::string(is.name) == "messages";
    return on_ranks(host, deadline_of(is), [&](const rank_of_group& me) {
      call_tensors v(me.rank == 1 && is_message ? 6999 : 7000, 3);
      if (me.rank != 1 || is_message) return is.call(place_of(me), v);
      if (!is_barrier) return velo_group_barrier(me.stream, me.group);
      const velo_tensor x = v.view(v.in, v.part);
      return velo_group_broadcast(me.stream, me.group, 0, &x);
    });
  });
  check_each(all, [](const std::string& name, int rank, const call_record& one) {
    if (name == "messages") {  // two ranks alone compare what they send and receive
      if (rank == 2) CHECK(one.got == "rank 1 with send of 6999 float32 to rank 2");
      return;
    }
    CHECK(one.rank == 1);
    CHECK(one.got == (name == "barrier" ? "rank 1 with broadcast of 7000 float32 from rank 0"
                                        : "rank 1 with barrier"));
  });
}

TEST_CASE("an abort by an awaited rank reaches all ranks in any collective over a host") {
  const auto all = in_every_call([](const named_call& is, fake_host& host) {
    return on_ranks(host, deadline_of(is), [&](const rank_of_group& me) {
      call_tensors v(7000, 3);
      if (me.rank != 1) return is.call(place_of(me), v);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      velo_group_abort(me.group);
      return is.call(place_of(me), v);
    });
  });
  check_each(all, [](const std::string& name, int rank, const call_record& one) {
    // An exchange of messages is no call of all ranks: the rank's own host ends it at the deadline.
    const bool hears = name != "messages" || rank == 1;
    CHECK(one.got == (hears ? "an abort by rank 1" : own_host(rank)));
  });
}
