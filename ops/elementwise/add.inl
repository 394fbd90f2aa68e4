// add over the vector type `v` of the including namespace: two vectors a step, so that loads of
// both inputs overlap.

template <bool Bypass, class T>
VELO_INLINE void sum(const add_slice<T>& s) {
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.a + i);
    v::look_ahead(s.b + i);
    const v::vec2 a = v::load_any_order(s.a + i), b = v::load_any_order(s.b + i);
    v::put_same_order<Bypass>(s.y + i, {a.a + b.a, a.b + b.b});
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, v::load(s.a + i, m) + v::load(s.b + i, m), m);
  }
  if (Bypass) v::fence();
}

template <class T>
void add_any(const add_slice<T>& s) {
  s.bypass ? sum<true>(s) : sum<false>(s);
}

constexpr add_kernels kernels = {{add_any<float>, add_any<simd::bf16>, add_any<simd::f16>}};
