// Dispatchers: rows, outputs and gradients against sums in double; the same bits for any number of
// ranks, on one host and on two; what a routing refuses, and faults.
#include <array>
#include <atomic>
#include <thread>

#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

const micro_batch batches[] = {
    {37, 2, 24, 40, f32, 1}, {50, 3, 24, 33, bf16, 2},       {41, 8, 24, 64, f16, 3},
    {64, 1, 24, 16, f32, 4}, {29, 2, 24, 40, bf16, 5, true},  // one hot expert
    {1, 2, 24, 8, f32, 6},   {0, 2, 24, 8, f32, 7},          {300, 6, 24, 272, f32, 8},
    {10, 2, 24, 0, f32, 9},
};

}  // namespace

TEST_CASE("rows, outputs and gradients are those of double, with the same bits for any ranks") {
  for (const micro_batch& of : batches) {
    INFO(of.tokens << " tokens, " << of.top_k << " choices, width " << of.width);
    pass_results alone(of);
    run_pass(of, local_ranks(1), alone);
    check_rows(of, alone);
    check_against_double(of, alone);
    for (const int ranks : {2, 3, 4, 8})
      for (const bool queued : {false, true}) {
        INFO(ranks << " ranks, queued: " << queued);
        pass_results cut(of);
        run_pass(of, local_ranks(ranks, group_desc(), ranks % 2 + 1), cut, queued);
        check_rows(of, cut);
        CHECK(same_bits(alone, cut));
      }
  }
}

TEST_CASE("ranks on two hosts, which send rows, have the bits of one rank") {
  for (const char* hosts : {"0011", "01", "0001"}) {
    const ranks_on_hosts ranks(hosts);
    for (const micro_batch& of : batches) {
      INFO(hosts << ", " << of.tokens << " tokens, " << of.top_k << " choices");
      pass_results alone(of), cut(of);
      run_pass(of, local_ranks(1), alone);
      run_pass(of, ranks, cut);
      check_rows(of, cut);
      CHECK(same_bits(alone, cut));
    }
  }
}

namespace {

call_record create(velo_group group, std::int64_t experts, std::int32_t top_k) {
  const velo_dispatcher_desc desc = desc_of(experts, top_k);
  velo_dispatcher made = nullptr;
  call_record record = record_of(velo_dispatcher_create(group, &desc, &made));
  CHECK(made == nullptr);
  return record;
}

}  // namespace

TEST_CASE("a dispatcher refuses experts that ranks cannot share, and choices there are none of") {
  const local_ranks ranks(2);
  for (const std::int64_t experts : {std::int64_t{0}, std::int64_t{-2}, std::int64_t{3},
                                     std::int64_t{1} << 21, INT64_MIN, INT64_MAX}) {
    const call_record record = create(ranks.group(0), experts, 1);
    CHECK(record.code == VELO_ERR_ARGUMENT);
    CHECK(record.argument == "desc.experts");
    CHECK(record.got == std::to_string(experts));
  }
  for (const std::int32_t top_k : {0, -1, 5, INT32_MIN, INT32_MAX}) {
    const call_record record = create(ranks.group(0), 4, top_k);
    CHECK(record.argument == "desc.top_k");
    CHECK(record.expected == "1 to 4, the experts");
  }
}

TEST_CASE(
    "a routing is set once, used after its rows are known, and free after its backward pass") {
  const local_ranks ranks(1);
  const open_layer of(ranks.group(0), desc_of(4, 2)), other(ranks.group(0), desc_of(4, 2));
  const velo_stream stream = ranks.stream(0);
  std::int32_t chosen[] = {3, 0, -1, 3};
  const std::int64_t shape[] = {2, 2}, matrix_shape[] = {2, 3}, row_shape[] = {3, 3};
  const velo_tensor choices = view_of(chosen, i32, shape);
  float x[6] = {1, 2, 3, 4, 5, 6}, rows[9] = {}, dx[6] = {};
  const velo_tensor tokens = view_of(x, f32, matrix_shape), in = view_of(rows, f32, row_shape),
                    back = view_of(dx, f32, matrix_shape);
  std::int64_t all = -1, counts[4] = {};
  CHECK(velo_routing_get_rows(of.routing, counts, 4, &all) == VELO_ERR_STATE);
  CHECK(velo_dispatcher_dispatch(of.layer, stream, of.routing, &tokens, &in) == VELO_ERR_STATE);
  REQUIRE(velo_routing_set(of.routing, stream, &choices, nullptr, nullptr) == VELO_OK);
  const call_record again =
      record_of(velo_routing_set(of.routing, stream, &choices, nullptr, nullptr));
  CHECK(again.code == VELO_ERR_STATE);
  CHECK(again.argument == "routing");
  REQUIRE(velo_routing_get_rows(of.routing, counts, 4, &all) == VELO_OK);
  CHECK(all == 3);
  CHECK(std::vector<std::int64_t>(counts, counts + 4) == std::vector<std::int64_t>{1, 0, 0, 2});
  const call_record wrong =
      record_of(velo_dispatcher_dispatch(other.layer, stream, of.routing, &tokens, &in));
  CHECK(wrong.code == VELO_ERR_ARGUMENT);
  CHECK(wrong.expected == "a routing of this dispatcher");
  REQUIRE(velo_dispatcher_dispatch(of.layer, stream, of.routing, &tokens, &in) == VELO_OK);
  CHECK(std::vector<float>(rows, rows + 9) == std::vector<float>{1, 2, 3, 1, 2, 3, 4, 5, 6});
  REQUIRE(velo_dispatcher_dispatch_backward(of.layer, stream, of.routing, &in, &back) == VELO_OK);
  CHECK(std::vector<float>(dx, dx + 6) == std::vector<float>{2, 4, 6, 4, 5, 6});
  CHECK(velo_dispatcher_dispatch(of.layer, stream, of.routing, &tokens, &in) == VELO_ERR_STATE);
  REQUIRE(velo_routing_set(of.routing, stream, &choices, nullptr, nullptr) == VELO_OK);
  REQUIRE(velo_routing_reset(of.routing) == VELO_OK);
  CHECK(velo_routing_get_rows(of.routing, nullptr, 0, &all) == VELO_ERR_STATE);
}

TEST_CASE("tensors that do not fit a routing are refused by name, and outputs stay") {
  const local_ranks ranks(1);
  const open_layer of(ranks.group(0), desc_of(4, 2));
  const velo_stream stream = ranks.stream(0);
  std::int32_t chosen[] = {3, 0, 1, 3};
  const std::int64_t shape[] = {2, 2}, three[] = {2, 3}, row_shape[] = {4, 3}, wide[] = {4, 4};
  float x[6] = {}, rows[16], w[4] = {};
  std::fill(std::begin(rows), std::end(rows), 7.0f);
  const velo_tensor choices = view_of(chosen, i32, shape);
  REQUIRE(velo_routing_set(of.routing, stream, &choices, nullptr, nullptr) == VELO_OK);
  std::int64_t all = 0;
  REQUIRE(velo_routing_get_rows(of.routing, nullptr, 0, &all) == VELO_OK);
  const velo_tensor tokens = view_of(x, f32, three), in = view_of(rows, f32, row_shape),
                    too_wide = view_of(rows, f32, wide), few = view_of(rows, f32, three),
                    narrow = view_of(rows, bf16, row_shape), weights = view_of(w, f32, shape),
                    whole = view_of(chosen, i32, row_shape);
  const auto dispatch = [&](const velo_tensor* from, const velo_tensor* to) {
    return record_of(velo_dispatcher_dispatch(of.layer, stream, of.routing, from, to));
  };
  CHECK(dispatch(nullptr, &in).argument == "tokens");
  CHECK(dispatch(&in, &in).expected == "2 rows, one a token");
  CHECK(dispatch(&tokens, &few).expected == "4 rows, as velo_routing_get_rows gives");
  CHECK(dispatch(&tokens, &too_wide).expected == "3 columns");
  CHECK(dispatch(&tokens, &narrow).code == VELO_ERR_DTYPE);
  CHECK(dispatch(&whole, &in).code != VELO_OK);
  const call_record no_rows = record_of(velo_dispatcher_combine_backward(
      of.layer, stream, of.routing, &tokens, nullptr, &weights, &in, &weights));
  CHECK(no_rows.code == VELO_ERR_NULL);
  CHECK(no_rows.argument == "rows");
  const open_layer empty(ranks.group(0), desc_of(4, 2));
  const std::int64_t no_choices[] = {0, 2}, endless[] = {0, std::int64_t{1} << 31};
  const velo_tensor nothing = view_of(chosen, i32, no_choices), broad = view_of(x, f32, endless);
  REQUIRE(velo_routing_set(empty.routing, stream, &nothing, nullptr, nullptr) == VELO_OK);
  REQUIRE(velo_routing_get_rows(empty.routing, nullptr, 0, &all) == VELO_OK);
  CHECK_REFUSED(velo_dispatcher_dispatch(empty.layer, stream, empty.routing, &broad, &broad),
                VELO_ERR_SHAPE, "tokens");
  CHECK(std::count(std::begin(rows), std::end(rows), 7.0f) == 16);
}

TEST_CASE("a choice beyond the experts is named, and its rank by the others") {
  for (const bool queued : {false, true}) {
    const local_ranks ranks(3);
    std::vector<velo_stream> streams;
    for (int rank = 0; rank < 3; ++rank)
      streams.push_back(queued ? ranks.context(rank).new_stream() : ranks.stream(rank));
    const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
      const open_layer of(me.group, desc_of(6, 2));
      std::int32_t chosen[] = {3, 0, 1, me.rank == 1 ? 6 : 5};
      const std::int64_t shape[] = {2, 2};
      const velo_tensor choices = view_of(chosen, i32, shape);
      velo_status done =
          velo_routing_set(of.routing, streams[at(me.rank)], &choices, nullptr, nullptr);
      if (done == VELO_OK) done = velo_stream_synchronize(streams[at(me.rank)]);
      return done;
    });
    CHECK(ends[1].code == VELO_ERR_ARGUMENT);
    CHECK(ends[1].argument == "choices[1][1]");
    CHECK(ends[1].got == "6");
    for (const int rank : {0, 2}) {
      CHECK(ends[at(rank)].code == VELO_ERR_PEER);
      CHECK(ends[at(rank)].rank == 1);
    }
  }
}

TEST_CASE("ranks with another routing in a call are refused before rows move") {
  // The second routings have other counts, or the same counts of other choices.
  for (const std::array<std::int32_t, 2>& second_choices : {std::array{2, 2}, std::array{3, 0}}) {
    const local_ranks ranks(2);
    const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
      const open_layer of(me.group, desc_of(4, 1));
      velo_routing second = nullptr;
      velo_routing_create(of.layer, &second);
      const std::array<std::int32_t, 2> chosen[] = {{0, 3}, second_choices};
      const std::int64_t shape[] = {2, 1};
      const velo_routing both[] = {of.routing, second};
      velo_status done = VELO_OK;
      std::int64_t rows[2] = {};
      for (int i = 0; i < 2 && done == VELO_OK; ++i) {
        const velo_tensor choices = view_of(chosen[i].data(), i32, shape);
        done = velo_routing_set(both[i], me.stream, &choices, nullptr, nullptr);
        if (done == VELO_OK) done = velo_routing_get_rows(both[i], nullptr, 0, &rows[i]);
      }
      const matrix x(f32, {2, 5}, 1), in(f32, {rows[me.rank], 5});
      const velo_tensor from = x.view(), to = in.view();
      if (done == VELO_OK)
        done = velo_dispatcher_dispatch(of.layer, me.stream, both[me.rank], &from, &to);
      velo_routing_destroy(second);
      return done;
    });
    for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
  }
}

TEST_CASE("an abort in the middle of dispatches ends every rank's call, and names the rank") {
  const local_ranks ranks(3);
  std::atomic<int> calls{0};
  std::atomic<bool> over{false};
  std::thread aborts([&] {
    while (calls < 5 && !over) std::this_thread::yield();
    velo_group_abort(ranks.group(2));
  });
  const micro_batch of(60, 2, 24, 40, f32, 1);
  const pass_inputs in(of);
  const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
    for (;; ++calls) {
      pass_results into(of);
      rank_pass pass(of, in, me);
      const velo_status done = pass.run(me.stream, desc_of(of), into);
      if (done != VELO_OK) return done;
    }
  });
  over = true;
  aborts.join();
  for (const call_record& one : ends) {
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 2);
  }
}

TEST_CASE("a thousand layers, routings and passes leave nothing behind") {
  const local_ranks ranks(1);
  const micro_batch of(9, 2, 24, 8, f32, 1);
  const pass_inputs in(of);
  for (int cycle = 0; cycle < 1000; ++cycle) {
    pass_results into(of);
    rank_pass pass(of, in, ranks.rank(0));
    REQUIRE(pass.run(ranks.stream(0), desc_of(of), into) == VELO_OK);
  }
}
