// dropout of parts of a whole: each part drops what the whole drops, for every kernel and dtype,
// forward and gradient; places that do not fit are refused by name.
#include "core/simd/philox.hpp"
#include "tests/ops/parts.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// The tensors of a forward and a gradient call.
template <class T>
struct calls {
  array<T> x, y, dy, dx;
  array<std::uint8_t> mask;

  explicit calls(const extents& shape) : x(shape), y(shape), dy(shape), dx(shape), mask(shape) {}

  void run(session& s, const velo_ints* origin = nullptr, const velo_ints* sizes = nullptr) {
    velo_dropout_args f = VELO_DROPOUT_ARGS_INIT;
    f.x = x.tensor(), f.y = y.tensor(), f.mask = mask.tensor();
    velo_dropout_backward_args b = VELO_DROPOUT_BACKWARD_ARGS_INIT;
    b.dy = dy.tensor(), b.dx = dx.tensor();
    f.p = b.p = 0.3, f.seed = b.seed = 1234, f.offset = b.offset = 5;
    f.dropout_origin = b.dropout_origin = origin, f.dropout_extents = b.dropout_extents = sizes;
    VELO_RUN(velo_dropout(s.stream(), &f));
    VELO_RUN(velo_dropout_backward(s.stream(), &b));
  }
};

template <class T>
void check_part(session& s, const part& of, const calls<T>& whole) {
  INFO("origin " << Catch::Detail::stringify(of.origin) << ", shape "
                 << Catch::Detail::stringify(of.shape) << " of "
                 << Catch::Detail::stringify(of.whole) << ", bytes " << sizeof(T));
  calls<T> mine(of.shape);
  of.take(mine.x, whole.x), of.take(mine.dy, whole.dy);
  const velo_ints origin = list_of(of.origin), sizes = list_of(of.whole);
  mine.run(s, &origin, &sizes);
  CHECK(of.agrees(mine.y, whole.y));
  CHECK(of.agrees(mine.mask, whole.mask));
  CHECK(of.agrees(mine.dx, whole.dx));
}

template <class T>
void check_parts(session& s) {
  for (const extents& shape : {extents{53}, {7, 41}, {5, 33, 64}, {3, 4, 5, 3}, {40, 1030}}) {
    calls<T> whole(shape);
    whole.x.fill(1), whole.dy.fill(2);
    whole.run(s);
    for (const part& one : parts_of(shape)) check_part(s, one, whole);
  }
}

}  // namespace

TEST_CASE("parts of a tensor drop what the whole drops, for every kernel and dtype") {
  for (const char* op : {"dropout", "dropout_backward"})
    for_each_kernel(
        op, [](session& s) { check_parts<float>(s), check_parts<bf16>(s), check_parts<f16>(s); });
}

TEST_CASE("large parts are written around the cache with the decisions of the whole") {
  for_each_kernel(
      "dropout",
      [](session& s) {
        calls<float> whole({2304, 4160});
        whole.x.fill(1), whole.dy.fill(2);
        whole.run(s);
        check_part(s, {{0, 48}, {2304, 4096}, {2304, 4160}}, whole);  // rows of whole lines
      },
      2);
}

TEST_CASE("an index counts modulo 2^64, and parts of nothing are nothing") {
  session s;
  constexpr std::int64_t most = std::int64_t{1} << 62;
  calls<float> x({1, 2, 3});
  x.x.fill(1), x.dy.fill(2);
  const extents from = {3, 5, 1}, in = {most, most, 7};
  const velo_ints origin = list_of(from), sizes = list_of(in);
  x.run(s, &origin, &sizes);
  const auto rule = velo::simd::dropout_of(0.3, 1234, 5);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::uint64_t index =
        ((3 * static_cast<std::uint64_t>(most)) + 5 + i / 3) * 7 + 1 + i % 3;
    CHECK(x.mask[i] == (velo::simd::dropout_multiplier(rule, index) != 0));
  }
  calls<float> none({0, 4}), one(extents{});
  const extents zero = {0, 0}, some = {2, 4}, nowhere;
  const velo_ints begin = list_of(zero), all = list_of(some), no_values = list_of(nowhere);
  none.run(s, &begin, &all);
  one.x.fill(1), one.dy.fill(2);
  one.run(s, &no_values, &no_values);
  CHECK(one.mask[0] == (velo::simd::dropout_multiplier(rule, 0) != 0));
}

TEST_CASE("dropout and its gradient refuse places that do not fit, by name") {
  session s;
  array<float> x({3, 4}), y({3, 4});
  x.fill(1), y.fill(2);
  velo_dropout_args f = VELO_DROPOUT_ARGS_INIT;
  f.x = x.tensor(), f.y = y.tensor();
  check_places(s, velo_dropout, f, y);
  velo_dropout_backward_args b = VELO_DROPOUT_BACKWARD_ARGS_INIT;
  b.dy = x.tensor(), b.dx = y.tensor();
  check_places(s, velo_dropout_backward, b, y);
}
