// The activations without a gate against their formulas in double: every kernel, gradients by
// formula and by finite differences, the spec's bounds over every magnitude, refusals.
#include <cstring>

#include "tests/ops/activation/activation_truth.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void require_bound(const std::string& op, const array<T>& got, const std::vector<double>& truth,
                   const array<T>& x) {
  double largest = 0;
  for (const double t : truth)
    if (std::isfinite(t)) largest = std::max(largest, std::abs(t));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double g = got.at(i), t = truth[i];
    if (g == t || std::abs(g - t) <= spec_bound<T>(op, t, largest)) continue;
    INFO(op << " of " << x.at(i) << ": got " << g << ", truth " << t);
    FAIL("outside the spec's bound");
  }
  CHECK(got.intact());
}

// Forward and gradient of the elements of x, also in place.
template <class T>
void check(session& s, const activation_truth& f, array<T>& x) {
  INFO(f.op << " " << f.approximate << ", n " << x.size() << ", bytes " << sizeof(T));
  const auto n = static_cast<std::int64_t>(x.size());
  array<T> y({n}), dy({n}), dx({n});
  dy.fill(2);
  std::vector<double> truth(y.size()), dtruth(y.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    truth[i] = f.value(x.at(i));
    dtruth[i] = dy.at(i) * f.slope(x.at(i));
  }
  const std::string gradient = std::string(f.op) + "_backward";
  run_activation(s, f.op, f, {{"x", x.tensor()}, {"y", y.tensor()}});
  require_bound(f.op, y, truth, x);
  run_activation(s, gradient, f, {{"dy", dy.tensor()}, {"x", x.tensor()}, {"dx", dx.tensor()}});
  require_bound(gradient, dx, dtruth, x);
  run_activation(s, gradient, f, {{"dy", dy.tensor()}, {"x", x.tensor()}, {"dx", dy.tensor()}});
  CHECK(dy.bytes() == dx.bytes());
  array<T> in_place({n});
  std::copy(x.data(), x.data() + n, in_place.data());
  run_activation(s, f.op, f, {{"x", in_place.tensor()}, {"y", in_place.tensor()}});
  CHECK(in_place.bytes() == y.bytes());
}

template <class T>
void check_sizes(session& s, const activation_truth& f) {
  for (const std::int64_t n : {0, 1, 7, 15, 16, 33, 1000, 70000}) {
    array<T> x({n});
    check(s, f, x.fill(1, 4));
  }
  for (const double scale : {0.01, 9.0, 30.0, 300.0}) {
    array<T> x({1 << 14});
    check(s, f, x.fill(3, scale));
  }
}

}  // namespace

TEST_CASE("activations and their gradients keep the spec's bounds for every kernel, size, dtype") {
  for (const activation_truth& f : activations) {
    for (const char* suffix : {"", "_backward"}) {
      for_each_kernel((f.op + std::string(suffix)).c_str(), [&](session& s) {
        check_sizes<float>(s, f);
        check_sizes<bf16>(s, f);
        check_sizes<f16>(s, f);
      });
    }
  }
}

TEST_CASE("activations keep the spec's bounds for every magnitude of float32") {
  for (const activation_truth& f : activations) {
    for (const char* suffix : {"", "_backward"}) {
      for_each_kernel((f.op + std::string(suffix)).c_str(), [&](session& s) {
        array<float> x({2 * 6000});
        for (std::size_t i = 0; i < 6000; ++i) {
          x[i] = static_cast<float>(std::pow(10, -44 + 82.5 * static_cast<double>(i) / 6000));
          x[i + 6000] = -x[i];
        }
        check(s, f, x);
      });
    }
  }
}

TEST_CASE("activations of infinities and NaN are what their formulas give") {
  for (const activation_truth& f : activations) {
    for_each_kernel(f.op, [&](session& s) {
      array<float> x({3}), y({3});
      x[0] = HUGE_VALF, x[1] = -HUGE_VALF, x[2] = std::nanf("");
      run_activation(s, f.op, f, {{"x", x.tensor()}, {"y", y.tensor()}});
      CHECK(y.at(0) == HUGE_VAL);
      CHECK((std::string(f.op) == "relu" ? y.at(1) == 0 : std::isnan(y.at(1))));
      CHECK(std::isnan(y.at(2)));
    });
  }
}

TEST_CASE("an element of any magnitude has its value beside every NaN") {
  const std::uint32_t quiet = 0x7fc00000, signalling = 0x7f800001;
  for (const activation_truth& f : activations) {
    for_each_kernel(f.op, [&](session& s) {
      for (const std::uint32_t nan : {quiet, signalling}) {
        for (const std::size_t far : {std::size_t{0}, std::size_t{16}}) {
          array<float> x({32}), y({32});
          for (std::size_t i = 0; i < 32; ++i) std::memcpy(&x[i], &nan, sizeof nan);
          x[far] = -1e5f, x[far + 1] = 1e30f;
          run_activation(s, f.op, f, {{"x", x.tensor()}, {"y", y.tensor()}});
          CHECK(y.at(far) == f.value(-1e5));
          CHECK(y.at(far + 1) == f.value(x.at(far + 1)));
        }
      }
    });
  }
}

TEST_CASE("gradients of the activations are the slopes of the reference") {
  session plain(1, R"({"level": 0})");
  for (const activation_truth& f : activations) {
    if (std::string(f.op) == "relu") continue;  // its slope has a step
    array<float> x({40}), y({40}), dy({40}), dx({40});
    x.fill(5, 5), dy.fill(6);
    const std::string gradient = std::string(f.op) + "_backward";
    run_activation(plain, gradient, f,
                   {{"dy", dy.tensor()}, {"x", x.tensor()}, {"dx", dx.tensor()}});
    check_slope(x, dx, [&] {
      run_activation(plain, f.op, f, {{"x", x.tensor()}, {"y", y.tensor()}});
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
      return sum;
    });
  }
}

TEST_CASE("gelu refuses what does not fit, by name") {
  session s;
  array<float> x({4, 8}), y({4, 8}), other({4, 7});
  array<bf16> half({4, 8});
  using args = velo_gelu_args;
  args valid = VELO_GELU_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor();
  check_refusals(s, velo_gelu, valid, y,
                 {{[&](args& f) { f.approximate = 2; }, VELO_ERR_ARGUMENT, "args.approximate"},
                  {[&](args& f) { f.y = other.tensor(); }, VELO_ERR_SHAPE, "args.y.shape"},
                  {[&](args& f) { f.y = half.tensor(); }, VELO_ERR_DTYPE, "args.y.dtype"}});
  velo_relu_backward_args b = VELO_RELU_BACKWARD_ARGS_INIT;
  b.dy = other.tensor(), b.x = x.tensor(), b.dx = y.tensor();
  CHECK_REFUSED(velo_relu_backward(s.stream(), &b), VELO_ERR_SHAPE, "args.dy.shape");
}
