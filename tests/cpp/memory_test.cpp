// The owners of memory in the throwing mode: pools, adaptors, plans, recompute, swaps.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "velo/velo.hpp"

namespace {

TEST_CASE("a pool gives blocks and takes them back, and a context lives from it") {
  const velo::pool pool = velo::pool::create();
  {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    const velo_allocator allocator = pool.allocator();
    desc.allocator = &allocator;
    const velo::context context = velo::context::create(desc);
    CHECK(pool.stats().purpose_live[VELO_PURPOSE_WORKSPACE] > 0);
    void* block = pool.allocate(100, context.inline_stream());
    pool.free(block, 100, context.inline_stream());
    CHECK_THROWS_AS(pool.free(block, 100), velo::error);
  }
  CHECK(pool.stats().bytes_live == 0);
  pool.check();
  pool.set_limit(1 << 20);
  CHECK_THROWS_AS(pool.allocate(1 << 21), velo::error);
  CHECK(pool.trim() > 0);
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_SHARED;
  const velo::pool shared = velo::pool::create(desc);
  void* block = shared.allocate(64);
  CHECK(shared.locate(block).file >= 0);
  shared.free(block, 64);
  const auto plain = shared.plain_functions();
  plain.deallocate(plain.allocate(64, 0, nullptr), 64, 0, nullptr);
  CHECK(shared.stats().frees == 2);
}

TEST_CASE("a pool shows what happened in it") {
  const velo::pool pool = velo::pool::create();
  CHECK_THROWS_AS(pool.note("too early"), velo::error);
  pool.record(100);
  pool.note("step 1");
  void* block = pool.allocate(100);
  pool.note(block, "the only one");
  CHECK(pool.stats_of({}).blocks_live == 1);
  const auto shown = pool.snapshot<std::string>(VELO_SNAPSHOT_JSON);
  CHECK(shown.find("\"the only one\"") != std::string::npos);
  CHECK(shown.back() == '}');
  CHECK(pool.snapshot<std::string>(VELO_SNAPSHOT_PICKLE).back() == '.');
  CHECK_THROWS_AS(pool.save(VELO_SNAPSHOT_TIMELINE, "/no such folder/x.svg"), velo::error);
  pool.free(block, 100);
}

TEST_CASE("adaptors stack over a pool") {
  const velo::pool pool = velo::pool::create();
  const velo_allocator below = pool.allocator();
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.upstream = &below;
  const velo::adaptor counts = velo::adaptor::create(desc);
  const velo_allocator counted = counts.allocator();
  velo_context_desc with = VELO_CONTEXT_DESC_INIT;
  with.allocator = &counted;
  {
    const velo::context context = velo::context::create(with);
    CHECK(counts.stats().bytes_live == context.stats().bytes_allocated);
  }
  CHECK(counts.stats().bytes_live == 0);
  counts.flush();
}

TEST_CASE("a plan gives addresses to buffers and writes them out") {
  const velo::plan plan = velo::plan::create(300);
  CHECK(plan.add(0, 4, 100) == 0);
  const std::string rows = "id,lower,upper,size\nx,2,6,200\n";
  plan.read(VELO_PLAN_CSV, rows.data(), rows.size());
  CHECK_THROWS_AS(plan.read(VELO_PLAN_CSV, rows.data(), rows.size()), velo::error);
  CHECK(plan.buffer(1).offset == -1);
  plan.solve(1);
  CHECK(plan.stats().height == 300);
  CHECK(plan.buffer(0).offset != plan.buffer(1).offset);
  CHECK(plan.write<std::string>(VELO_PLAN_CSV).find("x,2,6,200,") != std::string::npos);
}

TEST_CASE("a plan records a step and replays it") {
  const velo::pool pool = velo::pool::create();
  const velo::plan plan = velo::plan::create(0, pool);
  const velo_allocator through = plan.allocator();
  CHECK(through.user == plan.get());
  for (const velo_plan_mode mode : {VELO_PLAN_RECORD, VELO_PLAN_REPLAY}) {
    plan.begin(mode);
    void* memory = plan.allocate(640);
    plan.use(memory, VELO_ACCESS_WRITE);
    plan.work(0.5);
    plan.free(memory, 640);
    plan.end();
    if (mode == VELO_PLAN_RECORD) plan.solve(1);
  }
  CHECK(plan.step().matched == 1);
  CHECK(plan.use_info(0).access == VELO_ACCESS_WRITE);
  plan.add_use(0, 2, VELO_ACCESS_READ);
  plan.add_work(2, 0.25);
  CHECK(plan.stats().uses == 2);
  velo_swap_options room = VELO_SWAP_OPTIONS_INIT;
  room.budget = 640;
  plan.solve_swaps(room);
  CHECK(plan.swap_stats().compute_seconds == 0.75);
  CHECK_THROWS_AS(plan.swap(0), velo::error);
  CHECK_THROWS_AS(plan.end(), velo::error);
}

TEST_CASE("rules give kinds to layers, and measured modules are chosen at a budget") {
  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  rule.method = VELO_RECOMPUTE_METHOD_BLOCK;
  rule.layers = 2;
  velo_recompute_layer layers[2] = {};
  CHECK(velo::recompute_layers(rule, layers, 2) == 2);
  CHECK(layers[0].kinds == VELO_RECOMPUTE_FULL);
  const velo_recompute_module modules[] = {{0, -1, 100, 10, 2.0}, {1, -1, 100, 10, 1.0}};
  std::int32_t chosen[2] = {};
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  budget.bytes = 110;
  CHECK_THROWS_AS(velo::recompute_choose(rule, budget, modules, 2, chosen), velo::error);
  rule.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  CHECK(velo::recompute_choose(rule, budget, modules, 2, chosen).seconds == 1);
  CHECK(chosen[1] == 1);
}

TEST_CASE("a region's output is released and comes back from its function") {
  const velo::pool pool = velo::pool::create();
  const velo_allocator below = pool.allocator();
  const velo::recompute kept = velo::recompute::create(below);
  const std::uint64_t bytes[] = {64};
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "square";
  region.output_bytes = bytes;
  region.output_count = 1;
  region.seed = 7;
  region.restore = [](void*, const velo_recompute_call* call) -> velo_status {
    *static_cast<std::uint64_t*>(call->outputs[0]) = call->seed * call->seed;
    return VELO_OK;
  };
  const std::int64_t index = kept.add(region);
  kept.release(index);
  CHECK_THROWS_AS(kept.output(index), velo::error);
  kept.restore(index);
  CHECK(*static_cast<std::uint64_t*>(kept.output(index)) == 49);
  CHECK(kept.stats().restores == 1);
  kept.end(index);
  CHECK(kept.stats().bytes == 0);
}

TEST_CASE("a plan for recompute keeps to its budget") {
  const velo::recompute_plan plan = velo::recompute_plan::create();
  velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
  op.seconds = 1;
  op.bytes = 10;
  const std::int64_t first = plan.add(op);
  op.inputs = &first;
  op.input_count = 1;
  CHECK(plan.add(op) == 1);
  CHECK_THROWS_AS(plan.solve(19), velo::error);
  plan.solve(20);
  CHECK(plan.stats().bytes_peak == 20);
  CHECK(plan.step(1).op == 1);
}

TEST_CASE("a swap sends objects away, brings them back and updates them in slices") {
  const velo::context context = velo::context::create();
  const velo::pool pool = velo::pool::create();
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.memory = pool;
  const velo::swap_space swap = velo::swap_space::create(context, desc);
  const velo::stream_ref stream = context.inline_stream();
  std::vector<float> values(1000, 3);
  const std::uint64_t mine = swap.add(values.data(), values.size() * sizeof(float));
  const std::uint64_t pooled = swap.add(4096, VELO_SWAP_COLD);
  swap.assign(pooled, 2);
  CHECK_THROWS_AS(swap.in(mine, stream), velo::error);
  swap.out(mine, stream);
  swap.update(&mine, 1, 4, [](std::uint64_t, std::uint64_t bytes, void* const* slices) {
    for (std::uint64_t i = 0; i < bytes / sizeof(float); ++i)
      static_cast<float*>(slices[0])[i] += 1;
  });
  CHECK_THROWS_AS(
      swap.update(&mine, 1, 4, [](std::uint64_t, std::uint64_t, void* const*) { throw 1; }),
      velo::error);
  swap.in(mine, stream);
  swap.wait(mine, stream);
  CHECK(values == std::vector<float>(1000, 4));
  CHECK(swap.object(pooled).layer == 2);
  swap.forward(2, stream);
  swap.backward(2, stream);
  CHECK(swap.stats().objects == 2);
  swap.drop(pooled);
  CHECK(swap.stats().objects == 1);
}

TEST_CASE("a swap carries planned swaps out at the planned addresses") {
  const velo::context context = velo::context::create();
  const velo::pool pool = velo::pool::create();
  const velo::plan plan = velo::plan::create();
  for (std::int64_t stage = 0; stage < 3; ++stage) plan.add_work(10 * stage + 9, 1);
  plan.add(2, 28, 4096);
  plan.add(12, 18, 4096);
  plan.add_use(0, 25, VELO_ACCESS_READ);
  velo_swap_options room = VELO_SWAP_OPTIONS_INIT;
  room.budget = 4096;
  room.least_bytes = 0;
  plan.solve_swaps(room);
  plan.place_swaps(1);
  CHECK(plan.swap_stats().bytes_planned == 4096);
  CHECK(plan.stay(1).buffer == 1);
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.memory = pool;
  const velo::swap_space swap = velo::swap_space::create(context, desc);
  CHECK_THROWS_AS(swap.begin_stage(), velo::error);
  swap.begin_step(plan, context.inline_stream());
  CHECK(swap.begin_stage() == 9);
  std::memset(swap.buffer(0), 'x', 4096);
  CHECK(swap.begin_stage() == 19);
  std::memset(swap.buffer(1), 'y', 4096);
  CHECK(swap.begin_stage() == 29);
  CHECK(*static_cast<char*>(swap.buffer(0)) == 'x');
  swap.end_step();
  CHECK(pool.stats().bytes_peak == 4096);
}

}  // namespace
