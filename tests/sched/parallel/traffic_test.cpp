// What operators of parallel layers send is what plans and formulas say: the bytes that leave ranks
// on hosts of their own. Ranks are threads, over MPI by a plugin of the tests.
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/context/attention_ranks.hpp"

using namespace velo::testing;

namespace {

std::string hosts_of(std::int64_t ranks) {
  return std::string("01234567").substr(0, at(ranks));
}

// The bytes that all ranks send in a pass of the case's plan.
std::int64_t planned_bytes(velo_sequence_plan plan, velo_sequence_pass pass, std::int64_t ranks) {
  velo_sequence_info info = VELO_SEQUENCE_INFO_INIT;
  REQUIRE(velo_sequence_plan_get_info(plan, &info) == VELO_OK);
  const std::int64_t steps =
      pass == VELO_SEQUENCE_FORWARD ? info.forward_steps : info.gradient_steps;
  std::int64_t sum = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t step = 0; step <= steps; ++step) {
      velo_sequence_step one = VELO_SEQUENCE_STEP_INIT;
      if (velo_sequence_plan_get_step(plan, pass, rank, step, &one) != VELO_OK) break;
      sum += one.bytes_sent;
    }
  return sum;
}

}  // namespace

namespace {

struct sent_bytes {
  std::int64_t forward, gradient;
};

// What all ranks send for so many sequences, with what opens and ends messages.
sent_bytes bytes_of_sequences(attention_case of, std::int64_t batch) {
  of.batch = batch;
  const ranks_on_hosts ranks(hosts_of(of.desc.cp));
  const whole_attention whole(of);
  const velo_sequence_plan plan = of.plan();
  std::vector<std::unique_ptr<attention_rank>> now;
  for (int r = 0; r < ranks.size(); ++r)
    now.push_back(std::make_unique<attention_rank>(of, whole, plan, r));
  const std::int64_t first = ranks.left();
  ranks.require([&](const rank_of_group& me) { return now[at(me.rank)]->forward(me); });
  const std::int64_t then = ranks.left();
  ranks.require(
      [&](const rank_of_group& me) { return now[at(me.rank)]->gradient(me.stream, me.group); });
  velo_sequence_plan_destroy(plan);
  return {then - first, ranks.left() - then};
}

}  // namespace

// Messages are as many for two sequences as for one.
TEST_CASE("attention of a cut sequence sends the bytes of its plan for each sequence") {
  const struct {
    velo_sequence_kind kind;
    std::int64_t cp, ulysses, heads, kv_heads;
  } cuts[] = {{VELO_SEQUENCE_RING, 4, 1, 4, 2},     {VELO_SEQUENCE_ULYSSES, 4, 1, 8, 2},
              {VELO_SEQUENCE_HYBRID, 4, 2, 4, 4},   {VELO_SEQUENCE_ALL_GATHER, 4, 1, 4, 2},
              {VELO_SEQUENCE_ADAPTIVE, 4, 1, 4, 2}, {VELO_SEQUENCE_RING, 8, 1, 2, 1}};
  for (const auto& one : cuts)
    for (const velo_dtype dtype : {f32, bf16}) {
      attention_case of = case_of(one.kind, one.cp, 64, one.heads, one.kv_heads);
      of.desc.ulysses = one.ulysses > 1 ? one.ulysses : of.desc.ulysses;
      of.dtype = dtype, of.desc.element_bytes = dtype.bits / 8;
      INFO("kind " << one.kind << ", cp " << one.cp << ", " << int{dtype.bits} << " bits");
      const velo_sequence_plan plan = of.plan();
      const sent_bytes single = bytes_of_sequences(of, 1), twice = bytes_of_sequences(of, 2);
      CHECK(twice.forward - single.forward == planned_bytes(plan, VELO_SEQUENCE_FORWARD, one.cp));
      CHECK(twice.gradient - single.gradient ==
            planned_bytes(plan, VELO_SEQUENCE_GRADIENT, one.cp));
      velo_sequence_plan_destroy(plan);
    }
}

TEST_CASE("a layer that is cut both ways sends what its gather and its scatter are") {
  constexpr std::int64_t rows = 512, hidden = 1024, inner = 3584;
  for (const auto& [x_ranks, y_ranks] : {std::pair<std::int64_t, std::int64_t>(4, 2), {2, 4}}) {
    INFO(x_ranks << " x " << y_ranks);
    const std::int64_t X = x_ranks, Y = y_ranks;
    const ranks_on_hosts ranks(hosts_of(X * Y));
    std::atomic<std::int64_t> before{0};
    ranks.require([&](const rank_of_group& me) {
      std::vector<std::int32_t> along_x, along_y;
      for (std::int64_t i = 0; i < X; ++i)
        along_x.push_back(static_cast<std::int32_t>(i * Y + me.rank % Y));
      for (std::int64_t j = 0; j < Y; ++j)
        along_y.push_back(static_cast<std::int32_t>(me.rank / Y * Y + j));
      velo_group gather = nullptr, scatter = nullptr;
      velo_status done = velo_group_create_part(me.group, along_x.data(),
                                                static_cast<std::int32_t>(X), nullptr, &gather);
      if (done == VELO_OK)
        done = velo_group_create_part(me.group, along_y.data(), static_cast<std::int32_t>(Y),
                                      nullptr, &scatter);
      if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
      if (me.rank == 0) before = ranks.left();
      const matrix in(f32, {rows / X, hidden / Y}, me.rank),
          weight(f32, {inner / X, hidden / Y}, me.rank + 20), out(f32, {rows / Y, inner / X});
      const velo_tensor x = in.view(), w = weight.view(), y = out.view();
      velo_all_gather_matmul_reduce_scatter_args args =
          VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
      args.gather_group = gather, args.scatter_group = scatter;
      args.x = &x, args.weight = &w, args.y = &y, args.transpose_weight = 1;
      if (done == VELO_OK) done = velo_group_barrier(me.stream, me.group);
      if (done == VELO_OK) done = velo_all_gather_matmul_reduce_scatter(me.stream, &args);
      for (const velo_group each : {gather, scatter}) velo_group_destroy(each);
      return done;
    });
    const std::int64_t gathered = rows * (hidden / Y) / X * (X - 1),
                       scattered = rows * (inner / X) / Y * (Y - 1);
    const double bytes = 4.0 * static_cast<double>(X * Y * (gathered + scattered));
    const auto sent = static_cast<double>(ranks.left() - before);
    CHECK(sent >= bytes);
    CHECK(sent < 1.01 * bytes);  // with what opens and ends messages
  }
}
