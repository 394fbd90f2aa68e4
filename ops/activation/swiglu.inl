// swiglu over the vector type `v` of the including namespace; `exp` comes from core/simd/math.inl.
//
// Two vectors a step: the two exp chains (12 dependent instructions each) overlap.

VELO_INLINE v::vec sigmoid(v::vec x) {
  return v::set(1.0f) / (v::set(1.0f) + exp(v::zero() - x));
}

VELO_INLINE v::vec gated(v::vec gate, v::vec up) {
  return gate / (v::set(1.0f) + exp(v::zero() - gate)) * up;
}

template <bool Bypass, class T>
VELO_INLINE void forward(const swiglu_slice<T>& s) {
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::put<Bypass>(s.y + i, gated(v::load(s.gate + i), v::load(s.up + i)));
    v::put<Bypass>(s.y + j, gated(v::load(s.gate + j), v::load(s.up + j)));
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = s.n - i < v::width ? static_cast<int>(s.n - i) : v::width;
    v::store(s.y + i, gated(v::load(s.gate + i, m), v::load(s.up + i, m)), m);
  }
  if (Bypass) v::fence();
}

struct gate_and_up {
  v::vec gate, up;
};

VELO_INLINE gate_and_up gradients(v::vec dy, v::vec gate, v::vec up) {
  const v::vec s = sigmoid(gate);
  const v::vec one = v::set(1.0f);
  const v::vec slope = s * v::fma(gate, one - s, one);
  return {dy * up * slope, dy * (gate * s)};
}

template <bool Bypass, class T>
VELO_INLINE void backward(const swiglu_backward_slice<T>& s) {
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) {
    const gate_and_up d = gradients(v::load(s.dy + i), v::load(s.gate + i), v::load(s.up + i));
    v::put<Bypass>(s.dgate + i, d.gate);
    v::put<Bypass>(s.dup + i, d.up);
  }
  if (i < s.n) {  // tail
    const int m = static_cast<int>(s.n - i);
    const gate_and_up d =
        gradients(v::load(s.dy + i, m), v::load(s.gate + i, m), v::load(s.up + i, m));
    v::store(s.dgate + i, d.gate, m);
    v::store(s.dup + i, d.up, m);
  }
  if (Bypass) v::fence();
}

void swiglu(const swiglu_slice<float>& s) {
  s.bypass ? forward<true>(s) : forward<false>(s);
}
void swiglu(const swiglu_slice<simd::bf16>& s) {
  s.bypass ? forward<true>(s) : forward<false>(s);
}
void swiglu_backward(const swiglu_backward_slice<float>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}
void swiglu_backward(const swiglu_backward_slice<simd::bf16>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}
