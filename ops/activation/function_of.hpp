// The function that an activation's call applies.
#pragma once

#include "ops/activation/function.hpp"
#include "velo/ops_activation.h"

namespace velo::ops {

inline activation_function gelu_by(int64_t approximate) {
  return approximate == VELO_APPROXIMATION_TANH ? gelu_tanh : gelu;
}

inline activation_function function_of(const velo_swiglu_args&) {
  return silu;
}
inline activation_function function_of(const velo_swiglu_backward_args&) {
  return silu;
}
inline activation_function function_of(const velo_geglu_args& a) {
  return gelu_by(a.approximate);
}
inline activation_function function_of(const velo_geglu_backward_args& a) {
  return gelu_by(a.approximate);
}
inline activation_function function_of(const velo_reglu_args&) {
  return relu;
}
inline activation_function function_of(const velo_reglu_backward_args&) {
  return relu;
}
inline activation_function function_of(const velo_gelu_args& a) {
  return gelu_by(a.approximate);
}
inline activation_function function_of(const velo_gelu_backward_args& a) {
  return gelu_by(a.approximate);
}
inline activation_function function_of(const velo_fast_gelu_args&) {
  return fast_gelu;
}
inline activation_function function_of(const velo_fast_gelu_backward_args&) {
  return fast_gelu;
}
inline activation_function function_of(const velo_silu_args&) {
  return silu;
}
inline activation_function function_of(const velo_silu_backward_args&) {
  return silu;
}
inline activation_function function_of(const velo_relu_args&) {
  return relu;
}
inline activation_function function_of(const velo_relu_backward_args&) {
  return relu;
}

}  // namespace velo::ops
