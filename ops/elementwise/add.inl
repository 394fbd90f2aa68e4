// add over the vector type `v` of the including namespace: two vectors a step, so that loads of
// both inputs overlap.

template <bool Bypass, class T>
VELO_INLINE void sum(const add_slice<T>& s) {
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::put<Bypass>(s.y + i, v::load(s.a + i) + v::load(s.b + i));
    v::put<Bypass>(s.y + j, v::load(s.a + j) + v::load(s.b + j));
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = s.n - i < v::width ? static_cast<int>(s.n - i) : v::width;
    v::store(s.y + i, v::load(s.a + i, m) + v::load(s.b + i, m), m);
  }
  if (Bypass) v::fence();
}

void add(const add_slice<float>& s) {
  s.bypass ? sum<true>(s) : sum<false>(s);
}
void add(const add_slice<simd::bf16>& s) {
  s.bypass ? sum<true>(s) : sum<false>(s);
}
