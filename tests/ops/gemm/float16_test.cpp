// Products of float16: operands multiplied as they are, sums in float32, one rounding at the end.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/ops/gemm/packed_weight.hpp"
#include "tests/ops/isas.hpp"

using namespace velo::ops;
using namespace velo::testing;
using velo::core::isa;
using velo::simd::f16;
using velo::simd::to_f16;
using velo::simd::to_float;

namespace {

struct shape {
  std::int64_t m, n, k;
};

// The ways in which a product reads its operands.
struct reading {
  bool transpose_a, transpose_b, packed;
};
template <class Body>
void for_each_reading(const Body& body) {
  for (const isa on : tested_isas())
    for (int bits = 0; bits < 8; ++bits) {
      INFO("isa " << static_cast<int>(on) << ", transposed " << (bits & 1) << (bits & 2)
                  << ", packed " << (bits & 4));
      body(on, reading{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
    }
}

template <class T>
std::vector<T> transposed_if(bool transpose, const std::vector<T>& x, std::int64_t rows) {
  if (!transpose || x.empty()) return x;
  std::vector<T> turned(x.size());
  const auto height = static_cast<std::size_t>(rows), width = x.size() / height;
  for (std::size_t i = 0; i < x.size(); ++i) turned[i % width * height + i / width] = x[i];
  return turned;
}

// C of the rows `a` by the rows `b`.
template <class C, class T>
std::vector<C> multiply(isa on, const reading& how, const shape& s, const std::vector<T>& a,
                        const std::vector<T>& b) {
  const std::vector<T> left = transposed_if(how.transpose_a, a, s.m);
  const std::vector<T> right = transposed_if(how.transpose_b, b, s.k);
  std::vector<C> c(static_cast<std::size_t>(s.m * s.n));
  gemm_problem p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.type = element_type_of<T>(), p.c_type = element_type_of<C>();
  p.a = left.data(), p.lda = how.transpose_a ? s.m : s.k, p.transpose_a = how.transpose_a;
  p.b = right.data(), p.ldb = how.transpose_b ? s.k : s.n, p.transpose_b = how.transpose_b;
  p.c = c.data(), p.ldc = s.n;
  packed_matrix pack(s.k, s.n, p.type, on);
  const aligned_memory pack_memory(how.packed ? pack.bytes() : 0);
  if (how.packed) {
    pack.set_memory(pack_memory.start);
    pack.update(p.b, p.ldb, p.transpose_b, one_by_one());
    p.packed_b = &pack;
    p.b = nullptr;
  }
  const aligned_memory scratch(gemm_scratch_bytes(p, 1, on));
  gemm(p, one_by_one(), scratch.start, on);
  return c;
}

std::vector<float> widened(const std::vector<f16>& from) {
  std::vector<float> to;
  for (const f16 x : from) to.push_back(to_float(x));
  return to;
}

// Whether all elements are `wanted`, NaN being equal to NaN.
template <class C>
bool all_are(const std::vector<C>& c, double wanted) {
  bool same = true;
  for (const C x : c) {
    const auto value = static_cast<double>(to_float(x));
    same = same && (std::isnan(wanted) ? std::isnan(value) : value == wanted);
  }
  return same;
}

// x * y + z, and what C holds then.
struct one_case {
  double x, y, z, as_float32, as_float16;
};

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double largest = 65504, least = 0x1p-24, next_to_1 = 1 + 0x1p-10;
constexpr one_case cases[] = {
    {next_to_1, next_to_1, 0, next_to_1* next_to_1, 1 + 0x1p-9},
    {next_to_1, 1 - 0x1p-11, 0, next_to_1*(1 - 0x1p-11), 1},
    {least, 1, 0, least, least},
    {least, 0.5, 0, least / 2, 0},
    {least, 0.75, 0, 0.75 * least, least},
    {3 * least, 0.5, 0, 1.5 * least, 2 * least},
    {least, -1, 3 * least, 2 * least, 2 * least},
    {least, least, 0, least* least, 0},
    {least, largest, 0, least* largest, least* largest},
    {largest, 1, 0, largest, largest},
    {largest, 1, 15, largest + 15, largest},
    {largest, 1, 16, largest + 16, inf},
    {largest, 2, 0, 2 * largest, inf},
    {-largest, largest, 0, -largest* largest, -inf},
    {largest, largest, -inf, -inf, -inf},
    {inf, 1, 0, inf, inf},
    {inf, 0, 0, nan, nan},
    {inf, 1, -inf, nan, nan},
    {nan, 1, 0, nan, nan},
};

}  // namespace

// The three terms of an element have 22 bits each, so their sum is exact in float32.
TEST_CASE("elements of float16 are multiplied unrounded") {
  for_each_reading([](isa on, const reading& how) {
    for (const shape& s : {shape{1, 100, 40}, {5, 7, 3}, {16, 48, 40}, {40, 150, 33}}) {
      std::vector<f16> a(static_cast<std::size_t>(s.m * s.k)),
          b(static_cast<std::size_t>(s.k * s.n));
      const std::int64_t depths[] = {0, s.k / 2, s.k - 1};
      const auto bits = [](std::int64_t i) { return 1024 + static_cast<double>(i * 389 % 1024); };
      const auto left = [&](std::int64_t i, std::int64_t d) {
        return bits(i + 7 * d + 1) * 0x1p-10;
      };
      const auto right = [&](std::int64_t d, std::int64_t j) { return bits(3 * d + j) * 0x1p-10; };
      for (const std::int64_t d : depths) {
        for (std::int64_t i = 0; i < s.m; ++i)
          velo::simd::assign(a[static_cast<std::size_t>(i * s.k + d)], left(i, d));
        for (std::int64_t j = 0; j < s.n; ++j)
          velo::simd::assign(b[static_cast<std::size_t>(d * s.n + j)], right(d, j));
      }
      const std::vector<float> c = multiply<float>(on, how, s, a, b);
      bool same = true;
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = 0;
          for (const std::int64_t d : depths) sum += left(i, d) * right(d, j);
          same = same && static_cast<double>(c[static_cast<std::size_t>(i * s.n + j)]) == sum;
        }
      CHECK(same);
    }
  });
}

TEST_CASE("results of float16 are rounded once, from denormals to infinity, NaN among them") {
  for_each_reading([](isa on, const reading& how) {
    const shape s{9, 50, 2};
    for (const one_case& one : cases) {
      std::vector<f16> a(18), b(100);
      for (std::size_t i = 0; i < 9; ++i) {
        velo::simd::assign(a[2 * i], one.x);
        velo::simd::assign(a[2 * i + 1], one.z);
      }
      for (std::size_t j = 0; j < 50; ++j) {
        velo::simd::assign(b[j], one.y);
        velo::simd::assign(b[50 + j], 1.0);
      }
      INFO(one.x << " * " << one.y << " + " << one.z);
      CHECK(all_are(multiply<float>(on, how, s, a, b), one.as_float32));
      CHECK(all_are(multiply<f16>(on, how, s, a, b), one.as_float16));
    }
  });
}

TEST_CASE("products of float16 have the bits of the float32 products of the same numbers") {
  for_each_reading([](isa on, const reading& how) {
    for (const shape& s : {shape{1, 300, 700}, {64, 64, 64}, {45, 500, 1300}}) {
      if (on == isa::scalar && s.k > 1000) continue;  // plain code is slow
      const std::vector<f16> a = random_elements<f16>(s.m * s.k, 5);
      const std::vector<f16> b = random_elements<f16>(s.k * s.n, 6);
      const std::vector<float> wide = multiply<float>(on, how, s, widened(a), widened(b));
      CHECK((multiply<float>(on, how, s, a, b) == wide));
      const std::vector<f16> c = multiply<f16>(on, how, s, a, b);
      bool same = true;
      for (std::size_t i = 0; i < c.size(); ++i) same = same && c[i].bits == to_f16(wide[i]).bits;
      CHECK(same);
    }
  });
}
