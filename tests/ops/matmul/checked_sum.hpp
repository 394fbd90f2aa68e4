// A sum of products in double, and whether a computed value lies within the bound of the same sum
// in float32, rounded once: the a-priori bound of its additions and a rounding to T.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

struct checked_sum {
  double sum = 0, size = 0;  // size: of all magnitudes
  std::int64_t terms = 0;

  void add(double term) { sum += term, size += std::abs(term), ++terms; }
  // A number beside the products, of magnitude 1 at most.
  void start(double number) { sum += number, size += 1; }

  template <class T>
  bool covers(double got) const {
    const double denormal = std::is_same_v<T, simd::f16> ? 0x1p-25 : 0;
    const double bound = size * 0x1p-24 * (3 + std::sqrt(static_cast<double>(terms))) +
                         std::abs(sum) * rounding<T>() + denormal;
    return std::abs(got - sum) <= bound;
  }
  template <class T>
  void require(double got) const {
    if (!covers<T>(got)) FAIL("got " << got << ", truth " << sum);
  }
};

}  // namespace velo::testing
