/* Gated activations.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/activation.json: change that and build the target `generate`. */
#ifndef VELO_OPS_ACTIVATION_H
#define VELO_OPS_ACTIVATION_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* ---- swiglu ---------------------------------------------------------------------------------- */

typedef struct velo_swiglu_args {
  uint32_t struct_size; /* sizeof(velo_swiglu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: rank 1..8; even size along dim */
  const velo_tensor* y; /* out: shape of x with dim halved, dtype of x */
  int64_t dim;          /* default -1, in [-8, 7]: the split dimension; negative counts from the
                         * end */
} velo_swiglu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SWIGLU_ARGS_INIT \
  { sizeof(velo_swiglu_args), 0, 0, 0, -1 }

/* `silu(t) = t / (1 + exp(-t))`; `y = silu(x1) * x2`.
 * x1 and x2 are the two equal halves of x along `dim`.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 88.0: float32 3e-7 relative to |y|;
 * bfloat16 half an ulp more; float16 half an ulp and 4e-6 of |y|; it holds for larger x1 and x2,
 * too, but below x1 = -88.3, where silu(x1) is at most 4e-37, that may count as 0, which gives NaN
 * times an infinite x2.
 * Cost: one read of x and one write of half its size.
 * Source: Shazeer 2020, arXiv:2002.05202.
 * Also called npu_swiglu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_swiglu(velo_stream stream, const velo_swiglu_args* args);

/* ---- swiglu_backward ------------------------------------------------------------------------- */

typedef struct velo_swiglu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_swiglu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape of x with dim halved, dtype
                          * of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be x itself */
  int64_t dim;           /* default -1, in [-8, 7]: as in the forward call */
} velo_swiglu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SWIGLU_BACKWARD_ARGS_INIT \
  { sizeof(velo_swiglu_backward_args), 0, 0, 0, 0, -1 }

/* `s = 1 / (1 + exp(-x1))`; `dx1 = dy * x2 * s * (1 + x1 * (1 - s))`; `dx2 = dy * silu(x1)`.
 * dx1 and dx2 are the halves of dx, laid out as x.
 *
 * Gradient of velo_swiglu.
 * In place: dx may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 87.0: float32 5e-7 of the largest term;
 * bfloat16 half an ulp more; float16 half an ulp and 4e-6 of the largest term; it holds for larger
 * inputs, too, while dy * x2 is finite in float32, but below x1 = -87.3, where sigmoid(x1) is at
 * most 1.2e-38, that may count as 0.
 * Cost: one read of x and dy, one write of dx.
 * Source: gradient of swiglu.
 * Also called npu_swiglu_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_swiglu_backward(velo_stream stream,
                                          const velo_swiglu_backward_args* args);

VELO_END_C

#endif
