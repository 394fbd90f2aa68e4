// unpad_strided_batch_matmul and its gradient against double: presets, which are the lists of their
// definition bit for bit, lists with gaps and transposes, every kernel, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

using numbers = std::vector<std::int64_t>;

// All lists of a call, each stated.
struct lists {
  std::int64_t heads = 1;
  numbers m, n, k, lda, ldb, ldc, sa, sb, sc, ta, tb;

  void add(numbers mnk, numbers ld, numbers stride, bool a, bool b) {
    m.push_back(mnk[0]), n.push_back(mnk[1]), k.push_back(mnk[2]);
    lda.push_back(ld[0]), ldb.push_back(ld[1]), ldc.push_back(ld[2]);
    sa.push_back(stride[0]), sb.push_back(stride[1]), sc.push_back(stride[2]);
    ta.push_back(a), tb.push_back(b);
  }
  std::int64_t elements(const numbers& rows, const numbers& columns) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) sum += heads * rows[i] * columns[i];
    return sum;
  }
};

// The table of presets: a row of lists for each sequence of length s.
lists preset_lists(std::int64_t preset, const numbers& lengths, std::int64_t heads,
                   std::int64_t d) {
  lists all;
  all.heads = heads;
  const std::int64_t hidden = heads * d;
  for (const std::int64_t s : lengths) {
    switch (preset) {
      case VELO_STRIDED_MATMUL_PRESET_BMM1:
      case VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD1:
        all.add({s, s, d}, {hidden, hidden, s}, {d, d, s * s}, false, true);
        break;
      case VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD1:
      case VELO_STRIDED_MATMUL_PRESET_BMM2:
        all.add({s, d, s}, {s, hidden, hidden}, {s * s, d, d}, false, false);
        break;
      case VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD2:
        all.add({d, s, s}, {hidden, s, s}, {d, s * s, s * d}, true, false);
        break;
      default:
        all.add({s, d, s}, {s, hidden, hidden}, {s * s, d, d}, true, false);
    }
  }
  return all;
}

struct views {  // of a call's lists, which must outlive it
  explicit views(const lists& l)
      : of{&l.m, &l.n, &l.k, &l.lda, &l.ldb, &l.ldc, &l.sa, &l.sb, &l.sc, &l.ta, &l.tb} {
    for (std::size_t i = 0; i < 11; ++i)
      all[i] = {of[i]->data(), static_cast<std::int64_t>(of[i]->size())};
  }
  template <class Args>
  void give(Args& a, std::int64_t heads) const {
    a.m = &all[0], a.n = &all[1], a.k = &all[2], a.head_num = heads;
    a.lda = &all[3], a.ldb = &all[4], a.ldc = &all[5];
    a.stride_a = &all[6], a.stride_b = &all[7], a.stride_c = &all[8];
    a.transpose_a = &all[9], a.transpose_b = &all[10];
  }
  const numbers* of[11];
  velo_ints all[11];
};

// Calls each(m, n, k, place of a element (row, column), of b, of c) for every head.
template <class Each>
void for_products(const lists& l, const Each& each) {
  std::int64_t a0 = 0, b0 = 0, c0 = 0;
  for (std::size_t i = 0; i < l.m.size(); ++i) {
    const std::int64_t m = l.m[i], n = l.n[i], k = l.k[i];
    const auto place = [](std::int64_t first, std::int64_t ld, bool turned) {
      return [=](std::int64_t row, std::int64_t column) {
        return static_cast<std::size_t>(first + (turned ? column * ld + row : row * ld + column));
      };
    };
    for (std::int64_t h = 0; h < l.heads; ++h)
      each(m, n, k, place(a0 + h * l.sa[i], l.lda[i], l.ta[i] != 0),
           place(b0 + h * l.sb[i], l.ldb[i], l.tb[i] != 0),
           place(c0 + h * l.sc[i], l.ldc[i], false));
    a0 += l.heads * m * k, b0 += l.heads * k * n, c0 += l.heads * m * n;
  }
}

// One element against its sum in double.
struct checked_sum {
  double sum = 0, size = 0;
  void add(double term) { sum += term, size += std::abs(term); }
  template <class T>
  void require(double got) const {
    const double bound = size * 2e-6 + std::abs(sum) * rounding<T>() + 0x1p-25;
    if (!(std::abs(got - sum) <= bound)) FAIL("got " << got << ", truth " << sum);
  }
};

// Every `step`th column of each row of c against double.
template <class T>
void check_product(const lists& l, const array<T>& a, const array<T>& b, const array<T>& c,
                   std::int64_t step = 1) {
  for_products(l, [&](auto m, auto n, auto k, auto in_a, auto in_b, auto in_c) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = i % step; j < n; j += step) {
        checked_sum truth;
        for (std::int64_t q = 0; q < k; ++q) truth.add(a.at(in_a(i, q)) * b.at(in_b(q, j)));
        truth.require<T>(c.at(in_c(i, j)));
      }
    }
  });
  CHECK(c.intact());
}

template <class T>
void check_gradient(const lists& l, const array<T>& a, const array<T>& b, const array<T>& dc,
                    const array<T>& da, const array<T>& db) {
  for_products(l, [&](auto m, auto n, auto k, auto in_a, auto in_b, auto in_c) {
    for (std::int64_t q = 0; q < k; ++q) {
      for (std::int64_t i = 0; i < m; ++i) {
        checked_sum truth;
        for (std::int64_t j = 0; j < n; ++j) truth.add(dc.at(in_c(i, j)) * b.at(in_b(q, j)));
        truth.require<T>(da.at(in_a(i, q)));
      }
      for (std::int64_t j = 0; j < n; ++j) {
        checked_sum truth;
        for (std::int64_t i = 0; i < m; ++i) truth.add(dc.at(in_c(i, j)) * a.at(in_a(i, q)));
        truth.require<T>(db.at(in_b(q, j)));
      }
    }
  });
  CHECK(da.intact());
  CHECK(db.intact());
}

// The tensors of a call.
template <class T>
struct tensors {
  explicit tensors(const lists& l)
      : a({l.elements(l.m, l.k)}),
        b({l.elements(l.k, l.n)}),
        c({l.elements(l.m, l.n)}),
        da({l.elements(l.m, l.k)}),
        db({l.elements(l.k, l.n)}) {
    a.fill(1), b.fill(2), c.fill(3), da.fill(4), db.fill(5);
  }
  array<T> a, b, c, da, db;

  velo_unpad_strided_batch_matmul_args forward() {
    velo_unpad_strided_batch_matmul_args x = VELO_UNPAD_STRIDED_BATCH_MATMUL_ARGS_INIT;
    x.a = a.tensor(), x.b = b.tensor(), x.c = c.tensor();
    return x;
  }
  velo_unpad_strided_batch_matmul_backward_args backward() {
    velo_unpad_strided_batch_matmul_backward_args x =
        VELO_UNPAD_STRIDED_BATCH_MATMUL_BACKWARD_ARGS_INIT;
    x.dc = c.tensor(), x.a = a.tensor(), x.b = b.tensor(), x.da = da.tensor(), x.db = db.tensor();
    return x;
  }
};

// The product, and the gradient with the product in the place of dc.
template <class T>
bool check_lists(session& s, const lists& l, bool gradient) {
  tensors<T> t(l);
  const views given(l);
  auto f = t.forward();
  given.give(f, l.heads);
  const velo_status status = velo_unpad_strided_batch_matmul(s.stream(), &f);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  check_product(l, t.a, t.b, t.c);
  if (!gradient) return true;
  auto b = t.backward();
  given.give(b, l.heads);
  const velo_status back = velo_unpad_strided_batch_matmul_backward(s.stream(), &b);
  if (back == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(back);
  check_gradient(l, t.a, t.b, t.c, t.da, t.db);
  return true;
}

template <class T>
void check_preset(session& s, std::int64_t preset, const numbers& lengths, std::int64_t heads,
                  std::int64_t d, std::int64_t step) {
  INFO("preset " << preset << " bytes " << sizeof(T));
  const lists l = preset_lists(preset, lengths, heads, d);
  const velo_ints seq_len{lengths.data(), static_cast<std::int64_t>(lengths.size())};
  tensors<T> by_preset(l), by_lists(l);
  auto f = by_preset.forward();
  f.preset = preset, f.seq_len = &seq_len, f.head_num = heads, f.head_dim = d;
  const velo_status status = velo_unpad_strided_batch_matmul(s.stream(), &f);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  check_product(l, by_preset.a, by_preset.b, by_preset.c, step);
  auto g = by_lists.forward();
  const views given(l);
  given.give(g, heads);
  VELO_RUN(velo_unpad_strided_batch_matmul(s.stream(), &g));
  CHECK(by_preset.c.bytes() == by_lists.c.bytes());
  auto b = by_preset.backward();
  b.preset = preset, b.seq_len = &seq_len, b.head_num = heads, b.head_dim = d;
  VELO_RUN(velo_unpad_strided_batch_matmul_backward(s.stream(), &b));
  if (step == 1)
    check_gradient(l, by_preset.a, by_preset.b, by_preset.c, by_preset.da, by_preset.db);
}

// Gaps between the columns that heads share, heads one behind the other and side by side, both
// transposed and not, an empty sequence and one without depth.
lists uneven() {
  lists l;
  l.heads = 3;
  l.add({5, 7, 4}, {12, 21, 21}, {4, 7, 7}, false, false);
  l.add({0, 3, 9}, {9, 3, 3}, {0, 27, 0}, false, false);
  l.add({33, 40, 16}, {33, 16, 40}, {528, 640, 1320}, true, true);
  l.add({4, 6, 0}, {0, 6, 6}, {0, 0, 24}, false, false);
  l.add({2, 9, 30}, {6, 90, 9}, {2, 30, 18}, true, true);
  return l;
}

}  // namespace

TEST_CASE("unpad_strided_batch_matmul agrees with double for every kernel, preset and dtype") {
  int served = 0;
  for_each_kernel("unpad_strided_batch_matmul", [&](session& s) {
    for (std::int64_t preset = 1; preset <= 6; ++preset) {
      check_preset<float>(s, preset, {3, 0, 37, 1}, 3, 20, 1);
      check_preset<bf16>(s, preset, {70, 9}, 2, 32, 1);
      check_preset<f16>(s, preset, {5, 33}, 3, 16, 1);
    }
    served += check_lists<float>(s, uneven(), true);
    served += check_lists<bf16>(s, uneven(), true);
    served += check_lists<f16>(s, uneven(), true);
  });
  CHECK(served >= 6);
}

TEST_CASE("unpad_strided_batch_matmul_backward agrees with double for every kernel") {
  for_each_kernel("unpad_strided_batch_matmul_backward",
                  [](session& s) { check_lists<float>(s, uneven(), true); });
}

TEST_CASE("unpad_strided_batch_matmul holds 1e-3 on four sequences of 100 to 300 positions") {
  session s(2);
  for (std::int64_t preset = 1; preset <= 6; ++preset)
    check_preset<f16>(s, preset, {100, 299, 180, 241}, 8, 128, 61);
}

TEST_CASE("matrices that are read may be shared by heads, and lie with gaps") {
  session s;
  lists l;
  l.heads = 2;
  l.add({2, 3, 4}, {5, 3, 3}, {0, 0, 6}, false, false);
  check_lists<float>(s, l, false);
  tensors<float> t(l);
  const views given(l);
  auto b = t.backward();
  given.give(b, 2);
  CHECK_REFUSED(velo_unpad_strided_batch_matmul_backward(s.stream(), &b), VELO_ERR_ARGUMENT,
                "args.stride_a");
}

TEST_CASE("unpad_strided_batch_matmul_backward is the slope of unpad_strided_batch_matmul") {
  session s;
  lists l;
  l.heads = 2;
  l.add({2, 3, 4}, {8, 4, 3}, {4, 12, 6}, false, true);
  l.add({3, 1, 2}, {3, 2, 1}, {6, 1, 3}, true, false);
  tensors<float> t(l);
  array<float> out({static_cast<std::int64_t>(t.c.size())});
  const views given(l);
  auto f = t.forward();
  auto b = t.backward();
  given.give(f, 2), given.give(b, 2);
  f.c = out.tensor();
  VELO_RUN(velo_unpad_strided_batch_matmul_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_unpad_strided_batch_matmul(s.stream(), &f));
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out.at(i) * t.c.at(i);
    return sum;
  };
  check_slope(t.a, t.da, objective);
  check_slope(t.b, t.db, objective);
}

TEST_CASE("unpad_strided_batch_matmul takes several flat tensors, each as by itself") {
  session s;
  const numbers lengths = {2, 3};
  const velo_ints list{lengths.data(), 2};
  array<float> p({3, 26}), v({3, 40}), y({3, 40}), one({26}), other({40}), alone({40});
  p.fill(1), v.fill(2);
  velo_unpad_strided_batch_matmul_args f = VELO_UNPAD_STRIDED_BATCH_MATMUL_ARGS_INIT;
  f.a = p.tensor(), f.b = v.tensor(), f.c = y.tensor();
  f.seq_len = &list, f.head_num = 2, f.head_dim = 4;
  f.preset = VELO_STRIDED_MATMUL_PRESET_BMM2;
  VELO_RUN(velo_unpad_strided_batch_matmul(s.stream(), &f));
  for (std::size_t repeat = 0; repeat < 3; ++repeat) {
    std::copy_n(p.data() + repeat * 26, 26, one.data());
    std::copy_n(v.data() + repeat * 40, 40, other.data());
    auto g = f;
    g.a = one.tensor(), g.b = other.tensor(), g.c = alone.tensor();
    VELO_RUN(velo_unpad_strided_batch_matmul(s.stream(), &g));
    CHECK(std::equal(alone.data(), alone.data() + 40, y.data() + repeat * 40));
  }
  f.b = other.tensor();
  CHECK_REFUSED(velo_unpad_strided_batch_matmul(s.stream(), &f), VELO_ERR_RANK, "args.b.shape");
}

TEST_CASE("unpad_strided_batch_matmul refuses lists that leave a tensor, by name and element") {
  session s;
  lists l;
  l.heads = 2;
  l.add({2, 3, 4}, {4, 3, 3}, {8, 12, 6}, false, false);
  l.add({2, 2, 2}, {2, 2, 2}, {4, 4, 4}, false, false);
  tensors<float> t(l);
  const views given(l);
  auto valid = t.forward();
  given.give(valid, 2);
  using args = velo_unpad_strided_batch_matmul_args;
  numbers values = {0, 0};
  velo_ints list{values.data(), 2}, one{values.data(), 1};
  const auto with = [&](const velo_ints* args::*field, const numbers& to) {
    return [&, field, to](args& f) { values = to, list.data = values.data(), f.*field = &list; };
  };
  array<float> other({21});
  array<bf16> half({static_cast<std::int64_t>(t.b.size())});
  check_refusals(s, velo_unpad_strided_batch_matmul, valid, t.c,
                 {{with(&args::m, {2, -1}), VELO_ERR_ARGUMENT, "args.m"},
                  {with(&args::k, {std::int64_t{1} << 31, 2}), VELO_ERR_ARGUMENT, "args.k"},
                  {with(&args::lda, {3, 2}), VELO_ERR_ARGUMENT, "args.lda"},
                  {with(&args::ldb, {3, INT64_MAX}), VELO_ERR_ARGUMENT, "args.ldb"},
                  {with(&args::ldc, {3, 7}), VELO_ERR_ARGUMENT, "args.ldc"},
                  {with(&args::stride_a, {8, 5}), VELO_ERR_ARGUMENT, "args.stride_a"},
                  {with(&args::stride_b, {-1, 4}), VELO_ERR_ARGUMENT, "args.stride_b"},
                  {with(&args::stride_c, {5, 4}), VELO_ERR_ARGUMENT, "args.stride_c"},
                  {with(&args::stride_c, {7, 4}), VELO_ERR_ARGUMENT, "args.stride_c"},
                  {with(&args::transpose_a, {0, 2}), VELO_ERR_ARGUMENT, "args.transpose_a"},
                  {with(&args::transpose_b, {-1, 0}), VELO_ERR_ARGUMENT, "args.transpose_b"},
                  {[&](args& f) { f.n = &one; }, VELO_ERR_ARGUMENT, "args.n"},
                  {[&](args& f) { f.stride_b = &one; }, VELO_ERR_ARGUMENT, "args.stride_b"},
                  {[&](args& f) { f.k = nullptr; }, VELO_ERR_NULL, "args.k"},
                  {[&](args& f) { f.seq_len = &one; }, VELO_ERR_ARGUMENT, "args.seq_len"},
                  {[&](args& f) { f.preset = 1; }, VELO_ERR_NULL, "args.seq_len"},
                  {[&](args& f) { f.preset = 1, f.seq_len = &one; }, VELO_ERR_ARGUMENT, "args.m"},
                  {[&](args& f) { f.preset = 7; }, VELO_ERR_ARGUMENT, "args.preset"},
                  {[&](args& f) { f.head_num = 0; }, VELO_ERR_ARGUMENT, "args.head_num"},
                  {[&](args& f) { f.a = other.tensor(); }, VELO_ERR_SHAPE, "args.a.shape"},
                  {[&](args& f) { f.b = half.tensor(); }, VELO_ERR_DTYPE, "args.b.dtype"},
                  {[&](args& f) { f.c = other.tensor(); }, VELO_ERR_SHAPE, "args.c.shape"}});
  args wrong = valid;
  with(&args::stride_a, {8, 5})(wrong);
  CHECK_REFUSED(velo_unpad_strided_batch_matmul(s.stream(), &wrong), VELO_ERR_ARGUMENT,
                "args.stride_a");
  char got[1024] = "";
  velo_error_text(got, sizeof got, nullptr);
  CHECK(std::string(got).find("5 in element 1") != std::string::npos);
}

TEST_CASE("the gradient of unpad_strided_batch_matmul names the factor that a result needs") {
  session s;
  lists l;
  l.add({2, 3, 4}, {4, 3, 3}, {8, 12, 6}, false, false);
  tensors<float> t(l);
  const views given(l);
  auto b = t.backward();
  given.give(b, 1);
  b.a = nullptr;
  CHECK_REFUSED(velo_unpad_strided_batch_matmul_backward(s.stream(), &b), VELO_ERR_NULL, "args.a");
  b.db = nullptr;
  VELO_RUN(velo_unpad_strided_batch_matmul_backward(s.stream(), &b));
  b = t.backward();
  given.give(b, 1);
  b.b = nullptr;
  CHECK_REFUSED(velo_unpad_strided_batch_matmul_backward(s.stream(), &b), VELO_ERR_NULL, "args.b");
}
