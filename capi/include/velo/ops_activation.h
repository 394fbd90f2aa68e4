/* Activations, with and without a gate.
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

/* Forms of gelu. */
enum {
  VELO_APPROXIMATION_NONE = 0, /* by the error function */
  VELO_APPROXIMATION_TANH = 1  /* by tanh, as GPT-2 and Megatron-LM compute it */
};

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
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 3e-7 relative to |y|;
 * bfloat16 half an ulp more; float16 half an ulp and 4e-6 of |y|; silu(x1) below 1e-57 may count as
 * 0, which gives NaN times an infinite x2.
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
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 5e-7 of the largest term;
 * bfloat16 half an ulp more; float16 half an ulp and 4e-6 of the largest term; it holds while dy *
 * x2 is finite in float32, where sigmoid(x1) below 1e-57 may count as 0.
 * Cost: one read of x and dy, one write of dx.
 * Source: gradient of swiglu.
 * Also called npu_swiglu_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_swiglu_backward(velo_stream stream,
                                          const velo_swiglu_backward_args* args);

/* ---- geglu ----------------------------------------------------------------------------------- */

typedef struct velo_geglu_args {
  uint32_t struct_size; /* sizeof(velo_geglu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: rank 1..8; even size along dim */
  const velo_tensor* y; /* out: shape of x with dim halved, dtype of x */
  int64_t dim;          /* default -1, in [-8, 7]: the split dimension; negative counts from the
                         * end */
  int64_t approximate;  /* VELO_APPROXIMATION_*, default none: the form of gelu */
} velo_geglu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GEGLU_ARGS_INIT \
  { sizeof(velo_geglu_args), 0, 0, 0, -1, VELO_APPROXIMATION_NONE }

/* `y = gelu(x1) * x2`.
 * x1 and x2 are the two equal halves of x along `dim`; gelu as in the operator gelu.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 relative to |y|;
 * bfloat16 and float16 half an ulp and 1e-5 of |y|; gelu(x1) below 1e-57 may count as 0.
 * Cost: one read of x and one write of half its size.
 * Source: Shazeer 2020, arXiv:2002.05202.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_geglu(velo_stream stream, const velo_geglu_args* args);

/* ---- geglu_backward -------------------------------------------------------------------------- */

typedef struct velo_geglu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_geglu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape of x with dim halved, dtype
                          * of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be x itself */
  int64_t dim;           /* default -1, in [-8, 7]: as in the forward call */
  int64_t approximate;   /* VELO_APPROXIMATION_*, default none: as in the forward call */
} velo_geglu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GEGLU_BACKWARD_ARGS_INIT \
  { sizeof(velo_geglu_backward_args), 0, 0, 0, 0, -1, VELO_APPROXIMATION_NONE }

/* `dx1 = dy * x2 * slope(x1)`; `dx2 = dy * gelu(x1)`.
 * dx1 and dx2 are the halves of dx, laid out as x; slope is the derivative of gelu.
 *
 * Gradient of velo_geglu.
 * In place: dx may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 of the largest term;
 * bfloat16 and float16 half an ulp and 2e-5 of the largest term.
 * Cost: one read of x and dy, one write of dx.
 * Source: gradient of geglu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_geglu_backward(velo_stream stream, const velo_geglu_backward_args* args);

/* ---- reglu ----------------------------------------------------------------------------------- */

typedef struct velo_reglu_args {
  uint32_t struct_size; /* sizeof(velo_reglu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: rank 1..8; even size along dim */
  const velo_tensor* y; /* out: shape of x with dim halved, dtype of x */
  int64_t dim;          /* default -1, in [-8, 7]: the split dimension; negative counts from the
                         * end */
} velo_reglu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_REGLU_ARGS_INIT \
  { sizeof(velo_reglu_args), 0, 0, 0, -1 }

/* `y = max(x1, 0) * x2`.
 * x1 and x2 are the two equal halves of x along `dim`.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 exact rounding; bfloat16
 * and float16 half an ulp.
 * Cost: one read of x and one write of half its size.
 * Source: Shazeer 2020, arXiv:2002.05202.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_reglu(velo_stream stream, const velo_reglu_args* args);

/* ---- reglu_backward -------------------------------------------------------------------------- */

typedef struct velo_reglu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_reglu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape of x with dim halved, dtype
                          * of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be x itself */
  int64_t dim;           /* default -1, in [-8, 7]: as in the forward call */
} velo_reglu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_REGLU_BACKWARD_ARGS_INIT \
  { sizeof(velo_reglu_backward_args), 0, 0, 0, 0, -1 }

/* `dx1 = dy * x2 * step(x1)`; `dx2 = dy * max(x1, 0)`.
 * step(t) is 0 for t <= 0 and 1 elsewhere; dx1 and dx2 are the halves of dx, laid out as x.
 *
 * Gradient of velo_reglu.
 * In place: dx may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 exact rounding; bfloat16
 * and float16 half an ulp.
 * Cost: one read of x and dy, one write of dx.
 * Source: gradient of reglu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_reglu_backward(velo_stream stream, const velo_reglu_backward_args* args);

/* ---- gelu ------------------------------------------------------------------------------------ */

typedef struct velo_gelu_args {
  uint32_t struct_size; /* sizeof(velo_gelu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* out: shape and dtype of x; may be x itself */
  int64_t approximate;  /* VELO_APPROXIMATION_*, default none: the form of gelu */
} velo_gelu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GELU_ARGS_INIT \
  { sizeof(velo_gelu_args), 0, 0, 0, VELO_APPROXIMATION_NONE }

/* `y = x * Phi(x)`.
 * Phi is the normal distribution. By tanh `y = x / 2 * (1 + tanh(0.7978845608 * (x + 0.044715 *
 * x^3)))`.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 relative to |y|;
 * bfloat16 and float16 half an ulp and 1e-5 of |y|.
 * Cost: one read of x and one write of y.
 * Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_gelu(velo_stream stream, const velo_gelu_args* args);

/* ---- gelu_backward --------------------------------------------------------------------------- */

typedef struct velo_gelu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_gelu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be dy or x itself */
  int64_t approximate;   /* VELO_APPROXIMATION_*, default none: as in the forward call */
} velo_gelu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GELU_BACKWARD_ARGS_INIT \
  { sizeof(velo_gelu_backward_args), 0, 0, 0, 0, VELO_APPROXIMATION_NONE }

/* `dx = dy * (Phi(x) + x * phi(x))`.
 * phi is the density of the normal distribution. By tanh the derivative of that form.
 *
 * Gradient of velo_gelu.
 * In place: dx may be dy or x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 of the largest term;
 * bfloat16 and float16 half an ulp and 2e-5 of the largest term.
 * Cost: two reads and one write of dx.
 * Source: gradient of gelu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_gelu_backward(velo_stream stream, const velo_gelu_backward_args* args);

/* ---- fast_gelu ------------------------------------------------------------------------------- */

typedef struct velo_fast_gelu_args {
  uint32_t struct_size; /* sizeof(velo_fast_gelu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* out: shape and dtype of x; may be x itself */
} velo_fast_gelu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FAST_GELU_ARGS_INIT \
  { sizeof(velo_fast_gelu_args), 0, 0, 0 }

/* `y = x / (1 + exp(-1.702 * x))`.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 relative to |y|;
 * bfloat16 and float16 half an ulp and 1e-5 of |y|.
 * Cost: one read of x and one write of y.
 * Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_fast_gelu(velo_stream stream, const velo_fast_gelu_args* args);

/* ---- fast_gelu_backward ---------------------------------------------------------------------- */

typedef struct velo_fast_gelu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_fast_gelu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be dy or x itself */
} velo_fast_gelu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FAST_GELU_BACKWARD_ARGS_INIT \
  { sizeof(velo_fast_gelu_backward_args), 0, 0, 0, 0 }

/* `s = 1 / (1 + exp(-1.702 * x))`; `dx = dy * (s + 1.702 * x * s * (1 - s))`.
 *
 * Gradient of velo_fast_gelu.
 * In place: dx may be dy or x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 of the largest term;
 * bfloat16 and float16 half an ulp and 2e-5 of the largest term.
 * Cost: two reads and one write of dx.
 * Source: gradient of fast_gelu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_fast_gelu_backward(velo_stream stream,
                                             const velo_fast_gelu_backward_args* args);

/* ---- silu ------------------------------------------------------------------------------------ */

typedef struct velo_silu_args {
  uint32_t struct_size; /* sizeof(velo_silu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* out: shape and dtype of x; may be x itself */
} velo_silu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SILU_ARGS_INIT \
  { sizeof(velo_silu_args), 0, 0, 0 }

/* `y = x / (1 + exp(-x))`.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 3e-7 relative to |y|;
 * bfloat16 half an ulp more; float16 half an ulp and 4e-6 of |y|.
 * Cost: one read of x and one write of y.
 * Source: Elfwing et al. 2017, arXiv:1702.03118.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_silu(velo_stream stream, const velo_silu_args* args);

/* ---- silu_backward --------------------------------------------------------------------------- */

typedef struct velo_silu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_silu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be dy or x itself */
} velo_silu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SILU_BACKWARD_ARGS_INIT \
  { sizeof(velo_silu_backward_args), 0, 0, 0, 0 }

/* `s = 1 / (1 + exp(-x))`; `dx = dy * (s + x * s * (1 - s))`.
 *
 * Gradient of velo_silu.
 * In place: dx may be dy or x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 1e-6 of the largest term;
 * bfloat16 and float16 half an ulp and 2e-5 of the largest term.
 * Cost: two reads and one write of dx.
 * Source: gradient of silu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_silu_backward(velo_stream stream, const velo_silu_backward_args* args);

/* ---- relu ------------------------------------------------------------------------------------ */

typedef struct velo_relu_args {
  uint32_t struct_size; /* sizeof(velo_relu_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* out: shape and dtype of x; may be x itself */
} velo_relu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RELU_ARGS_INIT \
  { sizeof(velo_relu_args), 0, 0, 0 }

/* `y = max(x, 0)`.
 *
 * In place: y may be x.
 * Accuracy: exact; relu(NaN) is NaN.
 * Cost: one read of x and one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_relu(velo_stream stream, const velo_relu_args* args);

/* ---- relu_backward --------------------------------------------------------------------------- */

typedef struct velo_relu_backward_args {
  uint32_t struct_size;  /* sizeof(velo_relu_backward_args) */
  uint32_t reserved;     /* 0 */
  const velo_tensor* dy; /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* dx; /* out: shape and dtype of x; may be dy or x itself */
} velo_relu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RELU_BACKWARD_ARGS_INIT \
  { sizeof(velo_relu_backward_args), 0, 0, 0, 0 }

/* `dx = dy * step(x)`.
 * step(t) is 0 for t <= 0 and 1 elsewhere.
 *
 * Gradient of velo_relu.
 * In place: dx may be dy or x.
 * Accuracy: exact; dy where x is NaN.
 * Cost: two reads and one write of dx.
 * Source: gradient of relu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_relu_backward(velo_stream stream, const velo_relu_backward_args* args);

VELO_END_C

#endif
