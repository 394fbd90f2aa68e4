// Rows of tokens over the vector type `v` of the including namespace.
#include "ops/operator/row_copy.inl"

// `Count` rows side by side, known when compiled, or any number where it is 0. Those of the next
// token are prefetched meanwhile: rows lie anywhere, so the hardware does not.
template <int Count, class T>
struct sum_of_rows {
  static constexpr int most = Count == 0 ? 1 : Count;
  const token_sum<T>& s;
  const int64_t count;
  const T* x[most];
  const T* next[most];
  v::vec weight[most];

  __attribute__((always_inline)) explicit sum_of_rows(const token_sum<T>& sum)
      : s(sum), count(sum.at.count) {
    for (int j = 0; j < Count; ++j) {
      x[j] = s.row(j);
      next[j] = s.next_row(j < s.at.next_count ? j : 0);
      weight[j] = v::set(s.at.weights == nullptr ? 1.0f : s.at.weights[j]);
    }
  }

  __attribute__((always_inline)) v::vec load(int64_t j, int64_t i, int m) const {
    const T* from = (Count == 0 ? s.row(j) : x[Count == 0 ? 0 : j]) + i;
    return m == v::width ? v::load(from) : v::load(from, m);
  }
  __attribute__((always_inline)) v::vec weight_of(int64_t j) const {
    if (Count != 0) return weight[Count == 0 ? 0 : j];
    return v::set(s.at.weights == nullptr ? 1.0f : s.at.weights[j]);
  }
  __attribute__((always_inline)) v::vec at(int64_t i, int m) const {
    if (Count == 0 && count == 0) return v::zero();
    v::vec sum = load(0, i, m) * weight_of(0);
    const int64_t rows = Count == 0 ? count : Count;
#pragma GCC unroll 8
    for (int64_t j = 1; j < rows; ++j) sum = v::fma(load(j, i, m), weight_of(j), sum);
    return sum;
  }
  __attribute__((always_inline)) void prefetch(int64_t i) const {
#pragma GCC unroll 8
    for (int j = 0; j < Count; ++j) {
      v::prefetch(next[j] + i);
      if (sizeof(T) == sizeof(float)) v::prefetch(next[j] + i + v::width);
    }
  }
};

template <int Count, bool Bypass, class T>
VELO_INLINE void sum_row(const token_sum<T>& s) {
  const sum_of_rows<Count, T> rows(s);
  const int64_t n = s.at.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    rows.prefetch(i);
    v::put2<Bypass>(s.y + i, rows.at(i, v::width), rows.at(i + v::width, v::width));
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    v::store(s.y + i, rows.at(i, m), m);
  }
  if (Bypass) v::fence();
}

template <int Count, class T>
VELO_INLINE void sum_rows(const token_sum<T>& s) {
  s.bypass ? sum_row<Count, true>(s) : sum_row<Count, false>(s);
}

template <class T>
void sum(const token_sum<T>& s) {
  switch (s.at.count) {
    case 1:
      return sum_rows<1>(s);
    case 2:
      return sum_rows<2>(s);
    case 4:
      return sum_rows<4>(s);
    case 6:
      return sum_rows<6>(s);
    case 8:
      return sum_rows<8>(s);
    default:
      return sum_rows<0>(s);
  }
}

// Prefetches dy of the next token, beside which stores leave room.
template <bool Bypass, class T>
VELO_INLINE void scale_rows(const token_scale<T>& s) {
  const int64_t n = s.at.n;
  for (int64_t j = 0; j < s.at.count; ++j) {
    const v::vec weight = v::set(s.at.weights[j]);
    T* to = s.dpermuted + s.at.rows[j] * n;
    int64_t i = 0;
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
      if (j == 0) {
        v::prefetch(s.dy + n + i);
        if (2 * v::width * sizeof(T) > 64) v::prefetch(s.dy + n + i + v::width);
      }
      v::put2<Bypass>(to + i, v::load(s.dy + i) * weight, v::load(s.dy + i + v::width) * weight);
    }
    for (; i < n; i += v::width) {  // tail
      const int m = simd::lanes_left<v::width>(n, i);
      v::store(to + i, v::load(s.dy + i, m) * weight, m);
    }
  }
  if (Bypass) v::fence();
}

template <class T>
void scale(const token_scale<T>& s) {
  s.bypass ? scale_rows<true>(s) : scale_rows<false>(s);
}

template <class T>
VELO_INLINE float dot_of_block(const T* x, const T* next, const T* y, int64_t n) {
  constexpr int step = 2 * v::width;
  v::vec s0 = v::zero(), s1 = s0;
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    v::prefetch(next + i);
    if (step * sizeof(T) > 64) v::prefetch(next + i + v::width);
    s0 = v::fma(v::load(x + i), v::load(y + i), s0);
    s1 = v::fma(v::load(x + i + v::width), v::load(y + i + v::width), s1);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    s0 = v::fma(v::load(x + i, m), v::load(y + i, m), s0);
  }
  return v::sum(s0 + s1);
}

// Long rows are summed in blocks, and the blocks in double, so that the error does not grow.
template <class T>
void dots(const token_dots<T>& s) {
  constexpr int64_t block = 4096;
  const int64_t n = s.at.n;
  for (int64_t j = 0; j < s.at.count; ++j) {
    const T* x = s.permuted + s.at.rows[j] * n;
    const T* next = s.permuted + (j + 1 < s.at.count ? s.at.rows[j + 1] : s.at.next[0]) * n;
    double all = 0;
    for (int64_t i = 0; i < n; i += block)
      all += static_cast<double>(
          dot_of_block(x + i, next + i, s.dy + i, n - i < block ? n - i : block));
    s.dots[j] = static_cast<float>(all);
  }
}

constexpr moe_token_kernels kernels = {copy_row,
                                       {sum<float>, sum<simd::bf16>, sum<simd::f16>},
                                       {scale<float>, scale<simd::bf16>, scale<simd::f16>},
                                       {dots<float>, dots<simd::bf16>, dots<simd::f16>}};
