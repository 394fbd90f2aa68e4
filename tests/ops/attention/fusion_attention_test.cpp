// fusion_attention against softmax in double: layouts, masks, head groups, head sizes, sequences of
// different lengths, every kernel, gradients, threads.
#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void check_both_modes(session& s, setup p) {
  for (const auto mode :
       {VELO_ATTENTION_SPARSE_MODE_FULL, VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL,
        VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL}) {
    p.mode = mode;
    check<T>(s, p);
  }
}

void check_types(session& s, const setup& p) {
  if (serves_all(s)) check_both_modes<float>(s, p), check_both_modes<f16>(s, p);
  check_both_modes<bf16>(s, p);
}

constexpr std::int64_t layouts[] = {VELO_ATTENTION_LAYOUT_BSND, VELO_ATTENTION_LAYOUT_BNSD,
                                    VELO_ATTENTION_LAYOUT_SBH, VELO_ATTENTION_LAYOUT_BSH};

template <class T>
void check_spoiled_rows(session& s) {
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 40, 40, 16, 16);
  p.mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  tensors<T> t(p);
  velo::simd::assign(t.q[3 * 16], std::nan(""));
  velo::simd::assign(t.k[20 * 16 + 1], HUGE_VAL);  // visible from row 20 on: +-Inf scores
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  for (std::size_t row = 0; row < 40; ++row) {
    bool finite = true;
    for (std::size_t c = 0; c < 16; ++c) finite = finite && std::isfinite(t.out.at(row * 16 + c));
    // A score of -Inf has weight 0 and spoils nothing.
    const bool spoiled = row == 3 || (row >= 20 && t.q.at(row * 16 + 1) >= 0);
    CHECK(finite == !spoiled);
  }
  CHECK(std::isnan(t.out.at(3 * 16)));
}

template <class T>
void check_growing_scores(session& s) {
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 70, 900, 16, 16);
  p.scale = 1;
  tensors<T> t(p);
  for (std::size_t i = 0; i < t.k.size(); ++i) {
    const std::size_t key = i / 16;
    velo::simd::assign(t.k[i], t.k.at(i) * 0.02 * static_cast<double>(key));
  }
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const truth want = truth_of(p, t);
  require_close(t.out, want.out, 0, is_coarse<T> ? 0x1p-7 : sizeof(T) == 2 ? 6e-4 : 1e-4);
  require_close(t.max, want.max, 1e-6, 1e-5);
  require_close(t.sum, want.sum, 1e-3, 0);
}

// Products that float32 holds exactly, many of them equal: an error can only come from the rounding
// of a score or of its row's maximum in one of the passes.
template <class T>
void check_exact_scores(session& s, double factor) {
  INFO("factor " << factor << " bytes " << sizeof(T));
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 70, 300, 16, 16);
  p.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
  p.scale = 0.25;
  tensors<T> t(p);
  const auto whole = [](array<T>& x, double by) {
    for (std::size_t i = 0; i < x.size(); ++i)
      velo::simd::assign(x[i], by * std::round(x.at(i) / 2));
  };
  whole(t.q, factor), whole(t.k, 1);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  const truth want = truth_of(p, t);
  const double loose = is_coarse<T> ? 0x1p-6 : sizeof(T) == 2 ? 0x1p-10 : 4e-6;
  require_close(t.out, want.out, loose, loose);
  require_close(t.max, want.max, 0, 0);
  require_close(t.sum, want.sum, is_coarse<T> ? 2e-4 : 4e-6, 0);
  require_close(t.dv, want.dv, loose, loose * largest(want.dv));
  require_close(t.dq, want.dq, loose, loose * largest(want.dq));
  require_close(t.dk, want.dk, loose, loose * largest(want.dk));
}

}  // namespace

TEST_CASE("fusion_attention agrees with softmax in double for every kernel, layout and mask") {
  for_each_kernel("fusion_attention", [](session& s) {
    for (const std::int64_t layout : layouts) {
      check_types(s, make(layout, 2, 4, 2, 33, 70, 40, 40));
      check_types(s, make(layout, 1, 2, 1, 70, 33, 16, 24));
    }
  });
}

TEST_CASE("fusion_attention_backward agrees with the formulas under every kernel") {
  for_each_kernel("fusion_attention_backward", [](session& s) {
    check_types(s, make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 33, 70, 40, 40));
    check_types(s, make(VELO_ATTENTION_LAYOUT_SBH, 1, 3, 1, 70, 33, 16, 24));
    check_types(s, make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 2, 130, 197, 64, 64));
  });
}

TEST_CASE("fusion_attention serves any head size") {
  session s;
  for (const std::int64_t d : {1, 2, 15, 40, 64, 80, 128, 200, 256, 512}) {
    check_types(s, make(VELO_ATTENTION_LAYOUT_BSND, 1, 2, 1, 37, 45, d, d));
  }
  check_types(s, make(VELO_ATTENTION_LAYOUT_BSND, 1, 1, 1, 37, 45, 15, 17));  // odd strides
  check_types(s, make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 2, 20, 20, 192, 128));
  check_types(s, make(VELO_ATTENTION_LAYOUT_BSH, 1, 2, 2, 20, 20, 3, 512));
}

TEST_CASE("fusion_attention serves any length") {
  session s;
  for (const std::int64_t sq : {0, 1, 31, 32, 129, 300}) {
    for (const std::int64_t skv : {0, 1, 63, 257, 600}) {
      check_types(s, make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, sq, skv, 16, 16));
    }
  }
  check_types(s, make(VELO_ATTENTION_LAYOUT_BNSD, 0, 2, 1, 5, 5, 16, 16));
}

TEST_CASE("fusion_attention cuts long key sequences of few heads into chunks") {
  session s(2);
  check_types(s, make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 150, 2100, 16, 16));
  check<float>(s, make(VELO_ATTENTION_LAYOUT_BSND, 3, 2, 1, 64, 1025, 16, 16));
  check_types(s, make_tnd({100, 100, 180}, {2100, 2150, 2160}, 2, 1, 16));
}

TEST_CASE("fusion_attention keeps sequences of one tensor apart, empty ones too") {
  for (const int threads : {1, 3}) {
    session s(threads);
    check_types(s, make_tnd({0, 40, 40, 73, 73}, {10, 30, 75, 75, 80}, 4, 2, 40));
    check_types(s, make_tnd({5, 6, 300}, {5, 6, 300}, 2, 2, 64));
    check_types(s, make_tnd({0, 0}, {0, 0}, 2, 1, 8));
    check_types(s, make_tnd({}, {}, 2, 1, 8));
  }
}

TEST_CASE("fusion_attention takes any scale") {
  session s;
  for (const double scale : {0.0, -0.3, 3.0}) {
    setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 40, 50, 16, 16);
    p.scale = scale;
    check<float>(s, p);
  }
}

TEST_CASE("fusion_attention keeps its precision where products are large") {
  session s;
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 40, 300, 16, 16);
  p.scale = 1;
  tensors<float> t(p);
  t.q.fill(1, 20), t.k.fill(2, 20);  // scores of some thousand: e^score is far outside float
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const truth want = truth_of(p, t);
  require_close(t.out, want.out, 1e-3, 1e-3);
  require_close(t.max, want.max, 1e-6, 0);
}

TEST_CASE("fusion_attention and its gradient take the same scores, up to 1e30") {
  for (const char* name : {"fusion_attention", "fusion_attention_backward"}) {
    for_each_kernel(name, [](session& s) {
      for (const double factor : {0x1p4, 0x1p10, 0x1p14, 0x1p17, 0x1p30, 0x1p60, 0x1p99}) {
        if (serves_all(s)) check_exact_scores<float>(s, factor);
        if (serves_all(s) && factor < 65504) check_exact_scores<f16>(s, factor);
        check_exact_scores<bf16>(s, factor);
      }
    });
  }
}

TEST_CASE("fusion_attention's gradient keeps its precision where scores are large") {
  struct row {
    double score, bound;  // the error of PyTorch's gradient
  };
  for_each_kernel("fusion_attention", [](session& s) {
    if (!serves_all(s)) return;
    take_same_kernel(s);
    for (const row& r : {row{1e3, 2e-5}, row{1e4, 6e-5}, row{1e5, 2e-5}}) {
      const setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 100, 200, 64, 64);
      tensors<float> t(p);
      t.q.fill(1, std::sqrt(r.score)), t.k.fill(2, std::sqrt(r.score));
      VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
      VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
      const truth want = truth_of(p, t);
      CHECK(largest(want.max) > r.score);
      require_close(t.dv, want.dv, 0, r.bound);
    }
  });
}

TEST_CASE("fusion_attention follows maxima that grow from key to key") {
  for_each_kernel("fusion_attention", [](session& s) {
    if (serves_all(s)) check_growing_scores<float>(s), check_growing_scores<f16>(s);
    check_growing_scores<bf16>(s);
  });
}

TEST_CASE("fusion_attention's gradient is the slope of its output") {
  session s;
  setup p = make(VELO_ATTENTION_LAYOUT_BSND, 1, 2, 1, 5, 7, 4, 3);
  p.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
  tensors<float> t(p);
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
}

TEST_CASE("fusion_attention reads and writes strided tensors") {
  session s;
  setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 2, 1, 40, 40, 32, 32);
  p.mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  tensors<float> t(p);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const std::vector<unsigned char> out = t.out.bytes();
  // query, key and value side by side in rows of four heads, as one projection writes them.
  array<float> joint({2, 40, 4, 32}), wide_out({2, 40, 3, 32});
  joint.fill(9), wide_out.fill(8);
  for (std::size_t row = 0; row < 80; ++row) {
    for (std::size_t c = 0; c < 64; ++c) joint[row * 128 + c] = t.q[row * 64 + c];
    for (std::size_t c = 0; c < 32; ++c) {
      joint[row * 128 + 64 + c] = t.k[row * 32 + c];
      joint[row * 128 + 96 + c] = t.v[row * 32 + c];
    }
  }
  const std::int64_t strides[] = {40 * 128, 128, 32, 1}, out_strides[] = {40 * 96, 96, 32, 1};
  const auto part = [&](const velo_tensor* shape, std::uint64_t column) {
    velo_tensor view = *shape;
    view.data = joint.data(), view.strides = strides, view.byte_offset = 4 * column;
    return view;
  };
  const velo_tensor q = part(t.q.tensor(), 0), k = part(t.k.tensor(), 64),
                    v = part(t.v.tensor(), 96);
  velo_tensor wide = *t.out.tensor();
  wide.data = wide_out.data(), wide.strides = out_strides;
  t.forward.query = &q, t.forward.key = &k, t.forward.value = &v, t.forward.attention_out = &wide;
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  array<float> untouched({2, 40, 3, 32});
  untouched.fill(8);
  for (std::size_t row = 0; row < 80; ++row) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the same bits
    CHECK(std::memcmp(&wide_out[row * 96], out.data() + row * 256, 256) == 0);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the same bits
    CHECK(std::memcmp(&wide_out[row * 96 + 64], &untouched[row * 96 + 64], 128) == 0);
  }
}

TEST_CASE("fusion_attention keeps NaN and Inf in the rows that see them") {
  for_each_kernel("fusion_attention", [](session& s) {
    if (serves_all(s)) check_spoiled_rows<float>(s), check_spoiled_rows<f16>(s);
    check_spoiled_rows<bf16>(s);
  });
}

// Every value is the same, so that every output is, too; every product is the square of a number
// with 11 bits.
TEST_CASE("fusion_attention of float16 multiplies unrounded and holds denormals and 65504") {
  for_each_kernel("fusion_attention", [](session& s) {
    if (!serves_all(s)) return;
    for (const double value : {0x1p-24, 1 + 0x1p-10, 65504.0}) {
      setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 40, 300, 16, 24);
      p.scale = 1;
      tensors<f16> t(p);
      for (auto* a : {&t.q, &t.k}) {
        for (std::size_t i = 0; i < a->size(); ++i)
          velo::simd::assign((*a)[i], i % 16 == 0 ? 1 + 0x1p-10 : 0.0);
      }
      for (std::size_t i = 0; i < t.v.size(); ++i) velo::simd::assign(t.v[i], value);
      VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
      bool exact = true;
      for (std::size_t i = 0; i < t.out.size(); ++i) exact = exact && t.out.at(i) == value;
      CHECK(exact);
      require_close(t.max, std::vector<double>(40, (1 + 0x1p-10) * (1 + 0x1p-10)), 0, 0);
      require_close(t.sum, std::vector<double>(40, 300), 0, 0);
    }
  });
}

TEST_CASE("fusion_attention gives the same bits for any number of threads") {
  const auto run = [](const setup& p, auto zero) {
    using T = decltype(zero);
    std::vector<std::vector<unsigned char>> bits;
    for (const int threads : {1, 2, 3, 7}) {
      session s(threads);
      tensors<T> t(p);
      VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
      VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
      const std::vector<std::vector<unsigned char>> now = {
          t.out.bytes(), t.max.bytes(), t.sum.bytes(), t.dq.bytes(), t.dk.bytes(), t.dv.bytes()};
      if (bits.empty()) bits = now;
      CHECK(now == bits);
    }
  };
  const auto all = [&](setup p) {
    p.mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
    run(p, float{});
    run(p, bf16{});
    run(p, f16{});
  };
  all(make(VELO_ATTENTION_LAYOUT_BSND, 3, 4, 2, 300, 300, 64, 64));
  all(make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 700, 2100, 32, 32));
  all(make_tnd({100, 400, 401}, {100, 400, 401}, 2, 1, 40));
}
