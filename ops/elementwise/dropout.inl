// dropout over the vector type `v` of the including namespace: a block of random words decides two
// vectors a step.

template <bool Bypass, class T>
VELO_INLINE void drop(const dropout_slice<T>& s) {
  simd::dropout_run<v::longs> run(*s.rule, s.first);
  v::vec by[2];
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    run.next(by);
    v::look_ahead(s.x + i);
    v::put2<Bypass>(s.y + i, v::load(s.x + i) * by[0], v::load(s.x + j) * by[1]);
    if (s.mask != nullptr) {
      v::store_nonzero(s.mask + i, by[0], v::width);
      v::store_nonzero(s.mask + j, by[1], v::width);
    }
  }
  if (i < s.n) run.next(by);
  for (int k = 0; i < s.n; ++k, i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, v::load(s.x + i, m) * by[k], m);
    if (s.mask != nullptr) v::store_nonzero(s.mask + i, by[k], m);
  }
  if (Bypass) v::fence();
}

template <class T>
void drop_any(const dropout_slice<T>& s) {
  s.bypass ? drop<true>(s) : drop<false>(s);
}

constexpr dropout_kernels kernels = {{drop_any<float>, drop_any<simd::bf16>, drop_any<simd::f16>}};
