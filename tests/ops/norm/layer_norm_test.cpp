// layer_norm against its formula in double: shapes, dtypes, every kernel, gains left out, rows far
// from zero, gradients, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct truth {
  std::vector<double> y, mean, rstd;
};

template <class T>
truth forward_truth(const array<T>& x, std::size_t n, double epsilon,
                    const std::function<double(std::size_t)>& gamma,
                    const std::function<double(std::size_t)>& beta) {
  const std::size_t rows = n == 0 ? 0 : x.size() / n;
  truth t{std::vector<double>(x.size()), std::vector<double>(rows), std::vector<double>(rows)};
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x.at(r * n + i);
    const double mean = sum / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += std::pow(x.at(r * n + i) - mean, 2);
    t.mean[r] = mean;
    t.rstd[r] = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
    for (std::size_t i = 0; i < n; ++i)
      t.y[r * n + i] = (x.at(r * n + i) - mean) * t.rstd[r] * gamma(i) + beta(i);
  }
  return t;
}

template <class T, class G>
void check_forward(session& s, std::int64_t rows, std::int64_t n, double scale = 2,
                   double shift = 0) {
  INFO("rows " << rows << ", n " << n << ", bytes " << sizeof(T) << ", scale " << scale);
  array<T> x({rows, n}), y({rows, n});
  array<G> gamma({n}), beta({n});
  array<float> mean({rows, 1}), rstd({rows, 1});
  x.fill(1, scale), gamma.fill(2), beta.fill(3);
  if (shift != 0)
    for (std::size_t i = 0; i < x.size(); ++i) velo::simd::assign(x[i], x.at(i) + shift);
  velo_layer_norm_args a = VELO_LAYER_NORM_ARGS_INIT;
  a.x = x.tensor(), a.gamma = gamma.tensor(), a.beta = beta.tensor(), a.y = y.tensor();
  a.mean = mean.tensor(), a.rstd = rstd.tensor();
  VELO_RUN(velo_layer_norm(s.stream(), &a));
  const truth t = forward_truth(
      x, static_cast<std::size_t>(n), 1e-5, [&](std::size_t i) { return gamma.at(i); },
      [&](std::size_t i) { return beta.at(i); });
  require_close(y, t.y, rounding<T>(), 1e-6);
  require_close(mean, t.mean, 0x1p-22, scale * 1e-7);
  require_close(rstd, t.rstd, 0x1p-21, 0);
}

template <class T>
void check_backward(session& s, std::int64_t rows, std::int64_t n) {
  INFO("rows " << rows << ", n " << n << ", bytes " << sizeof(T));
  const auto width = static_cast<std::size_t>(n);
  array<T> x({rows, n}), dy({rows, n}), dx({rows, n});
  array<float> gamma({n}), mean({rows, 1}), rstd({rows, 1}), dgamma({n}), dbeta({n});
  x.fill(1), dy.fill(2), gamma.fill(3);
  const truth t = forward_truth(
      x, width, 1e-2, [](std::size_t) { return 1; }, [](std::size_t) { return 0; });
  std::vector<double> want_dx(x.size()), want_dgamma(width), want_dbeta(width);
  for (std::size_t r = 0; r < t.rstd.size(); ++r) {
    mean[r] = static_cast<float>(t.mean[r]), rstd[r] = static_cast<float>(t.rstd[r]);
    const double k = rstd.at(r);
    const auto h = [&](std::size_t i) { return (x.at(r * width + i) - mean.at(r)) * k; };
    const auto g = [&](std::size_t i) { return dy.at(r * width + i) * gamma.at(i); };
    double sum = 0, dot = 0;
    for (std::size_t i = 0; i < width; ++i) sum += g(i), dot += g(i) * h(i);
    sum /= static_cast<double>(n), dot /= static_cast<double>(n);
    for (std::size_t i = 0; i < width; ++i) {
      want_dx[r * width + i] = k * (g(i) - sum - h(i) * dot);
      want_dgamma[i] += dy.at(r * width + i) * h(i);
      want_dbeta[i] += dy.at(r * width + i);
    }
  }
  velo_layer_norm_backward_args a = VELO_LAYER_NORM_BACKWARD_ARGS_INIT;
  a.dy = dy.tensor(), a.x = x.tensor(), a.gamma = gamma.tensor(), a.mean = mean.tensor();
  a.rstd = rstd.tensor(), a.dx = dx.tensor(), a.dgamma = dgamma.tensor(), a.dbeta = dbeta.tensor();
  VELO_RUN(velo_layer_norm_backward(s.stream(), &a));
  const double sums = 1e-6 * static_cast<double>(rows);
  require_close(dx, want_dx, rounding<T>(), 1e-5);
  require_close(dgamma, want_dgamma, 1e-6, 4 * sums);
  require_close(dbeta, want_dbeta, 1e-6, sums);

  // accumulate adds to what is there, either sum may be left out, and dx may be dy.
  for (double& d : want_dbeta) d *= 2;
  a.accumulate = 1, a.dgamma = nullptr, a.dx = a.dy;
  VELO_RUN(velo_layer_norm_backward(s.stream(), &a));
  require_close(dy, want_dx, rounding<T>(), 1e-5);
  require_close(dbeta, want_dbeta, 1e-6, 2 * sums);
}

}  // namespace

TEST_CASE("layer_norm agrees with its formula for every kernel, shape and dtype") {
  for_each_kernel("layer_norm", [](session& s) {
    for (const std::int64_t n : {1, 7, 16, 17, 31, 64, 100, 1000, 4096}) {
      for (const std::int64_t rows : {0, 1, 3}) {
        check_forward<float, float>(s, rows, n);
        check_forward<bf16, float>(s, rows, n);
        check_forward<bf16, bf16>(s, rows, n);
        check_forward<f16, float>(s, rows, n);
        check_forward<f16, f16>(s, rows, n);
      }
    }
    check_forward<float, float>(s, 300, 129);
    check_forward<float, float>(s, 2, 1 << 20);
    check_forward<float, float>(s, 3, 64, 1e15);
    check_forward<float, float>(s, 3, 64, 3e38);
    check_forward<f16, float>(s, 3, 1000, 65504);
  });
}

TEST_CASE("layer_norm is exact in rows whose mean is far from zero") {
  for_each_kernel("layer_norm", [](session& s) {
    check_forward<float, float>(s, 3, 1000, 1, 1000.1);
    check_forward<float, float>(s, 3, 5000, 1, -30000);
    check_forward<bf16, float>(s, 3, 1000, 30, 100);
  });
}

TEST_CASE("layer_norm writes large outputs around the cache with the same result") {
  for_each_kernel("layer_norm", [](session& s) { check_forward<bf16, float>(s, 4200, 4096); });
}

TEST_CASE("layer_norm's gradient agrees with its formula for every kernel, shape and dtype") {
  for_each_kernel("layer_norm_backward", [](session& s) {
    for (const std::int64_t n : {1, 15, 16, 33, 100, 1024}) {
      for (const std::int64_t rows : {0, 1, 9, 300}) {
        check_backward<float>(s, rows, n);
        check_backward<bf16>(s, rows, n);
        check_backward<f16>(s, rows, n);
      }
    }
  });
}

TEST_CASE("layer_norm's gradient is the slope of its output, over two dimensions") {
  session s;
  array<float> x({2, 3, 4}), gamma({3, 4}), beta({3, 4}), y({2, 3, 4}), dy({2, 3, 4});
  array<float> mean({2, 1, 1}), rstd({2, 1, 1}), dx({2, 3, 4}), dgamma({3, 4}), dbeta({3, 4});
  x.fill(5), gamma.fill(6), beta.fill(8), dy.fill(7);
  velo_layer_norm_args f = VELO_LAYER_NORM_ARGS_INIT;
  f.x = x.tensor(), f.gamma = gamma.tensor(), f.beta = beta.tensor(), f.y = y.tensor();
  f.mean = mean.tensor(), f.rstd = rstd.tensor();
  const auto objective = [&] {
    VELO_RUN(velo_layer_norm(s.stream(), &f));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  };
  objective();
  velo_layer_norm_backward_args b = VELO_LAYER_NORM_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.x = x.tensor(), b.gamma = gamma.tensor(), b.mean = mean.tensor();
  b.rstd = rstd.tensor(), b.dx = dx.tensor(), b.dgamma = dgamma.tensor(), b.dbeta = dbeta.tensor();
  VELO_RUN(velo_layer_norm_backward(s.stream(), &b));
  check_slope(x, dx, objective);
  check_slope(gamma, dgamma, objective);
  check_slope(beta, dbeta, objective);
}

TEST_CASE("layer_norm without gain and bias scales by 1 and adds 0 over the last dimension") {
  for_each_kernel("layer_norm", [](session& s) {
    array<float> x({2, 3, 40}), y({2, 3, 40}), beta({40});
    x.fill(1), beta.fill(2);
    velo_layer_norm_args a = VELO_LAYER_NORM_ARGS_INIT;
    a.x = x.tensor(), a.y = y.tensor();
    for (const bool biased : {false, true}) {
      if (biased) a.beta = beta.tensor();
      VELO_RUN(velo_layer_norm(s.stream(), &a));
      const truth t = forward_truth(
          x, 40, 1e-5, [](std::size_t) { return 1; },
          [&](std::size_t i) { return biased ? beta.at(i) : 0; });
      require_close(y, t.y, rounding<float>(), 1e-6);
    }
  });
}

TEST_CASE("layer_norm refuses what does not fit, by name, and leaves outputs alone") {
  session s;
  array<float> x({4, 8}), gamma({8}), y({4, 8}), mean({4, 1}), narrow({7}), wide({4, 8});
  array<bf16> half({8});
  x.fill(1), gamma.fill(2), y.fill(3);
  using args = velo_layer_norm_args;
  args valid = VELO_LAYER_NORM_ARGS_INIT;
  valid.x = x.tensor(), valid.gamma = gamma.tensor(), valid.beta = gamma.tensor();
  valid.y = y.tensor(), valid.mean = mean.tensor();
  check_refusals(s, velo_layer_norm, valid, y,
                 {{[&](args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
                  {[&](args& a) { a.gamma = narrow.tensor(); }, VELO_ERR_SHAPE, "args.gamma.shape"},
                  {[&](args& a) { a.beta = narrow.tensor(); }, VELO_ERR_SHAPE, "args.beta.shape"},
                  {[&](args& a) { a.beta = wide.tensor(); }, VELO_ERR_RANK, "args.beta.ndim"},
                  {[&](args& a) { a.beta = half.tensor(); }, VELO_ERR_DTYPE, "args.beta.dtype"},
                  {[&](args& a) { a.mean = gamma.tensor(); }, VELO_ERR_RANK, "args.mean.shape"},
                  {[&](args& a) { a.rstd = wide.tensor(); }, VELO_ERR_SHAPE, "args.rstd.shape"},
                  {[&](args& a) { a.epsilon = -1; }, VELO_ERR_ARGUMENT, "args.epsilon"}});
}
