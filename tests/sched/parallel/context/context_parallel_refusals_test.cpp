// Calls of context_parallel_attention and its gradient that do not fit: each names the argument,
// leaves outputs as they were, and leaves no peer waiting.
#include "tests/refusals.hpp"
#include "tests/sched/parallel/context/attention_ranks.hpp"

using namespace velo::testing;

TEST_CASE("context_parallel_attention refuses what does not fit, by name, and leaves peers alone") {
  const local_ranks all(2);
  const attention_case of = case_of(VELO_SEQUENCE_RING, 2, 12, 4, 2),
                       longer = case_of(VELO_SEQUENCE_RING, 2, 16, 4, 2),
                       three = case_of(VELO_SEQUENCE_RING, 3, 18, 4, 2),
                       more_heads = case_of(VELO_SEQUENCE_RING, 2, 12, 6, 2),
                       more_keys = case_of(VELO_SEQUENCE_RING, 2, 12, 4, 4);
  attention_case wide = of;
  wide.desc.head_dim = 16;
  const plan_of right(of), other_rows(longer), other_ranks(three), other_heads(more_heads),
      other_keys(more_keys), other_width(wide);
  const heads_of_rows q(f32, 1, 6, 4, 8), k(f32, 1, 6, 2, 8), odd(f32, 1, 5, 4, 8),
      three_heads(f32, 1, 6, 3, 8), half(bf16, 1, 6, 2, 8), two(f32, 2, 6, 2, 8);
  const heads_of_rows out(f32, 1, 6, 4, 8), before(f32, 1, 6, 4, 8);
  const velo_tensor query = q.view(), key = k.view(), value = k.view(), y = out.view(),
                    odd_rows = odd.view(), keys_of_three = three_heads.view(),
                    other_dtype = half.view(), other_batch = two.view();
  std::vector<float> numbers(3, 1);
  static const std::int64_t few = 3;
  const velo_tensor few_slopes = view_of(numbers.data(), f32, few);
  velo_tensor flat = query;
  flat.ndim = 2;
  static const std::int64_t zeros[4] = {}, all_heads[] = {1, 8}, below[] = {1, 0},
                            beside[] = {0, 5};
  const velo_ints origin = {zeros, 2}, four = {zeros, 4}, places = {all_heads, 2},
                  other_sequence = {below, 2}, other_heads_of_it = {beside, 2};
  using args = velo_context_parallel_attention_args;
  args valid = VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT;
  valid.group = all.group(0), valid.plan = right.plan;
  valid.query = &query, valid.key = &key, valid.value = &value, valid.attention_out = &y;
  const auto with_plan = [](velo_sequence_plan plan) { return [plan](args& a) { a.plan = plan; }; };
  check_refusals<args>(
      valid, [&](const args& a) { return velo_context_parallel_attention(all.stream(0), &a); },
      {{[](args& a) { a.query = nullptr; }, VELO_ERR_NULL, "args.query"},
       {[&](args& a) { a.query = &flat; }, VELO_ERR_RANK, "args.query.ndim"},
       {[&](args& a) { a.query = &odd_rows; }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.key = &keys_of_three; }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.key = a.value = &keys_of_three; }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.key = &other_dtype; }, VELO_ERR_DTYPE, "args.key.dtype"},
       {[&](args& a) { a.value = &other_batch; }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.attention_out = &key; }, VELO_ERR_SHAPE, "args.attention_out.shape"},
       {[&](args& a) { a.alibi_slopes = &few_slopes; }, VELO_ERR_SHAPE, "args.alibi_slopes.shape"},
       {[](args& a) { a.scale = 1e300; }, VELO_ERR_ARGUMENT, "args.scale"},
       {[](args& a) { a.keep_prob = 1.5; }, VELO_ERR_ARGUMENT, "args.keep_prob"},
       {[&](args& a) { a.dropout_origin = &origin; }, VELO_ERR_NULL, "args.dropout_extents"},
       {[&](args& a) { a.dropout_extents = &places; }, VELO_ERR_NULL, "args.dropout_origin"},
       {[&](args& a) { a.dropout_origin = &four, a.dropout_extents = &places; }, VELO_ERR_ARGUMENT,
        "args.dropout_origin", "2 values: B, N", "4"},
       {[&](args& a) { a.dropout_origin = &other_sequence, a.dropout_extents = &places; },
        VELO_ERR_ARGUMENT, "args.dropout_origin", "a block of 1 within 1 in dimension 0", "1"},
       {[&](args& a) { a.dropout_origin = &other_heads_of_it, a.dropout_extents = &places; },
        VELO_ERR_ARGUMENT, "args.dropout_origin", "a block of 4 within 8 in dimension 1", "5"},
       {with_plan(other_ranks.plan), VELO_ERR_ARGUMENT, "args.plan"},
       {with_plan(other_rows.plan), VELO_ERR_SHAPE, "args.query.shape"},
       {with_plan(other_heads.plan), VELO_ERR_SHAPE, "args.query.shape"},
       {with_plan(other_keys.plan), VELO_ERR_SHAPE, "args.key.shape"},
       {with_plan(other_width.plan), VELO_ERR_SHAPE, "args.query.shape"},
       {[&](args& a) { a.plan = reinterpret_cast<velo_sequence_plan>(all.group(0)); },
        VELO_ERR_HANDLE, "args.plan"},
       {[&](args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"},
       {[](args& a) { a.group = nullptr; }, VELO_ERR_ARGUMENT, "args.plan"},
       {[&](args& a) {
          a.plan = nullptr;
          a.query = a.key = a.value = &odd_rows;
        },
        VELO_ERR_SHAPE, "args.query.shape"}});
  CHECK(out.same_bits(before));
  all.require_barrier();  // no peer was left waiting
}

TEST_CASE("a layer that shares keys asks for what their owner kept") {
  const local_ranks all(2);
  attention_case of = case_of(VELO_SEQUENCE_RING, 2, 12, 4, 2);
  const plan_of own(of);
  of.desc.keys = VELO_SEQUENCE_KEYS_GIVEN;
  const plan_of made(of);
  const heads_of_rows q(f32, 1, 6, 4, 8), k(f32, 1, 6, 2, 8), out(f32, 1, 6, 4, 8);
  const velo_tensor query = q.view(), key = k.view(), y = out.view();
  std::vector<float> numbers(2 * 6 * 2 * 8, 1);
  static const std::int64_t kept = 2 * 6 * 2 * 8, fewer = kept - 1, heads[] = {12, 2, 8};
  const velo_tensor given = view_of(numbers.data(), f32, kept),
                    few = view_of(numbers.data(), f32, fewer),
                    half = view_of(numbers.data(), bf16, kept);
  velo_tensor in_heads = given;
  in_heads.ndim = 3, in_heads.shape = heads;
  using args = velo_context_parallel_attention_args;
  args valid = VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT;
  valid.group = all.group(0), valid.plan = made.plan;
  valid.query = &query, valid.key = valid.value = &key, valid.attention_out = &y;
  valid.given = &given;
  check_refusals<args>(
      valid, [&](const args& a) { return velo_context_parallel_attention(all.stream(0), &a); },
      {{[](args& a) { a.given = nullptr; }, VELO_ERR_NULL, "args.given"},
       {[&](args& a) { a.given = &few; }, VELO_ERR_SHAPE, "args.given.shape"},
       {[&](args& a) { a.given = &in_heads; }, VELO_ERR_RANK, "args.given.shape"},
       {[&](args& a) { a.given = &half; }, VELO_ERR_DTYPE, "args.given.dtype"},
       {[&](args& a) { a.plan = own.plan; }, VELO_ERR_SHAPE, "args.given.shape"},
       {[](args& a) { a.plan = nullptr; }, VELO_ERR_SHAPE, "args.given.shape"}});
  all.require_barrier();
}

TEST_CASE("the gradient asks for what the forward kept") {
  const local_ranks all(2);
  const attention_case of = case_of(VELO_SEQUENCE_ULYSSES, 2, 12, 4, 2);
  const whole_attention whole(of);
  const plan_of made(of);
  parts now = parts_of(of, whole, made.plan);
  all.require([&](const rank_of_group& me) { return now[at(me.rank)]->forward(me); });
  const heads_of_rows& x = *now[0]->q;
  const velo_tensor q = x.view(), k = now[0]->k->view(), v = now[0]->v->view(),
                    y = now[0]->out->view(), dy = now[0]->dout->view(), dq = now[0]->dq->view(),
                    dk = now[0]->dk->view(), dv = now[0]->dv->view();
  std::vector<float> numbers(64, 1);
  static const std::int64_t right[] = {1, 2, 12}, wrong[] = {1, 4, 6}, all_of_them = 24, some = 5;
  static const std::int64_t first[] = {0, 2}, heads[] = {1, 5};
  const velo_ints origin = {first, 2}, places = {heads, 2};
  velo_tensor statistics = view_of(numbers.data(), f32, all_of_them), other = statistics;
  statistics.ndim = other.ndim = 3, statistics.shape = right, other.shape = wrong;
  const velo_tensor few = view_of(numbers.data(), f32, some);
  using args = velo_context_parallel_attention_backward_args;
  args valid = VELO_CONTEXT_PARALLEL_ATTENTION_BACKWARD_ARGS_INIT;
  valid.group = all.group(0), valid.plan = made.plan;
  valid.query = &q, valid.key = &k, valid.value = &v, valid.dy = &dy, valid.attention_out = &y;
  valid.softmax_max = valid.softmax_sum = &statistics;
  valid.dquery = &dq, valid.dkey = &dk, valid.dvalue = &dv;
  check_refusals<args>(
      valid,
      [&](const args& a) { return velo_context_parallel_attention_backward(all.stream(0), &a); },
      {{[](args&) {}, VELO_ERR_NULL, "args.kept"},
       {[&](args& a) { a.kept = &few; }, VELO_ERR_SHAPE, "args.kept.shape"},
       {[&](args& a) { a.softmax_max = &other; }, VELO_ERR_SHAPE, "args.softmax_max.shape"},
       {[&](args& a) { a.softmax_sum = &other; }, VELO_ERR_SHAPE, "args.softmax_sum.shape"},
       {[&](args& a) { a.dy = &k; }, VELO_ERR_SHAPE, "args.dy.shape"},
       {[&](args& a) { a.dropout_origin = &origin; }, VELO_ERR_NULL, "args.dropout_extents"},
       {[&](args& a) { a.dropout_origin = &origin, a.dropout_extents = &places; },
        VELO_ERR_ARGUMENT, "args.dropout_origin", "a block of 4 within 5 in dimension 1", "2"},
       {[](args& a) { a.softmax_max = nullptr; }, VELO_ERR_NULL, "args.softmax_max"}});
  all.require_barrier();
}
