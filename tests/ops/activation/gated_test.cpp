// The gated activations against their formulas in double: every kernel, split dimension, gradients,
// the spec's bounds over random draws, gates of any magnitude, refusals.
#include "tests/ops/activation/activation_truth.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// Index of the gate of output element i, for rows of `half` outputs.
std::size_t gate_of(std::size_t i, std::size_t half) {
  return i + i / half * half;
}

template <class T>
void check(session& s, const activation_truth& f, std::vector<std::int64_t> shape, std::int64_t dim,
           double scale = 4) {
  std::vector<std::int64_t> halved = shape;
  const auto axis =
      static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim);
  halved[axis] /= 2;
  std::size_t half = 1;
  for (std::size_t d = axis; d < halved.size(); ++d) half *= static_cast<std::size_t>(halved[d]);
  INFO(f.gated << " " << f.approximate << ", half " << half << ", bytes " << sizeof(T));
  array<T> x(shape), y(halved), dy(halved), dx(shape);
  x.fill(1, scale), dy.fill(2);
  std::vector<double> truth(y.size()), dtruth(x.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const std::size_t at = gate_of(i, half);
    const double gate = x.at(at), up = x.at(at + half);
    truth[i] = f.value(gate) * up;
    dtruth[at] = dy.at(i) * up * f.slope(gate);
    dtruth[at + half] = dy.at(i) * f.value(gate);
  }
  const std::string gradient = std::string(f.gated) + "_backward";
  run_activation(s, f.gated, f, {{"x", x.tensor()}, {"y", y.tensor()}}, dim);
  require_close(y, truth, rounding<T>() + 1e-6, 1e-30);
  run_activation(s, gradient, f, {{"dy", dy.tensor()}, {"x", x.tensor()}, {"dx", dx.tensor()}},
                 dim);
  const double absolute = sizeof(T) == 4 ? 1e-6 * scale : 1e-5 * scale;
  require_close(dx, dtruth, rounding<T>() + 1e-6, absolute);
  run_activation(s, gradient, f, {{"dy", dy.tensor()}, {"x", x.tensor()}, {"dx", x.tensor()}}, dim);
  require_close(x, dtruth, rounding<T>() + 1e-6, absolute);
}

void for_each_gated(const std::function<void(const activation_truth&)>& body) {
  for (const activation_truth& f : activations)
    if (f.gated != nullptr) body(f);
}

// Outputs of one element, each with a gate and a factor of its own, within the spec's bound.
template <class T>
void check_bound(session& s, const activation_truth& f, array<T>& x) {
  const auto n = static_cast<std::int64_t>(x.size() / 2);
  array<T> y({n});
  run_activation(s, f.gated, f, {{"x", x.tensor()}, {"y", y.tensor()}}, 0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double truth = f.value(x.at(i)) * x.at(i + y.size());
    const double most = std::is_same_v<T, f16> ? 65519 : 3.38e38;  // rounds to infinity
    if (std::abs(truth) > most && std::isinf(y.at(i))) continue;
    const double lost = std::abs(f.value(x.at(i))) < 1e-57 ? 1e-57 * x.at(i + y.size()) : 0;
    if (std::abs(y.at(i) - truth) <= spec_bound<T>(f.gated, truth, 0) + std::abs(lost)) continue;
    INFO(f.gated << " " << f.approximate << " of " << x.at(i) << ", " << x.at(i + y.size())
                 << ": got " << y.at(i) << ", truth " << truth);
    FAIL("outside the spec's bound");
  }
}

}  // namespace

TEST_CASE("gated activations agree with their formulas for every kernel, size and dtype") {
  for_each_gated([](const activation_truth& f) {
    for (const char* suffix : {"", "_backward"}) {
      for_each_kernel((f.gated + std::string(suffix)).c_str(), [&](session& s) {
        for (const std::int64_t n : {2, 14, 32, 34, 200, 2816}) {
          check<float>(s, f, {3, n}, -1);
          check<bf16>(s, f, {3, n}, 1);
          check<f16>(s, f, {3, n}, 1);
        }
        check<float>(s, f, {0, 8}, -1);
        check<float>(s, f, {3, 0}, -1);
        check<float>(s, f, {2, 6, 10}, 1);
        check<bf16>(s, f, {20000}, 0);
        check<f16>(s, f, {20000}, 0);
        check<float>(s, f, {4, 3, 50}, 0, 120);  // far into both tails
      });
    }
  });
}

TEST_CASE("gated activations keep the spec's bound over many draws") {
  for_each_gated([](const activation_truth& f) {
    for_each_kernel(f.gated, [&](session& s) {
      std::uint64_t seed = 1;
      for (const double scale : {0.1, 4.0, 20.0, 70.0}) {
        array<float> x({1 << 17});
        check_bound(s, f, x.fill(seed++, scale));
        array<bf16> b({1 << 17});
        check_bound(s, f, b.fill(seed++, scale));
        array<f16> h({1 << 17});
        check_bound(s, f, h.fill(seed++, scale));
      }
    });
  });
}

TEST_CASE("gated activations keep the spec's bound for gates and factors of any magnitude") {
  constexpr float gates[] = {0,      1e-30f, -8.4f,  -8.6f,  -9.1f,  -13.3f, -20,   -31.9f,
                             -37.1f, -63.9f, -64.1f, -87,    -88.4f, -92,    -104,  -128,
                             -150,   -190,   -195,   88,     104,    1000,   1e18f, -1000,
                             -1e4f,  -1e18f, -1e30f, -3e38f, 3e38f};
  for_each_gated([&](const activation_truth& f) {
    for_each_kernel(f.gated, [&](session& s) {
      for (const float up : {1.0f, -1e-18f, 0.5f, 1e30f, -3e38f}) {
        constexpr auto count = static_cast<std::int64_t>(sizeof gates / sizeof gates[0]);
        array<float> x({2 * count});
        for (std::size_t i = 0; i < count; ++i) x[i] = gates[i], x[i + count] = up;
        check_bound(s, f, x);
      }
    });
  });
}

TEST_CASE("swiglu writes large outputs around the cache with the same result") {
  for (const char* op : {"swiglu", "swiglu_backward"})
    for_each_kernel(op, [](session& s) { check<float>(s, activations[0], {1500, 11264}, -1); });
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

TEST_CASE("geglu refuses an unknown form of gelu, reglu an odd size, by name") {
  session s;
  array<float> x({4, 8}), y({4, 4}), odd({4, 7});
  velo_geglu_args a = VELO_GEGLU_ARGS_INIT;
  a.x = x.tensor(), a.y = y.tensor(), a.approximate = 2;
  CHECK_REFUSED(velo_geglu(s.stream(), &a), VELO_ERR_ARGUMENT, "args.approximate");
  velo_reglu_args b = VELO_REGLU_ARGS_INIT;
  b.x = odd.tensor(), b.y = y.tensor();
  CHECK_REFUSED(velo_reglu(s.stream(), &b), VELO_ERR_SHAPE, "args.x.shape");
  velo_reglu_backward_args c = VELO_REGLU_BACKWARD_ARGS_INIT;
  c.x = x.tensor(), c.dy = x.tensor(), c.dx = x.tensor();
  CHECK_REFUSED(velo_reglu_backward(s.stream(), &c), VELO_ERR_SHAPE, "args.dy.shape");
}
