// exp over whichever vector type the including namespace calls `v`, as exact as T needs.
//
// 2^(x log2 e) = 2^n * 2^f with n integral and |f| <= 1/2. Adding 1.5 * 2^23 + 127 rounds to n and
// leaves n's exponent field in the low bits of the sum, so that a shift makes 2^n and a product
// ends it: no rounding, converting or scaling instruction. 2^f is a polynomial with value 1 at 0:
// degree 5 (relative error 9e-8) where the result stays float; degree 4 (3e-6, a hundredth of f16's
// half ulp), without the low part of log2 e (1e-6), where it becomes 16 bits. Below e^-87.7 the
// result is 0 rather than a denormal, which costs a hundred times a normal number; above e^88.4 it
// is infinity; NaN stays NaN. Cost: 13 and 11 instructions a vector.

// The same for x times Sign in [-88, 89], without the clamps: 11 and 9 instructions.
template <class T, int Sign = 1>
VELO_INLINE v::vec exp_within(v::vec clamped) {
  const v::vec shift = v::set(12582912.0f + 127.0f);
  const v::vec t = v::fma(clamped, v::set(Sign * 1.44269502f), shift);
  v::vec f = v::fma(clamped, v::set(Sign * 1.44269502f), shift - t);
  v::vec p;
  if (sizeof(T) == sizeof(float)) {
    f = v::fma(clamped, v::set(Sign * 1.92596299e-8f), f);
    p = v::set(1.32647273e-3f);
    p = v::fma(p, f, v::set(9.67151299e-3f));
    p = v::fma(p, f, v::set(5.55073358e-2f));
    p = v::fma(p, f, v::set(2.40222424e-1f));
    p = v::fma(p, f, v::set(6.93147004e-1f));
  } else {
    p = v::set(9.58285294e-3f);
    p = v::fma(p, f, v::set(5.59064262e-2f));
    p = v::fma(p, f, v::set(2.40240991e-1f));
    p = v::fma(p, f, v::set(6.93124175e-1f));
  }
  return v::fma(p, f, v::set(1.0f)) * v::power2(t);
}

// e^x, or e^-x where Sign is -1.
template <class T, int Sign = 1>
VELO_INLINE v::vec exp(v::vec x) {
  // The order of the clamps keeps NaN: max/min return their second operand when either is NaN.
  return exp_within<T, Sign>(
      v::max(v::set(Sign > 0 ? -88.0f : -89.0f), v::min(v::set(Sign > 0 ? 89.0f : 88.0f), x)));
}
