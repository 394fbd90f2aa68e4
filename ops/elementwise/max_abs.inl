// Largest magnitudes over the vector type `v` of the including namespace. A maximum forgets a NaN
// in its first operand, so that one is kept apart.

VELO_INLINE v::vec magnitude(v::vec x) {
  return v::max(x, v::zero() - x);
}

VELO_INLINE v::vec keep_nan(v::vec nan, v::vec x) {
  return v::if_nan(x, x, nan);
}

template <class T>
float max_abs_of_run(const max_abs_run<T>& s) {
  v::vec a = v::zero(), b = a, nan = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.x + i);
    const v::vec2 x = v::load_any_order(s.x + i);
    a = v::max(a, magnitude(x.a));
    b = v::max(b, magnitude(x.b));
    nan = keep_nan(keep_nan(nan, x.a), x.b);
  }
  for (; i < s.n; i += v::width) {  // tail
    const v::vec x = v::load(s.x + i, simd::lanes_left<v::width>(s.n, i));
    a = v::max(a, magnitude(x));
    nan = keep_nan(nan, x);
  }
  const float lost = v::sum(nan);  // 0 without a NaN
  return lost == 0 ? v::largest(v::max(a, b)) : lost;
}

template <class T>
void raise_to_row(const max_abs_row<T>& s) {
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec x = v::load(s.x + i, m), largest = v::load(s.largest + i, m);
    v::store(s.largest + i, keep_nan(keep_nan(v::max(largest, magnitude(x)), largest), x), m);
  }
}

constexpr reduce_max_abs_kernels max_abs_kernels = {
    {max_abs_of_run<float>, max_abs_of_run<simd::bf16>, max_abs_of_run<simd::f16>},
    {raise_to_row<float>, raise_to_row<simd::bf16>, raise_to_row<simd::f16>}};
