// rms_norm_matmul against rms_norm and matmul, whose bits it gives, and against double; its
// gradient against double and finite differences; every kernel, packs, blocks of rows, threads,
// refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct sizes {
  std::int64_t m, n, k;
};

template <class T>
struct layer {
  sizes z;
  bool turned;
  array<T> x, weight, y;
  array<float> gamma, bias, rstd;

  layer(const sizes& s, bool t)
      : z(s),
        turned(t),
        x({s.m, s.k}),
        weight({t ? s.n : s.k, t ? s.k : s.n}),
        y({s.m, s.n}),
        gamma({s.k}),
        bias({s.n}),
        rstd({s.m, 1}) {
    x.fill(1), weight.fill(2), gamma.fill(3), bias.fill(4);
  }
  velo_rms_norm_matmul_args args() {
    velo_rms_norm_matmul_args a = VELO_RMS_NORM_MATMUL_ARGS_INIT;
    a.x = x.tensor(), a.gamma = gamma.tensor(), a.weight = weight.tensor(), a.y = y.tensor();
    a.bias = bias.tensor(), a.rstd = rstd.tensor(), a.transpose_weight = turned;
    a.epsilon = 1e-3;
    return a;
  }
};

template <class T>
void check(session& s, const sizes& z, bool turned, bool packed = false) {
  INFO("m " << z.m << " n " << z.n << " k " << z.k << " turned " << turned << " packed " << packed
            << " bytes " << sizeof(T));
  layer<T> on(z, turned);
  velo_rms_norm_matmul_args args = on.args();
  velo_pack pack = nullptr;
  if (packed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = dtype_of<T>(), desc.k = z.k, desc.n = z.n, desc.transpose = turned;
    VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
    VELO_RUN(velo_pack_update(s.stream(), pack, on.weight.tensor()));
    args.packed = pack, args.weight = nullptr, args.transpose_weight = 0;
  }
  const velo_status status = velo_rms_norm_matmul(s.stream(), &args);
  velo_pack_destroy(pack);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  const auto k = static_cast<std::size_t>(z.k);
  for (std::int64_t i = 0; i < z.m; i = next_compared(i, z.m)) {
    const auto row = static_cast<std::size_t>(i);
    double squares = 0;
    for (std::size_t l = 0; l < k; ++l) squares += on.x.at(row * k + l) * on.x.at(row * k + l);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(z.k) + 1e-3);
    if (z.k != 0) CHECK(on.rstd.at(row) == Approx(rstd).epsilon(1e-6));
    for (std::int64_t j = 0; j < z.n; ++j) {
      double sum = on.bias.at(static_cast<std::size_t>(j)), size = 1;
      for (std::size_t l = 0; l < k; ++l) {
        const auto column = static_cast<std::size_t>(j), n = static_cast<std::size_t>(z.n);
        const double term = on.x.at(row * k + l) * rstd * on.gamma.at(l) *
                            on.weight.at(turned ? column * k + l : l * n + column);
        sum += term, size += std::abs(term);
      }
      const double step =
          sizeof(T) == 4 ? 0x1p-24 * (6 + std::sqrt(static_cast<double>(z.k))) : rounding<T>();
      const double bound = size * step + std::abs(sum) * rounding<T>() + 0x1p-25;
      const double got = on.y.at(row * static_cast<std::size_t>(z.n) + static_cast<std::size_t>(j));
      if (!(std::abs(got - sum) <= bound))
        FAIL("element " << i << ", " << j << ": got " << got << ", truth " << sum);
    }
  }
  CHECK((on.y.intact() && on.rstd.intact()));
}

// The bits of rms_norm, then matmul, by default kernels.
template <class T>
void compare_with_parts(int threads, const sizes& z) {
  session s(threads);
  layer<T> on(z, false);
  velo_rms_norm_matmul_args args = on.args();
  VELO_RUN(velo_rms_norm_matmul(s.stream(), &args));
  array<T> normed({z.m, z.k}), y({z.m, z.n});
  velo_rms_norm_args norm = VELO_RMS_NORM_ARGS_INIT;
  norm.x = args.x, norm.gamma = args.gamma, norm.y = normed.tensor(), norm.epsilon = 1e-3;
  VELO_RUN(velo_rms_norm(s.stream(), &norm));
  velo_matmul_args product = VELO_MATMUL_ARGS_INIT;
  product.a = normed.tensor(), product.b = args.weight, product.bias = args.bias;
  product.c = y.tensor();
  VELO_RUN(velo_matmul(s.stream(), &product));
  CHECK(on.y.bytes() == y.bytes());
}

template <class T>
void check_gradient(session& s, const sizes& z, bool turned) {
  layer<T> on(z, turned);
  array<T> dy({z.m, z.n}), dx({z.m, z.k});
  array<float> dgamma({z.k}), dweight({turned ? z.n : z.k, turned ? z.k : z.n}), dbias({z.n});
  array<float> old({z.k});
  dy.fill(5), dgamma.fill(6), old.fill(6), dweight.fill(7), dbias.fill(8);
  velo_rms_norm_matmul_args forward = on.args();
  const velo_status made = velo_rms_norm_matmul(s.stream(), &forward);
  if (made == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(made);
  velo_rms_norm_matmul_backward_args args = VELO_RMS_NORM_MATMUL_BACKWARD_ARGS_INIT;
  args.dy = dy.tensor(), args.x = forward.x, args.gamma = forward.gamma, args.rstd = forward.rstd;
  args.weight = forward.weight, args.dx = dx.tensor(), args.dgamma = dgamma.tensor();
  args.dweight = dweight.tensor(), args.dbias = dbias.tensor();
  args.transpose_weight = turned, args.accumulate = 1, args.dtype = VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_rms_norm_matmul_backward(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  const auto m = static_cast<std::size_t>(z.m), n = static_cast<std::size_t>(z.n);
  const auto k = static_cast<std::size_t>(z.k);
  const double step = sizeof(T) == 4 ? 4e-6 : 3 * rounding<T>();
  std::vector<double> gains(k), sizes_of_gains(k);
  for (std::size_t l = 0; l < k; ++l) gains[l] = old.at(l);
  for (std::size_t i = 0; i < m; ++i) {
    const double rstd = on.rstd.at(i);
    std::vector<double> g(k), size(k);
    double dot = 0, dot_size = 0;
    for (std::size_t l = 0; l < k; ++l) {
      for (std::size_t j = 0; j < n; ++j) {
        const double term = dy.at(i * n + j) * on.weight.at(turned ? j * k + l : l * n + j);
        g[l] += term, size[l] += std::abs(term);
      }
      const double x = on.x.at(i * k + l);
      gains[l] += g[l] * x * rstd, sizes_of_gains[l] += size[l] * std::abs(x) * rstd;
      dot += g[l] * on.gamma.at(l) * x, dot_size += size[l] * std::abs(on.gamma.at(l) * x);
    }
    for (std::size_t l = 0; l < k; ++l) {
      const double x = on.x.at(i * k + l), scale = rstd * rstd * rstd / static_cast<double>(k);
      const double truth = rstd * g[l] * on.gamma.at(l) - x * scale * dot;
      const double terms =
          rstd * size[l] * std::abs(on.gamma.at(l)) + std::abs(x) * scale * dot_size;
      CHECK(std::abs(dx.at(i * k + l) - truth) <= terms * step + 1e-7);
    }
  }
  for (std::size_t l = 0; l < k; ++l)
    CHECK(std::abs(dgamma.at(l) - gains[l]) <= (sizes_of_gains[l] + 1) * step);
  CHECK((dx.intact() && dgamma.intact() && dweight.intact() && dbias.intact()));
}

}  // namespace

TEST_CASE("rms_norm_matmul agrees with double for every kernel and dtype") {
  for_each_kernel("rms_norm_matmul", [](session& s) {
    int bits = 0;
    for (const sizes& z : {sizes{5, 7, 33},
                           {1, 48, 64},
                           {20, 1, 9},
                           {33, 100, 70},
                           {3, 4, 0},
                           {0, 4, 5},
                           {4, 0, 5},
                           {9, 70, 1100}}) {
      check<float>(s, z, bits & 1);
      check<bf16>(s, z, bits & 1);
      check<f16>(s, z, !(bits & 1));
      ++bits;
    }
    check<float>(s, {200, 130, 40}, true, true);
    check<bf16>(s, {300, 200, 40}, false, true);
  });
}

TEST_CASE("rms_norm_matmul has the bits of its parts, for any number of threads") {
  for (const int threads : {1, 2, 3}) {
    compare_with_parts<float>(threads, {90, 200, 1100});
    compare_with_parts<bf16>(threads, {90, 200, 1100});
    compare_with_parts<f16>(threads, {40, 100, 300});
  }
  // More rows than the engine packs at once.
  compare_with_parts<bf16>(2, {34, 4, 270000});
}

TEST_CASE("rms_norm_matmul_backward agrees with double for every kernel and dtype") {
  for_each_kernel("rms_norm_matmul_backward", [](session& s) {
    for (const bool turned : {false, true}) {
      check_gradient<float>(s, {9, 20, 17}, turned);
      check_gradient<bf16>(s, {9, 20, 17}, turned);
      check_gradient<f16>(s, {9, 20, 17}, turned);
    }
  });
}

TEST_CASE("rms_norm_matmul_backward is the slope of rms_norm_matmul") {
  session s;
  layer<float> on({6, 4, 5}, true);
  array<float> dy({6, 4}), dx({6, 5}), dgamma({5}), dweight({4, 5}), dbias({4});
  dy.fill(5);
  velo_rms_norm_matmul_args forward = on.args();
  forward.epsilon = 1;
  VELO_RUN(velo_rms_norm_matmul(s.stream(), &forward));
  velo_rms_norm_matmul_backward_args args = VELO_RMS_NORM_MATMUL_BACKWARD_ARGS_INIT;
  args.dy = dy.tensor(), args.x = forward.x, args.gamma = forward.gamma, args.rstd = forward.rstd;
  args.weight = forward.weight, args.transpose_weight = 1;
  args.dx = dx.tensor(), args.dgamma = dgamma.tensor(), args.dweight = dweight.tensor();
  args.dbias = dbias.tensor();
  VELO_RUN(velo_rms_norm_matmul_backward(s.stream(), &args));
  const auto objective = [&] {
    VELO_RUN(velo_rms_norm_matmul(s.stream(), &forward));
    double sum = 0;
    for (std::size_t i = 0; i < on.y.size(); ++i) sum += on.y.at(i) * dy.at(i);
    return sum;
  };
  check_slope(on.x, dx, objective);
  check_slope(on.gamma, dgamma, objective);
  check_slope(on.weight, dweight, objective);
  check_slope(on.bias, dbias, objective);
}

TEST_CASE("rms_norm_matmul and its gradient refuse what does not fit, by name") {
  session s;
  array<float> x({4, 8}), gamma({8}), weight({8, 6}), y({4, 6}), few({5}), rstd({4, 1});
  array<float> square({4, 8}), other({4, 7});
  array<bf16> half({8, 6});
  y.fill(1);
  velo_rms_norm_matmul_args valid = VELO_RMS_NORM_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.gamma = gamma.tensor(), valid.weight = weight.tensor();
  valid.y = y.tensor();
  using args = velo_rms_norm_matmul_args;
  check_refusals<args>(
      s, velo_rms_norm_matmul, valid, y,
      {{[](args& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.gamma = few.tensor(); }, VELO_ERR_SHAPE, "args.gamma.shape"},
       {[&](args& a) { a.gamma = square.tensor(); }, VELO_ERR_RANK, "args.gamma.ndim"},
       {[&](args& a) { a.weight = half.tensor(); }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](args& a) { a.bias = few.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& a) { a.rstd = few.tensor(); }, VELO_ERR_RANK, "args.rstd.shape"},
       {[](args& a) { a.epsilon = -1; }, VELO_ERR_ARGUMENT, "args.epsilon"}});
  array<float> dx({4, 8});
  dx.fill(1);
  velo_rms_norm_matmul_backward_args back = VELO_RMS_NORM_MATMUL_BACKWARD_ARGS_INIT;
  back.dy = y.tensor(), back.x = x.tensor(), back.gamma = gamma.tensor();
  back.rstd = rstd.tensor(), back.weight = weight.tensor(), back.dx = dx.tensor();
  using gradient = velo_rms_norm_matmul_backward_args;
  check_refusals<gradient>(
      s, velo_rms_norm_matmul_backward, back, dx,
      {{[](gradient& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](gradient& a) { a.x = other.tensor(); }, VELO_ERR_SHAPE, "args.gamma.shape"},
       {[&](gradient& a) { a.rstd = gamma.tensor(); }, VELO_ERR_RANK, "args.rstd.shape"},
       {[&](gradient& a) { a.dx = other.tensor(); }, VELO_ERR_SHAPE, "args.dx.shape"},
       {[&](gradient& a) { a.dweight = square.tensor(); }, VELO_ERR_SHAPE, "args.dweight.shape"}});
}
