// layer_norm over the vector type `v` of the including namespace: the loops of norm.inl with a
// mean.
#include "ops/norm/norm.inl"

constexpr layer_norm_kernels kernels = kernels_of<true, reference::layer_norm>;
