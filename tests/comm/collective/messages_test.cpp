// Messages: in order, of any size, many at the same time, and what ends them.
#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

using int_tensor = typed_tensor<std::int32_t>;

velo_tensor ints(std::vector<std::int32_t>& data, const std::int64_t& size) {
  return view_of(data.data(), i32, size);
}

std::int32_t word(int from, int to, std::size_t i) {
  return static_cast<std::int32_t>(from * 1000003 + to * 7919 + static_cast<int>(i));
}

}  // namespace

TEST_CASE("a rank receives the messages of another in order and of any size") {
  const local_ranks ranks(2);
  std::atomic<int> wrong{0};
  ranks.require([&](int rank) {
    for (const std::int64_t size : {0, 1, 13, 5000, 70000, 700001, 3}) {
      std::vector<std::int32_t> x(static_cast<std::size_t>(size) + 1, -1);
      for (std::size_t i = 0; rank == 0 && i < x.size(); ++i) x[i] = word(0, 1, i);
      const velo_tensor view = ints(x, size);
      const velo_status done = rank == 0
                                   ? velo_group_send(ranks.stream(0), ranks.group(0), 1, &view)
                                   : velo_group_receive(ranks.stream(1), ranks.group(1), 0, &view);
      if (done != VELO_OK) return done;
      for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
        wrong += x[i] != word(0, 1, i);
      wrong += rank == 1 && x.back() != -1;
    }
    return velo_status{VELO_OK};
  });
  CHECK(wrong == 0);
}

TEST_CASE("ranks that send to each other at the same time do not wait for each other") {
  for (const int count : {2, 3, 5, 8}) {
    const local_ranks ranks(count);
    std::atomic<int> wrong{0};
    ranks.require([&](const rank_of_group& me) {
      // Two messages to and from every other rank, one of them large, the second of another size.
      std::vector<std::vector<std::int32_t>> sent, got;
      std::vector<std::int64_t> sizes;
      std::vector<velo_tensor> views;
      std::vector<velo_group_message> all;
      sent.reserve(64), got.reserve(64), views.reserve(64), sizes.reserve(64);
      for (int peer = 0; peer < count; ++peer) {
        if (peer == me.rank) continue;
        for (const int size : {300000, 17}) {
          sizes.push_back(size);
          sent.emplace_back(static_cast<std::size_t>(size));
          got.emplace_back(static_cast<std::size_t>(size));
          for (std::size_t i = 0; i < sent.back().size(); ++i)
            sent.back()[i] = word(me.rank, peer, i + static_cast<std::size_t>(size));
          views.push_back(ints(sent.back(), sizes.back()));
          all.push_back({&views.back(), peer, VELO_MESSAGE_SEND});
          views.push_back(ints(got.back(), sizes.back()));
          all.push_back({&views.back(), peer, VELO_MESSAGE_RECEIVE});
        }
      }
      const velo_status done = velo_group_exchange(me.stream, me.group, all.data(),
                                                   static_cast<std::int64_t>(all.size()));
      if (done != VELO_OK) return done;
      std::size_t at = 0;
      for (int peer = 0; peer < count; ++peer) {
        if (peer == me.rank) continue;
        for (const std::size_t size : {300000, 17}) {
          for (std::size_t i = 0; i < size; ++i)
            wrong += got[at][i] != word(peer, me.rank, i + size);
          ++at;
        }
      }
      return velo_status{VELO_OK};
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("messages and collectives of a group go side by side") {
  const local_ranks ranks(3);
  std::atomic<int> wrong{0};
  ranks.require([&](const rank_of_group& me) {
    for (int round = 0; round < 50; ++round) {
      const std::int64_t one = 1;
      std::vector<std::int32_t> x{me.rank + round};
      const velo_tensor view = ints(x, one);
      velo_status done = VELO_OK;
      if (me.rank == round % 3)
        done = velo_group_send(me.stream, me.group, (me.rank + 1) % 3, &view);
      if (me.rank == (round + 1) % 3)
        done = velo_group_receive(me.stream, me.group, round % 3, &view);
      if (done == VELO_OK) done = velo_group_all_reduce(me.stream, me.group, nullptr, &view, &view);
      if (done != VELO_OK) return done;
      // The receiver's number is now the sender's.
      const int sender = round % 3, receiver = (round + 1) % 3;
      wrong += x[0] != 3 + 3 * round + sender - receiver;
    }
    return velo_status{VELO_OK};
  });
  CHECK(wrong == 0);
}

TEST_CASE("messages between processes wake who sleeps for them") {
  processes ranks;
  ranks.start_all(2, group_desc(), [](const rank_of_group& me) {
    ending all;
    int_tensor x({100000});
    for (int round = 0; round < 10; ++round) {
      if (me.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (std::size_t i = 0; me.rank == 0 && i < x.data.size(); ++i) x.data[i] = word(round, 0, i);
      const velo_status done = me.rank == 0 ? velo_group_send(me.stream, me.group, 1, &x.view)
                                            : velo_group_receive(me.stream, me.group, 0, &x.view);
      if (done != VELO_OK) return ending_of(done);
      for (std::size_t i = 0; i < x.data.size(); ++i) all.value += x.data[i] != word(round, 0, i);
    }
    all.code = VELO_OK;
    return all;
  });
  const lateness late_by;
  const std::int64_t begin = monotonic_ns();
  check_right(ranks.wait());
  const auto took = static_cast<double>(monotonic_ns() - begin) / 1e6;
  CHECK(took < 400 + late_by.of_ms(20));  // ten times 5, and not ten times 50
}

TEST_CASE("a message that is not as expected, does not come or is not taken ends the group") {
  const int_tensor x({100}), y({10});
  const velo_tensor &all = x.view, &few = y.view;
  SECTION("another size") {
    const local_ranks ranks(2);
    const std::vector<call_record> records = ranks.run([&](int rank) {
      return rank == 0 ? velo_group_send(ranks.stream(0), ranks.group(0), 1, &all)
                       : velo_group_receive(ranks.stream(1), ranks.group(1), 0, &few);
    });
    CHECK(records[0].code == VELO_OK);  // what was sent is between the two
    CHECK_PEER(records[1], 0, "rank 0 with send of 100 int32 to rank 1");
    CHECK(records[1].expected == "receive of 10 int32 from rank 0");
    CHECK(velo_group_barrier(ranks.stream(0), ranks.group(0)) == VELO_ERR_PEER);
  }
  SECTION("none") {
    const local_ranks ranks(3, group_desc(120));
    const call_record late =
        record_of(velo_group_receive(ranks.stream(1), ranks.group(1), 2, &all));
    CHECK_PEER(late, 2, "rank 2 not there");
    CHECK(late.expected == "receive of 100 int32 from rank 2 within 120 ms");
  }
  SECTION("nobody who takes it") {
    const local_ranks ranks(2, group_desc(120));
    int_tensor large({1 << 20});
    const call_record late =
        record_of(velo_group_send(ranks.stream(0), ranks.group(0), 1, &large.view));
    CHECK(late.code == VELO_ERR_PEER);
    CHECK(late.rank == 1);
  }
  SECTION("a rank that left") {
    const local_ranks ranks(2);
    const lateness late_by;
    const std::int64_t begin = monotonic_ns();
    const std::vector<call_record> records = ranks.run([&](int rank) {
      if (rank == 0) {
        velo_group_send(ranks.stream(0), ranks.group(0), 1, &all);
        velo_group_destroy(ranks.group(0));
        return velo_status{VELO_OK};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const velo_status first = velo_group_receive(ranks.stream(1), ranks.group(1), 0, &all);
      if (first != VELO_OK) return velo_status{-1};  // it was sent before
      return velo_group_receive(ranks.stream(1), ranks.group(1), 0, &all);
    });
    CHECK(records[1].code == VELO_ERR_PEER);
    CHECK(records[1].got == "rank 0 that left the group");
    const auto took = static_cast<double>(monotonic_ns() - begin) / 1e6;
    CHECK(took < 150 + late_by.of_ms(4));
  }
  SECTION("a killed process") {
    processes ranks;
    ranks.start_all(2, group_desc(), [](const rank_of_group& me) {
      int_tensor data({1000});
      if (me.rank == 0) pause();
      return ending_of(velo_group_receive(me.stream, me.group, 0, &data.view));
    });
    const lateness late_by;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::int64_t killed = monotonic_ns();
    REQUIRE(kill(ranks.pid(0), SIGKILL) == 0);
    const ending one = ranks.wait()[1];
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 0);
    CHECK(static_cast<double>(one.at_ns - killed) / 1e6 < 150 + late_by.of_ms(4));
  }
}

TEST_CASE("a rank that waits itself is not named, but the one that all wait for") {
  enum class last { receives, exchanges, meets };
  for (const last how : {last::receives, last::exchanges, last::meets}) {
    INFO("rank 2: " << static_cast<int>(how));
    const local_ranks ranks(3, group_desc(200));
    const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
      const int_tensor x({100}), y({1 << 20});
      const velo_tensor &few = x.view, &much = y.view;
      if (me.rank == 0) return velo_status{VELO_OK};  // never comes
      const velo_stream stream = me.stream;
      const velo_group group = me.group;
      if (me.rank == 1) {  // whose own deadline is the later one
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        return velo_group_receive(stream, group, 0, &few);
      }
      const velo_group_message both[] = {{&few, 1, VELO_MESSAGE_RECEIVE},
                                         {&much, 0, VELO_MESSAGE_SEND}};
      if (how == last::receives) return velo_group_receive(stream, group, 1, &few);
      if (how == last::exchanges) return velo_group_exchange(stream, group, both, 2);
      return velo_group_barrier(stream, group);
    });
    for (const int rank : {1, 2}) {
      const call_record& one = all[at(rank)];
      INFO("rank " << rank << ": " << one.expected);
      CHECK_PEER(one, 0, "rank 0 not there");
    }
  }
}

TEST_CASE("if ranks only wait for each other, the awaited ones are named") {
  const local_ranks ranks(2, group_desc(100));
  const std::vector<call_record> all = ranks.run([&](const rank_of_group& me) {
    int_tensor x({100});
    if (me.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return velo_group_receive(me.stream, me.group, 1 - me.rank, &x.view);
  });
  for (const call_record& one : all) {
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.got == "rank 1 not there");  // by the word of rank 0, which waited first
  }
}

TEST_CASE("messages that make no sense are refused by name") {
  const local_ranks ranks(3);
  std::vector<std::int32_t> x(100);
  const std::int64_t hundred = 100, ten = 10;
  const velo_tensor all = ints(x, hundred), few = ints(x, ten);
  const velo_stream stream = ranks.stream(1);
  const velo_group group = ranks.group(1);
  CHECK_REFUSED(velo_group_send(stream, group, 3, &all), VELO_ERR_ARGUMENT, "to");
  CHECK_REFUSED(velo_group_receive(stream, group, -1, &all), VELO_ERR_ARGUMENT, "from");
  CHECK_REFUSED(velo_group_receive(stream, group, 0, nullptr), VELO_ERR_NULL, "x");
  velo_group_message some[] = {{&few, 0, VELO_MESSAGE_SEND}, {&all, 2, VELO_MESSAGE_RECEIVE}};
  CHECK_REFUSED(velo_group_exchange(stream, group, some, 2), VELO_ERR_OVERLAP, "messages[1].x");
  some[1].x = nullptr;
  CHECK_REFUSED(velo_group_exchange(stream, group, some, 2), VELO_ERR_NULL, "messages[1].x");
  some[0].rank = 3;
  CHECK_REFUSED(velo_group_exchange(stream, group, some, 2), VELO_ERR_ARGUMENT, "messages[0].rank");
  some[0].direction = 2;
  CHECK_REFUSED(velo_group_exchange(stream, group, some, 2), VELO_ERR_ARGUMENT,
                "messages[0].direction");
  CHECK_REFUSED(velo_group_exchange(stream, group, some, -1), VELO_ERR_ARGUMENT, "count");
  CHECK_REFUSED(velo_group_exchange(stream, group, some, 4097), VELO_ERR_ARGUMENT, "count");
  CHECK_REFUSED(velo_group_exchange(stream, group, nullptr, 1), VELO_ERR_NULL, "messages");
  CHECK(velo_group_exchange(stream, group, nullptr, 0) == VELO_OK);
  ranks.require_barrier();
}
