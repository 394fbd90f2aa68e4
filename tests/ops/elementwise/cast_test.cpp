// cast, element by element: to the nearest, ties to even, and special values kept.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct format {
  int fraction_bits, least_exponent;
};
template <class T>
constexpr format format_of() {
  if (std::is_same_v<T, f16>) return {10, -14};
  return std::is_same_v<T, bf16> ? format{7, -126} : format{23, -126};
}

// x rounded to the nearest multiple of T's spacing, ties to even.
template <class T>
double nearest(double x) {
  const format of = format_of<T>();
  const int exponent = x == 0 ? of.least_exponent : std::max(std::ilogb(x), of.least_exponent);
  const double spacing = std::ldexp(1.0, exponent - of.fraction_bits);
  return std::nearbyint(x / spacing) * spacing;
}

template <class From, class To>
void check(session& s, std::int64_t n, std::int64_t dtype, double scale) {
  INFO("n " << n << ", to " << dtype << ", scale " << scale);
  array<From> x({n});
  array<To> y({n});
  x.fill(1, scale);
  velo_cast_args args = VELO_CAST_ARGS_INIT;
  args.x = x.tensor(), args.y = y.tensor(), args.dtype = dtype;
  VELO_RUN(velo_cast(s.stream(), &args));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y.at(i) == nearest<To>(x.at(i)));
  CHECK(y.intact());
}

}  // namespace

TEST_CASE("cast rounds to the nearest element of every type, ties to even") {
  for_each_kernel("cast", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 31, 1000, 70000}) {
      check<float, bf16>(s, n, VELO_ELEMENT_BFLOAT16, 1000);
      check<float, f16>(s, n, VELO_ELEMENT_FLOAT16, 1000);
      check<bf16, float>(s, n, VELO_ELEMENT_FLOAT32, 1000);
      check<f16, float>(s, n, VELO_ELEMENT_FLOAT32, 1000);
      check<bf16, f16>(s, n, VELO_ELEMENT_FLOAT16, 1000);
      check<f16, bf16>(s, n, VELO_ELEMENT_BFLOAT16, 1000);
    }
    check<float, f16>(s, 70000, VELO_ELEMENT_FLOAT16, 65504);
    check<float, f16>(s, 70000, VELO_ELEMENT_FLOAT16, 1e-5);  // denormals
    check<bf16, f16>(s, 1000, VELO_ELEMENT_FLOAT16, 1e-7);
    check<f16, float>(s, 1000, VELO_ELEMENT_FLOAT32, 1e-6);
  });
}

TEST_CASE("cast to float16 ends in infinity from 65520 on, and keeps signs and NaN") {
  for_each_kernel("cast", [](session& s) {
    array<float> x({20});
    array<f16> y({20});
    const float values[] = {65519.99f, 65520,    -1e30f,     HUGE_VALF,
                            -0.0f,     0x1p-25f, 0x1.8p-24f, std::nanf("")};
    for (std::size_t i = 0; i < 20; ++i) x[i] = values[i % 8];
    velo_cast_args args = VELO_CAST_ARGS_INIT;
    args.x = x.tensor(), args.y = y.tensor(), args.dtype = VELO_ELEMENT_FLOAT16;
    VELO_RUN(velo_cast(s.stream(), &args));
    const double wanted[] = {65504, HUGE_VAL, -HUGE_VAL, HUGE_VAL, 0, 0, 0x1p-23};
    for (std::size_t i = 0; i < 20; ++i) {
      INFO("element " << i);
      CHECK((i % 8 == 7 ? std::isnan(y.at(i)) : y.at(i) == wanted[i % 8]));
    }
    CHECK(std::signbit(y.at(4)));
  });
}

TEST_CASE("cast keeps infinities, zeros, denormals and NaN what they are") {
  for_each_kernel("cast", [](session& s) {
    array<float> x({20});
    array<bf16> y({20});
    const float values[] = {HUGE_VALF, -HUGE_VALF, 0.0f, -0.0f, 3.4e38f, 5e-39f};
    for (std::size_t i = 0; i < 20; ++i) x[i] = values[i % 6];
    std::uint32_t payload =
        0x7f800001u;  // a signaling NaN whose upper half alone would be infinity
    std::memcpy(&x[7], &payload, 4);
    velo_cast_args args = VELO_CAST_ARGS_INIT;
    args.x = x.tensor(), args.y = y.tensor(), args.dtype = VELO_ELEMENT_BFLOAT16;
    VELO_RUN(velo_cast(s.stream(), &args));
    CHECK(y.at(0) == HUGE_VAL);
    CHECK(y.at(1) == -HUGE_VAL);
    CHECK((y.at(2) == 0 && !std::signbit(y.at(2))));
    CHECK((y.at(3) == 0 && std::signbit(y.at(3))));
    CHECK(y.at(4) == HUGE_VAL);  // rounds up past the largest bfloat16
    CHECK(y.at(5) == Approx(5e-39).epsilon(0.02));
    CHECK(std::isnan(y.at(7)));
  });
}

TEST_CASE("cast between equal element types copies, and refuses an output of another type") {
  session s;
  array<float> x({100}), y({100});
  array<bf16> half({100});
  x.fill(1);
  velo_cast_args args = VELO_CAST_ARGS_INIT;
  args.x = x.tensor(), args.y = y.tensor();
  VELO_RUN(velo_cast(s.stream(), &args));
  CHECK(y.bytes() == x.bytes());
  args.y = half.tensor();
  CHECK_REFUSED(velo_cast(s.stream(), &args), VELO_ERR_DTYPE, "args.y.dtype");
  args.dtype = 7;
  CHECK_REFUSED(velo_cast(s.stream(), &args), VELO_ERR_ARGUMENT, "args.dtype");
}
