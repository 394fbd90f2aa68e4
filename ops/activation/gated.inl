// The gated activations over the vector type `v` of the including namespace.
//
// Two vectors a step: the two chains of exponentials (12 dependent instructions each) overlap. For
// 16 bits the reciprocal is an estimate and a Newton step.

#include "ops/activation/functions.inl"

// Elements `first` to `end`: a tail, or elements some of which need the case Far. The fast loops
// leave before they call it, since a call within them would cost them their constants' registers.
template <class Function, class T>
__attribute__((noinline)) void forward_far(const gated_slice<T>& s, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; i += v::width) {
    const int m = simd::lanes_left<v::width>(end, i);
    const v::vec gate = v::load(s.gate + i, m), up = v::load(s.up + i, m);
    v::store(s.y + i, Function::template forward<T, true>(gate, up), m);
  }
}

template <class Function, bool Bypass, class T>
VELO_INLINE void forward(const gated_slice<T>& s) {
  const int64_t n = s.n;
  for (int64_t i = 0; i < n;) {
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
      v::look_ahead(s.gate + i);
      v::look_ahead(s.up + i);
      const v::vec2 gate = v::load_any_order(s.gate + i), up = v::load_any_order(s.up + i);
      if (!is_near<Function>(gate)) break;
      v::put_same_order<Bypass>(s.y + i, {Function::template forward<T, false>(gate.a, up.a),
                                          Function::template forward<T, false>(gate.b, up.b)});
    }
    const int64_t end = i + 2 * v::width < n ? i + 2 * v::width : n;
    if (i < n) forward_far<Function>(s, i, end);
    i = end;
  }
  if (Bypass) v::fence();
}

template <class Function, class T>
__attribute__((noinline)) void backward_far(const gated_backward_slice<T>& s, int64_t first,
                                            int64_t end) {
  for (int64_t i = first; i < end; i += v::width) {
    const int m = simd::lanes_left<v::width>(end, i);
    const two_gradients d = Function::template backward<T, true>(
        v::load(s.dy + i, m), v::load(s.gate + i, m), v::load(s.up + i, m));
    v::store(s.dgate + i, d.x, m);
    v::store(s.dup + i, d.factor, m);
  }
}

template <class Function, bool Bypass, class T>
VELO_INLINE void backward(const gated_backward_slice<T>& s) {
  const int64_t n = s.n;
  for (int64_t i = 0; i < n;) {
    for (; i + 2 * v::width <= n; i += 2 * v::width) {
      v::look_ahead(s.dy + i);
      v::look_ahead(s.gate + i);
      v::look_ahead(s.up + i);
      const v::vec2 gate = v::load_any_order(s.gate + i);
      if (!is_near<Function>(gate)) break;
      const v::vec2 dy = v::load_any_order(s.dy + i), up = v::load_any_order(s.up + i);
      const two_gradients a = Function::template backward<T, false>(dy.a, gate.a, up.a);
      const two_gradients b = Function::template backward<T, false>(dy.b, gate.b, up.b);
      v::put_same_order<Bypass>(s.dgate + i, {a.x, b.x});
      v::put_same_order<Bypass>(s.dup + i, {a.factor, b.factor});
    }
    const int64_t end = i + 2 * v::width < n ? i + 2 * v::width : n;
    if (i < n) backward_far<Function>(s, i, end);
    i = end;
  }
  if (Bypass) v::fence();
}

template <activation_function F, class T>
void forward_slice(const gated_slice<T>& s) {
  s.bypass ? forward<function_of<F>, true>(s) : forward<function_of<F>, false>(s);
}
template <activation_function F, class T>
void backward_slice(const gated_backward_slice<T>& s) {
  s.bypass ? backward<function_of<F>, true>(s) : backward<function_of<F>, false>(s);
}

template <activation_function F>
constexpr of_each_dtype<gated_slice> forwards = {
    forward_slice<F, float>, forward_slice<F, simd::bf16>, forward_slice<F, simd::f16>};
template <activation_function F>
constexpr of_each_dtype<gated_backward_slice> backwards = {
    backward_slice<F, float>, backward_slice<F, simd::bf16>, backward_slice<F, simd::f16>};

// The result of a vector of sums, as exact as T needs.
template <class T>
VELO_INLINE v::vec gated_sum(v::vec gate, v::vec factor) {
  using function = function_of<silu>;
  return is_near<function>({gate, gate}) ? function::template forward<T, false>(gate, factor)
                                         : function::template forward<T, true>(gate, factor);
}

template <class T>
void silu_sums(const gated_block& b) {
  const auto sum_at =
      [](const float* sums, const float* bias, int j, int n) __attribute__((always_inline)) {
    const bool whole = n == v::width;
    const v::vec x = whole ? v::load(sums + j) : v::load(sums + j, n);
    if (bias == nullptr) return x;
    return x + (whole ? v::load(bias + j) : v::load(bias + j, n));
  };
  const auto put = [](T * to, v::vec x, int n) __attribute__((always_inline)) {
    n == v::width ? v::store(to, x) : v::store(to, x, n);
  };
  // Rows of results are too short for the hardware to see where the next ones lie.
  const auto fetch_row = [&b](void* rows, int64_t ld, int64_t i) __attribute__((always_inline)) {
    constexpr int64_t ahead = 4, line = 64;
    const char* row = reinterpret_cast<const char*>(static_cast<T*>(rows) + (i + ahead) * ld);
    for (int64_t j = 0; j < b.columns * static_cast<int64_t>(sizeof(T)); j += line)
      __builtin_prefetch(row + j, 1);
  };
  for (int64_t i = 0; i < b.rows; ++i) {
    const float *gates = b.gate + i * b.ld, *factors = b.factor + i * b.ld;
    T* y = static_cast<T*>(b.y) + i * b.ldy;
    fetch_row(b.y, b.ldy, i);
    if (b.gate_before != nullptr) {
      fetch_row(b.gate_before, b.ld_before, i);
      fetch_row(b.factor_before, b.ld_before, i);
    }
    for (int j = 0; j < b.columns; j += v::width) {
      const int n = b.columns - j < v::width ? b.columns - j : v::width;
      const v::vec gate = sum_at(gates, b.gate_bias, j, n);
      const v::vec factor = sum_at(factors, b.factor_bias, j, n);
      if (b.gate_before != nullptr) {
        put(static_cast<T*>(b.gate_before) + i * b.ld_before + j, gate, n);
        put(static_cast<T*>(b.factor_before) + i * b.ld_before + j, factor, n);
      }
      put(y + j, gated_sum<T>(gate, factor), n);
    }
  }
}

constexpr gated_kernels kernels = {
    {forwards<silu>, forwards<gelu>, forwards<gelu_tanh>, forwards<fast_gelu>, forwards<relu>},
    {backwards<silu>, backwards<gelu>, backwards<gelu_tanh>, backwards<fast_gelu>, backwards<relu>},
    {silu_sums<float>, silu_sums<simd::bf16>, silu_sums<simd::f16>}};
