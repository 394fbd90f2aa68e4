// matmul_backward against double: both factors plain and transposed, folded, at a distance, each
// result alone, every kernel, finite differences, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// op(t)[i][j] of a compact [rows][columns], or of its transpose.
template <class T>
double at(const array<T>& t, bool transposed, std::int64_t rows, std::int64_t columns,
          std::int64_t i, std::int64_t j) {
  return t.at(static_cast<std::size_t>(transposed ? j * rows + i : i * columns + j));
}

template <class T>
void require_sum(double got, double sum, double size, std::int64_t terms) {
  const double denormal = std::is_same_v<T, f16> ? 0x1p-25 : 0;
  const double bound = size * 0x1p-24 * (3 + std::sqrt(static_cast<double>(terms))) +
                       std::abs(sum) * rounding<T>() + denormal;
  if (!(std::abs(got - sum) <= bound)) FAIL("got " << got << ", truth " << sum);
}

struct sizes {
  std::int64_t m, n, k;
};

// The gradient of In with db in Out.
template <class In, class Out>
bool check(session& s, const sizes& z, bool ta, bool tb, bool accumulate) {
  const auto [m, n, k] = z;
  INFO("m " << m << " n " << n << " k " << k << " ta " << ta << " tb " << tb << " bytes "
            << sizeof(In) << sizeof(Out));
  array<In> dc({m, n}), a({ta ? k : m, ta ? m : k}), b({tb ? n : k, tb ? k : n});
  array<In> da({ta ? k : m, ta ? m : k});
  array<Out> db({tb ? n : k, tb ? k : n}), old_db({tb ? n : k, tb ? k : n});
  array<float> dbias({n}), old_dbias({n});
  dc.fill(1), a.fill(2), b.fill(3), db.fill(4), old_db.fill(4), dbias.fill(5), old_dbias.fill(5);
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.a = a.tensor(), args.b = b.tensor();
  args.da = da.tensor(), args.db = db.tensor(), args.dbias = dbias.tensor();
  args.transpose_a = ta, args.transpose_b = tb, args.accumulate = accumulate;
  args.dtype = sizeof(Out) == sizeof(In) ? VELO_PRODUCT_DTYPE_LIKE_A : VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_matmul_backward(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  for (std::int64_t l = 0; l < k; l = next_compared(l, k)) {
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = 0, size = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double term = at(dc, false, m, n, i, j) * at(b, tb, k, n, l, j);
        sum += term, size += std::abs(term);
      }
      require_sum<In>(at(da, ta, m, k, i, l), sum, size, n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? at(old_db, tb, k, n, l, j) : 0, size = std::abs(sum);
      for (std::int64_t i = 0; i < m; ++i) {
        const double term = at(a, ta, m, k, i, l) * at(dc, false, m, n, i, j);
        sum += term, size += std::abs(term);
      }
      require_sum<Out>(at(db, tb, k, n, l, j), sum, size, m);
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const auto place = static_cast<std::size_t>(j);
    double sum = accumulate ? old_dbias.at(place) : 0, size = std::abs(sum);
    for (std::int64_t i = 0; i < m; ++i)
      sum += at(dc, false, m, n, i, j), size += std::abs(at(dc, false, m, n, i, j));
    require_sum<float>(dbias.at(place), sum, size, m);
  }
  CHECK((da.intact() && db.intact() && dbias.intact()));
  return true;
}

}  // namespace

TEST_CASE("matmul_backward agrees with double for every kernel, transpose and dtype") {
  for_each_kernel("matmul_backward", [](session& s) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool ta = bits & 1, tb = bits & 2, accumulate = bits & 4;
      for (const sizes& z : {sizes{33, 20, 17}, {1, 64, 48}, {70, 1, 33}, {0, 5, 4}, {5, 4, 0}}) {
        check<float, float>(s, z, ta, tb, accumulate);
        check<bf16, bf16>(s, z, ta, tb, accumulate);
        check<bf16, float>(s, z, ta, tb, accumulate);
        check<f16, f16>(s, z, ta, tb, accumulate);
        check<f16, float>(s, z, ta, tb, accumulate);
      }
    }
    check<float, float>(s, {300, 130, 260}, false, true, true);
    check<bf16, float>(s, {600, 64, 96}, true, false, true);
  });
}

TEST_CASE("matmul_backward is the slope of matmul") {
  session s;
  array<float> a({2, 3, 5}), b({4, 5}), bias({4}), c({2, 3, 4}), dc({2, 3, 4});
  array<float> da({2, 3, 5}), db({4, 5}), dbias({4});
  a.fill(1), b.fill(2), bias.fill(3), dc.fill(4);
  velo_matmul_args forward = VELO_MATMUL_ARGS_INIT;
  forward.a = a.tensor(), forward.b = b.tensor(), forward.bias = bias.tensor();
  forward.c = c.tensor(), forward.transpose_b = 1;
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.a = a.tensor(), args.b = b.tensor(), args.transpose_b = 1;
  args.da = da.tensor(), args.db = db.tensor(), args.dbias = dbias.tensor();
  VELO_RUN(velo_matmul_backward(s.stream(), &args));
  const auto objective = [&] {
    VELO_RUN(velo_matmul(s.stream(), &forward));
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i) sum += c.at(i) * dc.at(i);
    return sum;
  };
  check_slope(a, da, objective);
  check_slope(b, db, objective);
  check_slope(bias, dbias, objective);
}

TEST_CASE("matmul_backward gives each result alone, at a distance, for any number of threads") {
  std::vector<unsigned char> da_bits, db_bits;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<float> dc({150, 90}), a({150, 70}), b({70, 90}), da({150, 80}), db({70, 90});
    dc.fill(1), a.fill(2), b.fill(3), da.fill(4);
    velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
    args.dc = dc.tensor(), args.b = b.tensor();
    const std::int64_t shape[] = {150, 70}, strides[] = {80, 1};
    velo_tensor view = *da.tensor();
    view.shape = shape, view.strides = strides;
    args.da = &view;
    VELO_RUN(velo_matmul_backward(s.stream(), &args));
    args.da = nullptr, args.b = nullptr, args.a = a.tensor(), args.db = db.tensor();
    VELO_RUN(velo_matmul_backward(s.stream(), &args));
    if (da_bits.empty()) da_bits = da.bytes(), db_bits = db.bytes();
    CHECK(da.bytes() == da_bits);
    CHECK(db.bytes() == db_bits);
  }
}

TEST_CASE("matmul_backward refuses what does not fit, by name, and leaves da alone") {
  session s;
  array<float> dc({4, 6}), a({4, 8}), b({8, 6}), da({4, 8}), db({8, 6}), other({4, 7});
  array<bf16> half({8, 6});
  da.fill(1);
  velo_matmul_backward_args valid = VELO_MATMUL_BACKWARD_ARGS_INIT;
  valid.dc = dc.tensor(), valid.a = a.tensor(), valid.b = b.tensor();
  valid.da = da.tensor(), valid.db = db.tensor();
  using args = velo_matmul_backward_args;
  check_refusals<args>(s, velo_matmul_backward, valid, da,
                       {{[](args& x) { x.b = nullptr; }, VELO_ERR_NULL, "args.b"},
                        {[](args& x) { x.a = nullptr; }, VELO_ERR_NULL, "args.a"},
                        {[](args& x) { x.dc = nullptr; }, VELO_ERR_NULL, "args.dc"},
                        {[&](args& x) { x.a = other.tensor(); }, VELO_ERR_SHAPE, "args.a.shape"},
                        {[](args& x) { x.transpose_a = 1; }, VELO_ERR_SHAPE, "args.a.shape"},
                        {[](args& x) { x.transpose_b = 1; }, VELO_ERR_SHAPE, "args.a.shape"},
                        {[&](args& x) { x.b = half.tensor(); }, VELO_ERR_DTYPE, "args.b.dtype"},
                        {[&](args& x) { x.da = other.tensor(); }, VELO_ERR_SHAPE, "args.da.shape"},
                        {[](args& x) { x.dtype = 5; }, VELO_ERR_ARGUMENT, "args.dtype"}});
}
