// global_norm against sums in double: every kernel, accumulation over several gradients, the clip
// factor.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

TEST_CASE("global_norm adds up squares of several gradients and clips their norm") {
  for_each_kernel("global_norm", [](session& s) {
    array<float> a({777, 13}), none({0, 3});
    array<bf16> b({70001});
    array<f16> c({333});
    array<double> sum({});
    array<float> norm({}), clip({});
    a.fill(1, 3), b.fill(2), c.fill(3, 60000);
    double truth = 0;
    for (std::size_t i = 0; i < a.size(); ++i) truth += a.at(i) * a.at(i);
    velo_global_norm_args args = VELO_GLOBAL_NORM_ARGS_INIT;
    args.x = a.tensor(), args.sum_of_squares = sum.tensor(), args.norm = norm.tensor(),
    args.clip = clip.tensor();
    sum[0] = 1e9;  // overwritten: the first call does not accumulate
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(sum.at(0) == Approx(truth).epsilon(1e-6));
    for (std::size_t i = 0; i < b.size(); ++i) truth += b.at(i) * b.at(i);
    args.x = b.tensor(), args.accumulate = 1, args.max_norm = 0.5;
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(sum.at(0) == Approx(truth).epsilon(1e-6));
    for (std::size_t i = 0; i < c.size(); ++i) truth += c.at(i) * c.at(i);
    args.x = c.tensor();
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(sum.at(0) == Approx(truth).epsilon(1e-6));
    args.x = none.tensor();
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(norm.at(0) == Approx(std::sqrt(truth)).epsilon(1e-6));
    CHECK(clip.at(0) == Approx(0.5 / (std::sqrt(truth) + 1e-6)).epsilon(1e-6));
    args.max_norm = 1e9;
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(clip.at(0) == 1);
  });
}

TEST_CASE("global_norm shows a gradient that is not finite instead of hiding it") {
  array<float> x({10}), norm({}), clip({});
  array<double> sum({});
  velo_global_norm_args args = VELO_GLOBAL_NORM_ARGS_INIT;
  args.x = x.tensor(), args.sum_of_squares = sum.tensor(), args.norm = norm.tensor(),
  args.clip = clip.tensor();
  for_each_kernel("global_norm", [&](session& s) {
    x.fill(1);
    x[3] = HUGE_VALF;
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(norm.at(0) == HUGE_VAL);
    CHECK(clip.at(0) == 0);
    x[7] = std::nanf("");
    VELO_RUN(velo_global_norm(s.stream(), &args));
    CHECK(std::isnan(norm.at(0)));
    CHECK(std::isnan(clip.at(0)));
  });
  session s;
  args.sum_of_squares = norm.tensor();
  CHECK_REFUSED(velo_global_norm(s.stream(), &args), VELO_ERR_DTYPE, "args.sum_of_squares.dtype");
}
