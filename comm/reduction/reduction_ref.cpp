// Reductions as plain loops, with the same bits as the vectors. Processors without AVX2 run them.
#include <cstring>

#include "comm/reduction/reduction.hpp"
#include "core/simd/scalar.hpp"

namespace velo::comm {
namespace {

using simd::to_float;

void assign(float& to, float from) {
  to = from;
}
void assign(simd::f16& to, float from) {
  to = simd::to_f16(from);
}
void assign(simd::bf16& to, float from) {
  to = simd::to_bf16(from);
}

// The type in which elements are combined: float for 16-bit ones, otherwise their own.
float widened(float x) {
  return x;
}
float widened(simd::f16 x) {
  return to_float(x);
}
float widened(simd::bf16 x) {
  return to_float(x);
}
double widened(double x) {
  return x;
}
void assign(double& to, double from) {
  to = from;
}

template <class A>
A joined(combine what, A a, A b) {
  if (what == combine::least) return b < a || b != b ? b : a;
  if (what == combine::largest) return b > a || b != b ? b : a;
  return a + b;
}

template <class T, class U, combine What>
void reduce(const reduction_slice& s) {
  using A = decltype(widened(T{}));
  constexpr bool adds = What == combine::sum || What == combine::average;
  const bool scales = adds && s.scale != 1;
  const A scale = static_cast<A>(s.scale);
  const A shares = static_cast<A>(s.shares != 0 ? s.shares : s.ranks);
  for (int64_t i = 0; i < s.n; ++i) {
    const auto from = [&](int rank) {
      const A x = widened(static_cast<const T*>(s.in[rank])[i]);
      return scales ? x * scale : x;
    };
    A sum = from(0);
    for (int r = 1; r < s.ranks; ++r) sum = joined(What, sum, from(r));
    if (What == combine::average) sum /= shares;
    assign(static_cast<U*>(s.out)[i], sum);
  }
}

// Sums wrap, in unsigned words of the same width. Averages divide the exact sum, towards zero.
template <class T, class Word, combine What>
void reduce_integers(const reduction_slice& s) {
  for (int64_t i = 0; i < s.n; ++i) {
    const auto from = [&](int rank) { return static_cast<const T*>(s.in[rank])[i]; };
    T result = from(0);
    if (What == combine::average) {
      __extension__ using wide = __int128;
      wide sum = 0;
      for (int r = 0; r < s.ranks; ++r) sum += from(r);
      result = static_cast<T>(sum / s.ranks);
    } else if (What == combine::sum) {
      Word sum = static_cast<Word>(result);
      for (int r = 1; r < s.ranks; ++r) sum = static_cast<Word>(sum + static_cast<Word>(from(r)));
      result = static_cast<T>(sum);
    } else {
      for (int r = 1; r < s.ranks; ++r) result = joined(What, result, from(r));
    }
    static_cast<T*>(s.out)[i] = result;
  }
}

template <class T>
void weighted_sum(const weighted_slice& s) {
  for (int64_t i = 0; i < s.n; ++i) {
    const auto of = [&](int k) {
      const float x = to_float(static_cast<const T*>(s.in[k])[i]);
      return s.weights[k] != 1 ? x * s.weights[k] : x;
    };
    float sum = of(0);
    for (int k = 1; k < s.count; ++k) sum += of(k);
    s.out[i] = sum;
  }
}

void copy(const copy_slice& s) {
  std::memcpy(s.to, s.from, static_cast<std::size_t>(s.bytes));
}

template <combine What>
constexpr void fill(reduction_kernels& k) {
  constexpr int w = static_cast<int>(What);
  reduce_fn* same = k.same[w];
  same[static_cast<int>(element::f32)] = reduce<float, float, What>;
  same[static_cast<int>(element::f64)] = reduce<double, double, What>;
  same[static_cast<int>(element::f16)] = reduce<simd::f16, simd::f16, What>;
  same[static_cast<int>(element::bf16)] = reduce<simd::bf16, simd::bf16, What>;
  same[static_cast<int>(element::i8)] = reduce_integers<int8_t, uint8_t, What>;
  same[static_cast<int>(element::i32)] = reduce_integers<int32_t, uint32_t, What>;
  same[static_cast<int>(element::i64)] = reduce_integers<int64_t, uint64_t, What>;
  same[static_cast<int>(element::u8)] = reduce_integers<uint8_t, uint8_t, What>;
  k.wide[w][0] = reduce<simd::f16, float, What>;
  k.wide[w][1] = reduce<simd::bf16, float, What>;
}

constexpr reduction_kernels made() {
  reduction_kernels k{};
  fill<combine::sum>(k);
  fill<combine::average>(k);
  fill<combine::least>(k);
  fill<combine::largest>(k);
  k.narrow[0][0] = reduce<float, simd::f16, combine::sum>;
  k.narrow[0][1] = reduce<float, simd::bf16, combine::sum>;
  k.narrow[1][0] = reduce<float, simd::f16, combine::average>;
  k.narrow[1][1] = reduce<float, simd::bf16, combine::average>;
  k.weighted[0] = weighted_sum<float>;
  k.weighted[1] = weighted_sum<simd::f16>;
  k.weighted[2] = weighted_sum<simd::bf16>;
  k.copy_around_cache = copy;
  return k;
}

}  // namespace

namespace reference {
extern const reduction_kernels reduction = made();
}

}  // namespace velo::comm
