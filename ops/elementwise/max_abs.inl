// Largest magnitudes over the vector type `v` of the including namespace.

template <class T>
float max_abs_of_run(const max_abs_run<T>& s) {
  v::vec a = v::zero(), b = a;
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.x + i);
    const v::vec2 x = v::load_any_order(s.x + i);
    a = v::larger_magnitude(a, x.a);
    b = v::larger_magnitude(b, x.b);
  }
  for (; i < s.n; i += v::width)  // tail
    a = v::larger_magnitude(a, v::load(s.x + i, simd::lanes_left<v::width>(s.n, i)));
  return v::largest_magnitude(v::larger_magnitude(a, b));
}

template <class T>
void raise_to_row(const max_abs_row<T>& s) {
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.largest + i, v::larger_magnitude(v::load(s.largest + i, m), v::load(s.x + i, m)), m);
  }
}

constexpr reduce_max_abs_kernels max_abs_kernels = {
    {max_abs_of_run<float>, max_abs_of_run<simd::bf16>, max_abs_of_run<simd::f16>},
    {raise_to_row<float>, raise_to_row<simd::bf16>, raise_to_row<simd::f16>}};
