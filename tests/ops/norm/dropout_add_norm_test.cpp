// dropout_add_rms_norm and dropout_add_layer_norm against their formulas in double: every kernel
// and combination of dtypes, every optional tensor, dropout's mask, rows that exceed float32,
// gradients by finite differences and against the reference, refusals.
#include "core/simd/philox.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

using layer_args = velo_dropout_add_layer_norm_args;
using rms_args = velo_dropout_add_rms_norm_args;
using layer_gradient = velo_dropout_add_layer_norm_backward_args;
using rms_gradient = velo_dropout_add_rms_norm_backward_args;

template <class Args>
constexpr bool centered = std::is_same_v<Args, layer_args> || std::is_same_v<Args, layer_gradient>;

template <class Args>
Args fresh() {
  Args a{};
  a.struct_size = sizeof a;
  a.epsilon = 1e-5;
  return a;
}

velo_status call(const session& s, const layer_args& a) {
  return velo_dropout_add_layer_norm(s.stream(), &a);
}
velo_status call(const session& s, const rms_args& a) {
  return velo_dropout_add_rms_norm(s.stream(), &a);
}
velo_status call(const session& s, const layer_gradient& a) {
  return velo_dropout_add_layer_norm_backward(s.stream(), &a);
}
velo_status call(const session& s, const rms_gradient& a) {
  return velo_dropout_add_rms_norm_backward(s.stream(), &a);
}

struct choice {
  bool residual, scales, mask;
  double p;
};
constexpr choice choices[] = {{true, true, true, 0.25}, {true, false, false, 0.1},
                              {false, true, false, 0},  {false, false, true, 0.5},
                              {true, true, true, 1},    {true, false, false, 0}};

// The tensors of one call. T: x, y and scales; Z: residual and pre_norm; G: gains.
template <class Args, class T, class Z, class G>
struct setup {
  array<T> x, y, rowscale, layerscale;
  array<Z> residual, pre_norm;
  array<G> gamma, beta;
  array<float> mean, rstd;
  array<std::uint8_t> mask;
  Args a = fresh<Args>();
  choice with;

  setup(std::int64_t rows, std::int64_t n, const choice& with, double scale = 2)
      : x({rows, n}),
        y({rows, n}),
        rowscale({rows}),
        layerscale({n}),
        residual({rows, n}),
        pre_norm({rows, n}),
        gamma({n}),
        beta({n}),
        mean({rows, 1}),
        rstd({rows, 1}),
        mask({rows, n}),
        with(with) {
    x.fill(1, scale), rowscale.fill(2), layerscale.fill(3), residual.fill(4), gamma.fill(5);
    beta.fill(6);
    a.x = x.tensor(), a.gamma = gamma.tensor(), a.y = y.tensor(), a.rstd = rstd.tensor();
    a.pre_norm = pre_norm.tensor();
    if (with.residual) a.residual = residual.tensor();
    if (with.scales) a.rowscale = rowscale.tensor(), a.layerscale = layerscale.tensor();
    if (with.mask) a.mask = mask.tensor();
    a.p = with.p, a.seed = 77, a.offset = 5;
    a.residual_in_fp32 = sizeof(Z) > sizeof(T);
    if constexpr (centered<Args>) a.beta = beta.tensor(), a.mean = mean.tensor();
  }

  double multiplier(std::size_t at) const {
    return velo::simd::dropout_multiplier(velo::simd::dropout_of(a.p, 77, 5), at);
  }
  double scale(std::size_t r, std::size_t i) const {
    return with.scales ? rowscale.at(r) * layerscale.at(i) : 1;
  }
  double z(std::size_t r, std::size_t i, std::size_t n) const {
    const std::size_t at = r * n + i;
    return x.at(at) * scale(r, i) * multiplier(at) + (with.residual ? residual.at(at) : 0);
  }
};

template <class Args, class T, class Z, class G>
void check_forward(session& s, std::int64_t rows, std::int64_t n, const choice& with,
                   double scale = 2) {
  INFO("rows " << rows << ", n " << n << ", p " << with.p << ", bytes " << sizeof(T) << sizeof(Z));
  setup<Args, T, Z, G> t(rows, n, with, scale);
  VELO_RUN(call(s, t.a));
  const auto width = static_cast<std::size_t>(n);
  std::vector<double> y(t.x.size()), z(t.x.size());
  bool kept = true;
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      z[r * width + i] = t.z(r, i, width);
      sum += centered<Args> ? z[r * width + i] : 0;
      kept = kept && (!with.mask || t.mask[r * width + i] == (t.multiplier(r * width + i) != 0));
    }
    const double mean = sum / static_cast<double>(n);
    for (std::size_t i = 0; i < width; ++i) squares += std::pow(z[r * width + i] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < width; ++i)
      y[r * width + i] =
          (z[r * width + i] - mean) * rstd * t.gamma.at(i) + (centered<Args> ? t.beta.at(i) : 0);
    CHECK(t.rstd.at(r) == Approx(rstd).epsilon(1e-6));
  }
  CHECK(kept);
  require_close(t.pre_norm, z, rounding<Z>(), 1e-6 * scale);
  require_close(t.y, y, rounding<T>(), 4e-6);
}

template <class Args>
void check_all_types(session& s, std::int64_t rows, std::int64_t n, const choice& with) {
  check_forward<Args, float, float, float>(s, rows, n, with);
  check_forward<Args, bf16, bf16, bf16>(s, rows, n, with);
  check_forward<Args, bf16, bf16, float>(s, rows, n, with);
  check_forward<Args, bf16, float, float>(s, rows, n, with);
  check_forward<Args, f16, f16, f16>(s, rows, n, with);
  check_forward<Args, f16, f16, float>(s, rows, n, with);
  check_forward<Args, f16, float, float>(s, rows, n, with);
}

// The gradient of sum(y * dy) + sum(pre_norm * dz) against slopes.
template <class Args, class Gradient>
void check_slopes(const choice& with) {
  session s(1, R"({"level": 0})");
  constexpr std::int64_t rows = 2, n = 9;
  setup<Args, float, float, float> t(rows, n, with, 1);
  t.a.epsilon = 0.5;  // keeps the curvature below the step's error
  array<float> dy({rows, n}), dz({rows, n}), dx({rows, n}), dresidual({rows, n}), dgamma({n});
  array<float> dbeta({n}), drowscale({rows}), dlayerscale({n});
  dy.fill(11), dz.fill(12);
  const auto objective = [&] {
    VELO_RUN(call(s, t.a));
    double sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i)
      sum += t.y.at(i) * dy.at(i) + t.pre_norm.at(i) * dz.at(i);
    return sum;
  };
  objective();
  Gradient b{};
  b.struct_size = sizeof b;
  b.dy = dy.tensor(), b.dpre_norm = dz.tensor(), b.pre_norm = t.pre_norm.tensor();
  b.gamma = t.gamma.tensor(), b.rstd = t.rstd.tensor(), b.dx = dx.tensor();
  b.dresidual = dresidual.tensor(), b.dgamma = dgamma.tensor();
  b.p = t.a.p, b.seed = t.a.seed, b.offset = t.a.offset;
  if (with.scales) {
    b.x = t.x.tensor(), b.rowscale = t.rowscale.tensor(), b.layerscale = t.layerscale.tensor();
    b.drowscale = drowscale.tensor(), b.dlayerscale = dlayerscale.tensor();
  }
  if constexpr (centered<Args>) b.mean = t.mean.tensor(), b.dbeta = dbeta.tensor();
  for_each_kernel(
      centered<Args> ? "dropout_add_layer_norm_backward" : "dropout_add_rms_norm_backward",
      [&](session& forced) {
        VELO_RUN(call(forced, b));
        check_slope(t.x, dx, objective, 1e-2);
        if (with.residual) check_slope(t.residual, dresidual, objective, 1e-2);
        check_slope(t.gamma, dgamma, objective);
        if (centered<Args>) check_slope(t.beta, dbeta, objective);
        if (!with.scales) return;
        check_slope(t.rowscale, drowscale, objective, 1e-2);
        check_slope(t.layerscale, dlayerscale, objective, 1e-2);
      });
}

// Every kernel's gradient against the reference's, in 16 bits and over many rows.
template <class Gradient, class T, class Z>
void check_gradient(std::int64_t rows, std::int64_t n) {
  array<T> dy({rows, n}), x({rows, n}), dx({rows, n}), rowscale({rows}), layerscale({n});
  array<Z> z({rows, n}), dz({rows, n}), dresidual({rows, n});
  array<float> gamma({n}), mean({rows, 1}), rstd({rows, 1}), dgamma({n}), dbeta({n});
  array<float> drowscale({rows}), dlayerscale({n});
  dy.fill(1), x.fill(2), rowscale.fill(3), layerscale.fill(4), z.fill(5), dz.fill(6), gamma.fill(7);
  mean.fill(8, 0.1), rstd.fill(9);
  for (std::size_t r = 0; r < rstd.size(); ++r) rstd[r] = 1.5f + rstd[r];
  Gradient b{};
  b.struct_size = sizeof b;
  b.dy = dy.tensor(), b.dpre_norm = dz.tensor(), b.pre_norm = z.tensor(), b.x = x.tensor();
  b.gamma = gamma.tensor(), b.rstd = rstd.tensor(), b.dx = dx.tensor(), b.p = 0.2, b.seed = 3;
  b.dresidual = dresidual.tensor(), b.dgamma = dgamma.tensor(), b.rowscale = rowscale.tensor();
  b.layerscale = layerscale.tensor(), b.drowscale = drowscale.tensor();
  b.dlayerscale = dlayerscale.tensor();
  if constexpr (centered<Gradient>) b.mean = mean.tensor(), b.dbeta = dbeta.tensor();
  const auto values = [](const auto& a) {
    std::vector<double> out(a.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a.at(i);
    return out;
  };
  session plain(1, R"({"level": 0})");
  VELO_RUN(call(plain, b));
  const auto want_x = values(dx), want_residual = values(dresidual), want_gamma = values(dgamma),
             want_beta = values(dbeta), want_row = values(drowscale),
             want_layer = values(dlayerscale);
  const double sums = 4e-6 * static_cast<double>(rows + n);
  for_each_kernel(
      centered<Gradient> ? "dropout_add_layer_norm_backward" : "dropout_add_rms_norm_backward",
      [&](session& s) {
        VELO_RUN(call(s, b));
        require_close(dx, want_x, 2 * rounding<T>(), 1e-5);
        require_close(dresidual, want_residual, 2 * rounding<Z>(), 1e-5);
        require_close(dgamma, want_gamma, 1e-6, sums);
        if (centered<Gradient>) require_close(dbeta, want_beta, 1e-6, sums);
        require_close(drowscale, want_row, 1e-6, sums);
        require_close(dlayerscale, want_layer, 1e-6, sums);
      });
}

template <class Args>
void check_invalid() {
  session s;
  setup<Args, bf16, float, float> t(4, 8, {true, true, true, 0.5});
  array<bf16> half({8}), narrow({4, 7});
  array<f16> other({8});
  array<float> wide({4});
  t.y.fill(1);
  const auto op =
      centered<Args>
          ? reinterpret_cast<velo_status (*)(velo_stream, const Args*)>(
                &velo_dropout_add_layer_norm)
          : reinterpret_cast<velo_status (*)(velo_stream, const Args*)>(&velo_dropout_add_rms_norm);
  check_refusals(
      s, op, t.a, t.y,
      {{[&](Args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](Args& a) { a.gamma = other.tensor(); }, VELO_ERR_DTYPE, "args.gamma.dtype"},
       {[&](Args& a) { a.gamma = half.tensor(); }, VELO_ERR_DTYPE, "args.gamma.dtype"},
       {[&](Args& a) { a.residual = narrow.tensor(); }, VELO_ERR_SHAPE, "args.residual.shape"},
       {[&](Args& a) { a.rowscale = wide.tensor(); }, VELO_ERR_DTYPE, "args.rowscale.dtype"},
       {[&](Args& a) { a.rowscale = half.tensor(); }, VELO_ERR_SHAPE, "args.rowscale.shape"},
       {[&](Args& a) { a.layerscale = other.tensor(); }, VELO_ERR_DTYPE, "args.layerscale.dtype"},
       {[&](Args& a) { a.pre_norm = t.y.tensor(); }, VELO_ERR_DTYPE, "args.pre_norm.dtype"},
       {[&](Args& a) { a.mask = t.y.tensor(); }, VELO_ERR_DTYPE, "args.mask.dtype"},
       {[&](Args& a) { a.p = 1.1; }, VELO_ERR_ARGUMENT, "args.p"},
       {[&](Args& a) { a.epsilon = -1; }, VELO_ERR_ARGUMENT, "args.epsilon"}});
}

}  // namespace

TEST_CASE("dropout_add_norms agree with their formulas for every kernel and dtypes") {
  const auto check = [](session& s, auto args) {
    using Args = decltype(args);
    for (const choice& with : choices)
      for (const std::int64_t n : {1, 15, 33, 100, 1024})
        for (const std::int64_t rows : {0, 3}) check_all_types<Args>(s, rows, n, with);
    check_forward<Args, float, float, float>(s, 50, 130, choices[0]);
    check_forward<Args, float, float, float>(s, 3, 130, choices[0], 1e25);
  };
  for_each_kernel("dropout_add_layer_norm", [&](session& s) { check(s, layer_args{}); });
  for_each_kernel("dropout_add_rms_norm", [&](session& s) { check(s, rms_args{}); });
}

TEST_CASE("dropout_add_norms write large outputs around the cache with the same result") {
  for_each_kernel("dropout_add_layer_norm", [](session& s) {
    check_forward<layer_args, bf16, bf16, float>(s, 4200, 4096, choices[1]);
  });
}

TEST_CASE("dropout_add_norms update the residual in place, also in rows beyond float32") {
  for_each_kernel("dropout_add_rms_norm", [](session& s) {
    for (const double scale : {1.0, 1e25}) {
      setup<rms_args, float, float, float> apart(3, 40, choices[1], scale),
          in(3, 40, choices[1], scale);
      VELO_RUN(call(s, apart.a));
      in.a.pre_norm = in.residual.tensor(), in.a.residual = in.a.pre_norm, in.a.y = in.a.x;
      VELO_RUN(call(s, in.a));
      CHECK((in.residual.bytes() == apart.pre_norm.bytes()));
      CHECK((in.x.bytes() == apart.y.bytes()));
    }
  });
}

TEST_CASE("dropout_add_norms' gradients are the slopes of their outputs") {
  for (const choice& with : {choices[0], choices[1], choices[2], choices[5]}) {
    INFO("p " << with.p);
    check_slopes<layer_args, layer_gradient>(with);
    check_slopes<rms_args, rms_gradient>(with);
  }
}

TEST_CASE("dropout_add_norms' gradients agree with the reference for every kernel and dtypes") {
  for (const std::int64_t n : {1, 33, 512}) {
    for (const std::int64_t rows : {1, 9, 100}) {
      check_gradient<layer_gradient, float, float>(rows, n);
      check_gradient<layer_gradient, bf16, bf16>(rows, n);
      check_gradient<rms_gradient, bf16, float>(rows, n);
      check_gradient<rms_gradient, f16, f16>(rows, n);
      check_gradient<layer_gradient, f16, float>(rows, n);
    }
  }
}

TEST_CASE("dropout_add_norms refuse what does not fit, by name") {
  check_invalid<layer_args>();
  check_invalid<rms_args>();
}

TEST_CASE("dropout_add_norms' gradients refuse scales that have no input, by name") {
  session s;
  array<float> dy({2, 4}), z({2, 4}), gamma({4}), rstd({2, 1}), dx({2, 4}), scale({2}), column({4});
  dy.fill(1), z.fill(2), gamma.fill(3), dx.fill(4);
  rms_gradient valid = VELO_DROPOUT_ADD_RMS_NORM_BACKWARD_ARGS_INIT;
  valid.dy = dy.tensor(), valid.pre_norm = z.tensor(), valid.gamma = gamma.tensor();
  valid.rstd = rstd.tensor(), valid.dx = dx.tensor();
  check_refusals(
      s, velo_dropout_add_rms_norm_backward, valid, dx,
      {{[&](rms_gradient& a) { a.drowscale = scale.tensor(); }, VELO_ERR_NULL, "args.rowscale"},
       {[&](rms_gradient& a) { a.drowscale = a.rowscale = scale.tensor(); }, VELO_ERR_NULL,
        "args.x"},
       {[&](rms_gradient& a) { a.dlayerscale = a.layerscale = column.tensor(); }, VELO_ERR_NULL,
        "args.x"}});
}
