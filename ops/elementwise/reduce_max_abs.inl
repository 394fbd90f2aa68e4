// reduce_max_abs over the vector type `v` of the including namespace.
#include "ops/elementwise/max_abs.inl"

constexpr reduce_max_abs_kernels kernels = max_abs_kernels;
