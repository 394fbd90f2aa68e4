// The fused norms of a transformer's residual stream and their gradients: dropout_add_rms_norm and
// dropout_add_layer_norm, over the loops of norm.hpp.
//
//   z = dropout(x * rowscale * layerscale) + residual,   y = rms_norm(z) or layer_norm(z)
//
// Backward, dz being the gradient of the norm plus that of z itself, m dropout's multipliers:
//
//   dresidual   = dz                   dx        = dz * m * rowscale * layerscale
//   dlayerscale = sum over rows of dz * m * rowscale * x
//   drowscale   = sum over a row of dz * m * layerscale * x
//
// x, y: T, that is float32, bfloat16 or float16; residual, z: T or float32; all arithmetic in
// float32 on a row of floats, which stays in the first levels of cache: the norm sees z unrounded.
// Dropout by core/simd/philox.hpp, its index that of the element in x, or in the whole where x is a
// part (ops/operator/dropout_part.hpp). Bytes: forward a read of x and residual, a write of y and
// z. Bound: memory, and with dropout the random words.
#pragma once

#include <stdint.h>

#include "core/simd/philox.hpp"
#include "ops/norm/norm.hpp"

namespace velo::ops {

// What both passes have in common.
struct add_norm_terms {
  const float* gamma;              // n
  const float* rowscale;           // one a row, or nullptr
  const float* layerscale;         // n, or nullptr
  const simd::dropout_rule* rule;  // nullptr: nothing is dropped
  uint64_t first;                  // index of the slice's first element
  uint64_t pitch;                  // from the index of a row's first element to the next row's
  int64_t rows;
  int64_t n;
  float* scratch;  // two rows of n floats
};

template <class T, class Z>
struct dropout_add_norm_slice {
  const T* x;
  const Z* residual;  // or nullptr
  const float* beta;  // n; layer_norm only
  T* y;
  Z* z;           // or nullptr
  uint8_t* mask;  // or nullptr
  float* mean;    // one a row, or nullptr; layer_norm only
  float* rstd;    // one a row, or nullptr
  float epsilon;
  bool bypass;  // write y around the cache
  add_norm_terms by;
};

template <class T, class Z>
struct dropout_add_norm_backward_slice {
  const T* dy;
  const Z* dz;  // the gradient of z as an output, or nullptr
  const T* x;   // where dlayerscale or drowscale is asked for
  const Z* z;
  const float* mean;  // one a row; layer_norm only
  const float* rstd;  // one a row
  T* dx;
  Z* dresidual;        // or nullptr
  float* dgamma;       // n partial sums to add to, or nullptr
  float* dbeta;        // the same; layer_norm only, and beside dgamma
  float* dlayerscale;  // n partial sums to add to, or nullptr
  float* drowscale;    // one a row, or nullptr
  bool accumulate;     // add to drowscale
  add_norm_terms by;
};

// A kernel for each pair of T and Z.
template <template <class, class> class Slice>
struct of_each_pair {
  void (*f32)(const Slice<float, float>&);
  void (*bf16)(const Slice<simd::bf16, simd::bf16>&);
  void (*bf16_f32)(const Slice<simd::bf16, float>&);
  void (*f16)(const Slice<simd::f16, simd::f16>&);
  void (*f16_f32)(const Slice<simd::f16, float>&);

  void operator()(const Slice<float, float>& s) const { f32(s); }
  void operator()(const Slice<simd::bf16, simd::bf16>& s) const { bf16(s); }
  void operator()(const Slice<simd::bf16, float>& s) const { bf16_f32(s); }
  void operator()(const Slice<simd::f16, simd::f16>& s) const { f16(s); }
  void operator()(const Slice<simd::f16, float>& s) const { f16_f32(s); }
};

struct dropout_add_norm_pair {
  of_each_pair<dropout_add_norm_slice> forward;
  of_each_pair<dropout_add_norm_backward_slice> backward;
};

struct dropout_add_norm_kernels {
  dropout_add_norm_pair rms, layer;
  void (*columns)(const norm_columns&);
};
extern const kernel_list dropout_add_norm_kernel_list;

namespace reference {
extern const dropout_add_norm_kernels dropout_add_norm;  // also for rows that exceed float32

// The norm of z alone, for rows whose squares exceed float32.
void normalize_floats(bool centered, const norm_rows<float, float>&);
void normalize_floats(bool centered, const norm_rows<float, simd::bf16>&);
void normalize_floats(bool centered, const norm_rows<float, simd::f16>&);
}  // namespace reference

}  // namespace velo::ops
