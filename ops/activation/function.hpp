// The functions that activations apply, by number. Their formulas are in function_ref.hpp, in
// double, and in functions.inl, over vectors.
#pragma once

namespace velo::ops {

enum activation_function { silu, gelu, gelu_tanh, fast_gelu, relu, activation_count };

}  // namespace velo::ops
