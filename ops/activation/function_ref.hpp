// The activation functions f and their slopes f' in double, for the reference kernels.
//
// A function takes x and gives {f(x), f'(x)}; NaN and infinities follow the formula: x times a
// sigmoid of 0 is NaN where x is infinite.
#pragma once

#include <cmath>

#include "ops/activation/function.hpp"

namespace velo::ops::reference {

struct value_and_slope {
  double value, slope;
};

// x * sigmoid(argument), whose slope is `derivative`.
inline value_and_slope by_sigmoid(double x, double argument, double derivative) {
  const double s = 1 / (1 + std::exp(-argument));
  return {x / (1 + std::exp(-argument)), s + x * s * (1 - s) * derivative};
}

template <activation_function F>
value_and_slope apply(double x) {
  constexpr double twice = 2 * 0.7978845608, cubic = 0.044715;
  switch (F) {
    case silu:
      return by_sigmoid(x, x, 1);
    case fast_gelu:
      return by_sigmoid(x, 1.702 * x, 1.702);
    case gelu_tanh:  // (1 + tanh(t)) / 2 is the sigmoid of 2 t
      return by_sigmoid(x, twice * (x + cubic * x * x * x), twice * (1 + 3 * cubic * x * x));
    case gelu: {
      const double share = 0.5 * std::erfc(-x * 0.70710678118654752440);
      return {x * share, share + x * std::exp(-0.5 * x * x) * 0.39894228040143267794};
    }
    case relu:
      return {x <= 0 ? 0 : x, x <= 0 ? 0 : 1.0};
  }
  return {};
}

// factor * f'(x), where a step takes nothing of an infinite factor.
template <activation_function F>
double gradient(double factor, const value_and_slope& f) {
  return F == relu && f.slope == 0 ? 0 : factor * f.slope;
}

}  // namespace velo::ops::reference
