// cross_entropy over the vector type `v` of the including namespace; `exp` comes from
// core/simd/math.inl.
//
// Missing lanes of a tail would count as logits of 0; they are filled with minus infinity, which
// neither the maximum nor the sum of exponentials sees.

// The tail of a row with its missing lanes set to `fill`.
template <class T>
VELO_INLINE v::vec load_filled(const T* p, int n, float fill) {
  float lanes[v::width];
  v::store(lanes, v::load(p, n));
  for (int i = n; i < v::width; ++i) lanes[i] = fill;
  return v::load(lanes);
}

// Four accumulators, because a maximum takes 4 cycles.
template <class T>
VELO_INLINE float maximum(const T* x, int64_t n) {
  constexpr float lowest = -__builtin_inff();
  v::vec a = v::set(lowest), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * v::width <= n; i += 4 * v::width) {
    const v::vec2 first = v::load_any_order(x + i),
                  second = v::load_any_order(x + i + 2 * v::width);
    a = v::max(a, first.a);
    b = v::max(b, first.b);
    c = v::max(c, second.a);
    d = v::max(d, second.b);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = n - i < v::width ? static_cast<int>(n - i) : v::width;
    a = v::max(a, load_filled(x + i, m, lowest));
  }
  return v::largest(v::max(v::max(a, b), v::max(c, d)));
}

// Block by block: its maximum, then its sum of exponentials from L1, while the next block is
// prefetched. A larger maximum scales down what was summed before. Blocks of 4 KiB overlap memory
// and arithmetic best for float (1.6 times the speed of whole rows of 16 KiB); for bf16, bound by
// exp, the cost of a block counts more.
template <class T>
VELO_INLINE float log_sum(const cross_entropy_row<T>& s) {
  constexpr int64_t block = sizeof(T) == sizeof(float) ? 1024 : 4096;
  const int64_t n = s.n;
  float largest = -__builtin_inff();
  v::vec a = v::zero(), b = a;
  for (int64_t at = 0; at < n; at += block) {
    const T* x = s.logits + at;
    const int64_t count = n - at < block ? n - at : block;
    const float seen = maximum(x, count);
    if (seen > largest) {
      if (__builtin_isinf(seen)) return seen;
      const v::vec factor = exp<float>(v::set(largest - seen));
      a = a * factor;
      b = b * factor;
      largest = seen;
    }
    const v::vec shift = v::set(__builtin_isinf(largest) ? 0.0f : largest);
    int64_t i = 0;
    for (; i + 2 * v::width <= count; i += 2 * v::width) {
      v::prefetch(x + block + i);
      if (sizeof(T) == sizeof(float)) v::prefetch(x + block + i + v::width);
      const v::vec2 two = v::load_any_order(x + i);
      a = a + exp<T>(two.a - shift);
      b = b + exp<T>(two.b - shift);
    }
    for (; i < count; i += v::width) {  // tail
      const int m = count - i < v::width ? static_cast<int>(count - i) : v::width;
      a = a + exp<T>(load_filled(x + i, m, -__builtin_inff()) - shift);
    }
  }
  return largest + __builtin_logf(v::sum(a + b));
}

// The target's 1 is taken off afterwards, so that the loop has no exceptions; its logit is read
// first, for in-place use.
template <bool Bypass, class T>
VELO_INLINE void backward(const cross_entropy_backward_row<T>& s) {
  const v::vec shift = v::set(s.lse), scale = v::set(s.dloss);
  const v::vec logit = v::load(s.logits + s.target, 1);
  const int64_t n = s.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(s.logits + i);
    const v::vec2 two = v::load_any_order(s.logits + i);
    v::put_same_order<Bypass>(s.dlogits + i,
                              {exp<T>(two.a - shift) * scale, exp<T>(two.b - shift) * scale});
  }
  for (; i < n; i += v::width) {  // tail
    const int m = n - i < v::width ? static_cast<int>(n - i) : v::width;
    v::store(s.dlogits + i, exp<T>(v::load(s.logits + i, m) - shift) * scale, m);
  }
  v::store(s.dlogits + s.target, (exp<T>(logit - shift) - v::set(1.0f)) * scale, 1);
  if (Bypass) v::fence();
}

float log_sum_exp(const cross_entropy_row<float>& s) {
  return log_sum(s);
}
float log_sum_exp(const cross_entropy_row<simd::bf16>& s) {
  return log_sum(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<float>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}
