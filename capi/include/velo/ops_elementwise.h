/* Element by element: sums, conversions, dropout.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/elementwise.json: change that and build the target `generate`. */
#ifndef VELO_OPS_ELEMENTWISE_H
#define VELO_OPS_ELEMENTWISE_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Parts of a tensor that become one number. */
enum {
  VELO_REDUCED_TENSOR = 0, /* all elements */
  VELO_REDUCED_ROWS = 1,   /* those along the last dimension */
  VELO_REDUCED_COLUMNS = 2 /* those over all other dimensions */
};

/* Element types a conversion can produce. */
enum {
  VELO_ELEMENT_FLOAT32 = 0,  /* IEEE binary32 */
  VELO_ELEMENT_BFLOAT16 = 1, /* the upper half of a float32 */
  VELO_ELEMENT_FLOAT16 = 2   /* IEEE binary16 */
};

/* ---- add ------------------------------------------------------------------------------------- */

typedef struct velo_add_args {
  uint32_t struct_size; /* sizeof(velo_add_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* a; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* b; /* in; float32 | bfloat16 | float16: shape and dtype of a */
  const velo_tensor* y; /* out: shape and dtype of a; may be a or b itself */
} velo_add_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ADD_ARGS_INIT \
  { sizeof(velo_add_args), 0, 0, 0, 0 }

/* `y = a + b`.
 * Element by element, computed in float32 and rounded once.
 *
 * In place: y may be a or b.
 * Accuracy: float32 exact rounding; bfloat16 and float16 half an ulp.
 * Cost: two reads and one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_add(velo_stream stream, const velo_add_args* args);

/* ---- cast ------------------------------------------------------------------------------------ */

typedef struct velo_cast_args {
  uint32_t struct_size; /* sizeof(velo_cast_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* out: shape of x, element type `dtype` */
  int64_t dtype;        /* VELO_ELEMENT_*, default float32: element type of y */
} velo_cast_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CAST_ARGS_INIT \
  { sizeof(velo_cast_args), 0, 0, 0, VELO_ELEMENT_FLOAT32 }

/* `y = round(x)`.
 * x in another element type, rounded to nearest even; NaN stays NaN.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: to float32 exact; to bfloat16 and float16 half an ulp; a magnitude that rounds to 65520
 * or more is infinite in float16.
 * Cost: one read of x and one write of y.
 * Source: IEEE 754-2019, 4.3.1.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_cast(velo_stream stream, const velo_cast_args* args);

/* ---- dropout --------------------------------------------------------------------------------- */

typedef struct velo_dropout_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* x;             /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y;             /* out: shape and dtype of x; may be x itself */
  const velo_tensor* mask;          /* out, or NULL: uint8, shape of x: 1 where an element is
                                     * kept, else 0 */
  double p;                         /* default 0.5, in [0.0, 1.0]: probability of dropping an
                                     * element; 1 drops all */
  int64_t seed;                     /* default 0: key of the generator, modulo 2^64 */
  int64_t offset;                   /* default 0: upper half of its counter: another for each
                                     * call that shares the seed */
  const velo_ints* dropout_origin;  /* in, or NULL: a value for each dimension of x: where x
                                     * begins in the whole, whose indices decide */
  const velo_ints* dropout_extents; /* in, or NULL: the sizes of the whole; by default those of x */
} velo_dropout_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_ARGS_INIT \
  { sizeof(velo_dropout_args), 0, 0, 0, 0, 0.5, 0, 0, 0, 0 }

/* `y = x * mask / (1 - p)`.
 * An element is kept where word >= floor(p * 2^32 + 1/2), word being output i % 4 of Philox4x32-10
 * for its index i, counter (i / 4, offset), key seed, each of 64 bits as a low and a high half.
 * The indices are those of x, or where x is a part of a whole, as a rank's rows or columns are,
 * those of the whole: dropout_origin and dropout_extents say where x lies in it. So parts drop what
 * the whole would.
 *
 * In place: y may be x.
 * Accuracy: 1 / (1 - p) is rounded to float32, the product once; the same bits from every kernel.
 * Cost: one read of x and one write of y; one byte an element of mask.
 * Source: Srivastava et al. 2014; Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout(velo_stream stream, const velo_dropout_args* args);

/* ---- dropout_backward ------------------------------------------------------------------------ */

typedef struct velo_dropout_backward_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_backward_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* dy;            /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* dx;            /* out: shape and dtype of x; may be dy itself */
  double p;                         /* default 0.5, in [0.0, 1.0]: that of the forward call */
  int64_t seed;                     /* default 0: that of the forward call */
  int64_t offset;                   /* default 0: that of the forward call */
  const velo_ints* dropout_origin;  /* in, or NULL: that of the forward call */
  const velo_ints* dropout_extents; /* in, or NULL: those of the forward call */
} velo_dropout_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_BACKWARD_ARGS_INIT \
  { sizeof(velo_dropout_backward_args), 0, 0, 0, 0.5, 0, 0, 0, 0 }

/* `dx = dy * mask / (1 - p)`.
 * The mask is drawn again from seed, offset and the place in the whole.
 *
 * Gradient of velo_dropout.
 * In place: dx may be dy.
 * Accuracy: 1 / (1 - p) is rounded to float32, the product once; the same bits from every kernel.
 * Cost: one read of dy and one write of dx.
 * Source: gradient of dropout.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout_backward(velo_stream stream,
                                           const velo_dropout_backward_args* args);

/* ---- accumulate ------------------------------------------------------------------------------ */

typedef struct velo_accumulate_args {
  uint32_t struct_size; /* sizeof(velo_accumulate_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* y; /* in and out; float32 | bfloat16 | float16: shape of x */
  double alpha;         /* default 1.0, in [-1e+18, 1e+18]: the factor of x */
} velo_accumulate_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ACCUMULATE_ARGS_INIT \
  { sizeof(velo_accumulate_args), 0, 0, 0, 1.0 }

/* `y += alpha * x`.
 * Element by element, in float32, rounded once; alpha counts as float32.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 exact rounding; bfloat16
 * and float16 half an ulp.
 * Cost: one read of x, one read and one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_accumulate(velo_stream stream, const velo_accumulate_args* args);

/* ---- reduce_max_abs -------------------------------------------------------------------------- */

typedef struct velo_reduce_max_abs_args {
  uint32_t struct_size; /* sizeof(velo_reduce_max_abs_args) */
  uint32_t reserved;    /* 0 */
  const velo_tensor* x; /* in; float32 | bfloat16 | float16: any shape; [.., n] for rows and
                         * columns */
  const velo_tensor* y; /* out: float32: [], [..] for rows, [n] for columns */
  int64_t over;         /* VELO_REDUCED_*, default tensor: what one number stands for */
} velo_reduce_max_abs_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_REDUCE_MAX_ABS_ARGS_INIT \
  { sizeof(velo_reduce_max_abs_args), 0, 0, 0, VELO_REDUCED_TENSOR }

/* `y = max(abs(x))`.
 * Of the whole tensor, of each row along its last dimension, or of each column over all others; 0
 * of no elements, NaN where one is NaN. Quantizers divide by it.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of x.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_reduce_max_abs(velo_stream stream, const velo_reduce_max_abs_args* args);

VELO_END_C

#endif
