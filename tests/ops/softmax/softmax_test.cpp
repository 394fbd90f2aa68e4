// softmax against its formula in double: every kernel, masks of every shape, in place, gradients by
// formula and by finite differences, rows without a sum, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void check(session& s, std::int64_t rows, std::int64_t n, double scale, bool masked,
           double range = 5) {
  INFO("rows " << rows << ", n " << n << ", scale " << scale << ", mask " << masked << ", bytes "
               << sizeof(T));
  array<T> x({2, rows, n}), y({2, rows, n}), dy({2, rows, n}), dx({2, rows, n});
  array<std::uint8_t> mask({rows, n});
  x.fill(1, range), dy.fill(2);
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i / width % 5 == 3 || i % 3 == 1;
  std::vector<double> truth(x.size()), dtruth(x.size());
  for (std::size_t r = 0; r < 2 * static_cast<std::size_t>(rows); ++r) {
    const auto seen = [&](std::size_t i) {
      return !masked || mask[r % static_cast<std::size_t>(rows) * width + i] == 0;
    };
    double largest = -1e300, sum = 0;
    for (std::size_t i = 0; i < width; ++i)
      if (seen(i)) largest = std::max(largest, scale * x.at(r * width + i));
    for (std::size_t i = 0; i < width; ++i)
      if (seen(i)) sum += std::exp(scale * x.at(r * width + i) - largest);
    for (std::size_t i = 0; i < width; ++i)
      if (seen(i)) truth[r * width + i] = std::exp(scale * x.at(r * width + i) - largest) / sum;
  }
  velo_softmax_args f = VELO_SOFTMAX_ARGS_INIT;
  f.x = x.tensor(), f.y = y.tensor(), f.scale = scale;
  if (masked) f.mask = mask.tensor();
  VELO_RUN(velo_softmax(s.stream(), &f));
  require_close(y, truth, rounding<T>() + 3e-6, 1e-20);
  for (std::size_t r = 0; r < 2 * static_cast<std::size_t>(rows); ++r) {
    double sum = 0;
    for (std::size_t i = r * width; i < (r + 1) * width; ++i) sum += dy.at(i) * y.at(i);
    for (std::size_t i = r * width; i < (r + 1) * width; ++i)
      dtruth[i] = scale * y.at(i) * (dy.at(i) - sum);
  }
  velo_softmax_backward_args b = VELO_SOFTMAX_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.y = y.tensor(), b.dx = dx.tensor(), b.scale = scale;
  VELO_RUN(velo_softmax_backward(s.stream(), &b));
  require_close(dx, dtruth, rounding<T>(), 3e-6 * scale);
  f.y = f.x;
  VELO_RUN(velo_softmax(s.stream(), &f));
  CHECK(x.bytes() == y.bytes());
  b.dx = b.dy;
  VELO_RUN(velo_softmax_backward(s.stream(), &b));
  CHECK(dy.bytes() == dx.bytes());
}

}  // namespace

TEST_CASE("softmax and its gradient agree with the formula for every kernel, size, mask, dtype") {
  for (const char* op : {"softmax", "softmax_backward"}) {
    for_each_kernel(op, [](session& s) {
      for (const std::int64_t n : {0, 1, 2, 15, 16, 33, 100, 1000, 5000}) {
        for (const bool masked : {false, true}) {
          check<float>(s, 7, n, 1, masked);
          check<bf16>(s, 7, n, 0.125, masked);
          check<f16>(s, 7, n, 0.125, masked);
        }
      }
      check<float>(s, 3, 200, 1, true, 300);   // most are 0
      check<float>(s, 3, 200, 3, true, 1e4f);  // a product that a rounding would shift
      check<float>(s, 0, 8, 1, false);
    });
  }
}

TEST_CASE("softmax writes large outputs around the cache with the same result") {
  for (const char* op : {"softmax", "softmax_backward"})
    for_each_kernel(op, [](session& s) { check<float>(s, 2500, 2048, 1, true); });
}

TEST_CASE("softmax broadcasts a mask over the dimensions where its size is 1") {
  for_each_kernel("softmax", [](session& s) {
    array<float> x({2, 3, 4, 5}), y({2, 3, 4, 5}), whole({2, 3, 4, 5});
    array<std::uint8_t> mask({2, 1, 4, 5}), wide({2, 3, 4, 5});
    x.fill(1);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0;
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = mask[i / 60 * 20 + i % 20];
    velo_softmax_args f = VELO_SOFTMAX_ARGS_INIT;
    f.x = x.tensor(), f.y = y.tensor(), f.mask = mask.tensor();
    VELO_RUN(velo_softmax(s.stream(), &f));
    f.y = whole.tensor(), f.mask = wide.tensor();
    VELO_RUN(velo_softmax(s.stream(), &f));
    CHECK(y.bytes() == whole.bytes());
  });
}

TEST_CASE("softmax gives NaN where no sum is defined, and 0 where the mask hides even then") {
  for_each_kernel("softmax", [](session& s) {
    for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      array<float> x({2, 3}), y({2, 3});
      array<std::uint8_t> mask({2, 3});
      x.fill(1), mask[1] = mask[2] = 1;
      mask[0] = mask[3] = mask[4] = mask[5] = 0;
      x[0] = bad, x[2] = std::nanf("");
      velo_softmax_args f = VELO_SOFTMAX_ARGS_INIT;
      f.x = x.tensor(), f.y = y.tensor(), f.mask = mask.tensor();
      VELO_RUN(velo_softmax(s.stream(), &f));
      CHECK(std::isnan(y.at(0)));
      CHECK((y.at(1) == 0 && y.at(2) == 0));
      CHECK(y.at(3) + y.at(4) + y.at(5) == Approx(1));
    }
  });
}

TEST_CASE("the gradient of softmax is its slope") {
  session s(1, R"({"level": 0})");
  array<float> x({2, 6}), y({2, 6}), dy({2, 6}), dx({2, 6});
  x.fill(1, 2), dy.fill(2);
  velo_softmax_args f = VELO_SOFTMAX_ARGS_INIT;
  f.x = x.tensor(), f.y = y.tensor(), f.scale = 0.5;
  VELO_RUN(velo_softmax(s.stream(), &f));
  velo_softmax_backward_args b = VELO_SOFTMAX_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.y = y.tensor(), b.dx = dx.tensor(), b.scale = 0.5;
  VELO_RUN(velo_softmax_backward(s.stream(), &b));
  check_slope(x, dx, [&] {
    VELO_RUN(velo_softmax(s.stream(), &f));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  });
}

TEST_CASE("softmax refuses what does not fit, by name") {
  session s;
  array<float> x({2, 3, 4}), y({2, 3, 4}), other({2, 3, 5});
  array<std::uint8_t> last({3, 5}), middle({2, 4}), deep({1, 1, 3, 4});
  array<float> real({3, 4});
  using args = velo_softmax_args;
  args valid = VELO_SOFTMAX_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor();
  check_refusals(s, velo_softmax, valid, y,
                 {{[&](args& f) { f.mask = last.tensor(); }, VELO_ERR_SHAPE, "args.mask.shape"},
                  {[&](args& f) { f.mask = middle.tensor(); }, VELO_ERR_SHAPE, "args.mask.shape"},
                  {[&](args& f) { f.mask = deep.tensor(); }, VELO_ERR_RANK, "args.mask.ndim"},
                  {[&](args& f) { f.mask = real.tensor(); }, VELO_ERR_DTYPE, "args.mask.dtype"},
                  {[&](args& f) { f.scale = HUGE_VAL; }, VELO_ERR_ARGUMENT, "args.scale"},
                  {[&](args& f) { f.y = other.tensor(); }, VELO_ERR_SHAPE, "args.y.shape"}});
  velo_softmax_backward_args b = VELO_SOFTMAX_BACKWARD_ARGS_INIT;
  b.dy = x.tensor(), b.y = other.tensor(), b.dx = y.tensor();
  CHECK_REFUSED(velo_softmax_backward(s.stream(), &b), VELO_ERR_SHAPE, "args.y.shape");
}
