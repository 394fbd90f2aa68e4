// accumulate against its formula: every kernel, all pairs of dtypes, tails, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class From, class To>
void check_types(session& s, std::int64_t n, float alpha) {
  INFO("n " << n << ", bytes " << sizeof(From) << " to " << sizeof(To));
  array<From> x({n});
  array<To> y({n});
  x.fill(1), y.fill(2);
  std::vector<double> truth(x.size());
  for (std::size_t i = 0; i < truth.size(); ++i)
    truth[i] = y.at(i) + static_cast<double>(alpha) * x.at(i);
  velo_accumulate_args args = VELO_ACCUMULATE_ARGS_INIT;
  args.x = x.tensor(), args.y = y.tensor(), args.alpha = static_cast<double>(alpha);
  VELO_RUN(velo_accumulate(s.stream(), &args));
  require_close(y, truth, sizeof(To) == 4 ? 6e-8 : rounding<To>() + 1e-5, 0);
}

template <class From>
void check_from(session& s, std::int64_t n) {
  check_types<From, float>(s, n, -0.3f);
  check_types<From, bf16>(s, n, 1);
  check_types<From, f16>(s, n, 2.5f);
}

}  // namespace

TEST_CASE("accumulate agrees with its formula for every kernel, size and pair of dtypes") {
  for_each_kernel("accumulate", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 33, 1000, 70000})
      check_from<float>(s, n), check_from<bf16>(s, n), check_from<f16>(s, n);
  });
}

TEST_CASE("accumulate refuses what does not fit, by name") {
  session s;
  array<float> x({4}), y({5});
  array<std::int32_t> whole({4});
  velo_accumulate_args args = VELO_ACCUMULATE_ARGS_INIT;
  args.x = x.tensor(), args.y = y.tensor();
  CHECK_REFUSED(velo_accumulate(s.stream(), &args), VELO_ERR_SHAPE, "args.y.shape");
  args.y = whole.tensor();
  CHECK_REFUSED(velo_accumulate(s.stream(), &args), VELO_ERR_DTYPE, "args.y.dtype");
}
