// swiglu over the vector type `v` of the including namespace.
//
// Two vectors a step: the two exp chains (12 dependent instructions each) overlap. Where the result
// becomes bf16 an estimated reciprocal (14 bits, an eighth of bf16's half ulp) replaces the
// division, which alone needs 16 cycles for 16 floats on Intel processors: 13 cycles instead of
// 28 for 16 outputs, from L2. Where it becomes f16 a Newton step follows the estimate.

#include "core/simd/math.inl"

// 1 / x, 0 for infinity: the estimate with one Newton step. The step takes a finite x, whose
// reciprocal is 0 to every purpose.
template <class T>
VELO_INLINE v::vec reciprocal(v::vec x) {
  if (sizeof(T) == sizeof(float)) return v::set(1.0f) / x;
  const v::vec r = v::rough_reciprocal(x);
  return r * (v::set(2.0f) - v::min(v::set(4e37f), x) * r);
}

template <class T>
VELO_INLINE v::vec gated(v::vec gate, v::vec up) {
  const v::vec d = v::set(1.0f) + exp<T, -1>(gate);
  if (sizeof(T) == sizeof(float)) return gate / d * up;
  return gate * (__is_same(T, simd::bf16) ? v::rough_reciprocal(d) : reciprocal<T>(d)) * up;
}

template <bool Bypass, class T>
VELO_INLINE void forward(const swiglu_slice<T>& s) {
  const int64_t n = s.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(s.gate + i);
    v::look_ahead(s.up + i);
    const v::vec2 gate = v::load_any_order(s.gate + i), up = v::load_any_order(s.up + i);
    v::put_same_order<Bypass>(s.y + i, {gated<T>(gate.a, up.a), gated<T>(gate.b, up.b)});
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    v::store(s.y + i, gated<T>(v::load(s.gate + i, m), v::load(s.up + i, m)), m);
  }
  if (Bypass) v::fence();
}

struct gate_and_up {
  v::vec gate, up;
};

// The estimate alone is too coarse for the slope, which loses bits where its terms cancel.
template <class T>
VELO_INLINE gate_and_up gradients(v::vec dy, v::vec gate, v::vec up) {
  const v::vec one = v::set(1.0f);
  const v::vec s = reciprocal<T>(one + exp<T, -1>(gate));
  const v::vec slope = s * v::fma(gate, one - s, one);
  return {dy * up * slope, dy * (gate * s)};
}

template <bool Bypass, class T>
VELO_INLINE void backward(const swiglu_backward_slice<T>& s) {
  const int64_t n = s.n;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    v::look_ahead(s.dy + i);
    v::look_ahead(s.gate + i);
    v::look_ahead(s.up + i);
    const v::vec2 dy = v::load_any_order(s.dy + i);
    const v::vec2 gate = v::load_any_order(s.gate + i), up = v::load_any_order(s.up + i);
    const gate_and_up a = gradients<T>(dy.a, gate.a, up.a), b = gradients<T>(dy.b, gate.b, up.b);
    v::put_same_order<Bypass>(s.dgate + i, {a.gate, b.gate});
    v::put_same_order<Bypass>(s.dup + i, {a.up, b.up});
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    const gate_and_up d =
        gradients<T>(v::load(s.dy + i, m), v::load(s.gate + i, m), v::load(s.up + i, m));
    v::store(s.dgate + i, d.gate, m);
    v::store(s.dup + i, d.up, m);
  }
  if (Bypass) v::fence();
}

template <class T>
void forward_slice(const swiglu_slice<T>& s) {
  s.bypass ? forward<true>(s) : forward<false>(s);
}
template <class T>
void backward_slice(const swiglu_backward_slice<T>& s) {
  s.bypass ? backward<true>(s) : backward<false>(s);
}

constexpr swiglu_kernels kernels = {
    {forward_slice<float>, forward_slice<simd::bf16>, forward_slice<simd::f16>},
    {backward_slice<float>, backward_slice<simd::bf16>, backward_slice<simd::f16>}};
