// rms_norm over the vector type `v` of the including namespace: the loops of norm.inl without a
// mean.
#include "ops/norm/norm.inl"

constexpr rms_norm_kernels kernels = kernels_of<false, reference::rms_norm>;
