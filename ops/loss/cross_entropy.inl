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

template <class T>
VELO_INLINE float row_maximum(const T* x, int64_t n) {
  constexpr float lowest = -__builtin_inff();
  v::vec a = v::set(lowest), b = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    a = v::max(a, v::load(x + i));
    b = v::max(b, v::load(x + i + v::width));
  }
  for (; i < n; i += v::width) {  // tail
    const int m = n - i < v::width ? static_cast<int>(n - i) : v::width;
    a = v::max(a, load_filled(x + i, m, lowest));
  }
  return v::largest(v::max(a, b));
}

template <class T>
VELO_INLINE float log_sum(const cross_entropy_row<T>& s) {
  const float largest = row_maximum(s.logits, s.n);
  if (__builtin_isinf(largest)) return largest;
  const v::vec shift = v::set(largest);
  v::vec a = v::zero(), b = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    a = a + exp(v::load(s.logits + i) - shift);
    b = b + exp(v::load(s.logits + i + v::width) - shift);
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = s.n - i < v::width ? static_cast<int>(s.n - i) : v::width;
    a = a + exp(load_filled(s.logits + i, m, -__builtin_inff()) - shift);
  }
  return largest + __builtin_logf(v::sum(a + b));
}

// The target's 1 is taken off afterwards, so that the loop has no exceptions; its logit is read
// first, for in-place use.
template <class T>
VELO_INLINE void backward(const cross_entropy_backward_row<T>& s) {
  const v::vec shift = v::set(s.lse), scale = v::set(s.dloss);
  const v::vec logit = v::load(s.logits + s.target, 1);
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::store(s.dlogits + i, exp(v::load(s.logits + i) - shift) * scale);
    v::store(s.dlogits + j, exp(v::load(s.logits + j) - shift) * scale);
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = s.n - i < v::width ? static_cast<int>(s.n - i) : v::width;
    v::store(s.dlogits + i, exp(v::load(s.logits + i, m) - shift) * scale, m);
  }
  v::store(s.dlogits + s.target, (exp(logit - shift) - v::set(1.0f)) * scale, 1);
}

float log_sum_exp(const cross_entropy_row<float>& s) {
  return log_sum(s);
}
float log_sum_exp(const cross_entropy_row<simd::bf16>& s) {
  return log_sum(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<float>& s) {
  backward(s);
}
void cross_entropy_backward(const cross_entropy_backward_row<simd::bf16>& s) {
  backward(s);
}
