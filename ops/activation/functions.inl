// The activation functions over whichever vector type the including namespace calls `v`: for each
// `forward` (f(x) times a factor) and `backward` (the factor's and x's gradients).
//
// Where f(x) leaves the range of float32, its share of x is kept as `share * rest * rest`, so that
// a large factor still gives the exact product. That is the case `Far`, which a loop chooses when
// some abs(x) exceeds `limit`; elsewhere `rest` is 1 and costs nothing. As exact as T needs:
// arguments of exponentials keep the part that rounding lost where the result stays float (relative
// error 3e-7; 1e-5 for 16 bits). Cost: exp and one division or reciprocal a vector, and for the
// error function a polynomial of degree 9 or 7.

#include "core/simd/math.inl"

struct two_gradients {
  v::vec x, factor;
};

// 1 / x for 1 <= x < 1e30, as exact as T needs.
template <class T>
VELO_INLINE v::vec reciprocal(v::vec x) {
  return sizeof(T) == sizeof(float) ? v::set(1.0f) / x : v::quick_reciprocal(x);
}

// e^v = e^(high + low) * root^2 for any v <= 0, with high >= -80 and root a power of 2, so that
// products with it are exact.
struct reduced_exponent {
  v::vec high, low, root;
};
VELO_INLINE reduced_exponent reduce(v::vec x) {
  constexpr float log2_high = 1.38629150390625f, log2_low = 2.85721364e-6f;  // of 2 log 2
  const v::vec shift = v::set(12582912.0f + 127.0f);                         // as in math.inl
  const v::vec beyond = v::max(v::set(-176.0f), v::min(v::zero(), x + v::set(32.0f)));
  const v::vec t = v::fma(beyond, v::set(0.721347520f), shift), n = t - shift;
  return {v::max(v::set(-80.0f), v::fma(n, v::set(-log2_high), x)), n * v::set(-log2_low),
          v::power2(t)};
}

// A sigmoid's argument: a sum of two, and its derivative.
struct sigmoid_argument {
  v::vec high, low, slope;
};

// x * sigmoid(argument).
template <class Argument>
struct by_sigmoid {
  static constexpr float limit = Argument::limit;

  template <class T, bool Far>
  struct parts {
    v::vec e, d, rest, slope;  // sigmoid = rest^2 / d, d = 1 + e

    VELO_INLINE parts of(v::vec x) {
      constexpr bool exact = Far || sizeof(T) == sizeof(float);
      // No square overflows; min and max keep NaN, their second operand.
      if (Far && Argument::has_low) x = v::min(v::set(64.0f), x);
      if (Far) x = v::max(v::set(-300.0f), x);
      const sigmoid_argument a = Argument::template of<exact>(x);
      if (!Far) {
        v::vec e = exp_within<T, -1>(a.high);
        if (exact && Argument::has_low) e = v::fma(v::zero() - e, a.low, e);
        return {e, v::set(1.0f) + e, v::set(1.0f), a.slope};
      }
      const reduced_exponent r = reduce(a.high);
      v::vec e = exp<float, -1>(r.high);
      e = v::fma(v::zero() - e, r.low + a.low, e);
      return {e, v::set(1.0f) + e, r.root, a.slope};
    }
  };

  template <class T, bool Far>
  VELO_INLINE v::vec forward(v::vec x, v::vec factor) {
    const auto p = parts<T, Far>::of(x);
    if (Far) return x / p.d * p.rest * factor * p.rest;
    return (sizeof(T) == sizeof(float) ? x / p.d : x * reciprocal<T>(p.d)) * factor;
  }
  template <class T, bool Far>
  VELO_INLINE two_gradients backward(v::vec dy, v::vec x, v::vec factor) {
    const auto p = parts<T, Far>::of(x);
    const v::vec s = reciprocal<T>(p.d), share = x * s;
    const v::vec slope = v::fma(share, p.e * s * p.slope, s);
    if (Far) return {slope * p.rest * (dy * factor) * p.rest, share * p.rest * dy * p.rest};
    return {dy * factor * slope, dy * share};
  }
};

struct silu_argument {
  static constexpr float limit = 64.0f;
  static constexpr bool has_low = false;
  template <bool Exact>
  VELO_INLINE sigmoid_argument of(v::vec x) {
    return {x, v::zero(), v::set(1.0f)};
  }
};

// 1.702 x, with 1.702 as a sum of two floats.
struct fast_gelu_argument {
  static constexpr float limit = 37.0f;
  static constexpr bool has_low = true;
  template <bool Exact>
  VELO_INLINE sigmoid_argument of(v::vec x) {
    constexpr float high = 1.702f, low = static_cast<float>(1.702 - static_cast<double>(high));
    const v::vec product = x * v::set(high);
    return {product, v::fma(x, v::set(high), v::zero() - product) + x * v::set(low), v::set(high)};
  }
};

// x * (a + b x^2), the product and the sum each with what their rounding lost.
struct gelu_tanh_argument {
  static constexpr float limit = 8.5f;
  static constexpr bool has_low = true;
  template <bool Exact>
  VELO_INLINE sigmoid_argument of(v::vec x) {
    constexpr double a = 2 * 0.7978845608, b = a * 0.044715;
    constexpr float a_high = static_cast<float>(a), b_high = static_cast<float>(b);
    constexpr float a_low = static_cast<float>(a - static_cast<double>(a_high));
    constexpr float b_low = static_cast<float>(b - static_cast<double>(b_high));
    const v::vec square = x * x;
    const v::vec slope = v::fma(square, v::set(3 * b_high), v::set(a_high));
    if (!Exact) return {x * v::fma(square, v::set(b_high), v::set(a_high)), v::zero(), slope};
    const v::vec cubic = square * v::set(b_high), sum = cubic + v::set(a_high);
    const v::vec added = sum - v::set(a_high);
    const v::vec sum_low = (v::set(a_high) - (sum - added)) + (cubic - added);
    const v::vec cubic_low = v::fma(square, v::set(b_high), v::zero() - cubic) +
                             v::fma(v::fma(x, x, v::zero() - square), v::set(b_high),
                                    v::fma(square, v::set(b_low), v::set(a_low)));
    const v::vec product = x * sum;
    return {product, v::fma(x, sum, v::zero() - product) + x * (sum_low + cubic_low), slope};
  }
};

// x * Phi(x), Phi the normal distribution: for t = |x|, Phi(-t) = exp(-t^2 / 2) * Q(t), and
// Q(t) = r * P(1 - 8 r), r = 1 / (t + 4), P by interpolation in Chebyshev's points up to t = 20;
// from 20.4 on Phi(-t) counts as 0.
struct by_error_function {
  static constexpr float limit = 9.0f;

  template <class T>
  VELO_INLINE v::vec mills(v::vec t) {
    const v::vec r = reciprocal<T>(t + v::set(4.0f)), u = v::fma(r, v::set(-8.0f), v::set(1.0f));
    constexpr float to_float[] = {
        -1.427818885e-4f, 1.540121632e-4f,  1.559265028e-3f, -3.499371097e-3f, -7.515954400e-3f,
        6.040208649e-2f,  -1.865252413e-1f, 3.871369364e-1f, -6.078965046e-1f, 7.552851358e-1f};
    constexpr float to_half[] = {1.012277657e-3f,  -3.449601349e-3f, -7.114275603e-3f,
                                 6.041483574e-2f,  -1.866224093e-1f, 3.871340479e-1f,
                                 -6.078903031e-1f, 7.552851564e-1f};
    constexpr bool whole = sizeof(T) == sizeof(float);
    v::vec p = v::set(whole ? to_float[0] : to_half[0]);
#pragma GCC unroll 9
    for (int i = 1; i < (whole ? 10 : 8); ++i)
      p = v::fma(p, u, v::set(whole ? to_float[i] : to_half[i]));
    return p * r;
  }

  struct parts {
    v::vec share, density, rest;  // Phi = share * rest^2, and its slope
  };
  template <class T, bool Far>
  VELO_INLINE parts of(v::vec x) {
    const v::vec one = v::set(1.0f), half = v::set(-0.5f);
    const v::vec size = v::max(x, v::zero() - x), t = Far ? v::min(v::set(22.0f), size) : size;
    const v::vec square = t * t;
    v::vec e, low = v::fma(t, t, v::zero() - square) * half, rest = one;  // e = exp(-t^2 / 2)
    if (Far) {
      const reduced_exponent r = reduce(square * half);
      e = exp_within<float>(r.high);
      low = low + r.low;
      // For negative x only its factor that is not rest^2.
      rest = v::if_greater(v::zero(), x, r.root, one);
      e = v::if_greater(v::zero(), x, e, e * r.root * r.root);
    } else {
      e = exp_within<T>(square * half);
    }
    if (Far || sizeof(T) == sizeof(float)) e = v::fma(e, low, e);
    const v::vec beyond = e * mills<T>(t);
    return {v::if_greater(v::zero(), x, beyond, one - beyond), e * v::set(0.398942280f), rest};
  }

  template <class T, bool Far>
  VELO_INLINE v::vec forward(v::vec x, v::vec factor) {
    const parts p = of<T, Far>(x);
    return Far ? x * p.share * p.rest * factor * p.rest : x * p.share * factor;
  }
  template <class T, bool Far>
  VELO_INLINE two_gradients backward(v::vec dy, v::vec x, v::vec factor) {
    const parts p = of<T, Far>(x);
    const v::vec value = x * p.share, slope = v::fma(x, p.density, p.share);
    if (Far) return {slope * p.rest * (dy * factor) * p.rest, value * p.rest * dy * p.rest};
    return {dy * factor * slope, dy * value};
  }
};

// max(x, 0); NaN stays.
struct by_comparison {
  static constexpr float limit = 0;
  template <class T, bool Far>
  VELO_INLINE v::vec forward(v::vec x, v::vec factor) {
    return v::max(v::zero(), x) * factor;
  }
  template <class T, bool Far>
  VELO_INLINE two_gradients backward(v::vec dy, v::vec x, v::vec factor) {
    const v::vec value = v::max(v::zero(), x);
    return {v::if_equal(value, v::zero(), v::zero(), dy * factor), dy * value};
  }
};

template <activation_function F>
struct function_of;
template <>
struct function_of<silu> : by_sigmoid<silu_argument> {};
template <>
struct function_of<fast_gelu> : by_sigmoid<fast_gelu_argument> {};
template <>
struct function_of<gelu_tanh> : by_sigmoid<gelu_tanh_argument> {};
template <>
struct function_of<gelu> : by_error_function {};
template <>
struct function_of<relu> : by_comparison {};

// Whether no element of two vectors needs the case Far. It bounds both signs, so that exponentials
// need no clamps: four instructions, which pay for the question's three.
template <class Function>
VELO_INLINE bool is_near(v::vec2 x) {
  if (Function::limit == 0) return true;
  return v::all_within(x.a, x.b, v::set(Function::limit));
}
