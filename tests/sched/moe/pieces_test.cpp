// Rows between processes: in pieces through shared slots, by all-to-all where a slot has no room
// for a token, both with the bits of one rank; a process that is killed, and calls that differ.
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "comm/processes.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

const micro_batch batches[] = {
    {300, 3, 24, 1024, f32, 1},    {150, 2, 24, 333, bf16, 2}, {64, 1, 24, 256, f16, 4},
    {29, 2, 24, 40, f32, 5, true},  // one hot expert
    {1, 2, 24, 8, f32, 6},         {0, 2, 24, 8, f32, 7},      {10, 2, 24, 0, f32, 8},
    {12, 8, 24, 6000, f32, 9},  // a slot of small buffers has no room for the rows of a token
};

// wrong: receives 1 if a pass has other bits than that of one rank.
velo_status pass_as_alone(const micro_batch& of, const velo_dispatcher_desc& desc,
                          const rank_of_group& me, std::int64_t& wrong) {
  const pass_inputs in(of);
  pass_results alone(of), cut(of);
  const group_of_one one;
  rank_pass whole(of, in, {one.context, one.stream, one.group, 0, 1});
  velo_status done = whole.run(one.stream, desc, alone);
  if (done != VELO_OK) return done;
  rank_pass pass(of, in, me);
  done = pass.run(me.stream, desc, cut);
  wrong += !pass.agrees(alone);
  return done;
}

}  // namespace

TEST_CASE("processes move rows in pieces of any size with the bits of one rank") {
  for (const std::uint64_t buffer : {std::uint64_t{8} << 10, std::uint64_t{512} << 10})
    for (const int size : {2, 3, 4, 8}) {
      INFO(size << " ranks, buffers of " << buffer);
      velo_group_desc desc = group_desc(60000);
      desc.buffer = buffer;
      processes ranks;
      ranks.start_all(size, desc, [](const rank_of_group& me) {
        std::int64_t wrong = 0;
        velo_status done = VELO_OK;
        for (micro_batch of : batches)
          for (const bool padded : {false, true}) {
            velo_dispatcher_desc layer = desc_of(of);
            of.layout = padded ? token_layout::scattered : token_layout::parts;
            if (padded) layer.capacity_rule = VELO_CAPACITY_ROWS, layer.capacity = 5;
            layer.pad = padded ? 1 : 0;
            if (done == VELO_OK) done = pass_as_alone(of, layer, me, wrong);
          }
        return ending_of(done, wrong);
      });
      check_right(ranks.wait());
    }
}

namespace {

// Which movement of a pass is called for ever.
enum class movement { dispatch, combine, combine_backward, dispatch_backward };

// 32 rows of so many elements from each rank to the experts of the next.
struct endless_calls {
  explicit endless_calls(const rank_of_group& me, std::int64_t width) : columns(width) {
    for (int t = 0; t < 32; ++t) chosen[at(t)] = (me.rank + 1) % me.size;
    tokens.resize(at(32 * width), 1), rows.resize(at(32 * width), 2);
  }
  velo_status call(movement what, const rank_of_group& me, const open_layer& of) {
    const std::int64_t shape[] = {32, columns}, weight_shape[] = {32, 1};
    const velo_tensor x = view_of(tokens.data(), f32, shape), r = view_of(rows.data(), f32, shape),
                      w = view_of(weights.data(), f32, weight_shape),
                      dw = view_of(dweights.data(), f32, weight_shape),
                      out = view_of(results.data(), f32, shape);
    switch (what) {
      case movement::dispatch:
        return velo_dispatcher_dispatch(of.layer, me.stream, of.routing, &x, &r);
      case movement::combine:
        return velo_dispatcher_combine(of.layer, me.stream, of.routing, &r, &w, &x);
      case movement::combine_backward:
        return velo_dispatcher_combine_backward(of.layer, me.stream, of.routing, &x, &r, &w, &out,
                                                &dw);
      default:
        return again(me, of, r, x);
    }
  }
  velo_status set(const rank_of_group& me, const open_layer& of) const {
    const std::int64_t shape[] = {32, 1};
    const velo_tensor choices = view_of(chosen.data(), i32, shape);
    const velo_status done = velo_routing_set(of.routing, me.stream, &choices, nullptr, nullptr);
    return done == VELO_OK ? velo_routing_get_rows(of.routing, nullptr, 0, nullptr) : done;
  }

 private:
  velo_status again(const rank_of_group& me, const open_layer& of, const velo_tensor& drows,
                    const velo_tensor& dtokens) const {
    const velo_status done =
        velo_dispatcher_dispatch_backward(of.layer, me.stream, of.routing, &drows, &dtokens);
    return done == VELO_OK ? set(me, of) : done;
  }

  std::array<std::int32_t, 32> chosen{};
  std::int64_t columns;
  std::vector<float> tokens, rows;
  std::vector<float> results = std::vector<float>(32 * 3000);
  std::array<float, 32> weights{}, dweights{};
};

velo_status call_for_ever(movement what, const rank_of_group& me, std::int64_t width,
                          std::atomic<int>& calls) {
  const open_layer of(me.group, desc_of(me.size, 1));
  endless_calls all(me, width);
  velo_status done = all.set(me, of);
  while (done == VELO_OK) {
    done = all.call(what, me, of);
    if (done == VELO_OK) ++calls;
  }
  return done;
}

constexpr movement all_movements[] = {movement::dispatch, movement::combine,
                                      movement::combine_backward, movement::dispatch_backward};

}  // namespace

TEST_CASE("a process that is killed while rows move is named by the others") {
  void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (const movement what : all_movements) {
    INFO("movement " << static_cast<int>(what));
    auto* calls = new (shared) std::atomic<int>(0);
    processes ranks;
    ranks.start_all(3, group_desc(), [&](const rank_of_group& me) {
      return ending_of(call_for_ever(what, me, 3000, *calls));
    });
    while (*calls < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(ranks.pid(1), SIGKILL);
    const std::vector<ending> ends = ranks.wait();
    for (const int rank : {0, 2}) {
      CHECK(ends[at(rank)].code == VELO_ERR_PEER);
      CHECK(ends[at(rank)].rank == 1);
    }
  }
  munmap(shared, sizeof(std::atomic<int>));
}

TEST_CASE("processes with rows of another width are refused before rows move") {
  for (const movement what : all_movements) {
    processes ranks;
    ranks.start_all(3, group_desc(), [&](const rank_of_group& me) {
      std::atomic<int> calls{0};
      const velo_status done = call_for_ever(what, me, me.rank == 1 ? 2999 : 3000, calls);
      return ending_of(done, calls);
    });
    for (const ending& one : ranks.wait()) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.value == 0);
      CHECK(one.expected != one.got);
    }
  }
}

TEST_CASE("a choice beyond the experts is named in its process, and the process by the others") {
  for (const bool limited : {false, true}) {
    processes ranks;
    ranks.start_all(3, group_desc(), [&](const rank_of_group& me) {
      velo_dispatcher_desc desc = desc_of(6, 2);
      if (limited) desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 1;
      const open_layer of(me.group, desc);
      const std::int32_t chosen[] = {3, 0, 1, me.rank == 1 ? INT32_MAX : 5};
      const float scores[] = {1, 2, 3, 4};
      const std::int64_t shape[] = {2, 2};
      const velo_tensor choices = view_of(chosen, i32, shape), given = view_of(scores, f32, shape);
      return ending_of(
          velo_routing_set(of.routing, me.stream, &choices, limited ? &given : nullptr, nullptr));
    });
    const std::vector<ending> ends = ranks.wait();
    CHECK(ends[1].code == VELO_ERR_ARGUMENT);
    CHECK(ends[1].argument == "choices[1][1]");
    for (const int rank : {0, 2}) {
      CHECK(ends[at(rank)].code == VELO_ERR_PEER);
      CHECK(ends[at(rank)].rank == 1);
    }
  }
}
