// Rows of tokens over the vector type `v` of the including namespace.
#include "ops/operator/row_copy.inl"

template <class T>
VELO_INLINE v::vec sum_at(const token_sum<T>& s, int64_t i, int m) {
  const token_rows& at = s.at;
  const auto load = [&](int64_t j) {
    const T* x = s.permuted + at.rows[j] * at.n + i;
    return m == v::width ? v::load(x) : v::load(x, m);
  };
  if (at.count == 0) return v::zero();
  v::vec sum = load(0);
  if (at.weights == nullptr) {
    for (int64_t j = 1; j < at.count; ++j) sum = sum + load(j);
    return sum;
  }
  sum = sum * v::set(at.weights[0]);
  for (int64_t j = 1; j < at.count; ++j) sum = v::fma(load(j), v::set(at.weights[j]), sum);
  return sum;
}

template <bool Bypass, class T>
VELO_INLINE void sum_row(const token_sum<T>& s) {
  const int64_t n = s.at.n;
  const T* next = s.permuted + *s.at.next * n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::prefetch(next + i);
    v::put2<Bypass>(s.y + i, sum_at(s, i, v::width), sum_at(s, i + v::width, v::width));
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    v::store(s.y + i, sum_at(s, i, m), m);
  }
  if (Bypass) v::fence();
}

template <class T>
void sum(const token_sum<T>& s) {
  s.bypass ? sum_row<true>(s) : sum_row<false>(s);
}

template <bool Bypass, class T>
VELO_INLINE void scale_rows(const token_scale<T>& s) {
  const int64_t n = s.at.n;
  for (int64_t j = 0; j < s.at.count; ++j) {
    const v::vec weight = v::set(s.at.weights[j]);
    T* to = s.dpermuted + s.at.rows[j] * n;
    int64_t i = 0;
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
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
VELO_INLINE float dot_of_block(const T* x, const T* y, int64_t n) {
  v::vec s0 = v::zero(), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
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
    double all = 0;
    for (int64_t i = 0; i < n; i += block)
      all += static_cast<double>(dot_of_block(x + i, s.dy + i, n - i < block ? n - i : block));
    s.dots[j] = static_cast<float>(all);
  }
}

constexpr moe_token_kernels kernels = {copy_row,
                                       {sum<float>, sum<simd::bf16>, sum<simd::f16>},
                                       {scale<float>, scale<simd::bf16>, scale<simd::f16>},
                                       {dots<float>, dots<simd::bf16>, dots<simd::f16>}};
