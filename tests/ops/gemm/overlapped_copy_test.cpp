// Memory that a product copies while it multiplies: all of it is copied, nothing else is written,
// and the product has the same bits as without a copy.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "ops/gemm/overlapped_copy.hpp"
#include "tests/ops/gemm/packed_weight.hpp"
#include "tests/ops/isas.hpp"

using namespace velo::ops;
using velo::core::isa;
using velo::simd::bf16;
using velo::simd::f16;
using namespace velo::testing;

namespace {

// A piece to copy, at odd addresses, with room on both sides of where it goes.
class piece {
 public:
  piece(std::int64_t bytes, int seed)
      : from_(static_cast<std::size_t>(bytes) + 1), to_(from_.size() + 2 * beside, 0x5a) {
    for (std::size_t i = 0; i < from_.size(); ++i)
      from_[i] = static_cast<unsigned char>(i * 7 + i / 251 + static_cast<std::size_t>(seed));
  }
  void add_to(overlapped_copy& all) {
    all.add(from_.data() + 1, to_.data() + beside, static_cast<std::int64_t>(from_.size()) - 1);
  }
  bool is_copied() const {
    const auto first = to_.begin() + beside, end = to_.end() - beside - 1;
    const auto untouched = [](unsigned char byte) { return byte == 0x5a; };
    return std::equal(first, end, from_.begin() + 1) &&
           std::all_of(to_.begin(), first, untouched) && std::all_of(end, to_.end(), untouched);
  }

 private:
  static constexpr int beside = 64;
  std::vector<unsigned char> from_, to_;
};

template <class T>
struct product {
  std::int64_t m, n, k;
  isa on;
  std::vector<T> x;
  packed_weight<T> weight;

  product(std::int64_t m_, std::int64_t n_, std::int64_t k_, isa on_)
      : m(m_), n(n_), k(k_), on(on_), x(random_elements<T>(m_ * k_, 1)), weight(k_, n_, on_) {}
  std::vector<T> run(const overlapped_copy* copies, int threads) const {
    std::vector<T> c(static_cast<std::size_t>(m * n));
    gemm_problem p;
    p.m = m, p.n = n, p.k = k;
    p.type = p.c_type = element_type_of<T>();
    p.a = x.data(), p.lda = k;
    p.packed_b = &weight.pack;
    p.c = c.data(), p.ldc = n;
    p.epilogue.copies = copies;
    const aligned_memory scratch(gemm_scratch_bytes(p, threads, on));
    gemm(p, one_by_one(threads), scratch.start, on);
    return c;
  }
};

template <class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, isa on) {
  const product<T> one(m, n, k, on);
  for (const auto& [first, second] : {std::array<std::int64_t, 2>{0, 63},
                                      {64, 0},
                                      {4096 + 17, 1},
                                      {40000, 130000},  // lines a call, and more than it has steps
                                      {64 * 8, 64}})
    for (const int threads : {1, 3}) {
      INFO(first << " and " << second << " bytes, " << threads << " threads");
      piece a(first, 1), b(second, 2);
      overlapped_copy both;
      a.add_to(both), b.add_to(both);
      const std::vector<T> c = one.run(&both, threads), wanted = one.run(nullptr, threads);
      CHECK(a.is_copied());
      CHECK(b.is_copied());
      CHECK((c.empty() || std::memcmp(c.data(), wanted.data(), c.size() * sizeof(T)) == 0));
    }
}

}  // namespace

TEST_CASE("a product copies memory on its way and keeps its bits") {
  for (int number = 0; number < isa_count(); ++number)
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{64, 144, 300},  // several calls and panels
          {7, 20, 100},                               // no whole block
          {33, 97, 20},                               // few steps
          {40, 48, 1100},                             // several passes
          {8, 48, 0},
          {5, 0, 40}}) {
      INFO("isa " << number << ": " << m << " " << n << " " << k);
      check<float>(m, n, k, static_cast<isa>(number));
      check<bf16>(m, n, k, static_cast<isa>(number));
      check<f16>(m, n, k, static_cast<isa>(number));
    }
}
