// quantize over the vector type `v` of the including namespace.
#include "ops/elementwise/max_abs.inl"

// Division by the scale of a run in five instructions; a vector's own takes 16 cycles on Intel's
// processors. A step adds what is left of x, over the scale. The first one leaves the quotient or a
// neighbor of it, and the second, from there, the quotient as a division rounds it, since the
// reciprocal is rounded so (Markstein 1990). It needs scales whose products with integers neither
// over- nor underflow.
struct quick_division {
  static constexpr float least = 0x1p-60f, most = 0x1p60f;
  v::vec negative, reciprocal;

  __attribute__((always_inline)) explicit quick_division(float scale)
      : negative(v::set(-scale)), reciprocal(v::set(1.0f / scale)) {}
  __attribute__((always_inline)) v::vec step(v::vec x, v::vec q) const {
    return v::fma(v::fma(negative, q, x), reciprocal, q);
  }
  __attribute__((always_inline)) v::vec operator()(v::vec x) const {
    return step(x, step(x, x * reciprocal));
  }
};

// The integers as floats. What is no number, by Inf / Inf too, is 0.
template <class T>
VELO_INLINE v::vec quantized(const quantized_run<T>& s, int64_t i, int n, v::vec limit) {
  const v::vec scale = s.each ? v::load(s.scale + i, n) : v::set(*s.scale);
  const v::vec x = v::load(s.x + i, n) / scale;
  return v::if_nan(x, v::zero(), v::max(v::zero() - limit, v::min(limit, x)));
}

// Four vectors a step, as far as whole steps go: no element exceeds what the scale was made of, so
// that quotients lie within the limits, and none is NaN.
template <bool Int4, bool Bypass, class T>
VELO_INLINE int64_t quantize_quick(const quantized_run<T>& s) {
  constexpr int step = 4 * v::width;
  const quick_division by(*s.scale);
  int64_t i = 0;
  for (; i + step <= s.n; i += step) {
    for (int k = 0; k < step * static_cast<int>(sizeof(T)); k += 64)
      v::prefetch(reinterpret_cast<const char*>(s.next + i) + k);
    const v::vec a = by(v::load(s.x + i)), b = by(v::load(s.x + i + v::width));
    const v::vec c = by(v::load(s.x + i + 2 * v::width)), d = by(v::load(s.x + i + 3 * v::width));
    if (Int4) {
      v::store4_int4(static_cast<uint8_t*>(s.y) + i / 2, a, b, c, d);
    } else {
      v::put4<Bypass>(static_cast<int8_t*>(s.y) + i, a, b, c, d);
    }
  }
  if (Bypass) v::fence();
  return i;
}

template <class T>
void quantize(const quantized_run<T>& s) {
  int64_t i = 0;
  if (!s.each && *s.scale >= quick_division::least && *s.scale <= quick_division::most) {
    i = s.int4     ? quantize_quick<true, false>(s)
        : s.bypass ? quantize_quick<false, true>(s)
                   : quantize_quick<false, false>(s);
  }
  const v::vec limit = v::set(s.int4 ? 7.0f : 127.0f);
  for (; i < s.n; i += v::width) {
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
