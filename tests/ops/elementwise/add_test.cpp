// add against its formula: every kernel, tails, in place, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void check(session& s, std::int64_t n) {
  INFO("n " << n << ", bytes " << sizeof(T));
  array<T> a({n}), b({n}), y({n});
  a.fill(1), b.fill(2);
  std::vector<double> truth(a.size());
  for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = a.at(i) + b.at(i);
  velo_add_args args = VELO_ADD_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.y = y.tensor();
  VELO_RUN(velo_add(s.stream(), &args));
  require_close(y, truth, rounding<T>(), 0);
  args.y = args.b;
  VELO_RUN(velo_add(s.stream(), &args));
  require_close(b, truth, rounding<T>(), 0);
}

}  // namespace

TEST_CASE("add agrees with its formula for every kernel, size and dtype, also in place") {
  for_each_kernel("add", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 33, 1000, 70000})
      check<float>(s, n), check<bf16>(s, n), check<f16>(s, n);
  });
}

TEST_CASE("add writes large outputs around the cache with the same result") {
  for_each_kernel("add", [](session& s) { check<float>(s, 9 << 20); });
}

TEST_CASE("add refuses what does not fit, by name") {
  session s;
  array<float> a({4}), b({5}), y({4});
  array<bf16> half({4});
  velo_add_args args = VELO_ADD_ARGS_INIT;
  args.a = a.tensor(), args.y = y.tensor(), args.b = b.tensor();
  CHECK_REFUSED(velo_add(s.stream(), &args), VELO_ERR_SHAPE, "args.b.shape");
  args.b = half.tensor();
  CHECK_REFUSED(velo_add(s.stream(), &args), VELO_ERR_DTYPE, "args.b.dtype");
  args.b = args.a, args.y = half.tensor();
  CHECK_REFUSED(velo_add(s.stream(), &args), VELO_ERR_DTYPE, "args.y.dtype");
}
