// softmax over the vector type `v` of the including namespace.
//
// Three passes over a row: its maximum, its exponentials and their sum (into scratch, which the
// cache holds), and the division. A hidden element counts as minus infinity, and so do the missing
// lanes of a tail: neither changes the maximum or the sum. The product scale * x is not rounded
// before the maximum is subtracted.

#include "core/simd/math.inl"

// Elements of a row from i on, m of them; hidden and missing ones become minus infinity.
template <class T>
VELO_INLINE v::vec visible(const softmax_row<T>& s, int64_t i, int m, v::vec x) {
  const v::vec none = v::set(-__builtin_inff());
  if (m < v::width) x = v::keep_first(m, x, none);
  return s.mask == nullptr ? x : v::if_zero_bytes(s.mask + i, m, x, none);
}

// The largest of scale * x; minus infinity where nothing is visible.
template <class T>
VELO_INLINE float largest_of(const softmax_row<T>& s) {
  const v::vec scale = v::set(s.scale);
  v::vec a = v::set(-__builtin_inff()), b = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.x + i);
    const int64_t j = i + v::width;
    a = v::max(a, visible(s, i, v::width, v::load(s.x + i) * scale));
    b = v::max(b, visible(s, j, v::width, v::load(s.x + j) * scale));
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    a = v::max(a, visible(s, i, m, v::load(s.x + i, m) * scale));
  }
  return v::largest(v::max(a, b));
}

// The exponentials of a row into scratch; their sum.
template <class T>
VELO_INLINE float exponentials(const softmax_row<T>& s, float largest) {
  const v::vec scale = v::set(s.scale), shift = v::set(-largest);
  v::vec sum[2] = {v::zero(), v::zero()};
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const int64_t j = i + k * v::width;
      const v::vec t = v::fma(v::load(s.x + j), scale, shift);
      const v::vec e = exp<T>(visible(s, j, v::width, t));
      sum[k] = sum[k] + e;
      v::store(s.work + j, e);
    }
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec e = exp<T>(visible(s, i, m, v::fma(v::load(s.x + i, m), scale, shift)));
    sum[0] = sum[0] + e;
    v::store(s.work + i, e, m);
  }
  return v::sum(sum[0] + sum[1]);
}

// A row without a sum: NaN, since some visible element is NaN or infinite, or all are minus
// infinity; 0 where the mask hides.
template <class T>
VELO_INLINE void without_sum(const softmax_row<T>& s) {
  const v::vec nan = v::set(__builtin_nanf(""));
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, s.mask == nullptr ? nan : v::if_zero_bytes(s.mask + i, m, nan, v::zero()), m);
  }
}

template <bool Bypass, class T>
VELO_INLINE void forward(const softmax_row<T>& s) {
  const float largest = largest_of(s);
  const float sum = __builtin_isinf(largest) ? 0.0f : exponentials(s, largest);
  if (!(sum > 0)) return without_sum(s);
  const v::vec factor = v::set(1.0f / sum);
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width)
    v::put2<Bypass>(s.y + i, v::load(s.work + i) * factor, v::load(s.work + i + v::width) * factor);
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, v::load(s.work + i, m) * factor, m);
  }
  if (Bypass) v::fence();
}

template <bool Bypass, class T>
VELO_INLINE void backward(const softmax_backward_row<T>& s) {
  v::vec sum[2] = {v::zero(), v::zero()};
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.dy + i);
    v::look_ahead(s.y + i);
    const v::vec2 dy = v::load_any_order(s.dy + i), y = v::load_any_order(s.y + i);
    sum[0] = v::fma(dy.a, y.a, sum[0]);
    sum[1] = v::fma(dy.b, y.b, sum[1]);
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    sum[0] = v::fma(v::load(s.dy + i, m), v::load(s.y + i, m), sum[0]);
  }
  const v::vec total = v::set(v::sum(sum[0] + sum[1])), scale = v::set(s.scale);
  for (i = 0; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const v::vec2 dy = v::load_any_order(s.dy + i), y = v::load_any_order(s.y + i);
    v::put_same_order<Bypass>(s.dx + i,
                              {scale * y.a * (dy.a - total), scale * y.b * (dy.b - total)});
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.dx + i, scale * v::load(s.y + i, m) * (v::load(s.dy + i, m) - total), m);
  }
  if (Bypass) v::fence();
}

template <class T>
void forward_row(const softmax_row<T>& s) {
  s.bypass ? forward<true>(s) : forward<false>(s);
}
template <class T>
void backward_row(const softmax_backward_row<T>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}

constexpr softmax_kernels kernels = {
    {forward_row<float>, forward_row<simd::bf16>, forward_row<simd::f16>},
    {backward_row<float>, backward_row<simd::bf16>, backward_row<simd::f16>}};
