// matmul_swiglu against double: narrow and odd halves, transposes, packs, few and many rows, deep
// products, every kernel; far gates; the gradient against matmul_backward's formula in double and
// finite differences; threads; refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct sizes {
  std::int64_t m, n, k;  // n: columns of y
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Operands with their sums h, and the sums of magnitudes, in double.
template <class T>
struct layer {
  sizes z;
  bool turned, biased;
  array<T> x, weight, y, h;
  array<float> bias;

  layer(const sizes& s, bool t, bool b)
      : z(s),
        turned(t),
        biased(b),
        x({s.m, s.k}),
        weight({t ? 2 * s.n : s.k, t ? s.k : 2 * s.n}),
        y({s.m, s.n}),
        h({s.m, 2 * s.n}),
        bias({2 * s.n}) {
    x.fill(1), weight.fill(2), bias.fill(3);
  }
  velo_matmul_swiglu_args args() {
    velo_matmul_swiglu_args a = VELO_MATMUL_SWIGLU_ARGS_INIT;
    a.x = x.tensor(), a.weight = weight.tensor(), a.y = y.tensor(), a.h = h.tensor();
    a.transpose_weight = turned;
    if (biased) a.bias = bias.tensor();
    return a;
  }
  double sum(std::int64_t i, std::int64_t j, double& size) const {
    double all = biased ? bias.at(static_cast<std::size_t>(j)) : 0;
    size = std::abs(all);
    for (std::int64_t l = 0; l < z.k; ++l) {
      const std::int64_t at = turned ? j * z.k + l : l * 2 * z.n + j;
      const double term =
          x.at(static_cast<std::size_t>(i * z.k + l)) * weight.at(static_cast<std::size_t>(at));
      all += term, size += std::abs(term);
    }
    size *= 0x1p-24 * (3 + std::sqrt(static_cast<double>(z.k)));
    return all;
  }
};

template <class T>
void require_near(double got, double truth, double error) {
  const double bound = error + std::abs(truth) * (rounding<T>() + 1e-6) + 0x1p-25;
  if (!(std::abs(got - truth) <= bound)) FAIL("got " << got << ", truth " << truth);
}

template <class T>
void check(session& s, const sizes& z, bool turned, bool biased, bool packed = false) {
  INFO("m " << z.m << " n " << z.n << " k " << z.k << " turned " << turned << " packed " << packed
            << " bytes " << sizeof(T));
  layer<T> on(z, turned, biased);
  velo_matmul_swiglu_args args = on.args();
  velo_pack pack = nullptr;
  if (packed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = dtype_of<T>(), desc.k = z.k, desc.n = 2 * z.n, desc.transpose = turned;
    VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
    VELO_RUN(velo_pack_update(s.stream(), pack, on.weight.tensor()));
    args.packed = pack, args.weight = nullptr, args.transpose_weight = 0;
  }
  const velo_status status = velo_matmul_swiglu(s.stream(), &args);
  velo_pack_destroy(pack);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  for (std::int64_t i = 0; i < z.m; i = next_compared(i, z.m)) {
    for (std::int64_t j = 0; j < z.n; ++j) {
      double gate_error, factor_error;
      const double gate = on.sum(i, j, gate_error), factor = on.sum(i, z.n + j, factor_error);
      const auto at = static_cast<std::size_t>(i * 2 * z.n + j);
      require_near<T>(on.h.at(at), gate, gate_error);
      require_near<T>(on.h.at(at + static_cast<std::size_t>(z.n)), factor, factor_error);
      require_near<T>(on.y.at(static_cast<std::size_t>(i * z.n + j)), gate * sigmoid(gate) * factor,
                      1.1 * gate_error * std::abs(factor) + factor_error * std::abs(gate));
    }
  }
  CHECK((on.y.intact() && on.h.intact()));
}

// The gradient of x, of the weight and of the bias, from h or from what it is computed again from.
template <class T>
void check_gradient(session& s, const sizes& z, bool turned, bool given) {
  layer<T> on(z, turned, true);
  array<T> dy({z.m, z.n}), dx({z.m, z.k});
  array<float> dweight({turned ? 2 * z.n : z.k, turned ? z.k : 2 * z.n}), dbias({2 * z.n});
  dy.fill(4), dweight.fill(5), dbias.fill(6);
  const std::vector<unsigned char> before = dbias.bytes();
  array<float> old({2 * z.n});
  old.fill(6);
  velo_matmul_swiglu_args forward = on.args();
  const velo_status made = velo_matmul_swiglu(s.stream(), &forward);
  if (made == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(made);
  velo_matmul_swiglu_backward_args args = VELO_MATMUL_SWIGLU_BACKWARD_ARGS_INIT;
  args.dy = dy.tensor(), args.x = on.x.tensor(), args.weight = on.weight.tensor();
  if (given) args.h = on.h.tensor();
  args.bias = on.bias.tensor();  // beside h it is in h
  args.dx = dx.tensor(), args.dweight = dweight.tensor(), args.dbias = dbias.tensor();
  args.transpose_weight = turned, args.accumulate = 1;
  args.dtype = VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_matmul_swiglu_backward(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  std::vector<double> dh(static_cast<std::size_t>(z.m * 2 * z.n));
  for (std::int64_t i = 0; i < z.m; ++i) {
    for (std::int64_t j = 0; j < z.n; ++j) {
      const auto at = static_cast<std::size_t>(i * 2 * z.n + j),
                 half = static_cast<std::size_t>(z.n);
      const double gate = on.h.at(at), factor = on.h.at(at + half), p = sigmoid(gate);
      const double d = dy.at(static_cast<std::size_t>(i * z.n + j));
      dh[at] = d * factor * p * (1 + gate * (1 - p)), dh[at + half] = d * gate * p;
    }
  }
  const double step = sizeof(T) == 4 ? 2e-6 : rounding<T>();
  for (std::int64_t i = 0; i < z.m; ++i) {
    for (std::int64_t l = 0; l < z.k; ++l) {
      double sum = 0, size = 0;
      for (std::int64_t j = 0; j < 2 * z.n; ++j) {
        const double term =
            dh[static_cast<std::size_t>(i * 2 * z.n + j)] *
            on.weight.at(static_cast<std::size_t>(turned ? j * z.k + l : l * 2 * z.n + j));
        sum += term, size += std::abs(term);
      }
      require_near<T>(dx.at(static_cast<std::size_t>(i * z.k + l)), sum, size * step);
    }
  }
  for (std::int64_t j = 0; j < 2 * z.n; ++j) {
    double sum = old.at(static_cast<std::size_t>(j)), size = 0;
    for (std::int64_t i = 0; i < z.m; ++i) {
      const double term = dh[static_cast<std::size_t>(i * 2 * z.n + j)];
      sum += term, size += std::abs(term);
    }
    require_near<float>(dbias.at(static_cast<std::size_t>(j)), sum, size * step);
  }
  CHECK(dbias.bytes() != before);
  CHECK((dx.intact() && dweight.intact() && dbias.intact()));
}

}  // namespace

TEST_CASE("matmul_swiglu agrees with double for every kernel, half and dtype") {
  for_each_kernel("matmul_swiglu", [](session& s) {
    int bits = 0;
    for (const sizes& z : {sizes{5, 7, 33},
                           {1, 48, 64},
                           {20, 1, 9},
                           {33, 50, 70},
                           {3, 4, 0},
                           {0, 4, 5},
                           {40, 112, 100},
                           {5, 50, 1100}}) {
      check<float>(s, z, bits & 1, bits & 2);
      check<bf16>(s, z, !(bits & 1), bits & 2);
      check<f16>(s, z, bits & 1, !(bits & 2));
      ++bits;
    }
    check<float>(s, {100, 96, 40}, false, true, true);
    check<bf16>(s, {100, 192, 40}, true, false, true);
    check<float>(s, {60, 40, 1100}, false, true);
    check<bf16>(s, {60, 40, 600}, false, false);
    check<bf16>(s, {530, 70, 20}, true, false);
  });
}

TEST_CASE("matmul_swiglu is exact where sigmoids underflow and gates are large") {
  for_each_kernel("matmul_swiglu", [](session& s) {
    array<float> x({1, 1}), weight({1, 8}), y({1, 4});
    x[0] = 1;
    const float gates[] = {-100, 100, -85, 0}, factors[] = {1e35f, 3, 1e30f, 7};
    for (std::size_t j = 0; j < 4; ++j) weight[j] = gates[j], weight[4 + j] = factors[j];
    velo_matmul_swiglu_args args = VELO_MATMUL_SWIGLU_ARGS_INIT;
    args.x = x.tensor(), args.weight = weight.tensor(), args.y = y.tensor();
    const velo_status status = velo_matmul_swiglu(s.stream(), &args);
    if (status == VELO_ERR_UNSUPPORTED) return;
    VELO_RUN(status);
    for (std::size_t j = 0; j < 4; ++j)
      CHECK(y.at(j) ==
            Approx(gates[j] * sigmoid(static_cast<double>(gates[j])) * factors[j]).epsilon(1e-6));
  });
}

TEST_CASE("matmul_swiglu gives the same bits for any number of threads and rows") {
  std::vector<unsigned char> bits;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    layer<float> all({90, 200, 1100}, false, true), one({1, 200, 1100}, false, true);
    velo_matmul_swiglu_args args = all.args(), few = one.args();
    VELO_RUN(velo_matmul_swiglu(s.stream(), &args));
    few.weight = args.weight;
    velo_tensor row = *args.x;
    const std::int64_t shape[] = {1, 1100};
    row.shape = shape, row.strides = nullptr;
    few.x = &row;
    VELO_RUN(velo_matmul_swiglu(s.stream(), &few));
    if (bits.empty()) bits = all.y.bytes();
    CHECK(all.y.bytes() == bits);
    for (std::size_t j = 0; j < 200; ++j) CHECK(one.y[j] == all.y[j]);
  }
}

TEST_CASE("matmul_swiglu_backward agrees with double for every kernel, from h and without it") {
  for_each_kernel("matmul_swiglu_backward", [](session& s) {
    for (int bits = 0; bits < 4; ++bits) {
      check_gradient<float>(s, {9, 20, 17}, bits & 1, bits & 2);
      check_gradient<bf16>(s, {9, 20, 17}, bits & 1, bits & 2);
      check_gradient<f16>(s, {9, 20, 17}, bits & 1, bits & 2);
    }
  });
}

TEST_CASE("matmul_swiglu_backward is the slope of matmul_swiglu") {
  session s;
  layer<float> on({6, 4, 5}, true, true);
  array<float> dy({6, 4}), dx({6, 5}), dweight({8, 5}), dbias({8});
  dy.fill(4);
  velo_matmul_swiglu_args forward = on.args();
  velo_matmul_swiglu_backward_args args = VELO_MATMUL_SWIGLU_BACKWARD_ARGS_INIT;
  args.dy = dy.tensor(), args.x = on.x.tensor(), args.weight = on.weight.tensor();
  args.bias = on.bias.tensor(), args.transpose_weight = 1;
  args.dx = dx.tensor(), args.dweight = dweight.tensor(), args.dbias = dbias.tensor();
  VELO_RUN(velo_matmul_swiglu_backward(s.stream(), &args));
  const auto objective = [&] {
    VELO_RUN(velo_matmul_swiglu(s.stream(), &forward));
    double sum = 0;
    for (std::size_t i = 0; i < on.y.size(); ++i) sum += on.y.at(i) * dy.at(i);
    return sum;
  };
  check_slope(on.x, dx, objective);
  check_slope(on.weight, dweight, objective);
  check_slope(on.bias, dbias, objective);
}

TEST_CASE("matmul_swiglu and its gradient refuse what does not fit, by name") {
  session s;
  array<float> x({4, 8}), weight({8, 6}), odd({8, 5}), y({4, 3}), h({4, 6}), few({3});
  array<bf16> half({8, 6}), narrow({6});
  y.fill(1);
  velo_matmul_swiglu_args valid = VELO_MATMUL_SWIGLU_ARGS_INIT;
  valid.x = x.tensor(), valid.weight = weight.tensor(), valid.y = y.tensor();
  using args = velo_matmul_swiglu_args;
  velo_pack pack = nullptr;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 8, desc.n = 6;
  VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
  check_refusals<args>(
      s, velo_matmul_swiglu, valid, y,
      {{[](args& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.weight = odd.tensor(); }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](args& a) { a.weight = half.tensor(); }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[&](args& a) { a.packed = pack; }, VELO_ERR_ARGUMENT, "args.weight"},
       {[&](args& a) { a.packed = pack, a.weight = nullptr; }, VELO_ERR_SHAPE, "args.packed"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](args& a) { a.bias = few.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& a) { a.h = y.tensor(); }, VELO_ERR_SHAPE, "args.h.shape"}});
  velo_pack_destroy(pack);
  array<float> dx({4, 8});
  dx.fill(1);
  velo_matmul_swiglu_backward_args back = VELO_MATMUL_SWIGLU_BACKWARD_ARGS_INIT;
  back.dy = y.tensor(), back.h = h.tensor(), back.x = x.tensor(), back.weight = weight.tensor();
  back.dx = dx.tensor();
  using gradient = velo_matmul_swiglu_backward_args;
  check_refusals<gradient>(
      s, velo_matmul_swiglu_backward, back, dx,
      {{[](gradient& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[](gradient& a) { a.h = nullptr, a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](gradient& a) { a.h = y.tensor(); }, VELO_ERR_SHAPE, "args.h.shape"},
       {[&](gradient& a) { a.bias = few.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](gradient& a) { a.bias = narrow.tensor(); }, VELO_ERR_DTYPE, "args.bias.dtype"},
       {[&](gradient& a) { a.weight = half.tensor(); }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[&](gradient& a) { a.dweight = odd.tensor(); }, VELO_ERR_SHAPE, "args.dweight.shape"}});
}
