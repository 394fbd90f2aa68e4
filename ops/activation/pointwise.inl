// The activations over the vector type `v` of the including namespace: the gated ones with 1 for
// the factor, two vectors a step.

#include "ops/activation/functions.inl"

template <class Function, class T, bool Far>
VELO_INLINE v::vec value(v::vec x) {
  return Function::template forward<T, Far>(x, v::set(1.0f));
}
template <class Function, class T, bool Far>
VELO_INLINE v::vec gradient(v::vec dy, v::vec x) {
  return Function::template backward<T, Far>(dy, x, v::set(1.0f)).x;
}

// Elements `first` to `end`: a tail, or elements some of which need the case Far (see gated.inl).
template <class Function, class T>
__attribute__((noinline)) void forward_far(const pointwise_slice<T>& s, int64_t first,
                                           int64_t end) {
  for (int64_t i = first; i < end; i += v::width) {
    const int m = simd::lanes_left<v::width>(end, i);
    v::store(s.y + i, value<Function, T, true>(v::load(s.x + i, m)), m);
  }
}

template <class Function, bool Bypass, class T>
VELO_INLINE void forward(const pointwise_slice<T>& s) {
  const int64_t n = s.n;
  for (int64_t i = 0; i < n;) {
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
      v::look_ahead(s.x + i);
      const v::vec2 x = v::load_any_order(s.x + i);
      if (!is_near<Function>(x)) break;
      v::put_same_order<Bypass>(s.y + i,
                                {value<Function, T, false>(x.a), value<Function, T, false>(x.b)});
    }
    const int64_t end = i + 2 * v::width < n ? i + 2 * v::width : n;
    if (i < n) forward_far<Function>(s, i, end);
    i = end;
  }
  if (Bypass) v::fence();
}

template <class Function, class T>
__attribute__((noinline)) void backward_far(const pointwise_backward_slice<T>& s, int64_t first,
                                            int64_t end) {
  for (int64_t i = first; i < end; i += v::width) {
    const int m = simd::lanes_left<v::width>(end, i);
    const v::vec dy = v::load(s.dy + i, m), x = v::load(s.x + i, m);
    v::store(s.dx + i, gradient<Function, T, true>(dy, x), m);
  }
}

template <class Function, bool Bypass, class T>
VELO_INLINE void backward(const pointwise_backward_slice<T>& s) {
  const int64_t n = s.n;
  for (int64_t i = 0; i < n;) {
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
      v::look_ahead(s.dy + i);
      v::look_ahead(s.x + i);
      const v::vec2 x = v::load_any_order(s.x + i);
      if (!is_near<Function>(x)) break;
      const v::vec2 dy = v::load_any_order(s.dy + i);
      v::put_same_order<Bypass>(s.dx + i, {gradient<Function, T, false>(dy.a, x.a),
                                           gradient<Function, T, false>(dy.b, x.b)});
    }
    const int64_t end = i + 2 * v::width < n ? i + 2 * v::width : n;
    if (i < n) backward_far<Function>(s, i, end);
    i = end;
  }
  if (Bypass) v::fence();
}

template <activation_function F, class T>
void forward_slice(const pointwise_slice<T>& s) {
  s.bypass ? forward<function_of<F>, true>(s) : forward<function_of<F>, false>(s);
}
template <activation_function F, class T>
void backward_slice(const pointwise_backward_slice<T>& s) {
  s.bypass ? backward<function_of<F>, true>(s) : backward<function_of<F>, false>(s);
}

template <activation_function F>
constexpr of_each_dtype<pointwise_slice> forwards = {
    forward_slice<F, float>, forward_slice<F, simd::bf16>, forward_slice<F, simd::f16>};
template <activation_function F>
constexpr of_each_dtype<pointwise_backward_slice> backwards = {
    backward_slice<F, float>, backward_slice<F, simd::bf16>, backward_slice<F, simd::f16>};

constexpr pointwise_kernels kernels = {
    {forwards<silu>, forwards<gelu>, forwards<gelu_tanh>, forwards<fast_gelu>, forwards<relu>},
    {backwards<silu>, backwards<gelu>, backwards<gelu_tanh>, backwards<fast_gelu>,
     backwards<relu>}};
