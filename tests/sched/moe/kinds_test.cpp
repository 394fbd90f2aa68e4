// Kinds of dispatchers: the same bits, the rows that leave a host, and what is refused.
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

constexpr velo_dispatch_kind kinds[] = {VELO_DISPATCH_ALL_TO_ALL, VELO_DISPATCH_ALL_GATHER,
                                        VELO_DISPATCH_ALL_TO_ALL_SEQUENCE};

const micro_batch batches[] = {
    {37, 2, 24, 40, f32, 1},        {50, 3, 24, 33, bf16, 2}, {41, 8, 24, 64, f16, 3},
    {29, 2, 24, 40, bf16, 5, true},  // one hot expert
    {1, 2, 24, 8, f32, 6},          {0, 2, 24, 8, f32, 7},    {10, 2, 24, 0, f32, 9},
};

velo_dispatcher_desc desc_of(const micro_batch& of, velo_dispatch_kind kind, bool padded) {
  velo_dispatcher_desc desc = testing::desc_of(of);
  desc.kind = kind;
  if (padded) desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 4, desc.pad = 1;
  return desc;
}

template <class Ranks>
void check_kinds(const Ranks& ranks) {
  for (const micro_batch& of : batches)
    for (const bool padded : {false, true}) {
      pass_results alone(of);
      run_pass(of, desc_of(of, VELO_DISPATCH_ALL_TO_ALL, padded), local_ranks(1), alone);
      for (const velo_dispatch_kind kind : kinds) {
        INFO(of.tokens << " tokens, " << of.top_k << " choices, kind " << kind << ", padded "
                       << padded);
        pass_results cut(of);
        run_pass(of, desc_of(of, kind, padded), ranks, cut);
        CHECK((alone.rows_of_expert == cut.rows_of_expert));
        CHECK(same_bits(alone, cut));
      }
    }
}

}  // namespace

TEST_CASE("all kinds have the bits of one rank, on one host and on two") {
  for (const char* hosts : {"01", "0011", "0001"}) {
    INFO(hosts);
    check_kinds(ranks_on_hosts(hosts));
  }
  for (const int size : {2, 3, 4, 8}) {
    INFO(size << " threads");
    check_kinds(local_ranks(size));
  }
}

// Experts of t: the set of (7t + 11jj + 3jt) mod 32 (reference/parallel.md, section 6).
TEST_CASE("one row for each published choice, or every token, leaves its host") {
  constexpr std::int64_t tokens = 64, top_k = 8, width = 1024, row_bytes = width * 4;
  micro_batch of(tokens, top_k, 32, width, f32, 1);
  std::int64_t choices = 0, remote = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::vector<bool> seen(32);
    for (std::int64_t j = 0; j < top_k; ++j) {
      const std::int64_t expert = (7 * t + 11 * j * j + 3 * j * t) % 32;
      const bool again = seen[at(expert)];
      of.choices[at(t * top_k + j)] = again ? -1 : static_cast<std::int32_t>(expert);
      seen[at(expert)] = true;
      choices += !again;
      remote += !again && (t < tokens / 2) != (expert < 16);
    }
  }
  CHECK(choices == 416);
  const ranks_on_hosts ranks("01");
  for (const velo_dispatch_kind kind : kinds) {
    std::vector<std::int64_t> rows(2);
    std::int64_t before = 0;
    ranks.require([&](const rank_of_group& me) {
      const open_layer layer(me.group, desc_of(of, kind, false));
      const std::int64_t shape[] = {tokens / 2, top_k};
      const velo_tensor chosen =
          view_of(of.choices.data() + me.rank * tokens / 2 * top_k, i32, shape);
      velo_status done = velo_routing_set(layer.routing, me.stream, &chosen, nullptr, nullptr);
      if (done == VELO_OK)
        done = velo_routing_get_rows(layer.routing, nullptr, 0, &rows[at(me.rank)]);
      if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
      if (me.rank == 0) before = ranks.data_left();
      if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
      if (done != VELO_OK) return done;
      const matrix x(f32, {tokens / 2, width}, 1), in(f32, {rows[at(me.rank)], width});
      const velo_tensor from = x.view(), to = in.view();
      return velo_dispatcher_dispatch(layer.layer, me.stream, layer.routing, &from, &to);
    });
    const std::int64_t left = ranks.data_left() - before,
                       wanted = kind == VELO_DISPATCH_ALL_GATHER ? tokens : remote;
    INFO("kind " << kind << ": " << left << " bytes of " << wanted << " rows");
    CHECK(rows[0] + rows[1] == 416);
    CHECK(left >= wanted * row_bytes);
    CHECK(left < (wanted + 1) * row_bytes);
  }
}

TEST_CASE("kinds that are none, or differ between ranks, are refused") {
  const local_ranks ranks(2);
  for (const std::int32_t bad : {-1, 4, INT32_MIN, INT32_MAX}) {
    velo_dispatcher_desc desc = testing::desc_of(4, 1);
    desc.kind = bad;
    velo_dispatcher made = nullptr;
    const call_record record = record_of(velo_dispatcher_create(ranks.group(0), &desc, &made));
    CHECK(record.code == VELO_ERR_ARGUMENT);
    CHECK(record.argument == "desc.kind");
  }
  velo_dispatcher_desc desc = testing::desc_of(4, 1);
  desc.kind = VELO_DISPATCH_HIERARCHICAL;
  velo_dispatcher made = nullptr;
  const call_record record = record_of(velo_dispatcher_create(ranks.group(0), &desc, &made));
  CHECK(record.code == VELO_ERR_UNSUPPORTED);
  CHECK(record.argument == "desc.kind");
  CHECK(record.got == "hierarchical");
  const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
    velo_dispatcher_desc one = testing::desc_of(4, 1);
    one.kind = me.rank;
    const open_layer of(me.group, one);
    const std::int32_t chosen[] = {0, 3};
    const std::int64_t shape[] = {2, 1};
    const velo_tensor choices = view_of(chosen, i32, shape);
    return velo_routing_set(of.routing, me.stream, &choices, nullptr, nullptr);
  });
  for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
}
