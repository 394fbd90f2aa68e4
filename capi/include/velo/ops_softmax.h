/* Softmax by itself.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/softmax.json: change that and build the target `generate`. */
#ifndef VELO_OPS_SOFTMAX_H
#define VELO_OPS_SOFTMAX_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* ---- softmax --------------------------------------------------------------------------------- */

typedef struct velo_softmax_args {
  uint32_t struct_size;    /* sizeof(velo_softmax_args) */
  uint32_t reserved;       /* 0 */
  const velo_tensor* x;    /* in; float32 | bfloat16 | float16: [.., n] */
  const velo_tensor* mask; /* in, or NULL; uint8 | bool: nonzero hides; sizes those of x's last
                            * dimensions, or 1 in all but the last */
  const velo_tensor* y;    /* out: shape and dtype of x; may be x itself */
  double scale;            /* default 1.0, in [-1e+18, 1e+18]: x is multiplied by it */
} velo_softmax_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SOFTMAX_ARGS_INIT \
  { sizeof(velo_softmax_args), 0, 0, 0, 0, 1.0 }

/* `y[i] = exp(scale * x[i]) / sum[j](exp(scale * x[j]))`.
 * Over the last dimension. Where the mask is not 0, y is 0 and x counts for nothing; a row that is
 * masked out whole gives zeros.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 3e-6 of y, where that is
 * above 1e-20; bfloat16 and float16 half an ulp and 1e-5 of y.
 * Cost: one read of x and one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_softmax(velo_stream stream, const velo_softmax_args* args);

/* ---- softmax_backward ------------------------------------------------------------------------ */

typedef struct velo_softmax_backward_args {
  uint32_t struct_size;  /* sizeof(velo_softmax_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: [.., n] */
  const velo_tensor* y;  /* in; float32 | bfloat16 | float16: the forward output: shape and dtype
                          * of dy */
  const velo_tensor* dx; /* out: shape and dtype of dy; may be dy or y itself */
  double scale;          /* default 1.0, in [-1e+18, 1e+18]: as in the forward call */
} velo_softmax_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SOFTMAX_BACKWARD_ARGS_INIT \
  { sizeof(velo_softmax_backward_args), 0, 0, 0, 0, 1.0 }

/* `dx[i] = scale * y[i] * (dy[i] - sum[j](dy[j] * y[j]))`.
 * Over the last dimension; y is 0 where the mask hides, and so is dx.
 *
 * Gradient of velo_softmax.
 * In place: dx may be dy or y.
 * Accuracy: for inputs that are 0 or of magnitude 1e-15 to 1e+15: float32 3e-6 of the largest dx;
 * bfloat16 and float16 half an ulp more.
 * Cost: two reads and one write of dx.
 * Source: gradient of softmax.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_softmax_backward(velo_stream stream,
                                           const velo_softmax_backward_args* args);

VELO_END_C

#endif
