// Dense masks, position terms and dropout of fusion_attention and its gradient, against softmax in
// double with the same terms a pair at a time; every kernel; refusals.
#include <array>

#include "core/simd/philox.hpp"
#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// A dense mask of some shape whose bytes follow from a cheap hash; every third row is hidden whole.
struct dense_mask {
  std::vector<unsigned char> bytes;
  ints shape;
  velo_tensor tensor{};

  explicit dense_mask(ints sizes, bool as_bool = false) : shape(std::move(sizes)) {
    std::size_t count = 1;
    for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
    const auto keys = static_cast<std::size_t>(shape.back());
    for (std::size_t i = 0; i < count; ++i)
      bytes.push_back((i / keys) % 7 == 3 || (i * 2654435761u >> 8) % 3 == 0);
    tensor.data = bytes.data(), tensor.shape = shape.data();
    tensor.device = {VELO_DEVICE_CPU, 0};
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.dtype = {static_cast<std::uint8_t>(as_bool ? VELO_DTYPE_BOOL : VELO_DTYPE_UINT), 8, 1};
  }
  bool hides(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const bool full = shape.size() == 4;
    const std::int64_t rows = shape[shape.size() - 2], keys = shape.back();
    const std::int64_t batch = full && shape[0] > 1 ? b : 0, head = full && shape[1] > 1 ? h : 0;
    const std::int64_t heads = full ? shape[1] : 1;
    return bytes[static_cast<std::size_t>(((batch * heads + head) * rows + i) * keys + j)] != 0;
  }
};

void take_mask(setup& p, const dense_mask& mask) {
  p.mask = &mask.tensor;
  p.addend = [&mask](auto... at) { return mask.hides(at...) ? -HUGE_VAL : 0.0; };
}

// Element (b, h, i, j) of a tensor of 4 dimensions, any of which may be 1.
std::size_t index_of(const ints& shape, const std::array<std::int64_t, 4>& at) {
  std::int64_t index = 0;
  for (std::size_t k = 0; k < 4; ++k) index = index * shape[k] + (shape[k] > 1 ? at[k] : 0);
  return static_cast<std::size_t>(index);
}

// dpse: the sum of the scores' gradients over the pairs that share an element.
template <class T>
void check_bias_gradient(session& s, const setup& p, const ints& shape, double factor) {
  tensors<T> t(p);
  array<T> dpse(shape);
  dpse.fill(9);
  t.backward.dpse = dpse.tensor();
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  const truth all = truth_of(p, t);
  std::vector<double> want(dpse.size(), 0);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < p.sq; ++i)
        for (std::int64_t j = 0; j < p.skv; ++j)
          want[index_of(shape, {b, h, i, j})] += factor * all.ds[at++];
  require_close(dpse, want, 2 * rounding<T>(), gradient_error<T>() * largest(want));
}

template <class T>
void check_pse(session& s, setup p, const ints& shape) {
  array<T> pse(shape);
  pse.fill(8, 2);
  p.pse = pse.tensor();
  for (const std::int64_t type :
       {VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE, VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE}) {
    const double factor = type == VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE ? p.scale : 1;
    p.pse_type = type;
    p.addend = [&](auto... at) { return factor * pse.at(index_of(shape, {at...})); };
    check<T>(s, p);
    check_bias_gradient<T>(s, p, shape, factor);
  }
}

template <class T>
void check_alibi(session& s, setup p, const ints& shape) {
  array<float> slopes(shape);
  slopes.fill(8);
  p.pse = slopes.tensor();
  p.q_start = 40, p.kv_start = 13;
  for (const std::int64_t type :
       {VELO_ATTENTION_PSE_TYPE_ALIBI, VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT}) {
    p.pse_type = type;
    p.addend = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const auto distance = std::abs(static_cast<double>(i + p.q_start - j - p.kv_start));
      const std::int64_t row = shape.size() == 2 ? b * p.heads : 0;
      return -slopes.at(static_cast<std::size_t>(row + h)) *
             (type == VELO_ATTENTION_PSE_TYPE_ALIBI ? distance : std::sqrt(distance));
    };
    check<T>(s, p);
  }
}

// The formula of Megatron's alibi, of which a compressed pse holds the last rows.
template <class T>
void check_compressed(session& s, setup p, std::int64_t keys) {
  const ints shape = {1, p.heads, 1024, keys};
  array<T> pse(shape);
  const auto value = [](std::int64_t h, std::int64_t distance) {
    return -0.0625 * static_cast<double>(h + 1) * static_cast<double>(distance % 64);
  };
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t r = 0; r < 1024; ++r)
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t distance = std::abs(keys - 1024 + r - j);
        velo::simd::assign(pse[static_cast<std::size_t>((h * 1024 + r) * keys + j)],
                           value(h, distance));
      }
  p.pse = pse.tensor();
  p.pse_type = VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE;
  p.mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  p.addend = [&](std::int64_t, std::int64_t h, std::int64_t i, std::int64_t j) {
    return value(h, i - j);
  };
  check<T>(s, p);
}

template <class T>
void check_dropout(session& s, setup p) {
  p.seed = 0x123456789abcdef, p.offset = -7;
  for (const double keep : {0.9, 0.5, 0.0}) {
    p.keep_prob = keep;
    const velo::simd::dropout_rule rule = velo::simd::dropout_of(
        1 - keep, static_cast<std::uint64_t>(p.seed), static_cast<std::uint64_t>(p.offset));
    const ints origin = p.origin.empty() ? ints{0, 0, 0, 0} : p.origin;
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < p.sequences(); ++b) longest = std::max(longest, p.kv_length(b));
    const ints whole = !p.extents.empty() ? p.extents
                       : p.lists()        ? ints{1, p.heads, p.q_ends.back(), longest}
                                          : ints{p.batch, p.heads, p.sq, p.skv};
    p.multiplier = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const std::int64_t batch = p.lists() ? 0 : b;
      const std::int64_t row = p.lists() ? setup::first(p.q_ends, b) + i : i;
      const std::int64_t index =
          (((origin[0] + batch) * whole[1] + origin[1] + h) * whole[2] + origin[2] + row) *
              whole[3] +
          origin[3] + j;
      return static_cast<double>(
          velo::simd::dropout_multiplier(rule, static_cast<std::uint64_t>(index)));
    };
    check<T>(s, p);
  }
}

// body(T()) for the element types that the forced kernel serves.
template <class Body>
void for_types(session& s, Body&& body) {
  take_same_kernel(s);
  if (serves_all(s)) body(float()), body(f16());
  body(bf16());
}

setup small(std::int64_t layout = VELO_ATTENTION_LAYOUT_BNSD) {
  return make(layout, 2, 4, 2, 37, 45, 16, 24);
}

}  // namespace

TEST_CASE("fusion_attention hides what a dense mask hides, whole rows among it") {
  for_each_kernel("fusion_attention", [](session& s) {
    for_types(s, [&](auto zero) {
      using T = decltype(zero);
      for (const ints& shape :
           {ints{2, 4, 37, 45}, ints{2, 1, 37, 45}, ints{1, 1, 37, 45}, ints{37, 45}}) {
        setup p = small();
        const dense_mask mask(shape, shape.size() == 2);
        take_mask(p, mask);
        for (const auto mode :
             {VELO_ATTENTION_SPARSE_MODE_FULL, VELO_ATTENTION_SPARSE_MODE_ALL_MASK}) {
          p.mode = mode;
          check<T>(s, p);
        }
        p.mode = VELO_ATTENTION_SPARSE_MODE_PREFIX;
        p.prefix = {20, 45};
        check<T>(s, p);
      }
      setup packed = make_tnd({0, 40, 40, 73}, {10, 50, 75, 150}, 2, 1, 16);
      const dense_mask mask({40, 75});
      take_mask(packed, mask);
      check<T>(s, packed);
      setup long_rows = make(VELO_ATTENTION_LAYOUT_BSND, 1, 2, 1, 70, 700, 16, 16);
      const dense_mask wide({70, 700});
      take_mask(long_rows, wide);
      check<T>(s, long_rows);
    });
  });
}

TEST_CASE("fusion_attention adds pse before or after the scale") {
  for_each_kernel("fusion_attention", [](session& s) {
    for_types(s, [&](auto zero) {
      using T = decltype(zero);
      for (const ints& shape :
           {ints{2, 4, 37, 45}, ints{2, 4, 1, 45}, ints{1, 4, 37, 45}, ints{1, 1, 37, 45}})
        check_pse<T>(s, small(), shape);
      setup negative = small(VELO_ATTENTION_LAYOUT_SBH);
      negative.scale = -0.3, negative.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
      check_pse<T>(s, negative, {2, 4, 37, 45});
      setup blocks = make(VELO_ATTENTION_LAYOUT_BSND, 1, 2, 1, 150, 600, 16, 16);
      blocks.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
      check_pse<T>(s, blocks, {1, 2, 150, 600});
      check_pse<T>(s, blocks, {1, 1, 1, 600});
    });
  });
}

TEST_CASE("fusion_attention makes alibi from slopes, wherever the block begins") {
  for_each_kernel("fusion_attention", [](session& s) {
    for_types(s, [&](auto zero) {
      using T = decltype(zero);
      check_alibi<T>(s, small(), {4});
      check_alibi<T>(s, small(VELO_ATTENTION_LAYOUT_BSND), {2, 4});
      check_alibi<T>(s, make_tnd({20, 45}, {33, 70}, 2, 1, 16), {2, 2});
    });
  });
}

TEST_CASE("fusion_attention continues a compressed pse along the diagonal") {
  session s;
  check_compressed<float>(s, make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 1100, 1100, 16, 16), 1100);
  check_compressed<bf16>(s, make_tnd({40, 90}, {40, 90}, 2, 1, 16), 1060);
  check_compressed<float>(s, make_tnd({1030, 1090}, {1030, 1090}, 1, 1, 16), 1030);
}

TEST_CASE("fusion_attention drops probabilities by Philox, again in its gradient") {
  for_each_kernel("fusion_attention", [](session& s) {
    for_types(s, [&](auto zero) {
      using T = decltype(zero);
      check_dropout<T>(s, small());
      setup block = small(VELO_ATTENTION_LAYOUT_BSH);
      block.origin = {1, 2, 3, 5}, block.extents = {4, 8, 60, 51};
      check_dropout<T>(s, block);
      check_dropout<T>(s, make_tnd({0, 40, 73}, {10, 50, 140}, 2, 1, 16));
      setup causal = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 150, 300, 16, 16);
      causal.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
      check_dropout<T>(s, causal);
    });
  });
}

TEST_CASE("fusion_attention_backward adds to dkey and dvalue where it accumulates") {
  for_each_kernel("fusion_attention_backward", [](session& s) {
    const auto check_sums = [&](auto zero) {
      using T = decltype(zero);
      const setup p = small();
      tensors<T> t(p);
      VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
      truth want = truth_of(p, t);
      for (std::size_t i = 0; i < t.dk.size(); ++i) want.dk[i] += t.dk.at(i);
      for (std::size_t i = 0; i < t.dv.size(); ++i) want.dv[i] += t.dv.at(i);
      t.backward.accumulate = 1;
      VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
      require_close(t.dk, want.dk, 2 * rounding<T>(), gradient_error<T>() * largest(want.dk));
      require_close(t.dv, want.dv, 2 * rounding<T>(), gradient_error<T>() * largest(want.dv));
      require_close(t.dq, want.dq, 2 * rounding<T>(), gradient_error<T>() * largest(want.dq));
    };
    if (serves_all(s)) check_sums(float()), check_sums(f16());
    check_sums(bf16());
  });
}

TEST_CASE("fusion_attention keeps each statistic eight times, packed sequences head by head") {
  for_each_kernel("fusion_attention", [](session& s) {
    for_types(s, [&](auto zero) {
      using T = decltype(zero);
      for (setup p : {small(), make_tnd({0, 40, 40, 73}, {10, 50, 75, 150}, 2, 1, 16)}) {
        p.copies = 8;
        check<T>(s, p);
      }
    });
  });
}

TEST_CASE("all terms of fusion_attention at once, for any number of threads") {
  const auto run = [](int threads) {
    session s(threads);
    setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 300, 2100, 16, 16);
    const dense_mask mask({1, 2, 300, 2100});
    array<float> pse({1, 2, 1, 2100});
    pse.fill(3);
    p.mask = &mask.tensor, p.pse = pse.tensor(), p.keep_prob = 0.8, p.seed = 5;
    tensors<float> t(p);
    VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
    VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
    return std::vector<std::vector<unsigned char>>{t.out.bytes(), t.dq.bytes(), t.dk.bytes(),
                                                   t.dv.bytes()};
  };
  const auto one = run(1);
  CHECK(run(2) == one);
  CHECK(run(3) == one);
}

TEST_CASE("fusion_attention's gradient is the slope of its output under all terms") {
  session s;
  setup p = make(VELO_ATTENTION_LAYOUT_BSND, 1, 2, 1, 5, 7, 4, 3);
  const dense_mask mask({5, 7});
  array<float> pse({1, 2, 5, 7});
  pse.fill(3);
  p.mask = &mask.tensor, p.pse = pse.tensor(), p.keep_prob = 0.7, p.seed = 11;
  array<float> dpse({1, 2, 5, 7});
  tensors<float> t(p);
  t.backward.dpse = dpse.tensor();
  const auto objective = [&] {
    VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
    double sum = 0;
    for (std::size_t i = 0; i < t.out.size(); ++i) sum += t.out.at(i) * t.dy.at(i);
    return sum;
  };
  objective();
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  check_slope(t.q, t.dq, objective);
  check_slope(t.k, t.dk, objective);
  check_slope(t.v, t.dv, objective);
  check_slope(pse, dpse, objective);
}

TEST_CASE("fusion_attention refuses terms that do not fit, by name") {
  session s;
  const setup p = small();
  tensors<float> t(p);
  const dense_mask fits({37, 45}), turned({45, 37}), cube({2, 37, 45}), batch({3, 1, 37, 45}),
      causal({2048, 2048});
  array<float> pse({2, 4, 37, 45}), other({2, 4, 36, 45}), slopes({4}), few({3});
  array<bf16> half({2, 4, 37, 45});
  const ints four = {0, 0, 0, 0}, three = {0, 0, 0}, whole = {2, 4, 37, 45},
             little = {2, 4, 37, 44}, behind = {0, 1, 0, 0};
  const auto list = [](const ints& x) {
    return velo_ints{x.data(), static_cast<std::int64_t>(x.size())};
  };
  const velo_ints origin = list(four), short_list = list(three), all = list(whole),
                  narrow = list(little), shifted = list(behind);
  using args = velo_fusion_attention_args;
  const auto shape = "args.atten_mask.shape";
  check_refusals(
      s, velo_fusion_attention, t.forward, t.out,
      {{[&](args& a) { a.atten_mask = &turned.tensor; }, VELO_ERR_SHAPE, shape},
       {[&](args& a) { a.atten_mask = &cube.tensor; }, VELO_ERR_SHAPE, shape},
       {[&](args& a) { a.atten_mask = &batch.tensor; }, VELO_ERR_SHAPE, shape},
       {[&](args& a) { a.atten_mask = slopes.tensor(); }, VELO_ERR_DTYPE, "args.atten_mask.dtype"},
       {[&](args& a) { a.atten_mask = &fits.tensor, a.sparse_mode = 2; }, VELO_ERR_SHAPE, shape},
       {[&](args& a) {
          a.atten_mask = &causal.tensor, a.sparse_mode = 6;
          a.prefix = nullptr;
        },
        VELO_ERR_NULL, "args.prefix"},
       {[&](args& a) { a.pse = other.tensor(); }, VELO_ERR_SHAPE, "args.pse.shape"},
       {[&](args& a) { a.pse = half.tensor(); }, VELO_ERR_DTYPE, "args.pse.dtype"},
       {[&](args& a) { a.pse = slopes.tensor(); }, VELO_ERR_RANK, "args.pse.ndim"},
       {[&](args& a) { a.pse = pse.tensor(), a.pse_type = 2; }, VELO_ERR_RANK, "args.pse.ndim"},
       {[&](args& a) { a.pse = few.tensor(), a.pse_type = 2; }, VELO_ERR_SHAPE, "args.pse.shape"},
       {[&](args& a) { a.pse_type = 4; }, VELO_ERR_ARGUMENT, "args.pse_type"},
       {[&](args& a) { a.keep_prob = 1.5; }, VELO_ERR_ARGUMENT, "args.keep_prob"},
       {[&](args& a) { a.keep_prob = -0.1; }, VELO_ERR_ARGUMENT, "args.keep_prob"},
       {[&](args& a) { a.dropout_origin = &origin; }, VELO_ERR_NULL, "args.dropout_extents"},
       {[&](args& a) { a.dropout_extents = &all; }, VELO_ERR_NULL, "args.dropout_origin"},
       {[&](args& a) { a.dropout_origin = &short_list, a.dropout_extents = &all; },
        VELO_ERR_ARGUMENT, "args.dropout_origin"},
       {[&](args& a) { a.dropout_origin = &origin, a.dropout_extents = &narrow; },
        VELO_ERR_ARGUMENT, "args.dropout_origin"},
       {[&](args& a) { a.dropout_origin = &shifted, a.dropout_extents = &all; }, VELO_ERR_ARGUMENT,
        "args.dropout_origin"}});
  using gradient_args = velo_fusion_attention_backward_args;
  array<float> dpse({2, 4, 37, 45});
  check_refusals(
      s, velo_fusion_attention_backward, t.backward, t.dq,
      {{[&](gradient_args& a) { a.dpse = dpse.tensor(); }, VELO_ERR_ARGUMENT, "args.dpse"},
       {[&](gradient_args& a) {
          a.dpse = dpse.tensor(), a.pse = slopes.tensor(),
          a.pse_type = VELO_ATTENTION_PSE_TYPE_ALIBI;
        },
        VELO_ERR_ARGUMENT, "args.dpse"}});
  // The constants of the modes that are formulas are read by nobody.
  args constant = t.forward;
  constant.atten_mask = &causal.tensor, constant.sparse_mode = 2;
  VELO_RUN(velo_fusion_attention(s.stream(), &constant));

  const setup packed = make_tnd({0, 40}, {10, 50}, 2, 1, 16);
  array<float> two({2});
  tensors<float> flat(packed);
  flat.forward.pse = two.tensor(), flat.forward.pse_type = VELO_ATTENTION_PSE_TYPE_ALIBI;
  check_refusals(s, velo_fusion_attention, flat.forward, flat.out,
                 {{[](args&) {}, VELO_ERR_ARGUMENT, "args.pse"},
                  {[](args& a) { a.sparse_mode = 7; }, VELO_ERR_ARGUMENT, "args.pse"}});
}
