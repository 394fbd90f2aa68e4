// quantize over the vector type `v` of the including namespace.
#include "ops/elementwise/max_abs.inl"

// The integers as floats. What is no number, by Inf / Inf too, is 0.
template <class T>
VELO_INLINE v::vec quantized(const quantized_run<T>& s, int64_t i, int n, v::vec limit) {
  const v::vec scale = s.each ? v::load(s.scale + i, n) : v::set(*s.scale);
  const v::vec x = v::load(s.x + i, n) / scale;
  return v::if_nan(x, v::zero(), v::max(v::zero() - limit, v::min(limit, x)));
}

template <class T>
void quantize(const quantized_run<T>& s) {
  const v::vec limit = v::set(s.int4 ? 7.0f : 127.0f);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int n = simd::lanes_left<v::width>(s.n, i);
    const v::vec x = quantized(s, i, n, limit);
    if (s.int4) {
      v::store_int4(static_cast<uint8_t*>(s.y) + i / 2, x, n);
    } else {
      v::store(static_cast<int8_t*>(s.y) + i, x, n);
    }
  }
}

constexpr quantize_kernels kernels = {&max_abs_kernels,
                                      {quantize<float>, quantize<simd::bf16>, quantize<simd::f16>}};
