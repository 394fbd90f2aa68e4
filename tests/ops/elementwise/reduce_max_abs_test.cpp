// reduce_max_abs against plain loops: every kernel, what is reduced, sizes, dtypes, NaN, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void check(session& s, std::int64_t rows, std::int64_t n) {
  INFO("rows " << rows << ", n " << n << ", bytes " << sizeof(T));
  array<T> x({rows, n});
  x.fill(1, 9);
  if (x.size() > 40) velo::simd::assign(x[40], std::nan(""));
  const auto larger = [](double& a, double b) { a = std::isnan(a) || a > b ? a : b; };
  std::vector<double> all(1), by_row(static_cast<std::size_t>(rows)),
      by_column(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = std::abs(x.at(i));
    larger(all[0], size);
    larger(by_row[i / by_column.size()], size);
    larger(by_column[i % by_column.size()], size);
  }
  array<float> whole({}), row({rows}), column({n});
  velo_reduce_max_abs_args args = VELO_REDUCE_MAX_ABS_ARGS_INIT;
  args.x = x.tensor(), args.y = whole.tensor();
  VELO_RUN(velo_reduce_max_abs(s.stream(), &args));
  require_close(whole, all, 0, 0);
  args.over = VELO_REDUCED_ROWS, args.y = row.tensor();
  VELO_RUN(velo_reduce_max_abs(s.stream(), &args));
  require_close(row, by_row, 0, 0);
  args.over = VELO_REDUCED_COLUMNS, args.y = column.tensor();
  VELO_RUN(velo_reduce_max_abs(s.stream(), &args));
  require_close(column, by_column, 0, 0);
}

}  // namespace

TEST_CASE("reduce_max_abs agrees with plain loops for every kernel, size, dtype, also with NaN") {
  for_each_kernel("reduce_max_abs", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 33, 1000}) {
      check<float>(s, 7, n);
      check<bf16>(s, 70, n);
      check<f16>(s, 1, n);
    }
    check<float>(s, 0, 8);
    check<float>(s, 600, 300);
  });
}

TEST_CASE("reduce_max_abs refuses what does not fit, by name") {
  session s;
  array<float> x({4, 3}), y({3}), scalar({});
  velo_reduce_max_abs_args args = VELO_REDUCE_MAX_ABS_ARGS_INIT;
  args.x = x.tensor(), args.y = y.tensor();
  CHECK_REFUSED(velo_reduce_max_abs(s.stream(), &args), VELO_ERR_RANK, "args.y.shape");
  args.over = VELO_REDUCED_ROWS;
  CHECK_REFUSED(velo_reduce_max_abs(s.stream(), &args), VELO_ERR_SHAPE, "args.y.shape");
  args.x = scalar.tensor();
  CHECK_REFUSED(velo_reduce_max_abs(s.stream(), &args), VELO_ERR_RANK, "args.x.ndim");
}
