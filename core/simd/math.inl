// exp over whichever vector type the including namespace calls `v`.
//
// 2^(x log2 e) = 2^n * 2^f with n integral and |f| <= 1/2; 2^f by a polynomial of degree 6
// (relative error below 2^-23, the minimax fit of 2^f on that interval). Results below e^-86.6 are
// flushed to 0, because a denormal costs a hundred times a normal number; above 89 the result is
// infinity; NaN stays NaN. Cost: 14 instructions a vector.

VELO_INLINE v::vec exp(v::vec x) {
  // Clamps first in the order that keeps NaN: max/min return their second operand when either is
  // NaN.
  const v::vec clamped = v::max(v::set(-86.6f), v::min(v::set(89.0f), x));
  const v::vec t = clamped * v::set(1.44269504f);
  const v::vec n = v::round(t);
  // f in two steps: the low part of log2 e restores what rounding t lost.
  const v::vec f =
      v::fma(clamped, v::set(1.92596299e-8f), v::fma(clamped, v::set(1.44269502f), v::zero() - n));
  v::vec p = v::set(1.5403530e-4f);
  p = v::fma(p, f, v::set(1.3333558e-3f));
  p = v::fma(p, f, v::set(9.6181291e-3f));
  p = v::fma(p, f, v::set(5.5504109e-2f));
  p = v::fma(p, f, v::set(2.4022651e-1f));
  p = v::fma(p, f, v::set(6.9314718e-1f));
  p = v::fma(p, f, v::set(1.0f));
  return v::if_less(x, v::set(-86.6f), v::zero(), v::scale2(p, n));
}
