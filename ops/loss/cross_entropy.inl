// cross_entropy over the vector type `v` of the including namespace.
//
// Missing lanes of a tail would count as logits of 0. They are filled with minus infinity, which
// changes neither the maximum nor the sum of exponentials.

#include "core/simd/math.inl"

// The tail of a row with its missing lanes set to `fill`.
template <class T>
VELO_INLINE v::vec load_filled(const T* p, int n, float fill) {
  float lanes[v::width];
  v::store(lanes, v::load(p, n));
  for (int i = n; i < v::width; ++i) lanes[i] = fill;
  return v::load(lanes);
}

// The sum of a block's exponentials relative to `shift`, and the block's maximum.
struct block_sum {
  v::vec a, b;
  float largest;
};

template <class T>
VELO_INLINE block_sum sum_block(const T* x, int64_t n, float against) {
  constexpr float lowest = -__builtin_inff();
  const v::vec shift = v::set(against);
  block_sum sum{v::zero(), v::zero(), lowest};
  v::vec a = v::set(lowest), b = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(x + i);
    const v::vec2 two = v::load_any_order(x + i);
    a = v::max(a, two.a);
    b = v::max(b, two.b);
    sum.a = sum.a + exp<T>(two.a - shift);
    sum.b = sum.b + exp<T>(two.b - shift);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    const v::vec last = load_filled(x + i, m, lowest);
    a = v::max(a, last);
    sum.a = sum.a + exp<T>(last - shift);
  }
  sum.largest = v::largest(v::max(a, b));
  return sum;
}

// Infinity, the largest logit, or NaN if the block has one: a vector maximum may skip it.
template <class T>
VELO_INLINE float infinite_or_nan(const cross_entropy_row<T>& s, float infinity) {
  v::vec nan = v::set(infinity);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec x = v::load(s.logits + i, m);
    nan = v::if_nan(x, x, nan);
  }
  return v::sum(nan);
}

// Reads each logit once: exponentials are relative to an earlier maximum, which a sum of floats
// tolerates while no logit exceeds it by much. A block with one that does (by more than 40: e^40
// leaves room for 2^60 of them) is summed again, from L1, relative to its own maximum. From memory
// this is 1.8 times as fast as the row's maximum first, and 1.07 times as fast as each block's.
template <class T>
float log_sum(const cross_entropy_row<T>& s) {
  constexpr int64_t block = 1024;
  v::vec first = v::set(-__builtin_inff());
  for (int64_t i = 0; i < s.n && i < 4 * v::width; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    first = v::max(first, load_filled(s.logits + i, m, -__builtin_inff()));
  }
  float shift = v::largest(first);
  v::vec a = v::zero(), b = a;
  for (int64_t at = 0; at < s.n; at += block) {
    const T* x = s.logits + at;
    const int64_t n = s.n - at < block ? s.n - at : block;
    const bool none = __builtin_isinf(shift);  // nothing but -Inf so far
    block_sum sum = sum_block(x, n, none ? 0.0f : shift);
    if (__builtin_isinf(sum.largest) && sum.largest > 0) return infinite_or_nan(s, sum.largest);
    if (sum.largest > shift + 40.0f) {
      const v::vec factor = exp<float>(v::set(shift - sum.largest));
      shift = sum.largest;
      a = a * factor;
      b = b * factor;
      sum = sum_block(x, n, shift);
    }
    a = a + sum.a;
    b = b + sum.b;
  }
  return shift + __builtin_logf(v::sum(a + b));
}

template <class T>
VELO_INLINE v::vec target_logit(const cross_entropy_backward_row<T>& s) {
  return s.target < 0 ? v::zero() : v::load(s.logits + s.target, 1);
}

// The target's 1 is subtracted after the loop, which so has no exceptions. Its logit is read first,
// for in-place use.
template <bool Bypass, class T>
VELO_INLINE void backward(const cross_entropy_backward_row<T>& s) {
  const v::vec shift = v::set(s.lse), scale = v::set(s.dloss);
  const v::vec logit = target_logit(s);
  const int64_t n = s.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(s.logits + i);
    const v::vec2 two = v::load_any_order(s.logits + i);
    v::put_same_order<Bypass>(s.dlogits + i,
                              {exp<T>(two.a - shift) * scale, exp<T>(two.b - shift) * scale});
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    v::store(s.dlogits + i, exp<T>(v::load(s.logits + i, m) - shift) * scale, m);
  }
  if (s.target >= 0)
    v::store(s.dlogits + s.target, (exp<T>(logit - shift) - v::set(1.0f)) * scale, 1);
  if (Bypass) v::fence();
}

// The same with b[v] = spread[v], and more at the target. dloss comes last: it may be infinite.
template <class T>
VELO_INLINE v::vec smoothed(v::vec logit, v::vec b, const cross_entropy_backward_row<T>& s) {
  const v::vec p = exp<T>(logit - v::set(s.lse));
  return (p * v::set(s.total) - b) * v::set(s.dloss);
}

template <bool Bypass, class T>
VELO_INLINE void backward_smoothed(const cross_entropy_backward_row<T>& s) {
  const v::vec logit = target_logit(s);
  const int64_t n = s.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(s.logits + i);
    const int64_t j = i + v::width;
    v::put2<Bypass>(s.dlogits + i, smoothed(v::load(s.logits + i), v::load(s.spread + i), s),
                    smoothed(v::load(s.logits + j), v::load(s.spread + j), s));
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    v::store(s.dlogits + i, smoothed(v::load(s.logits + i, m), v::load(s.spread + i, m), s), m);
  }
  if (s.target >= 0) {
    const v::vec b = v::set(s.spread[s.target] + s.hit);
    v::store(s.dlogits + s.target, smoothed(logit, b, s), 1);
  }
  if (Bypass) v::fence();
}

template <class T>
void backward_row(const cross_entropy_backward_row<T>& s) {
  if (s.spread != nullptr) {
    s.bypass ? backward_smoothed<true>(s) : backward_smoothed<false>(s);
  } else {
    s.bypass ? backward<true>(s) : backward<false>(s);
  }
}

// In double, where neither large logits nor many overflow or lose anything.
template <class T>
double weighted_sum(const cross_entropy_weighted_row<T>& s) {
  double sums[v::width] = {};
  float x[v::width], w[v::width];
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(x, v::load(s.logits + i, m));
    v::store(w, v::load(s.weights + i, m));
    for (int lane = 0; lane < v::width; ++lane)
      sums[lane] += static_cast<double>(x[lane]) * static_cast<double>(w[lane]);
  }
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}

constexpr cross_entropy_kernels kernels = {
    {log_sum<float>, log_sum<simd::bf16>, log_sum<simd::f16>},
    {backward_row<float>, backward_row<simd::bf16>, backward_row<simd::f16>},
    {weighted_sum<float>, weighted_sum<simd::bf16>, weighted_sum<simd::f16>}};
