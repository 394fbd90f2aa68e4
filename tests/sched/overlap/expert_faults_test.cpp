// Calls of all_to_all_all_gather_bmm and bmm_reduce_scatter_all_to_all that are refused, and ranks
// that end them: one is killed or aborts, or they disagree.
#include <sys/mman.h>

#include "comm/processes.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/expert_grid.hpp"

using namespace velo::testing;

namespace {

using in_args = velo_all_to_all_all_gather_bmm_args;
using out_args = velo_bmm_reduce_scatter_all_to_all_args;

// Calls until one fails, each with new tensors; counts those that were done.
velo_status call_for_ever(bool out, const expert_case& of, const rank_of_group& me,
                          const grid_groups& in, std::atomic<int>& calls) {
  const whole_experts whole(of);
  for (;; ++calls) {
    const expert_rank one(whole, me.rank);
    const velo_status done = out ? one.fused_out(me.stream, in) : one.fused_in(me.stream, in);
    if (done != VELO_OK) return done;
  }
}

expert_case square_of(std::int64_t shard) {
  expert_case of;
  of.ep = of.tp = 2, of.shard = shard, of.rows = 32;
  return of;
}

}  // namespace

TEST_CASE("a rank that is killed in an experts' product ends the calls of all, who name a rank") {
  void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (const bool out : {false, true})
    for (const int killed : {0, 3}) {
      INFO((out ? "out" : "in") << ", rank " << killed);
      auto* calls = new (shared) std::atomic<int>(0);
      processes ranks;
      ranks.start_all(4, group_desc(), [&](const rank_of_group& me) {
        const expert_case of = square_of(out ? VELO_EXPERT_SHARD_ROWS : VELO_EXPERT_SHARD_COLUMNS);
        grid_groups in;
        velo_status done = in.make(of, me);
        if (done == VELO_OK) done = call_for_ever(out, of, me, in, *calls);
        return ending_of(done);
      });
      while (*calls < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      kill(ranks.pid(killed), SIGKILL);
      const std::vector<ending> ends = ranks.wait();
      for (int rank = 0; rank < 4; ++rank)
        if (rank != killed) CHECK(ends[at(rank)].code == VELO_ERR_PEER);
    }
  munmap(shared, sizeof(std::atomic<int>));
}

TEST_CASE("an abort in either group of an experts' product ends every rank's call") {
  for (const bool out : {false, true})
    for (const bool experts : {false, true}) {
      const local_ranks ranks(4);
      const expert_case of = square_of(VELO_EXPERT_SHARD_COLUMNS);
      std::vector<grid_groups> in(4);
      ranks.require([&](const rank_of_group& me) { return in[at(me.rank)].make(of, me); });
      std::atomic<int> calls{0};
      std::atomic<bool> over{false};
      std::thread aborts([&] {
        while (calls < 8 && !over) std::this_thread::yield();
        velo_group_abort(experts ? in[2].ep : in[2].tp);
      });
      const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
        return call_for_ever(out, of, me, in[at(me.rank)], calls);
      });
      over = true;
      aborts.join();
      for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
    }
}

TEST_CASE("ranks that disagree about experts' products all learn it") {
  for (const bool out : {false, true})
    for (const int what : {0, 1}) {
      const local_ranks ranks(4, group_desc(2000));
      std::vector<grid_groups> in(4);
      const expert_case common = square_of(VELO_EXPERT_SHARD_COLUMNS);
      ranks.require([&](const rank_of_group& me) { return in[at(me.rank)].make(common, me); });
      std::atomic<int> calls{0};
      const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
        expert_case own = common;
        if (me.rank == 1 && what == 0) own.shard = VELO_EXPERT_SHARD_ROWS;
        if (me.rank == 1 && what == 1) own.rows = 16, own.width = 48;  // as many elements
        return call_for_ever(out, own, me, in[at(me.rank)], calls);
      });
      INFO((out ? "out" : "in") << ", what " << what);
      CHECK(calls == 0);
      for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
    }
}

TEST_CASE("all_to_all_all_gather_bmm names what is wrong") {
  const two_groups all(2);
  const matrix x(f32, {4, 6, 5}, 1), weight(f32, {2, 10, 3}, 2), bias(f32, {2, 3}, 3);
  const matrix y(f32, {2, 12, 3}), gathered(f32, {2, 12, 10}), odd(f32, {3, 6, 5}),
      flat(f32, {6, 5});
  const matrix half(bf16, {2, 10, 3}, 2), turned(f32, {2, 3, 10}, 2), long_bias(f32, {2, 2, 3}, 3),
      wide_y(f32, {2, 12, 4});
  const velo_tensor vx = x.view(), vw = weight.view(), vb = bias.view(), vy = y.view(),
                    vg = gathered.view(), vo = odd.view(), vf = flat.view(), vh = half.view(),
                    vt = turned.view(), vl = long_bias.view(), vwy = wide_y.view();
  const velo_stream stream = all.ranks.stream(0);
  in_args valid = VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT;
  valid.group_ep = all.ranks.group(0), valid.group_tp = all.second(0);
  valid.x = &vx, valid.weight = &vw, valid.bias = &vb, valid.y = &vy, valid.gathered = &vg;
  check_refusals<in_args>(
      valid, [&](const in_args& a) { return velo_all_to_all_all_gather_bmm(stream, &a); },
      {{[&](in_args& a) { a.group_tp = a.group_ep; }, VELO_ERR_ARGUMENT, "args.group_tp",
        "another group than group_ep", "the same"},
       {[&](in_args& a) { a.group_tp = all.second(1); }, VELO_ERR_ARGUMENT, "args.group_tp",
        "a group of the stream's context", "one of another context"},
       {[&](in_args& a) { a.x = &vf; }, VELO_ERR_RANK, "args.x.ndim"},
       {[&](in_args& a) { a.x = &vo; }, VELO_ERR_SHAPE, "args.x.shape",
        "experts that divide by the 2 ranks of group_ep", "3"},
       {[&](in_args& a) { a.shard_type = VELO_EXPERT_SHARD_ROWS; }, VELO_ERR_SHAPE,
        "args.weight.shape"},
       {[&](in_args& a) { a.shard_type = 2; }, VELO_ERR_ARGUMENT, "args.shard_type"},
       {[&](in_args& a) { a.act_type = 5; }, VELO_ERR_ARGUMENT, "args.act_type"},
       {[&](in_args& a) { a.act_type = -1; }, VELO_ERR_ARGUMENT, "args.act_type"},
       {[&](in_args& a) { a.weight = &vh; }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[&](in_args& a) { a.weight = &vt; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](in_args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](in_args& a) { a.bias = &vl; }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](in_args& a) { a.bias = &vw; }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](in_args& a) { a.y = &vwy; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[&](in_args& a) { a.gathered = &vy; }, VELO_ERR_SHAPE, "args.gathered.shape"},
       {[&](in_args& a) { a.pre_activation = &vg; }, VELO_ERR_SHAPE, "args.pre_activation.shape"},
       {[&](in_args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"}});
}

TEST_CASE("bmm_reduce_scatter_all_to_all names what is wrong") {
  const two_groups all(2);
  const matrix x(f32, {2, 12, 3}, 1), weight(f32, {2, 3, 10}, 2), bias(f32, {2, 5}, 3);
  const matrix y(f32, {4, 6, 5}), odd(f32, {2, 11, 3}), uneven(f32, {2, 3, 9}), six(f32, {2, 6, 3});
  const velo_tensor vx = x.view(), vw = weight.view(), vb = bias.view(), vy = y.view(),
                    vo = odd.view(), vu = uneven.view(), v6 = six.view();
  const velo_stream stream = all.ranks.stream(0);
  out_args valid = VELO_BMM_REDUCE_SCATTER_ALL_TO_ALL_ARGS_INIT;
  valid.group_ep = all.ranks.group(0), valid.group_tp = all.second(0);
  valid.x = &vx, valid.weight = &vw, valid.bias = &vb, valid.y = &vy;
  check_refusals<out_args>(
      valid, [&](const out_args& a) { return velo_bmm_reduce_scatter_all_to_all(stream, &a); },
      {{[&](out_args& a) { a.group_ep = a.group_tp; }, VELO_ERR_ARGUMENT, "args.group_tp",
        "another group than group_ep", "the same"},
       {[&](out_args& a) { a.x = &vo; }, VELO_ERR_SHAPE, "args.x.shape",
        "rows that divide by the 2 ranks of group_ep", "11"},
       {[&](out_args& a) { a.weight = &vu; }, VELO_ERR_SHAPE, "args.weight.shape",
        "columns that divide by the 2 ranks of group_tp", "9"},
       {[&](out_args& a) { a.x = &v6, a.shard_type = VELO_EXPERT_SHARD_ROWS; }, VELO_ERR_SHAPE,
        "args.x.shape", "rows of a rank that divide by the 2 ranks of group_tp", "3"},
       {[&](out_args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](out_args& a) { a.bias = &vw; }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](out_args& a) { a.shard_type = VELO_EXPERT_SHARD_ROWS; }, VELO_ERR_SHAPE,
        "args.bias.shape"},
       {[&](out_args& a) { a.y = &vx; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[&](out_args& a) { a.shard_type = -1; }, VELO_ERR_ARGUMENT, "args.shard_type"}});
}

TEST_CASE("experts' products refuse sizes whose product is no number") {
  const two_groups all(2);
  float one = 0;
  const std::int64_t huge[] = {2, std::int64_t{1} << 62, 0}, zero[] = {1, 0, 0};
  const velo_tensor x = view_of(&one, f32, huge, 3), w = view_of(&one, f32, zero, 3);
  in_args in = VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT;
  in.group_ep = all.ranks.group(0), in.x = &x, in.weight = &w, in.y = &w;
  CHECK_REFUSED(velo_all_to_all_all_gather_bmm(all.ranks.stream(0), &in), VELO_ERR_SHAPE,
                "args.x.shape");
}
