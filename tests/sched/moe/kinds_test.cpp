// Kinds of dispatchers: the same bits, the rows that leave a host, and what is refused.
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

constexpr velo_dispatch_kind kinds[] = {VELO_DISPATCH_ALL_TO_ALL, VELO_DISPATCH_ALL_GATHER,
                                        VELO_DISPATCH_ALL_TO_ALL_SEQUENCE,
                                        VELO_DISPATCH_HIERARCHICAL};

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
  for (const char* hosts : {"01", "0011", "0001", "0101", "0122", "00011012"}) {
    INFO(hosts);
    check_kinds(ranks_on_hosts(hosts));
  }
  for (const int size : {2, 3, 4, 8}) {
    INFO(size << " threads");
    check_kinds(local_ranks(size));
  }
}

// Experts of t: the set of (7t + 11jj + 3jt) mod 32 (reference/parallel.md, section 6). Each rank
// has as many tokens and as many experts.
class published_routes {
 public:
  static constexpr std::int64_t tokens = 64, top_k = 8, experts = 32, width = 1024;

  published_routes() : of_(tokens, top_k, experts, width, f32, 1) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<bool> seen(experts);
      for (std::int64_t j = 0; j < top_k; ++j) {
        const std::int64_t expert = (7 * t + 11 * j * j + 3 * j * t) % experts;
        of_.choices[at(t * top_k + j)] = seen[at(expert)] ? -1 : static_cast<std::int32_t>(expert);
        seen[at(expert)] = true;
      }
    }
  }

  const micro_batch& batch() const { return of_; }
  // How often tokens have an expert in one of so many parts of the experts: each choice, where
  // every expert is one. leaving: in another part than the token's.
  std::int64_t rows(std::int64_t parts, bool leaving = false) const {
    std::int64_t all = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<bool> seen(at(parts));
      for (std::int64_t j = 0; j < top_k; ++j) {
        const std::int32_t expert = of_.choices[at(t * top_k + j)];
        if (expert >= 0) seen[at(expert / (experts / parts))] = true;
      }
      if (leaving) seen[at(t / (tokens / parts))] = false;
      all += std::count(seen.begin(), seen.end(), true);
    }
    return all;
  }
  std::int64_t choices_leaving(std::int64_t hosts) const {
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < tokens * top_k; ++i) {
      const std::int32_t expert = of_.choices[at(i)];
      all += expert >= 0 && i / top_k / (tokens / hosts) != expert / (experts / hosts);
    }
    return all;
  }

 private:
  micro_batch of_;
};

// The bytes that leave hosts in a dispatch.
std::int64_t bytes_of_dispatch(const ranks_on_hosts& ranks, const micro_batch& of,
                               velo_dispatch_kind kind, std::vector<std::int64_t>& rows) {
  std::int64_t before = 0;
  const std::int64_t each = of.tokens / ranks.size();
  ranks.require([&](const rank_of_group& me) {
    const open_layer layer(me.group, desc_of(of, kind, false));
    const std::int64_t shape[] = {each, of.top_k};
    const velo_tensor chosen = view_of(of.choices.data() + me.rank * each * of.top_k, i32, shape);
    velo_status done = velo_routing_set(layer.routing, me.stream, &chosen, nullptr, nullptr);
    if (done == VELO_OK)
      done = velo_routing_get_rows(layer.routing, nullptr, 0, &rows[at(me.rank)]);
    if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
    if (me.rank == 0) before = ranks.data_left();
    if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
    if (done != VELO_OK) return done;
    const matrix x(f32, {each, of.width}, 1), in(f32, {rows[at(me.rank)], of.width});
    const velo_tensor from = x.view(), to = in.view();
    return velo_dispatcher_dispatch(layer.layer, me.stream, layer.routing, &from, &to);
  });
  return ranks.data_left() - before;
}

// A row for each choice, each rank and each host of a token: of those on its own host none leaves.
TEST_CASE("kinds send the published numbers of rows") {
  const published_routes all;
  CHECK(all.rows(32) == 416);
  CHECK(all.rows(8) == 334);
  CHECK(all.rows(2) == 128);
  constexpr std::int64_t row_bytes = published_routes::width * 4;
  for (const char* hosts : {"01", "0011", "00001111"}) {
    const ranks_on_hosts ranks(hosts);
    for (const velo_dispatch_kind kind : kinds) {
      std::vector<std::int64_t> rows(at(ranks.size()));
      const std::int64_t left = bytes_of_dispatch(ranks, all.batch(), kind, rows);
      const std::int64_t wanted = kind == VELO_DISPATCH_ALL_GATHER     ? -1
                                  : kind == VELO_DISPATCH_HIERARCHICAL ? all.rows(2, true)
                                                                       : all.choices_leaving(2);
      INFO(hosts << ", kind " << kind << ": " << left << " bytes of " << wanted << " rows");
      CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 416);
      if (kind == VELO_DISPATCH_ALL_GATHER && ranks.size() > 2) continue;  // collectives choose
      CHECK(left >= (wanted < 0 ? all.tokens : wanted) * row_bytes);
      CHECK(left < ((wanted < 0 ? all.tokens : wanted) + 1) * row_bytes);
    }
  }
  CHECK(all.rows(2, true) == 64);
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
