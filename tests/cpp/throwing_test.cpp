// The throwing mode on the real library: owners, values, and an exception that carries the whole
// record.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "velo/velo.hpp"

namespace {

TEST_CASE("a failed call throws the record: code, function, argument and what came") {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.config_json = "{\"isa\": ";
  try {
    const velo::context made = velo::context::create(desc);
    FAIL("malformed configuration was accepted");
  } catch (const velo::error& failure) {
    CHECK(failure.status() == VELO_ERR_PARSE);
    CHECK(std::string(failure.function()) == "velo_context_create");
    CHECK(std::string(failure.argument()).find("config_json") != std::string::npos);
    CHECK(std::string(failure.what()).find("velo_context_create") != std::string::npos);
    CHECK(failure.rank() == -1);
  }
}

TEST_CASE("an error outlives the failures that follow it") {
  velo::context context = velo::context::create();
  try {
    context.set("no.such.key", "1");
    FAIL("an unknown key was accepted");
  } catch (const velo::error& first) {
    const std::string text = first.what();
    CHECK_THROWS_AS(context.config<std::string>("another.such.key"), velo::error);
    CHECK(first.status() == VELO_ERR_NOT_FOUND);
    CHECK(first.what() == text);
  }
}

TEST_CASE("an empty owner is refused by the library, not dereferenced") {
  const velo::context nothing;
  CHECK_FALSE(nothing);
  try {
    nothing.stats();
    FAIL("a null context was accepted");
  } catch (const velo::error& failure) {
    CHECK(failure.status() == VELO_ERR_NULL);
  }
}

TEST_CASE("owners move, release and adopt, and destroy once") {
  static_assert(!std::is_copy_constructible_v<velo::context>);
  static_assert(std::is_nothrow_move_constructible_v<velo::stream>);
  velo::context first = velo::context::create();
  velo_context raw = first.get();
  velo::context second = std::move(first);
  CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): that it is empty is what is tested
  CHECK(second.get() == raw);
  CHECK(second.release() == raw);
  CHECK_FALSE(second);
  first.reset(raw);
  CHECK(first.stats().threads >= 1);
}

TEST_CASE("text calls give strings of the caller's type") {
  velo::context context = velo::context::create();
  const char* origin = nullptr;
  CHECK_FALSE(context.config<std::string>("level", &origin).empty());
  REQUIRE(origin != nullptr);
  const auto text = velo::describe<std::string>();
  CHECK(text.find("velo_rms_norm") != std::string::npos);
  CHECK(text.back() != '\0');
  const std::vector<char> same = velo::describe<std::vector<char>>();
  CHECK(std::string(same.begin(), same.end()) == text);
}

TEST_CASE("streams and events order work") {
  velo::context context = velo::context::create();
  velo::stream stream = velo::stream::create(context);
  velo::event event = velo::event::create(context);
  CHECK_THROWS_AS(event.done(), velo::error);  // never recorded
  event.record(stream);
  event.synchronize();
  CHECK(event.done());
  context.inline_stream().wait(event.get());
  stream.synchronize();
  CHECK(stream.done());
}

TEST_CASE("a managed tensor describes memory of the context's allocator") {
  velo::context context = velo::context::create();
  auto tensor = velo::managed_tensor::create(context, velo::dtype<float>, {3, 5});
  const velo::tensor_view view = tensor.view();
  CHECK(view.numel() == 15);
  CHECK(view.extent() == 60);
  CHECK(reinterpret_cast<uintptr_t>(view.data<float>()) % 64 == 0);
  CHECK(velo::managed_tensor::import(context, tensor.get()).data<float>() == view.data<float>());
}

TEST_CASE("an operator gives the same bits by its typed function and by name") {
  velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();
  const float x[8] = {1, -2, 3, -4, 5, -6, 7, -8};
  const float gamma[4] = {1, 2, 3, 4};
  float typed[8] = {};
  float named[8] = {};
  const velo::tensor_view vx(x, {2, 4});
  const velo::tensor_view vg(gamma, {4});
  const velo::tensor_view vt(typed, {2, 4});
  const velo::tensor_view vn(named, {2, 4});
  velo::rms_norm_args args;
  args.x(vx).gamma(vg).y(vt).epsilon(1e-6);
  velo::rms_norm(stream, args);
  velo::op_call(stream, "rms_norm", {{"x", vx}, {"gamma", vg}, {"y", vn}, {"epsilon", 1e-6}});
  for (int i = 0; i < 8; ++i) CHECK(typed[i] == named[i]);
  CHECK(typed[0] != 0.0f);
}

TEST_CASE("shapes are inferred and the choice of kernel explained") {
  velo::context context = velo::context::create();
  const velo::tensor_view x(static_cast<const float*>(nullptr), {2, 4});
  const velo::tensor_view gamma(static_cast<const float*>(nullptr), {4});
  velo_shape shapes[4] = {};
  const int64_t outputs =
      velo::op_infer(context, "rms_norm", {{"x", x}, {"gamma", gamma}}, shapes, 4);
  CHECK(outputs >= 1);
  CHECK(shapes[0].ndim == 2);
  CHECK(shapes[0].sizes[1] == 4);
  const auto why = velo::op_explain<std::string>(context, "rms_norm", {{"x", x}, {"gamma", gamma}});
  CHECK(why.front() == '[');
}

TEST_CASE("the library says its version and what it holds") {
  CHECK(velo::version().abi >= 100);
  CHECK(velo::op_count() > 0);
  CHECK(velo::op_name(0) != nullptr);
  CHECK_THROWS_AS(velo::op_name(-1), velo::error);
  CHECK_THROWS_AS(velo::op_describe<std::string>("no_such_operator"), velo::error);
}

void twice(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}

TEST_CASE("a foreign kernel is an operator of its context for as long as its owner lives") {
  velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();
  const float x[2] = {1, 2};
  float y[2] = {};
  const velo::tensor_view vx(x, {2});
  const velo::tensor_view vy(y, {2});
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = "test_twice";
  desc.signature = "v(lpp)";
  desc.binding = "x.numel, x.data, y.data";
  desc.tensors = "in x f32, out y f32";
  desc.function = reinterpret_cast<void*>(&twice);
  {
    const velo::kernel kernel = velo::kernel::create(context, desc);
    velo::op_call(stream, "test_twice", {{"x", vx}, {"y", vy}});
    CHECK(y[1] == 4);
    CHECK(velo::kernel_list<std::string>(context).find("test_twice") != std::string::npos);
  }
  CHECK_THROWS_AS(velo::op_call(stream, "test_twice", {{"x", vx}, {"y", vy}}), velo::error);
}

TEST_CASE("an operator is handed out as a C function pointer") {
  velo::context context = velo::context::create();
  const float x[2] = {1, 2};
  float y[2] = {};
  const velo::tensor_view vx(x, {2});
  const velo::tensor_view vy(y, {2});
  void* address = nullptr;
  const velo::closure closure =
      velo::closure::create(context.inline_stream(), "add", "a, b, y", &address);
  const auto add =
      reinterpret_cast<int32_t (*)(const velo_tensor*, const velo_tensor*, const velo_tensor*)>(
          address);
  CHECK(add(vx, vx, vy) == VELO_OK);
  CHECK(y[1] == 4);
}

TEST_CASE("a weight pack takes the place of a matrix") {
  velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();
  const float a[2] = {1, 2};
  const float b[4] = {1, 2, 3, 4};
  float c[2] = {};
  const velo::tensor_view va(a, {1, 2});
  const velo::tensor_view vb(b, {2, 2});
  const velo::tensor_view vc(c, {1, 2});
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 2;
  desc.n = 2;
  velo::pack weight = velo::pack::create(context, desc);
  weight.update(stream, vb);
  velo::matmul(stream, velo::matmul_args().a(va).packed(weight).c(vc));
  CHECK(c[0] == 7);
  CHECK(c[1] == 10);
}

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

TEST_CASE("a topology names the groups of a job") {
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  desc.tp = 2;
  desc.dp = 3;
  const velo::topology topology = velo::topology::create(desc);
  CHECK(topology.info().ranks == 6);
  CHECK(std::string(topology.family_name(2)) == "dp");
  CHECK(topology.family("dp").groups == 2);
  CHECK(topology.place("dp", 3).group == 1);
  CHECK(topology.place("dp", 3).position == 1);
  std::int32_t ranks[3] = {};
  CHECK(topology.group("dp", 1, ranks, 3) == 3);
  CHECK(ranks[2] == 5);
  CHECK(topology.write<std::string>("dp", VELO_TOPOLOGY_JSON) == "[[0, 2, 4], [1, 3, 5]]");
  CHECK_THROWS_AS(topology.place("dp", 6), velo::error);
  desc.ep = 4;
  CHECK_THROWS_AS(velo::topology::create(desc), velo::error);
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

TEST_CASE("a schedule is generated, checked, priced and written, and read again") {
  const velo::schedule order = velo::schedule::create(VELO_SCHEDULE_1F1B, 4, 8);
  CHECK(order.info().actions == 64);
  CHECK(order.length(3) == 16);
  CHECK(order.action(3, 1).kind == VELO_ACTION_B);
  velo_action two[2] = {};
  order.actions(0, 4, 2, two);
  CHECK(two[0].microbatch == 0);
  CHECK(order.check() == 0);
  CHECK(order.lower().action(3, 0).kind == VELO_ACTION_RECV_F);
  const velo::timeline times = order.simulate();
  CHECK(times.stats().makespan == 33);
  CHECK(times.rank(0).peak_activations == 4);
  CHECK(times.memory(0).activations == 4);
  velo_path_step first = {};
  CHECK(times.path(1, &first) > 1);
  CHECK(first.cause == VELO_PATH_START);
  CHECK(times.write<std::string>(VELO_TIMELINE_SUMMARY).find("makespan  33") != std::string::npos);

  const std::string rows = order.write<std::string>(VELO_SCHEDULE_CSV);
  const velo::schedule again = velo::schedule::create({});
  again.read(VELO_SCHEDULE_CSV, rows.data(), rows.size());
  CHECK(again.info().kind == VELO_SCHEDULE_CUSTOM);
  CHECK(again.write<std::string>(VELO_SCHEDULE_CSV) == rows);
  again.read(VELO_SCHEDULE_CSV, rows.data(), rows.size() - 5);  // without the last action
  CHECK(again.check() == 1);
  CHECK(again.violation(0).code == VELO_VIOLATION_MISSING);
  CHECK_THROWS_AS(velo::schedule::create(VELO_SCHEDULE_1F1B, 0, 8), velo::error);

  const std::string all = order.write<std::string>(VELO_SCHEDULE_JSON);
  again.read(VELO_SCHEDULE_JSON, all.data(), all.size());
  CHECK(again.info().kind == VELO_SCHEDULE_1F1B);
  CHECK(order.stage(2).rank == 2);
  CHECK(std::string(velo::schedule::kind_name(VELO_SCHEDULE_ZBV)) == "zbv");
  velo_sublayer_step steps[2] = {};
  CHECK(velo::sublayer_plan(2, 2, 2, steps) == 16);
  CHECK(steps[0].message == VELO_SUBLAYER_COMBINE_B);
}

TEST_CASE("layouts are searched for, and read row by row") {
  const std::string config =
      "{\"model\": {\"layers\": 4, \"hidden\": 64, \"heads\": 4, \"ffn_hidden\": 128, "
      "\"vocabulary\": 100}, \"training\": {\"global_batch\": 8, \"sequence\": 32}, "
      "\"accelerators\": 3}";
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  desc.config = config.data();
  desc.config_length = config.size();
  desc.accelerators = 2;
  const velo::tuning found = velo::tuning::search(desc);
  const velo_tuning_info info = found.info();
  CHECK(info.accelerators == 2);
  CHECK(info.plans == 20);
  CHECK(found.plan(0).step_seconds <= found.plan(19).step_seconds);
  CHECK(found.memory(0, 0).total == found.plan(0).memory);
  CHECK(found.rejection(0).code != 0);
  CHECK(found.write<std::string>(VELO_TUNING_SUMMARY).find("2 accelerators") != std::string::npos);
  desc.keep = 10001;
  CHECK_THROWS_AS(velo::tuning::search(desc), velo::error);
}

TEST_CASE("a schedule is carried out, and shown as it went") {
  const velo::context context = velo::context::create();
  const velo::schedule order = velo::schedule::create(VELO_SCHEDULE_1F1B, 1, 3);
  const velo::mailbox letters = velo::mailbox::create(1, 1000000000);
  const velo_link link = letters.link(0);
  const velo::group alone = velo::group::create(context);
  CHECK(velo::group_link(alone).flags == VELO_LINK_WAITS);
  int calls = 0;
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.link = &link;
  desc.flags = VELO_EXECUTOR_RECORD;
  desc.user = &calls;
  desc.forward = desc.backward = [](void* user, velo_executor_call* call) {
    ++*static_cast<int*>(user);
    return call->rank == 0 ? velo_status{VELO_OK} : velo_status{VELO_ERR_RANK};
  };
  const velo::executor one = velo::executor::create(context, order, desc);
  one.run(context.inline_stream());
  CHECK(calls == 6);
  CHECK(one.timeline().rank(0).peak_activations == 1);
  CHECK(one.stats().steps == 0);
  CHECK_THROWS_AS(one.settle(context.inline_stream()), velo::error);  // it validates none
  one.cancel();
  CHECK_THROWS_AS(one.run(context.inline_stream()), velo::error);
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

TEST_CASE("functions are callable by name with values in order") {
  velo::context context = velo::context::create();
  velo_context_stats stats = {};
  stats.struct_size = sizeof stats;
  const velo_value returned =
      velo::invoke("velo_context_get_stats", {context, velo::value::pointer(&stats)});
  CHECK(returned.as.i == VELO_OK);
  CHECK(stats.threads >= 1);
}

}  // namespace
