// Results in panels, sums with addends, and second outputs, against the plain product and a sum of
// its elements, bit for bit, denormals among them. Bias and accumulation are tested in gemm_test.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/simd/scalar.hpp"
#include "ops/gemm/pack/panel_matrix.hpp"
#include "tests/ops/gemm/packed_weight.hpp"
#include "tests/ops/isas.hpp"

using namespace velo::ops;
using velo::core::isa;
using velo::simd::bf16;
using velo::simd::f16;
using namespace velo::testing;

namespace {

bool has_bits(const void* one, const void* other, std::size_t bytes) {
  return std::memcmp(one, other, bytes) == 0;
}

// Products of several left sides by one packed weight.
template <class T>
struct product {
  std::int64_t m, n, k;
  isa on;
  packed_weight<T> weight;

  product(std::int64_t m_, std::int64_t n_, std::int64_t k_, isa on_, float scale)
      : m(m_), n(n_), k(k_), on(on_), weight(k_, n_, on_, static_cast<double>(scale)) {}
  static constexpr element_type type() { return element_type_of<T>(); }
  int panel() const { return weight.pack.panel(); }
  // Multiplies in two calls, as for rows from two matrices.
  void run(const std::vector<T>& x, gemm_problem p) const {
    const std::int64_t cut = m / 3;
    for (const auto& [first, rows] : {std::pair{std::int64_t{0}, cut}, {cut, m - cut}}) {
      gemm_problem part = p;
      part.m = rows, part.n = n, part.k = k, part.type = part.c_type = type();
      part.a = x.data() + first * k, part.lda = k;
      part.packed_b = &weight.pack;
      part.epilogue.panels = {m, first};
      if (p.c_layout == matrix_layout::rows) part.c = static_cast<T*>(p.c) + first * p.ldc;
      second_output& second = part.epilogue.second;
      if (second.data != nullptr && second.layout == matrix_layout::rows)
        second.data = static_cast<T*>(second.data) + first * second.ld;
      aligned_memory scratch(gemm_scratch_bytes(part, 1, on));
      gemm(part, one_by_one(), scratch.start, on);
    }
  }
};

// Second outputs: in panels, which are copied back to rows further apart than they are long, and,
// where rows are lines, in rows.
template <class T>
void check_second(const product<T>& one, gemm_problem p, const std::vector<T>& x,
                  const std::vector<T>& sums) {
  const auto count = sums.size();
  std::vector<T> again(count);
  aligned_memory panels(count * sizeof(T));
  p.c = again.data(), p.epilogue.second = {panels.start, 0, matrix_layout::panels};
  one.run(x, p);
  CHECK(has_bits(again.data(), sums.data(), count * sizeof(T)));
  for (const std::int64_t ld : {one.n, (one.n + 31) / 32 * 32, one.n + 3}) {
    const auto row = static_cast<std::size_t>(ld) * sizeof(T);
    aligned_memory rows(static_cast<std::size_t>(one.m) * row);
    std::memset(rows.start, 0x5a, static_cast<std::size_t>(one.m) * row);
    copy_to_rows({panels.start, one.m, one.n, one.panel(), one.type()}, rows.start, ld,
                 one_by_one(), one.on);
    bool same = true, kept = true;
    for (std::int64_t i = 0; i < one.m; ++i) {
      const unsigned char* at = rows.start + static_cast<std::size_t>(i) * row;
      const auto bytes = static_cast<std::size_t>(one.n) * sizeof(T);
      same &= has_bits(at, &sums[static_cast<std::size_t>(i * one.n)], bytes);
      for (std::size_t byte = bytes; byte < row; ++byte) kept &= at[byte] == 0x5a;
    }
    INFO("rows " << ld << " apart");
    CHECK(same);
    CHECK(kept);
  }
  if (static_cast<std::size_t>(one.n) * sizeof(T) % 64 != 0) return;
  aligned_memory rows(count * sizeof(T));
  p.epilogue.second = {rows.start, one.n};
  one.run(x, p);
  CHECK(has_bits(rows.start, sums.data(), count * sizeof(T)));
}

template <class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, isa on, int terms, float scale) {
  const product<T> one(m, n, k, on, scale);
  const auto count = static_cast<std::size_t>(m * n);
  std::vector<std::vector<T>> plain, xs;
  std::vector<aligned_memory> in_panels;
  std::vector<const void*> matrices;
  bool same = true;
  for (int term = 0; term < terms; ++term) {
    xs.push_back(random_elements<T>(m * k, static_cast<std::uint32_t>(10 + term),
                                    static_cast<double>(scale)));
    plain.emplace_back(count);
    gemm_problem p;
    p.c = plain.back().data(), p.ldc = n;
    one.run(xs.back(), p);
    in_panels.emplace_back(count * sizeof(T));
    p.c = in_panels.back().start, p.c_layout = matrix_layout::panels;
    one.run(xs.back(), p);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t panel = one.panel(), first = j / panel * panel;
        const std::int64_t columns = std::min(panel, n - first);
        const std::int64_t index = first * m + i * columns + j - first;
        same &= has_bits(in_panels.back().start + static_cast<std::size_t>(index) * sizeof(T),
                         &plain.back()[static_cast<std::size_t>(i * n + j)], sizeof(T));
      }
  }
  CHECK(same);
  for (const aligned_memory& each : in_panels) matrices.push_back(each.start);
  for (int position = 0; position < terms; ++position) {
    std::vector<T> sums(count);
    gemm_problem p;
    p.c = sums.data(), p.ldc = n;
    std::vector<const void*> addends = matrices;
    addends[static_cast<std::size_t>(position)] = nullptr;
    p.epilogue.addends = {addends.data(), terms, position};
    one.run(xs[static_cast<std::size_t>(position)], p);
    check_second(one, p, xs[static_cast<std::size_t>(position)], sums);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      float sum = velo::simd::to_float(plain[0][i]);
      for (std::size_t term = 1; term < plain.size(); ++term)
        sum += velo::simd::to_float(plain[term][i]);
      T wanted;
      velo::simd::assign(wanted, static_cast<double>(sum));
      wrong += has_bits(&wanted, &sums[i], sizeof(T)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("results in panels and sums with addends have the bits of product and sum") {
  for (int number = 0; number < isa_count(); ++number)
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 48, 40},
                                  {8, 96, 64},
                                  {33, 97, 20},
                                  {100, 130, 1100},
                                  {300, 500, 30},
                                  {40, 7, 0}})
      for (const int terms : {2, 3})
        for (const float scale : {1.0f, 4e-19f}) {
          if (number == 0 && k > 1000) continue;  // plain code is slow
          INFO("isa " << number << ": " << m << " " << n << " " << k << ", " << terms
                      << " terms, scale " << scale);
          check<float>(m, n, k, static_cast<isa>(number), terms, scale);
          check<bf16>(m, n, k, static_cast<isa>(number), terms, scale);
          check<f16>(m, n, k, static_cast<isa>(number), terms, scale == 1.0f ? 1.0f : 5e-4f);
        }
}
