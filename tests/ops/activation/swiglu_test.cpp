// swiglu against its formula in double: every kernel, split dimension, gradients, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

double silu(double t) {
  return t / (1 + std::exp(-t));
}

// Index of the gate of output element i, for rows of `half` outputs.
std::size_t gate_of(std::size_t i, std::size_t half) {
  return i + i / half * half;
}

template <class T>
void check(session& s, std::vector<std::int64_t> shape, std::int64_t dim, double scale = 4) {
  std::vector<std::int64_t> halved = shape;
  const auto axis =
      static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim);
  halved[axis] /= 2;
  std::size_t half = 1;
  for (std::size_t d = axis; d < halved.size(); ++d) half *= static_cast<std::size_t>(halved[d]);
  INFO("half " << half << ", bytes " << sizeof(T));
  array<T> x(shape), y(halved), dy(halved), dx(shape);
  x.fill(1, scale), dy.fill(2);
  std::vector<double> truth(y.size()), dtruth(x.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const std::size_t at = gate_of(i, half);
    const double gate = x.at(at), up = x.at(at + half), sigmoid = 1 / (1 + std::exp(-gate));
    truth[i] = silu(gate) * up;
    dtruth[at] = dy.at(i) * up * sigmoid * (1 + gate * (1 - sigmoid));
    dtruth[at + half] = dy.at(i) * silu(gate);
  }
  velo_swiglu_args f = VELO_SWIGLU_ARGS_INIT;
  f.x = x.tensor(), f.y = y.tensor(), f.dim = dim;
  VELO_RUN(velo_swiglu(s.stream(), &f));
  require_close(y, truth, rounding<T>() + 4e-7, 1e-30);
  velo_swiglu_backward_args b = VELO_SWIGLU_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.x = x.tensor(), b.dx = dx.tensor(), b.dim = dim;
  VELO_RUN(velo_swiglu_backward(s.stream(), &b));
  require_close(dx, dtruth, rounding<T>() + 6e-7, 1e-6);
  b.dx = b.x;
  VELO_RUN(velo_swiglu_backward(s.stream(), &b));
  require_close(x, dtruth, rounding<T>() + 6e-7, 1e-6);
}

}  // namespace

TEST_CASE("swiglu and its gradient agree with the formula for every kernel, size and dtype") {
  for (const char* op : {"swiglu", "swiglu_backward"}) {
    for_each_kernel(op, [](session& s) {
      for (const std::int64_t n : {2, 14, 32, 34, 200, 2816}) {
        check<float>(s, {3, n}, -1);
        check<bf16>(s, {3, n}, 1);
        check<f16>(s, {3, n}, 1);
      }
      check<float>(s, {0, 8}, -1);
      check<float>(s, {3, 0}, -1);
      check<float>(s, {2, 6, 10}, 1);
      check<bf16>(s, {100000}, 0);
      check<f16>(s, {100000}, 0);
      check<float>(s, {4, 3, 50}, 0, 120);  // far into both tails of the sigmoid
    });
  }
}

TEST_CASE("swiglu counts what it may as 0 where the sigmoid vanishes, and nothing else") {
  for_each_kernel("swiglu", [](session& s) {
    for (const float gate : {-88.0f, -88.4f, -89.0f, -92.0f, -104.0f, -1000.0f, 1e30f, 3e38f}) {
      for (const float up : {1.0f, -1e-18f, 0.5f, 1e30f}) {
        INFO("x1 " << gate << ", x2 " << up);
        array<float> x({2}), y({1});
        x[0] = gate, x[1] = up;
        velo_swiglu_args f = VELO_SWIGLU_ARGS_INIT;
        f.x = x.tensor(), f.y = y.tensor();
        VELO_RUN(velo_swiglu(s.stream(), &f));
        const double silu = static_cast<double>(gate) / (1 + std::exp(-static_cast<double>(gate)));
        const double truth = silu * static_cast<double>(up);
        const double lost = gate < -88.3f ? 4e-37 * std::abs(static_cast<double>(up)) : 0;
        if (std::abs(truth) > 3.4e38)
          CHECK(y.at(0) == HUGE_VAL);
        else
          CHECK(std::abs(y.at(0) - truth) <= 3e-7 * std::abs(truth) + lost + 0x1p-149);
      }
    }
  });
}

TEST_CASE("swiglu writes large outputs around the cache with the same result") {
  for (const char* op : {"swiglu", "swiglu_backward"}) {
    for_each_kernel(op, [](session& s) { check<float>(s, {1500, 11264}, -1); });
  }
}

TEST_CASE("swiglu refuses what does not fit, by name") {
  session s;
  array<float> x({4, 8}), y({4, 4}), odd({4, 7});
  array<bf16> half({4, 4});
  using args = velo_swiglu_args;
  args valid = VELO_SWIGLU_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor();
  check_refusals(s, velo_swiglu, valid, y,
                 {{[&](args& f) { f.x = odd.tensor(); }, VELO_ERR_SHAPE, "args.x.shape"},
                  {[&](args& f) { f.dim = 2; }, VELO_ERR_ARGUMENT, "args.dim"},
                  {[&](args& f) { f.dim = 0; }, VELO_ERR_SHAPE, "args.y.shape"},
                  {[&](args& f) { f.y = half.tensor(); }, VELO_ERR_DTYPE, "args.y.dtype"}});
}
