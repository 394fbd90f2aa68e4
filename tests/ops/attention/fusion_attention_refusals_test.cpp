// Refusals of fusion_attention and its gradient: the argument is named, outputs are not written.
#include "tests/ops/attention/attention_setup.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;

TEST_CASE("fusion_attention refuses what does not fit, by name, and leaves outputs alone") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
  tensors<float> t(p);
  const std::vector<unsigned char> before = t.out.bytes();
  const velo_fusion_attention_args good = t.forward;
  velo_fusion_attention_args a = good;
  const auto refused = [&](velo_status code, const char* argument) {
    CHECK_REFUSED(velo_fusion_attention(s.stream(), &a), code, argument);
    CHECK(t.out.bytes() == before);
    a = good;
  };
  array<float> three({2, 6, 64}), odd_heads({2, 8, 3, 16}), odd_head({2, 8, 2, 15});
  array<float> other_batch({3, 8, 2, 16}), other_length({2, 9, 2, 16}), large({2, 6, 4, 513});
  array<float> no_heads({2, 8, 0, 16}), flat({14, 4, 16}), flat_kv({16, 2, 16}),
      flat_out({14, 4, 16});
  array<bf16> half({2, 8, 2, 16});
  a.query = nullptr, refused(VELO_ERR_NULL, "args.query");
  a.attention_out = nullptr, refused(VELO_ERR_NULL, "args.attention_out");
  a.query = three.tensor(), refused(VELO_ERR_RANK, "args.query.ndim");
  a.query = large.tensor(), refused(VELO_ERR_SHAPE, "args.query.shape");
  a.key = half.tensor(), refused(VELO_ERR_DTYPE, "args.key.dtype");
  a.key = odd_heads.tensor(), a.value = odd_heads.tensor(),
  refused(VELO_ERR_SHAPE, "args.key.shape");
  a.key = no_heads.tensor(), a.value = no_heads.tensor(), refused(VELO_ERR_SHAPE, "args.key.shape");
  a.key = odd_head.tensor(), refused(VELO_ERR_SHAPE, "args.key.shape");
  a.key = other_batch.tensor(), refused(VELO_ERR_SHAPE, "args.key.shape");
  a.value = other_length.tensor(), refused(VELO_ERR_SHAPE, "args.value.shape");
  a.value = odd_heads.tensor(), refused(VELO_ERR_SHAPE, "args.value.shape");
  a.head_num = 3, refused(VELO_ERR_ARGUMENT, "args.head_num");
  a.layout = 9, refused(VELO_ERR_ARGUMENT, "args.layout");
  a.sparse_mode = 1, refused(VELO_ERR_ARGUMENT, "args.sparse_mode");
  for (const double scale : {HUGE_VAL, std::nan(""), 1e39, -1e39}) {
    a.scale = scale, refused(VELO_ERR_ARGUMENT, "args.scale");
  }
  a.softmax_max = t.q.tensor(), refused(VELO_ERR_RANK, "args.softmax_max.shape");
  a.attention_out = t.q.tensor(), refused(VELO_ERR_OVERLAP, "args.attention_out");
  a.layout = VELO_ATTENTION_LAYOUT_SBH, refused(VELO_ERR_RANK, "args.query.ndim");

  velo_tensor spread = *t.q.tensor();
  const std::int64_t strides[] = {1536, 256, 32, 2};
  spread.strides = strides, a.query = &spread, refused(VELO_ERR_LAYOUT, "args.query.strides");

  const velo_fusion_attention_args tnd = [&] {
    velo_fusion_attention_args x = good;
    x.layout = VELO_ATTENTION_LAYOUT_TND;
    x.query = flat.tensor(), x.key = flat_kv.tensor(), x.value = flat_kv.tensor();
    x.attention_out = flat_out.tensor(), x.softmax_max = nullptr, x.softmax_sum = nullptr;
    return x;
  }();
  const ints q_good = {6, 14}, kv_good = {8, 16}, short_list = {16}, falling = {15, 14},
             wrong_end = {6, 13}, negative = {-1, 14};
  const auto list = [](const ints& x) {
    return velo_ints{x.data(), static_cast<std::int64_t>(x.size())};
  };
  const velo_ints q_ok = list(q_good), kv_ok = list(kv_good), one = list(short_list),
                  falls = list(falling), ends_wrong = list(wrong_end), below = list(negative);
  a = tnd, a.actual_seq_kvlen = &kv_ok, refused(VELO_ERR_NULL, "args.actual_seq_qlen");
  a = tnd, a.actual_seq_qlen = &q_ok, refused(VELO_ERR_NULL, "args.actual_seq_kvlen");
  for (const velo_ints* bad : {&falls, &ends_wrong, &below}) {
    a = tnd, a.actual_seq_qlen = bad, a.actual_seq_kvlen = &kv_ok;
    refused(VELO_ERR_ARGUMENT, "args.actual_seq_qlen");
  }
  a = tnd, a.actual_seq_qlen = &q_ok, a.actual_seq_kvlen = &one;
  refused(VELO_ERR_ARGUMENT, "args.actual_seq_kvlen");
  a = tnd, a.actual_seq_qlen = &q_ok, a.actual_seq_kvlen = &kv_ok;
  VELO_RUN(velo_fusion_attention(s.stream(), &a));
}

TEST_CASE("attention refuses tensors of no dimension in every field") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
  tensors<float> t(p);
  float value = 0;
  const std::int64_t none[1] = {};
  velo_tensor scalar = *t.q.tensor();
  scalar.data = &value, scalar.ndim = 0;
  // The tensors have no shape to read, but strides.
  for (const auto& [shape, strides] : {std::pair(static_cast<const std::int64_t*>(nullptr),
                                                 static_cast<const std::int64_t*>(nullptr)),
                                       std::pair(none, none)}) {
    scalar.shape = const_cast<std::int64_t*>(shape);
    scalar.strides = const_cast<std::int64_t*>(strides);
    using forward = velo_fusion_attention_args;
    for (const auto field : {&forward::query, &forward::key, &forward::value}) {
      forward a = t.forward;
      a.*field = &scalar;
      CHECK(velo_fusion_attention(s.stream(), &a) == VELO_ERR_RANK);
    }
    for (const auto field :
         {&forward::attention_out, &forward::softmax_max, &forward::softmax_sum}) {
      forward a = t.forward;
      a.*field = &scalar;
      CHECK(velo_fusion_attention(s.stream(), &a) == VELO_ERR_RANK);
    }
    using backward = velo_fusion_attention_backward_args;
    for (const auto field :
         {&backward::query, &backward::key, &backward::value, &backward::dy,
          &backward::attention_out, &backward::softmax_max, &backward::softmax_sum}) {
      backward a = t.backward;
      a.*field = &scalar;
      CHECK(velo_fusion_attention_backward(s.stream(), &a) == VELO_ERR_RANK);
    }
    for (const auto field : {&backward::dquery, &backward::dkey, &backward::dvalue}) {
      backward a = t.backward;
      a.*field = &scalar;
      CHECK(velo_fusion_attention_backward(s.stream(), &a) == VELO_ERR_RANK);
    }
  }
}

TEST_CASE("attention refuses outputs whose rows overlap each other") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
  tensors<float> t(p);
  // The same batch twice, heads that share elements, tokens that run into each other.
  const std::int64_t overlapping[][4] = {{0, 64, 16, 1}, {384, 64, 15, 1}, {384, 63, 16, 1}};
  for (const auto& strides : overlapping) {
    velo_tensor queries = *t.out.tensor(), dq = *t.dq.tensor(), dk = *t.dk.tensor();
    queries.strides = dq.strides = dk.strides = const_cast<std::int64_t*>(strides);
    velo_fusion_attention_args f = t.forward;
    f.attention_out = &queries;
    CHECK_REFUSED(velo_fusion_attention(s.stream(), &f), VELO_ERR_LAYOUT,
                  "args.attention_out.strides");
    velo_fusion_attention_backward_args b = t.backward;
    b.dquery = &dq;
    CHECK_REFUSED(velo_fusion_attention_backward(s.stream(), &b), VELO_ERR_LAYOUT,
                  "args.dquery.strides");
  }
  const std::int64_t same_heads[] = {128, 16, 0, 1};
  for (const auto field :
       {&velo_fusion_attention_backward_args::dkey, &velo_fusion_attention_backward_args::dvalue}) {
    velo_fusion_attention_backward_args b = t.backward;
    velo_tensor gradient = *(b.*field);
    gradient.strides = const_cast<std::int64_t*>(same_heads);
    b.*field = &gradient;
    CHECK(velo_fusion_attention_backward(s.stream(), &b) == VELO_ERR_LAYOUT);
  }
}

TEST_CASE("fusion_attention_backward refuses what does not fit, by name") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
  tensors<float> t(p);
  const std::vector<unsigned char> before = t.dq.bytes();
  const velo_fusion_attention_backward_args good = t.backward;
  velo_fusion_attention_backward_args a = good;
  const auto refused = [&](velo_status code, const char* argument) {
    CHECK_REFUSED(velo_fusion_attention_backward(s.stream(), &a), code, argument);
    CHECK(t.dq.bytes() == before);
    a = good;
  };
  array<float> other({2, 6, 4, 15});
  array<bf16> half({2, 6, 4, 16});
  a.dy = nullptr, refused(VELO_ERR_NULL, "args.dy");
  a.dy = other.tensor(), refused(VELO_ERR_SHAPE, "args.dy.shape");
  a.dy = half.tensor(), refused(VELO_ERR_DTYPE, "args.dy.dtype");
  a.attention_out = other.tensor(), refused(VELO_ERR_SHAPE, "args.attention_out.shape");
  a.softmax_sum = t.dy.tensor(), refused(VELO_ERR_RANK, "args.softmax_sum.shape");
  a.dquery = other.tensor(), refused(VELO_ERR_SHAPE, "args.dquery.shape");
  a.dkey = t.dv.tensor(), refused(VELO_ERR_OVERLAP, "args.dkey");
  a.scale = 1e39, refused(VELO_ERR_ARGUMENT, "args.scale");
}
