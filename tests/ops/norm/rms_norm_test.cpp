// rms_norm against its formula in double: shapes, dtypes, every kernel, gradients, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct truth {
  std::vector<double> y, rstd;
};

template <class T, class G>
truth forward_truth(const array<T>& x, const array<G>& gamma, double epsilon) {
  const std::size_t n = gamma.size(), rows = n == 0 ? 0 : x.size() / n;
  truth t{std::vector<double>(x.size()), std::vector<double>(rows)};
  for (std::size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x.at(r * n + i) * x.at(r * n + i);
    t.rstd[r] = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
    for (std::size_t i = 0; i < n; ++i) t.y[r * n + i] = x.at(r * n + i) * t.rstd[r] * gamma.at(i);
  }
  return t;
}

template <class T, class G>
void check_forward(session& s, std::int64_t rows, std::int64_t n, double scale = 2) {
  INFO("rows " << rows << ", n " << n << ", bytes " << sizeof(T));
  array<T> x({rows, n}), y({rows, n});
  array<G> gamma({n});
  array<float> rstd({rows, 1});
  x.fill(1, scale), gamma.fill(2), y.fill(3);
  velo_rms_norm_args a = VELO_RMS_NORM_ARGS_INIT;
  a.x = x.tensor(), a.gamma = gamma.tensor(), a.y = y.tensor(), a.rstd = rstd.tensor(),
  a.epsilon = 1e-5;
  VELO_RUN(velo_rms_norm(s.stream(), &a));
  const truth t = forward_truth(x, gamma, 1e-5);
  require_close(y, t.y, rounding<T>(), 1e-30);
  require_close(rstd,
                n == 0 ? std::vector<double>(static_cast<std::size_t>(rows), rstd.at(0)) : t.rstd,
                0x1p-21, 0);
}

template <class T>
void check_backward(session& s, std::int64_t rows, std::int64_t n) {
  INFO("rows " << rows << ", n " << n << ", bytes " << sizeof(T));
  const auto width = static_cast<std::size_t>(n);
  array<T> x({rows, n}), dy({rows, n}), dx({rows, n});
  array<float> gamma({n}), rstd({rows, 1}), dgamma({n});
  x.fill(1), dy.fill(2), gamma.fill(3), dgamma.fill(4);
  const truth t = forward_truth(x, gamma, 1e-6);
  for (std::size_t r = 0; r < t.rstd.size(); ++r) rstd[r] = static_cast<float>(t.rstd[r]);
  std::vector<double> want_dx(x.size()), want_dgamma(width),
      magnitude(x.size() / std::max<std::size_t>(width, 1));
  for (std::size_t r = 0; r < t.rstd.size(); ++r) {
    double dot = 0;
    for (std::size_t i = 0; i < width; ++i)
      dot += dy.at(r * width + i) * gamma.at(i) * x.at(r * width + i);
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t at = r * width + i;
      const double k = t.rstd[r];
      want_dx[at] = k * (dy.at(at) * gamma.at(i) - x.at(at) * k * k * dot / static_cast<double>(n));
      want_dgamma[i] += dy.at(at) * x.at(at) * k;
      magnitude[r] = std::max(magnitude[r], k);
    }
  }
  velo_rms_norm_backward_args a = VELO_RMS_NORM_BACKWARD_ARGS_INIT;
  a.dy = dy.tensor(), a.x = x.tensor(), a.gamma = gamma.tensor(), a.rstd = rstd.tensor();
  a.dx = dx.tensor(), a.dgamma = dgamma.tensor();
  VELO_RUN(velo_rms_norm_backward(s.stream(), &a));
  const double largest =
      magnitude.empty() ? 1 : *std::max_element(magnitude.begin(), magnitude.end());
  require_close(dx, want_dx, rounding<T>(), 4e-7 * largest);
  require_close(dgamma, want_dgamma, 1e-6, 1e-6 * static_cast<double>(rows));

  // accumulate adds to what is there, and dx may be dy.
  for (double& d : want_dgamma) d *= 2;
  a.accumulate = 1, a.dx = a.dy;
  VELO_RUN(velo_rms_norm_backward(s.stream(), &a));
  require_close(dy, want_dx, rounding<T>(), 4e-7 * largest);
  require_close(dgamma, want_dgamma, 1e-6, 2e-6 * static_cast<double>(rows));
}

}  // namespace

TEST_CASE("rms_norm agrees with its formula for every kernel, shape and dtype") {
  for_each_kernel("rms_norm", [](session& s) {
    for (const std::int64_t n : {1, 7, 15, 16, 17, 31, 64, 100, 1000, 4096}) {
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
    check_forward<float, float>(s, 3, 64, 1e-18);
    check_forward<float, float>(s, 3, 64, 1e15);
    check_forward<f16, float>(s, 3, 1000, 65504);
    check_forward<f16, f16>(s, 3, 1000, 1e-6);
  });
}

TEST_CASE("rms_norm writes large outputs around the cache with the same result") {
  for_each_kernel("rms_norm", [](session& s) {
    check_forward<bf16, float>(s, 4200, 4096);
    check_forward<f16, float>(s, 4200, 4096);
  });
}

TEST_CASE("rms_norm's gradient agrees with its formula for every kernel, shape and dtype") {
  for_each_kernel("rms_norm_backward", [](session& s) {
    for (const std::int64_t n : {1, 15, 16, 33, 100, 1024}) {
      for (const std::int64_t rows : {0, 1, 9, 300}) {
        check_backward<float>(s, rows, n);
        check_backward<bf16>(s, rows, n);
        check_backward<f16>(s, rows, n);
      }
    }
  });
}

TEST_CASE("rms_norm's gradient is the slope of its output") {
  session s;
  constexpr std::int64_t n = 12;
  array<float> x({1, n}), gamma({n}), y({1, n}), rstd({1, 1}), dy({1, n}), dx({1, n});
  x.fill(5), gamma.fill(6), dy.fill(7);
  velo_rms_norm_args f = VELO_RMS_NORM_ARGS_INIT;
  f.x = x.tensor(), f.gamma = gamma.tensor(), f.y = y.tensor(), f.rstd = rstd.tensor();
  const auto objective = [&] {
    VELO_RUN(velo_rms_norm(s.stream(), &f));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  };
  objective();
  velo_rms_norm_backward_args b = VELO_RMS_NORM_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.x = x.tensor(), b.gamma = gamma.tensor(), b.rstd = rstd.tensor(),
  b.dx = dx.tensor();
  VELO_RUN(velo_rms_norm_backward(s.stream(), &b));
  check_slope(x, dx, objective);
}

TEST_CASE("rms_norm keeps NaN and Inf in their rows") {
  for_each_kernel("rms_norm", [](session& s) {
    array<float> x({3, 20}), gamma({20}), y({3, 20});
    x.fill(1), gamma.fill(2);
    x[3] = std::nanf("");
    x[25] = HUGE_VALF;
    velo_rms_norm_args a = VELO_RMS_NORM_ARGS_INIT;
    a.x = x.tensor(), a.gamma = gamma.tensor(), a.y = y.tensor();
    VELO_RUN(velo_rms_norm(s.stream(), &a));
    for (std::size_t i = 0; i < 20; ++i) CHECK(std::isnan(y.at(i)));
    CHECK(std::isnan(y.at(25)));
    CHECK(y.at(26) == 0);
    for (std::size_t i = 40; i < 60; ++i) CHECK(std::isfinite(y.at(i)));
  });
}

TEST_CASE("rms_norm refuses what does not fit, by name, and leaves outputs alone") {
  session s;
  array<float> x({4, 8}), gamma({8}), y({4, 8}), rstd({4, 1}), short_gamma({7}), wide({4, 9});
  array<std::int32_t> integers({4, 8});
  array<bf16> half({4, 8});
  x.fill(1), gamma.fill(2), y.fill(3);
  const std::int64_t strides[] = {16, 2}, negative[] = {4, -8};
  const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  using args = velo_rms_norm_args;
  const auto x_with = [](auto change) { return changed(&args::x, change); };
  args valid = VELO_RMS_NORM_ARGS_INIT;
  valid.x = x.tensor(), valid.gamma = gamma.tensor(), valid.y = y.tensor();
  valid.rstd = rstd.tensor();
  check_refusals(
      s, velo_rms_norm, valid, y,
      {{[&](args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](args& a) { a.y = nullptr; }, VELO_ERR_NULL, "args.y"},
       {[&](args& a) { a.x = integers.tensor(); }, VELO_ERR_DTYPE, "args.x.dtype"},
       {[&](args& a) { a.gamma = short_gamma.tensor(); }, VELO_ERR_SHAPE, "args.gamma.shape"},
       {[&](args& a) { a.gamma = half.tensor(); }, VELO_ERR_DTYPE, "args.gamma.dtype"},
       {[&](args& a) { a.y = wide.tensor(); }, VELO_ERR_SHAPE, "args.y.shape"},
       {[&](args& a) { a.y = gamma.tensor(); }, VELO_ERR_RANK, "args.y.shape"},
       {[&](args& a) { a.y = half.tensor(); }, VELO_ERR_DTYPE, "args.y.dtype"},
       {[&](args& a) { a.rstd = gamma.tensor(); }, VELO_ERR_RANK, "args.rstd.shape"},
       {[&](args& a) { a.epsilon = -1; }, VELO_ERR_ARGUMENT, "args.epsilon"},
       {[&](args& a) { a.epsilon = std::nan(""); }, VELO_ERR_ARGUMENT, "args.epsilon"},
       {[&](args& a) { a.struct_size = 4; }, VELO_ERR_STRUCT, "args.struct_size"},
       {[&](args& a) { a.struct_size = 4104; }, VELO_ERR_STRUCT, "args.struct_size"},
       {x_with([&](velo_tensor& t) { t.strides = strides; }), VELO_ERR_LAYOUT, "args.x.strides"},
       {x_with([&](velo_tensor& t) { t.device.type = 2; }), VELO_ERR_DEVICE, "args.x.device"},
       {x_with([&](velo_tensor& t) { t.data = nullptr; }), VELO_ERR_NULL, "args.x.data"},
       {x_with([&](velo_tensor& t) { t.byte_offset = 2; }), VELO_ERR_LAYOUT, "args.x.data"},
       {x_with([&](velo_tensor& t) { t.ndim = 9; }), VELO_ERR_RANK, "args.x.ndim"},
       {x_with([&](velo_tensor& t) { t.shape = negative; }), VELO_ERR_SHAPE, "args.x.shape[1]"},
       {x_with([&](velo_tensor& t) { t.shape = huge; }), VELO_ERR_SHAPE, "args.x.shape"},
       {x_with([&](velo_tensor& t) { t.data = y.data(), t.byte_offset = 4; }), VELO_ERR_OVERLAP,
        "args.y"}});
  CHECK_REFUSED(velo_rms_norm(nullptr, &valid), VELO_ERR_NULL, "stream");
  CHECK_REFUSED(velo_rms_norm(s.stream(), nullptr), VELO_ERR_NULL, "args");
}

TEST_CASE("rms_norm works in place") {
  session s;
  array<float> x({5, 40}), gamma({40});
  x.fill(1), gamma.fill(2);
  const truth t = forward_truth(x, gamma, 1e-6);
  velo_rms_norm_args a = VELO_RMS_NORM_ARGS_INIT;
  a.x = x.tensor(), a.gamma = gamma.tensor(), a.y = x.tensor();
  VELO_RUN(velo_rms_norm(s.stream(), &a));
  require_close(x, t.y, rounding<float>(), 0);
}
