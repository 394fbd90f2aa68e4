// cast over the vector type `v` of the including namespace: loading and storing are the conversion.

template <bool Bypass, class From, class To>
VELO_INLINE void convert(const cast_slice<From, To>& s) {
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.x + i);
    v::put2<Bypass>(s.y + i, v::load(s.x + i), v::load(s.x + i + v::width));
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, v::load(s.x + i, m), m);
  }
  if (Bypass) v::fence();
}

template <class From, class To>
void convert_any(const cast_slice<From, To>& s) {
  s.bypass ? convert<true>(s) : convert<false>(s);
}

using simd::bf16;
using simd::f16;

constexpr cast_kernels kernels = {convert_any<float, bf16>, convert_any<float, f16>,
                                  convert_any<bf16, float>, convert_any<bf16, f16>,
                                  convert_any<f16, float>,  convert_any<f16, bf16>};
