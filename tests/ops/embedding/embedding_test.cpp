// embedding and its gradient: rows by index, repeated indices, accumulation, and indices out of
// range.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T, class I>
void check(session& s, std::int64_t tokens, std::int64_t rows, std::int64_t n) {
  INFO("tokens " << tokens << ", rows " << rows << ", n " << n << ", bytes " << sizeof(T));
  array<I> ids({tokens});
  array<T> table({rows, n}), y({tokens, n}), dy({tokens, n});
  array<float> dtable({rows, n});
  table.fill(1), dy.fill(2), dtable.fill(3);
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t t = 0; t < ids.size(); ++t)
    ids[t] = static_cast<I>(t * 7919 % static_cast<std::size_t>(rows));
  velo_embedding_args f = VELO_EMBEDDING_ARGS_INIT;
  f.ids = ids.tensor(), f.table = table.tensor(), f.y = y.tensor();
  VELO_RUN(velo_embedding(s.stream(), &f));
  std::vector<double> truth(dtable.size());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const std::size_t row = static_cast<std::size_t>(ids[t]) * width;
    REQUIRE(std::memcmp(y.data() + t * width, table.data() + row, width * sizeof(T)) == 0);
    for (std::size_t i = 0; i < width; ++i) truth[row + i] += dy.at(t * width + i);
  }
  velo_embedding_backward_args b = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
  b.ids = ids.tensor(), b.dy = dy.tensor(), b.dtable = dtable.tensor(), b.rows = rows;
  VELO_RUN(velo_embedding_backward(s.stream(), &b));
  require_close(dtable, truth, 1e-6, 1e-5);
  b.accumulate = 1;
  for (double& d : truth) d *= 2;
  VELO_RUN(velo_embedding_backward(s.stream(), &b));
  require_close(dtable, truth, 1e-6, 1e-5);
}

}  // namespace

TEST_CASE("embedding copies rows and its gradient adds them back, for every kernel and dtype") {
  for_each_kernel("embedding_backward", [](session& s) {
    for (const std::int64_t n : {1, 15, 64, 300}) {
      check<float, std::int32_t>(s, 50, 11, n);
      check<bf16, std::int64_t>(s, 50, 11, n);
      check<f16, std::int64_t>(s, 50, 11, n);
    }
    check<float, std::int64_t>(s, 0, 4, 8);
    check<float, std::int32_t>(s, 3, 2, 0);
    check<bf16, std::int32_t>(s, 5000, 260, 512);
    check<f16, std::int32_t>(s, 5000, 260, 512);
    check<float, std::int32_t>(s, 40, 300, 1500);  // most rows without a token
  });
}

TEST_CASE("embedding writes large outputs around the cache with the same result") {
  for (const char* op : {"embedding", "embedding_backward"}) {
    for_each_kernel(op, [](session& s) { check<float, std::int32_t>(s, 4200, 4300, 2048); });
  }
}

TEST_CASE("embedding refuses an index out of range before it writes anything") {
  session s;
  array<std::int64_t> ids({3});
  array<float> table({4, 5}), y({3, 5}), dtable({4, 5});
  ids[0] = 0, ids[1] = 3;
  y.fill(1), dtable.fill(2);
  const auto y_before = y.bytes(), dtable_before = dtable.bytes();
  velo_embedding_args f = VELO_EMBEDDING_ARGS_INIT;
  f.ids = ids.tensor(), f.table = table.tensor(), f.y = y.tensor();
  velo_embedding_backward_args b = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
  b.ids = ids.tensor(), b.dy = table.tensor(), b.dtable = dtable.tensor(), b.rows = 4;
  CHECK_REFUSED(velo_embedding_backward(s.stream(), &b), VELO_ERR_SHAPE, "args.dy.shape");
  b.dy = y.tensor();
  for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    ids[2] = bad;
    CHECK_REFUSED(velo_embedding(s.stream(), &f), VELO_ERR_ARGUMENT, "args.ids");
    CHECK_REFUSED(velo_embedding_backward(s.stream(), &b), VELO_ERR_ARGUMENT, "args.ids");
  }
  CHECK(y.bytes() == y_before);
  CHECK(dtable.bytes() == dtable_before);
  f.ids = table.tensor();
  CHECK_REFUSED(velo_embedding(s.stream(), &f), VELO_ERR_DTYPE, "args.ids.dtype");
}
