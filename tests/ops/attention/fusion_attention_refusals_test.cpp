// Refusals of fusion_attention and its gradient: the argument is named, outputs are not written.
#include "tests/ops/attention/attention_setup.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;

namespace {
const setup small = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
}  // namespace

TEST_CASE("fusion_attention refuses what does not fit, by name, and leaves outputs alone") {
  session s;
  tensors<float> t(small);
  array<float> three({2, 6, 64}), odd_heads({2, 8, 3, 16}), odd_head({2, 8, 2, 15});
  array<float> other_batch({3, 8, 2, 16}), other_length({2, 9, 2, 16}), large({2, 6, 4, 513});
  array<float> no_heads({2, 8, 0, 16}), flat({14, 4, 16}), flat_kv({16, 2, 16}),
      flat_out({14, 4, 16});
  array<bf16> half({2, 8, 2, 16});
  const std::int64_t strides[] = {1536, 256, 32, 2};
  using args = velo_fusion_attention_args;
  check_refusals(
      s, velo_fusion_attention, t.forward, t.out,
      {{[&](args& a) { a.query = nullptr; }, VELO_ERR_NULL, "args.query"},
       {[&](args& a) { a.attention_out = nullptr; }, VELO_ERR_NULL, "args.attention_out"},
       {[&](args& a) { a.query = three.tensor(); }, VELO_ERR_RANK, "args.query.ndim"},
       {[&](args& a) { a.query = large.tensor(); }, VELO_ERR_SHAPE, "args.query.shape"},
       {[&](args& a) { a.key = half.tensor(); }, VELO_ERR_DTYPE, "args.key.dtype"},
       {[&](args& a) { a.key = a.value = odd_heads.tensor(); }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.key = a.value = no_heads.tensor(); }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.key = odd_head.tensor(); }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.key = other_batch.tensor(); }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.value = other_length.tensor(); }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.value = odd_heads.tensor(); }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.head_num = 3; }, VELO_ERR_ARGUMENT, "args.head_num"},
       {[&](args& a) { a.layout = 9; }, VELO_ERR_ARGUMENT, "args.layout"},
       {[&](args& a) { a.sparse_mode = 9; }, VELO_ERR_ARGUMENT, "args.sparse_mode"},
       {[&](args& a) { a.scale = HUGE_VAL; }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.scale = std::nan(""); }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.scale = 1e39; }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.scale = -1e39; }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.softmax_max = t.q.tensor(); }, VELO_ERR_RANK, "args.softmax_max.shape"},
       {[&](args& a) { a.attention_out = a.query; }, VELO_ERR_OVERLAP, "args.attention_out"},
       {[&](args& a) { a.layout = VELO_ATTENTION_LAYOUT_SBH; }, VELO_ERR_RANK, "args.query.ndim"},
       {changed(&args::query, [&](velo_tensor& x) { x.strides = strides; }), VELO_ERR_LAYOUT,
        "args.query.strides"}});

  const ints q_good = {6, 14}, kv_good = {8, 16}, short_list = {16}, falling = {15, 14},
             wrong_end = {6, 13}, negative = {-1, 14};
  const auto list = [](const ints& x) {
    return velo_ints{x.data(), static_cast<std::int64_t>(x.size())};
  };
  const velo_ints q_ok = list(q_good), kv_ok = list(kv_good), one = list(short_list),
                  falls = list(falling), ends_wrong = list(wrong_end), below = list(negative);
  args tnd = t.forward;
  tnd.layout = VELO_ATTENTION_LAYOUT_TND;
  tnd.query = flat.tensor(), tnd.key = flat_kv.tensor(), tnd.value = flat_kv.tensor();
  tnd.attention_out = flat_out.tensor(), tnd.softmax_max = tnd.softmax_sum = nullptr;
  tnd.actual_seq_qlen = &q_ok, tnd.actual_seq_kvlen = &kv_ok;
  check_refusals(
      s, velo_fusion_attention, tnd, flat_out,
      {{[&](args& a) { a.actual_seq_qlen = nullptr; }, VELO_ERR_NULL, "args.actual_seq_qlen"},
       {[&](args& a) { a.actual_seq_kvlen = nullptr; }, VELO_ERR_NULL, "args.actual_seq_kvlen"},
       {[&](args& a) { a.actual_seq_qlen = &falls; }, VELO_ERR_ARGUMENT, "args.actual_seq_qlen"},
       {[&](args& a) { a.actual_seq_qlen = &ends_wrong; }, VELO_ERR_ARGUMENT,
        "args.actual_seq_qlen"},
       {[&](args& a) { a.actual_seq_qlen = &below; }, VELO_ERR_ARGUMENT, "args.actual_seq_qlen"},
       {[&](args& a) { a.actual_seq_kvlen = &one; }, VELO_ERR_ARGUMENT, "args.actual_seq_kvlen"}});
  VELO_RUN(velo_fusion_attention(s.stream(), &tnd));
}

TEST_CASE("attention refuses tensors of no dimension in every field") {
  session s;
  tensors<float> t(small);
  float value = 0;
  const std::int64_t none[1] = {};
  velo_tensor scalar = *t.q.tensor();
  scalar.data = &value, scalar.ndim = 0;
  // The tensors have no shape to read, but strides.
  for (const std::int64_t* sizes : {static_cast<const std::int64_t*>(nullptr), none}) {
    scalar.shape = scalar.strides = sizes;
    const auto check = [&](auto op, const auto& valid, auto fields) {
      for (const auto field : fields) {
        auto args = valid;
        args.*field = &scalar;
        CHECK(op(s.stream(), &args) == VELO_ERR_RANK);
      }
    };
    using forward = velo_fusion_attention_args;
    check(velo_fusion_attention, t.forward,
          std::vector{&forward::query, &forward::key, &forward::value, &forward::attention_out,
                      &forward::softmax_max, &forward::softmax_sum});
    using backward = velo_fusion_attention_backward_args;
    check(velo_fusion_attention_backward, t.backward,
          std::vector{&backward::query, &backward::key, &backward::value, &backward::dy,
                      &backward::attention_out, &backward::softmax_max, &backward::softmax_sum,
                      &backward::dquery, &backward::dkey, &backward::dvalue});
  }
}

TEST_CASE("attention refuses outputs whose rows overlap each other") {
  session s;
  tensors<float> t(small);
  // The same batch twice, heads that share elements, tokens that run into each other.
  const std::int64_t overlapping[][4] = {{0, 64, 16, 1}, {384, 64, 15, 1}, {384, 63, 16, 1}};
  using forward = velo_fusion_attention_args;
  using backward = velo_fusion_attention_backward_args;
  for (const auto& strides : overlapping) {
    const auto overlap = [&](velo_tensor& x) { x.strides = strides; };
    check_refusals(s, velo_fusion_attention, t.forward, t.out,
                   {{changed(&forward::attention_out, overlap), VELO_ERR_LAYOUT,
                     "args.attention_out.strides"}});
    check_refusals(s, velo_fusion_attention_backward, t.backward, t.dq,
                   {{changed(&backward::dquery, overlap), VELO_ERR_LAYOUT, "args.dquery.strides"}});
  }
  const std::int64_t same_heads[] = {128, 16, 0, 1};
  const auto overlap = [&](velo_tensor& x) { x.strides = same_heads; };
  check_refusals(s, velo_fusion_attention_backward, t.backward, t.dq,
                 {{changed(&backward::dkey, overlap), VELO_ERR_LAYOUT, "args.dkey.strides"},
                  {changed(&backward::dvalue, overlap), VELO_ERR_LAYOUT, "args.dvalue.strides"}});
}

TEST_CASE("fusion_attention_backward refuses what does not fit, by name") {
  session s;
  tensors<float> t(small);
  array<float> other({2, 6, 4, 15});
  array<bf16> half({2, 6, 4, 16});
  using args = velo_fusion_attention_backward_args;
  check_refusals(
      s, velo_fusion_attention_backward, t.backward, t.dq,
      {{[&](args& a) { a.dy = nullptr; }, VELO_ERR_NULL, "args.dy"},
       {[&](args& a) { a.dy = other.tensor(); }, VELO_ERR_SHAPE, "args.dy.shape"},
       {[&](args& a) { a.dy = half.tensor(); }, VELO_ERR_DTYPE, "args.dy.dtype"},
       {[&](args& a) { a.attention_out = other.tensor(); }, VELO_ERR_SHAPE,
        "args.attention_out.shape"},
       {[&](args& a) { a.softmax_sum = t.dy.tensor(); }, VELO_ERR_RANK, "args.softmax_sum.shape"},
       {[&](args& a) { a.dquery = other.tensor(); }, VELO_ERR_SHAPE, "args.dquery.shape"},
       {[&](args& a) { a.dkey = t.dv.tensor(); }, VELO_ERR_OVERLAP, "args.dkey"},
       {[&](args& a) { a.scale = 1e39; }, VELO_ERR_ARGUMENT, "args.scale"}});
}
