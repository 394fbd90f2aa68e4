// Products that ranks sum as they are finished: blocks in panels for a peer, and sums with the
// blocks of peers, against the plain product and a sum of its elements, bit for bit, denormals
// among them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/simd/scalar.hpp"
#include "ops/gemm/gemm.hpp"
#include "tests/ops/isas.hpp"
#include "tests/ops/one_by_one.hpp"

using namespace velo::ops;
using velo::core::isa;
using velo::simd::bf16;
using velo::testing::isa_count;
using velo::testing::one_by_one;

namespace {

// Memory that begins at a line.
class lines {
 public:
  explicit lines(std::size_t bytes) : bytes_(bytes + 64) {}
  unsigned char* data() {
    const auto off = reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64;
    return bytes_.data() + (64 - off) % 64;
  }

 private:
  std::vector<unsigned char> bytes_;
};

template <class T>
std::vector<T> drawn(std::int64_t count, int seed, float scale) {
  std::vector<T> all(static_cast<std::size_t>(count));
  auto state = static_cast<std::uint32_t>(seed) * 2654435761u + 1;
  for (T& one : all) {
    state = state * 1664525u + 1013904223u;
    velo::simd::assign(one, (static_cast<double>(state >> 8) / (1 << 23) - 1) * scale);
  }
  return all;
}

bool has_bits(const void* one, const void* other, std::size_t bytes) {
  return std::memcmp(one, other, bytes) == 0;
}

// A product of one rank: x of its own by the weight.
template <class T>
struct ranked {
  std::int64_t m, n, k;
  isa on;
  std::vector<T> weight;
  packed_matrix pack;
  lines packed;

  ranked(std::int64_t m_, std::int64_t n_, std::int64_t k_, isa on_, float scale)
      : m(m_),
        n(n_),
        k(k_),
        on(on_),
        weight(drawn<T>(k_ * n_, 1, scale)),
        pack(k_, n_, type(), on_),
        packed(pack.bytes()) {
    pack.place(packed.data());
    pack.update(weight.data(), n, false, one_by_one());
  }
  static constexpr element_type type() {
    return sizeof(T) == 2 ? element_type::bf16 : element_type::f32;
  }
  // In two calls, as of rows from two places.
  void run(const std::vector<T>& x, gemm_problem p) const {
    const std::int64_t cut = m / 3;
    for (const auto& [first, rows] : {std::pair{std::int64_t{0}, cut}, {cut, m - cut}}) {
      gemm_problem part = p;
      part.m = rows, part.n = n, part.k = k, part.type = part.c_type = type();
      part.a = x.data() + first * k, part.lda = k;
      part.block = {m, first};
      if (!p.to_block) part.c = static_cast<T*>(p.c) + first * p.ldc;
      if (p.twin != nullptr && !p.twin_is_block)
        part.twin = static_cast<T*>(p.twin) + first * p.ldc;
      lines scratch(gemm_scratch_bytes(part, true, 1, on));
      gemm(part, &pack, one_by_one(), scratch.data(), on);
    }
  }
};

// Sums written twice: into a block, which is copied back to rows further apart than they are long,
// and, where rows are lines, to other rows.
template <class T>
void check_twins(const ranked<T>& one, gemm_problem p, const std::vector<T>& x,
                 const std::vector<T>& sums) {
  const auto count = sums.size();
  std::vector<T> again(count);
  lines block(count * sizeof(T));
  p.c = again.data(), p.twin = block.data(), p.twin_is_block = true;
  one.run(x, p);
  CHECK(has_bits(again.data(), sums.data(), count * sizeof(T)));
  for (const std::int64_t ld : {one.n, (one.n + 31) / 32 * 32, one.n + 3}) {
    const auto row = static_cast<std::size_t>(ld) * sizeof(T);
    lines rows(static_cast<std::size_t>(one.m) * row);
    std::memset(rows.data(), 0x5a, static_cast<std::size_t>(one.m) * row);
    copy_rows({block.data(), one.m, one.n, one.pack.panel(), one.type()}, rows.data(), ld,
              one_by_one(), one.on);
    bool same = true, kept = true;
    for (std::int64_t i = 0; i < one.m; ++i) {
      const unsigned char* at = rows.data() + static_cast<std::size_t>(i) * row;
      const auto bytes = static_cast<std::size_t>(one.n) * sizeof(T);
      same &= has_bits(at, &sums[static_cast<std::size_t>(i * one.n)], bytes);
      for (std::size_t byte = bytes; byte < row; ++byte) kept &= at[byte] == 0x5a;
    }
    INFO("rows " << ld << " apart");
    CHECK(same);
    CHECK(kept);
  }
  if (static_cast<std::size_t>(one.n) * sizeof(T) % 64 != 0) return;
  lines rows(count * sizeof(T));
  p.twin = rows.data(), p.twin_is_block = false;
  one.run(x, p);
  CHECK(has_bits(rows.data(), sums.data(), count * sizeof(T)));
}

template <class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, isa on, int ranks, float scale) {
  const ranked<T> one(m, n, k, on, scale);
  const auto count = static_cast<std::size_t>(m * n);
  std::vector<std::vector<T>> plain, xs;
  std::vector<lines> blocks;
  std::vector<const void*> products;
  bool same = true;
  for (int rank = 0; rank < ranks; ++rank) {
    xs.push_back(drawn<T>(m * k, 10 + rank, scale));
    plain.emplace_back(count);
    gemm_problem p;
    p.c = plain.back().data(), p.ldc = n;
    one.run(xs.back(), p);
    blocks.emplace_back(count * sizeof(T));
    p.c = blocks.back().data(), p.to_block = true;
    one.run(xs.back(), p);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t panel = one.pack.panel(), first = j / panel * panel;
        const std::int64_t columns = std::min(panel, n - first);
        const std::int64_t place = first * m + i * columns + j - first;
        same &= has_bits(blocks.back().data() + static_cast<std::size_t>(place) * sizeof(T),
                         &plain.back()[static_cast<std::size_t>(i * n + j)], sizeof(T));
      }
  }
  CHECK(same);
  for (lines& block : blocks) products.push_back(block.data());
  for (int own = 0; own < ranks; ++own) {
    std::vector<T> sums(count);
    gemm_problem p;
    p.c = sums.data(), p.ldc = n;
    std::vector<const void*> others = products;
    others[static_cast<std::size_t>(own)] = nullptr;
    p.products = others.data(), p.ranks = ranks, p.own = own;
    one.run(xs[static_cast<std::size_t>(own)], p);
    check_twins(one, p, xs[static_cast<std::size_t>(own)], sums);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      float sum = velo::simd::to_float(plain[0][i]);
      for (std::size_t rank = 1; rank < plain.size(); ++rank)
        sum += velo::simd::to_float(plain[rank][i]);
      T wanted;
      velo::simd::assign(wanted, static_cast<double>(sum));
      wrong += has_bits(&wanted, &sums[i], sizeof(T)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("blocks for peers and sums with theirs have the bits of product and sum") {
  for (int number = 0; number < isa_count(); ++number)
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 48, 40},
                                  {8, 96, 64},
                                  {33, 97, 20},
                                  {100, 130, 1100},
                                  {300, 500, 30},
                                  {40, 7, 0}})
      for (const int ranks : {2, 3})
        for (const float scale : {1.0f, 4e-19f}) {
          if (number == 0 && k > 1000) continue;  // plain code is slow
          INFO("isa " << number << ": " << m << " " << n << " " << k << ", " << ranks
                      << " ranks, scale " << scale);
          check<float>(m, n, k, static_cast<isa>(number), ranks, scale);
          check<bf16>(m, n, k, static_cast<isa>(number), ranks, scale);
        }
}
