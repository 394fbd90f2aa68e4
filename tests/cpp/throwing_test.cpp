// The throwing mode on the real library: owners, values, and an exception that carries the whole
// record.
#include <catch2/catch.hpp>
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

TEST_CASE("shapes are inferred, the choice of kernel explained and the cost given") {
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
  const velo_cost cost = velo::op_cost(context, "rms_norm", {{"x", x}, {"gamma", gamma}});
  CHECK(cost.bytes_written == 32);
  velo::op_reset_counts(context);
  const velo_op_counts counts = velo::op_counts(context);
  CHECK(counts.calls == 0);
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

TEST_CASE("a sequence plan says what a rank computes and sends") {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_ULYSSES;
  desc.cp = 2, desc.sequence = 7, desc.heads = 4;
  const velo::sequence_plan plan = velo::sequence_plan::create(desc);
  CHECK(plan.info().forward_steps == 3);
  int64_t spans[2] = {};
  CHECK(plan.rows(1, spans, 1) == 1);
  CHECK(spans[0] == 4);
  CHECK(plan.step(VELO_SEQUENCE_FORWARD, 1, 1).cells == 28 * 2);
  CHECK(plan.task(VELO_SEQUENCE_FORWARD, 1, 1, 0).heads_begin == 2);
  CHECK(plan.message(VELO_SEQUENCE_FORWARD, 1, 0, VELO_SEQUENCE_SENT, 0).to == 0);
  CHECK(plan.spans(VELO_SEQUENCE_FORWARD, 1, 1, VELO_SEQUENCE_TASK_QUERIES, 0, spans, 1) == 1);
  CHECK(spans[1] == 7);
  plan.check();
  CHECK(plan.write<std::string>(VELO_SEQUENCE_JSON).find("[4, 5, 6]") != std::string::npos);
  desc.heads = 1;
  CHECK_THROWS_AS(velo::sequence_plan::create(desc), velo::error);
}

TEST_CASE("an expert plan says which experts a rank has, and which ranks an expert") {
  const int64_t loads[] = {60, 20, 10, 10};
  velo_expert_plan_desc desc = VELO_EXPERT_PLAN_DESC_INIT;
  desc.ranks = 2, desc.slots = 3, desc.experts = 4, desc.loads = loads;
  const velo::expert_plan plan = velo::expert_plan::create(desc);
  CHECK(plan.info().copies == 5);
  CHECK(plan.info().busiest == 50);
  int64_t found[3] = {};
  CHECK(plan.ranks(0, found, 3) == 2);
  CHECK(found[1] == 1);
  CHECK(plan.experts(0, found, 3) + plan.experts(1, found, 3) == 5);
  CHECK(plan.write<std::string>(VELO_EXPERT_PLAN_SVG).find("</svg>") != std::string::npos);
  desc.slots = 1;
  CHECK_THROWS_AS(velo::expert_plan::create(desc), velo::error);
}

TEST_CASE("a sharding says what a rank holds") {
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  desc.tp = 2;
  const velo::topology topology = velo::topology::create(desc);
  velo::sharding sharding = velo::sharding::create(topology);
  const int64_t shape[] = {6, 4};
  const velo_sharding_cut cut = {"tp", 1, nullptr, 0, nullptr, 0};
  velo_sharding_parameter parameter = VELO_SHARDING_PARAMETER_INIT;
  parameter.name = "w", parameter.ndim = 2, parameter.shape = shape;
  parameter.cuts = &cut, parameter.cut_count = 1, parameter.partial = nullptr;
  CHECK(sharding.add(parameter) == 0);
  CHECK_THROWS_AS(sharding.add(parameter), velo::error);
  CHECK(sharding.info().parameters == 1);
  CHECK(std::string(sharding.parameter_name(0)) == "w");
  CHECK(sharding.part(0, 1).elements == 12);
  CHECK(sharding.piece(0, 1, 0).begin[1] == 2);
  CHECK_THROWS_AS(sharding.sum(0, 1, 0), velo::error);
  int32_t ranks[2] = {};
  CHECK(sharding.holders(0, 1, 0, ranks, 2) == 1);
  CHECK(ranks[0] == 1);
  sharding.check();
  velo_sharding_move move = {};
  CHECK(sharding.transfer(sharding, 0, 1, VELO_SHARDING_PARTS, &move, 1) == 1);
  CHECK(move.source == 1);
  CHECK(sharding.write<std::string>(1, VELO_SHARDING_JSON).find("[[0, 6], [2, 4]]") !=
        std::string::npos);
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
}

TEST_CASE("a plan of sublayers is priced, read and carried out") {
  velo_sublayers_desc desc = VELO_SUBLAYERS_DESC_INIT;
  desc.forward_layers = desc.backward_layers = 1;
  const velo::sublayers plan = velo::sublayers::create(desc);
  CHECK(plan.info().steps == 10);
  CHECK(plan.info().exposed == 0);
  velo_sublayer_step steps[2] = {};
  CHECK(plan.steps(steps, 2) == 10);
  CHECK(steps[0].kind == VELO_SUBLAYER_COMBINE_B);
  int64_t needs[1] = {};
  CHECK(plan.needs(2, needs, 1) == 1);
  CHECK(needs[0] == 1);
  CHECK(plan.write<std::string>(VELO_SUBLAYERS_SVG).find("</svg>") != std::string::npos);

  const velo::context context = velo::context::create();
  int started = 0;
  velo_sublayers_run_desc run = VELO_SUBLAYERS_RUN_DESC_INIT;
  run.user = &started;
  run.compute = run.message = [](void* user, velo_stream, const velo_sublayer_step*) {
    ++*static_cast<int*>(user);
    return velo_status{VELO_OK};
  };
  plan.run(context.inline_stream(), context.inline_stream(), run);
  CHECK(started == 10);
  run.compute = nullptr;
  CHECK_THROWS_AS(plan.run(context.inline_stream(), context.inline_stream(), run), velo::error);
  desc.slicing = VELO_SUBLAYER_BY_ROWS;
  CHECK_THROWS_AS(velo::sublayers::create(desc), velo::error);
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
