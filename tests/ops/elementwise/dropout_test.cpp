// dropout against its definition (core/simd/philox.hpp): every kernel, size and dtype bit for bit,
// the share of kept elements, its gradient, runs that begin anywhere, refusals.
#include "core/simd/philox.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct mode {
  double p;
  std::int64_t seed, offset;
};
constexpr mode modes[] = {{0.1, 1234, 5}, {0.5, -1, std::int64_t{1} << 40}, {0, 3, 4}, {1, 3, 4}};

float multiplier(const mode& by, std::size_t index) {
  return velo::simd::dropout_multiplier(
      velo::simd::dropout_of(by.p, static_cast<std::uint64_t>(by.seed),
                             static_cast<std::uint64_t>(by.offset)),
      index);
}

velo_dropout_args args_of(const mode& by) {
  velo_dropout_args a = VELO_DROPOUT_ARGS_INIT;
  a.p = by.p, a.seed = by.seed, a.offset = by.offset;
  return a;
}

template <class T>
void check(session& s, std::int64_t n, const mode& by) {
  INFO("n " << n << ", bytes " << sizeof(T) << ", p " << by.p);
  array<T> x({n}), y({n}), want({n});
  array<std::uint8_t> mask({n});
  x.fill(1);
  bool kept = true;
  velo_dropout_args a = args_of(by);
  a.x = x.tensor(), a.y = y.tensor(), a.mask = mask.tensor();
  VELO_RUN(velo_dropout(s.stream(), &a));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float m = multiplier(by, i);
    velo::simd::assign(want[i], x.at(i) * static_cast<double>(m));
    kept = kept && mask[i] == (m != 0);
  }
  CHECK(kept);
  CHECK((y.bytes() == want.bytes()));
  CHECK((y.intact() && mask.intact()));
  a.y = a.x, a.mask = nullptr;
  VELO_RUN(velo_dropout(s.stream(), &a));
  CHECK((x.bytes() == want.bytes()));
}

}  // namespace

TEST_CASE("dropout's decisions are those of their definition for every kernel, size and dtype") {
  for_each_kernel("dropout", [](session& s) {
    for (const mode& by : modes)
      for (const std::int64_t n : {0, 1, 3, 15, 16, 33, 1000, 40000})
        check<float>(s, n, by), check<bf16>(s, n, by), check<f16>(s, n, by);
  });
}

TEST_CASE("dropout writes large outputs around the cache with the same bits on any threads") {
  std::vector<unsigned char> first;
  for (const int threads : {1, 3}) {
    for_each_kernel(
        "dropout",
        [&](session& s) {
          constexpr std::int64_t n = 9 << 20;
          array<float> x({n}), y({n});
          x.fill(1);
          velo_dropout_args a = args_of(modes[0]);
          a.x = x.tensor(), a.y = y.tensor();
          VELO_RUN(velo_dropout(s.stream(), &a));
          if (first.empty()) first = y.bytes();
          CHECK((y.bytes() == first));
        },
        threads);
  }
}

TEST_CASE("dropout keeps a share of 1 - p within 5 sigma for every seed and offset") {
  session s;
  constexpr std::int64_t n = 1 << 20;
  array<float> x({n}), y({n});
  array<std::uint8_t> mask({n});
  x.fill(1);
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    for (const std::int64_t seed : {0, 1, 99}) {
      velo_dropout_args a = args_of({p, seed, 7 - seed});
      a.x = x.tensor(), a.y = y.tensor(), a.mask = mask.tensor();
      VELO_RUN(velo_dropout(s.stream(), &a));
      double kept = 0;
      for (std::size_t i = 0; i < mask.size(); ++i) kept += mask[i];
      CHECK(std::abs(kept - n * (1 - p)) <= 5 * std::sqrt(n * p * (1 - p)));
    }
  }
}

TEST_CASE("dropout's gradient has the mask of the forward call") {
  for_each_kernel("dropout_backward", [](session& s) {
    for (const mode& by : modes) {
      array<float> x({41}), y({41}), dy({41}), dx({41});
      x.fill(1), dy.fill(2);
      velo_dropout_args f = args_of(by);
      f.x = x.tensor(), f.y = y.tensor();
      velo_dropout_backward_args b = VELO_DROPOUT_BACKWARD_ARGS_INIT;
      b.dy = dy.tensor(), b.dx = dx.tensor(), b.p = by.p, b.seed = by.seed, b.offset = by.offset;
      VELO_RUN(velo_dropout_backward(s.stream(), &b));
      check_slope(x, dx, [&] {
        VELO_RUN(velo_dropout(s.stream(), &f));
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
        return sum;
      });
    }
  });
}

TEST_CASE("dropout refuses what does not fit, by name") {
  session s;
  array<float> x({4}), y({4}), wide({5});
  array<bf16> half({4});
  array<std::uint8_t> mask({4});
  x.fill(1), y.fill(2);
  using args = velo_dropout_args;
  args valid = VELO_DROPOUT_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor(), valid.mask = mask.tensor();
  check_refusals(s, velo_dropout, valid, y,
                 {{[&](args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
                  {[&](args& a) { a.x = mask.tensor(); }, VELO_ERR_DTYPE, "args.x.dtype"},
                  {[&](args& a) { a.y = half.tensor(); }, VELO_ERR_DTYPE, "args.y.dtype"},
                  {[&](args& a) { a.y = wide.tensor(); }, VELO_ERR_SHAPE, "args.y.shape"},
                  {[&](args& a) { a.mask = x.tensor(); }, VELO_ERR_DTYPE, "args.mask.dtype"},
                  {[&](args& a) { a.p = -0.1; }, VELO_ERR_ARGUMENT, "args.p"},
                  {[&](args& a) { a.p = 1.5; }, VELO_ERR_ARGUMENT, "args.p"},
                  {[&](args& a) { a.p = std::nan(""); }, VELO_ERR_ARGUMENT, "args.p"}});
}
