// cast, element by element: exact one way, nearest even the other, special values kept.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;

TEST_CASE("cast rounds float32 to the nearest bfloat16, ties to even, and widens exactly") {
  for_each_kernel("cast", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 31, 1000, 70000}) {
      array<float> x({n}), back({n});
      array<bf16> y({n});
      x.fill(1, 1000);
      velo_cast_args args = VELO_CAST_ARGS_INIT;
      args.x = x.tensor(), args.y = y.tensor(), args.dtype = VELO_ELEMENT_BFLOAT16;
      VELO_RUN(velo_cast(s.stream(), &args));
      for (std::size_t i = 0; i < x.size(); ++i) {
        // The nearest multiple of the spacing 2^(e-7), where 2^e <= |x| < 2^(e+1).
        const double spacing = std::ldexp(1.0, std::ilogb(x.at(i)) - 7);
        REQUIRE(y.at(i) == std::nearbyint(x.at(i) / spacing) * spacing);
      }
      args.x = y.tensor(), args.y = back.tensor(), args.dtype = VELO_ELEMENT_FLOAT32;
      VELO_RUN(velo_cast(s.stream(), &args));
      for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(back.at(i) == y.at(i));
      CHECK((y.intact() && back.intact()));
    }
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
