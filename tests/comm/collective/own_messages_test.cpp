// Messages of a rank to itself, over every transport: alone, in order, beside those of others, and
// what ends the group.
#include "comm/transports.hpp"
#include "tests/stream_work.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

struct ints {
  explicit ints(std::int64_t count, std::int32_t value = 0)
      : count(count), data(static_cast<std::size_t>(count) + 1, value) {}
  ints(const ints&) = delete;
  velo_tensor view() { return view_of(data.data(), i32, count); }
  std::int64_t wrong(std::int32_t value) const {
    return count - std::count(data.begin(), data.begin() + count, value);
  }
  const std::int64_t count;
  std::vector<std::int32_t> data;
};

velo_status pass(const rank_of_group& me, ints& from, ints& to) {
  const velo_tensor out = from.view(), in = to.view();
  velo_collective_desc send = collective_of(VELO_COLLECTIVE_SEND, &out, nullptr, me.rank),
                       receive = collective_of(VELO_COLLECTIVE_RECEIVE, &in, nullptr, me.rank);
  const velo_status done = (me.plans ? plan_and_start : call)(me.stream, me.group, send);
  return done == VELO_OK ? (me.plans ? plan_and_start : call)(me.stream, me.group, receive) : done;
}

// Runs body over every transport, and over hosts with messages and without, which none of these
// need.
void everywhere(int size, const rank_body& body, const std::function<void(const outcome&)>& check) {
  const auto check_all = [&](const char* name, const std::vector<outcome>& all) {
    for (const outcome& one : all) {
      INFO(name << ", " << size << " ranks: " << one);
      check(one);
    }
  };
  for (const transport_case& over : every_transport)
    if (over.run != over_a_host) check_all(over.name, over.run(size, 20000, body));
  for (const char* functions : {"gather messages", "gather"})
    check_all(functions, over_a_host_with(functions, size, 20000, body));
}

void require_right(const outcome& one) {
  REQUIRE(one.code == VELO_OK);
  REQUIRE(one.value == 0);
}

}  // namespace

TEST_CASE("a rank receives its own messages in order and of any size") {
  for (const int size : {1, 2, 4})
    everywhere(
        size,
        [](const rank_of_group& by) -> answer {
          rank_of_group me = by;
          std::int64_t wrong = 0;
          for (const bool plans : {false, true})
            for (const std::int64_t count : {0, 1, 13, 5000, 700001}) {
              ints x(count, me.rank + 5), y(count);
              me.plans = plans;
              const velo_status done = pass(me, x, y);
              if (done != VELO_OK) return {done, 0};
              wrong += y.wrong(me.rank + 5) + (y.data.back() != 0);
            }
          for (int i = 0; i < 9; ++i) {  // more than a channel has slots; x changes as it is sent
            ints x(100000, i);
            const velo_tensor out = x.view();
            const velo_status done = velo_group_send(me.stream, me.group, me.rank, &out);
            if (done != VELO_OK) return {done, 0};
          }
          for (int i = 0; i < 9; ++i) {
            ints y(100000);
            const velo_tensor in = y.view();
            const velo_status done = velo_group_receive(me.stream, me.group, me.rank, &in);
            if (done != VELO_OK) return {done, 0};
            wrong += y.wrong(i);
          }
          return {velo_group_barrier(me.stream, me.group), wrong};
        },
        require_right);
}

TEST_CASE("messages to itself and to others go together, whichever is named first") {
  for (const transport_case& over : every_transport)
    for (const int size : {1, 2, 3}) {
      const std::vector<outcome> all = over.run(size, 20000, [](const rank_of_group& me) -> answer {
        std::int64_t wrong = 0;
        for (const bool reversed : {false, true}) {
          std::vector<std::unique_ptr<ints>> gives, takes;
          std::vector<velo_tensor> views;
          std::vector<velo_group_message> list;
          views.reserve(at(4 * me.size));
          for (int peer = 0; peer < me.size; ++peer)
            for (const std::int64_t count : {300000, 17}) {
              gives.push_back(std::make_unique<ints>(count, 10 * me.rank + peer));
              takes.push_back(std::make_unique<ints>(count));
              views.push_back(gives.back()->view());
              list.push_back({&views.back(), peer, VELO_MESSAGE_SEND});
              views.push_back(takes.back()->view());
              list.push_back({&views.back(), peer, VELO_MESSAGE_RECEIVE});
            }
          if (reversed)  // receives first; those of a pair keep their order
            std::stable_sort(list.begin(), list.end(),
                             [](const velo_group_message& a, const velo_group_message& b) {
                               return a.direction > b.direction;
                             });
          velo_collective_desc desc = collective_of(VELO_COLLECTIVE_EXCHANGE, nullptr, nullptr);
          desc.messages = list.data();
          desc.message_count = static_cast<std::int64_t>(list.size());
          const velo_status done = (reversed ? plan_and_start : call)(me.stream, me.group, desc);
          if (done != VELO_OK) return {done, 0};
          for (std::size_t i = 0; i < takes.size(); ++i)
            wrong += takes[i]->wrong(10 * static_cast<int>(i / 2) + me.rank);
        }
        return {VELO_OK, wrong};
      });
      for (const outcome& one : all) {
        INFO(over.name << ", " << size << " ranks: " << one);
        require_right(one);
      }
    }
}

TEST_CASE("a message to itself of another size ends the group, by name") {
  for (const int size : {1, 3})
    everywhere(
        size,
        [](const rank_of_group& me) -> answer {
          if (me.rank != 0) return {velo_group_barrier(me.stream, me.group), 1};
          ints x(10), y(9);
          const velo_status done = pass(me, x, y);
          return {done, 0};
        },
        [&](const outcome& one) {
          CHECK_PEER(one, 0, "rank 0 with send of 10 int32 to rank 0");
          CHECK(one.expected == "receive of 9 int32 from rank 0");
        });
}

TEST_CASE(
    "a rank that receives of itself what it has not sent fails at once, and so do the others") {
  for (const int size : {1, 3})
    everywhere(
        size,
        [](const rank_of_group& me) -> answer {
          const auto begin = std::chrono::steady_clock::now();
          ints y(9);
          const velo_tensor in = y.view();
          const velo_status done = me.rank == 0 ? velo_group_receive(me.stream, me.group, 0, &in)
                                                : velo_group_barrier(me.stream, me.group);
          return {done, std::chrono::steady_clock::now() - begin > std::chrono::seconds(10)};
        },
        [&](const outcome& one) {
          CHECK_PEER(one, 0, "rank 0 that could not do its part");
          CHECK(one.expected == "receive of 9 int32 from rank 0");
          CHECK(one.cause == "it has sent itself nothing");
          CHECK(one.value == 0);  // not by the deadline
        });
}

TEST_CASE("a message that a rank sends itself and never receives holds up nobody") {
  for (const int size : {1, 3})
    everywhere(
        size,
        [](const rank_of_group& me) -> answer {
          ints x(1 << 20, 1);
          const velo_tensor out = x.view();
          const velo_status done = velo_group_send(me.stream, me.group, me.rank, &out);
          return {done == VELO_OK ? velo_group_barrier(me.stream, me.group) : done, 0};
        },
        require_right);
}

TEST_CASE("a message to itself that is dropped with its stream ends no group") {
  const local_ranks ranks(2);
  const velo_stream queue = ranks.context(0).new_stream();
  ints x(9), y(9);
  const velo_tensor out = x.view(), in = y.view();
  std::atomic<bool> go{false};
  hold(queue, go);
  queue_failure(queue);
  REQUIRE(velo_group_send(queue, ranks.group(0), 0, &out) == VELO_OK);
  go = true;
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_IO);
  ranks.require_barrier();
  const call_record missed = record_of(velo_group_receive(ranks.stream(0), ranks.group(0), 0, &in));
  CHECK(missed.code == VELO_ERR_PEER);
  CHECK(missed.cause == "it has sent itself nothing");
  velo_stream_clear(queue);
}
