// ring_attention_update over the vector type `v` of the including namespace: the statistics of a
// vector of rows at once, then their rows.

#include "core/simd/math.inl"

constexpr int W = v::width;

// The shares of both parts in a vector of rows.
struct ring_shares {
  alignas(64) float prev[W], cur[W];
};

// e^(x - m), 1 where they are equal: infinities have no difference.
VELO_INLINE v::vec weight(v::vec x, v::vec m) {
  return v::if_equal(x, m, v::set(1.0f), exp<float>(x - m));
}

// Merges the statistics of `n` rows.
VELO_INLINE void merge_statistics(const ring_statistics& x, int64_t row, int n, ring_shares& to) {
  alignas(64) float of[4][W] = {};
  const float* from[4] = {x.prev_max, x.prev_sum, x.cur_max, x.cur_sum};
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < n; ++i) of[k][i] = from[k][(row + i) * x.step];
  }
  const v::vec prev_max = v::load(of[0]), cur_max = v::load(of[2]);
  const v::vec max = v::if_nan(prev_max, prev_max, v::max(prev_max, cur_max));
  const v::vec prev = v::load(of[1]) * weight(prev_max, max);
  const v::vec cur = v::load(of[3]) * weight(cur_max, max);
  const v::vec sum = prev + cur, none = v::zero();
  v::store(to.prev, v::if_equal(sum, none, none, prev / sum));
  v::store(to.cur, v::if_equal(sum, none, none, cur / sum));
  v::store(of[0], max);
  v::store(of[1], sum);
  for (int i = 0; i < n; ++i) {
    for (int copy = 0; copy < x.copies; ++copy) {
      x.max[(row + i) * x.step + copy] = of[0][i];
      x.sum[(row + i) * x.step + copy] = of[1][i];
    }
  }
}

template <bool Bypass, class T>
VELO_INLINE void merge_row(const T* prev, const T* cur, T* out, int64_t d, float a, float b) {
  const v::vec by = v::set(a), with = v::set(b);
  int64_t j = 0;
  for (; j + 2 * W <= d; j += 2 * W) {
    v::look_ahead(prev + j);
    v::look_ahead(cur + j);
    const v::vec2 p = v::load_any_order(prev + j), c = v::load_any_order(cur + j);
    v::put_same_order<Bypass>(out + j, {v::fma(p.a, by, c.a * with), v::fma(p.b, by, c.b * with)});
  }
  for (; j < d; j += W) {  // tail
    const int m = simd::lanes_left<W>(d, j);
    v::store(out + j, v::fma(v::load(prev + j, m), by, v::load(cur + j, m) * with), m);
  }
}

template <bool Bypass, class T>
VELO_INLINE void merge_rows(const ring_slice<T>& s) {
  ring_shares shares;
  for (int64_t row = 0; row < s.rows; row += W) {
    const int n = simd::lanes_left<W>(s.rows, row);
    merge_statistics(s.statistics, row, n, shares);
    for (int i = 0; i < n; ++i) {
      const int64_t at = (row + i) * s.d;
      merge_row<Bypass>(s.prev + at, s.cur + at, s.out + at, s.d, shares.prev[i], shares.cur[i]);
    }
  }
  if (Bypass) v::fence();
}

template <class T>
void merge_any(const ring_slice<T>& s) {
  s.bypass ? merge_rows<true>(s) : merge_rows<false>(s);
}

constexpr ring_attention_update_kernels kernels = {
    {merge_any<float>, merge_any<simd::bf16>, merge_any<simd::f16>}};
