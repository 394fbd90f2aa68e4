// global_norm's sums over the vector type `v` of the including namespace: four accumulators hide
// the latency of the sums. A block whose squares exceed float32 is summed again in other units.

template <bool Scaled, class T>
VELO_INLINE float sum_of_squares(const square_slice<T>& s, float unit) {
  const v::vec scale = v::set(unit);
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= s.n; i += 4 * v::width) {
    v::look_ahead(s.x + i);
    v::look_ahead(s.x + i + 2 * v::width);
    v::vec2 x = v::load_any_order(s.x + i), y = v::load_any_order(s.x + i + 2 * v::width);
    if (Scaled) {
      x.a = x.a * scale;
      x.b = x.b * scale;
      y.a = y.a * scale;
      y.b = y.b * scale;
    }
    s0 = v::fma(x.a, x.a, s0);
    s1 = v::fma(x.b, x.b, s1);
    s2 = v::fma(y.a, y.a, s2);
    s3 = v::fma(y.b, y.b, s3);
  }
  for (; i < s.n; i += v::width) {  // tail
    v::vec a = v::load(s.x + i, simd::lanes_left<v::width>(s.n, i));
    if (Scaled) a = a * scale;
    s0 = v::fma(a, a, s0);
  }
  return v::sum((s0 + s1) + (s2 + s3));
}

// Below 2^-110 squares may have been lost; every element is then less than 2^-55.
template <class T>
__attribute__((noinline)) double squares_elsewhere(const square_slice<T>& s, bool large) {
  const double unit = large ? 0x1p-75 : 0x1p100;
  return static_cast<double>(sum_of_squares<true>(s, static_cast<float>(unit))) / (unit * unit);
}

template <class T>
VELO_INLINE double squares_of_block(const square_slice<T>& s) {
  const float sum = sum_of_squares<false>(s, 1.0f);
  if (sum < 0x1p-110f || sum > __FLT_MAX__) return squares_elsewhere(s, sum > 1.0f);
  return static_cast<double>(sum);
}

// Blocks in which each lane adds 16 squares: a sum of equal ones rounds every time the same way.
template <class T>
double squares(const square_slice<T>& s) {
  constexpr int64_t block = 16 * 4 * v::width;
  double total = 0;
  for (int64_t i = 0; i < s.n; i += block)
    total += squares_of_block(square_slice<T>{s.x + i, s.n - i < block ? s.n - i : block});
  return total;
}

constexpr global_norm_kernels kernels = {{squares<float>, squares<simd::bf16>, squares<simd::f16>}};
