// global_norm's sums over the vector type `v` of the including namespace: four accumulators hide
// the latency of the sums.

template <class T>
double squares(const square_slice<T>& s) {
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= s.n; i += 4 * v::width) {
    v::look_ahead(s.x + i);
    v::look_ahead(s.x + i + 2 * v::width);
    const v::vec2 x = v::load_any_order(s.x + i), y = v::load_any_order(s.x + i + 2 * v::width);
    s0 = v::fma(x.a, x.a, s0);
    s1 = v::fma(x.b, x.b, s1);
    s2 = v::fma(y.a, y.a, s2);
    s3 = v::fma(y.b, y.b, s3);
  }
  for (; i < s.n; i += v::width) {  // tail
    const v::vec a = v::load(s.x + i, s.n - i < v::width ? static_cast<int>(s.n - i) : v::width);
    s0 = v::fma(a, a, s0);
  }
  return static_cast<double>(v::sum((s0 + s1) + (s2 + s3)));
}

constexpr global_norm_kernels kernels = {{squares<float>, squares<simd::bf16>}};
