/* Integers of 8 and 4 bits with scales: quantizers, and products of what they make.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/quant.json: change that and build the target `generate`. */
#ifndef VELO_OPS_QUANT_H
#define VELO_OPS_QUANT_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The elements that share a scale. */
enum {
  VELO_QUANTIZED_OVER_TENSOR = 0,  /* all */
  VELO_QUANTIZED_OVER_TOKEN = 1,   /* those of a row along the last dimension */
  VELO_QUANTIZED_OVER_CHANNEL = 2, /* those along the last dimension but one */
  VELO_QUANTIZED_OVER_GROUP = 3    /* group_size neighbors along the last dimension but one */
};

/* Integers of a quantized tensor. */
enum {
  VELO_QUANTIZED_FORMAT_INT8 = 0, /* 8 bits */
  VELO_QUANTIZED_FORMAT_INT4 = 1  /* 4 bits, two to a byte */
};

/* ---- quantize -------------------------------------------------------------------------------- */

typedef struct velo_quantize_args {
  uint32_t struct_size;     /* sizeof(velo_quantize_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [.., k, n] */
  const velo_tensor* y;     /* out: int8 [.., k, n]; of int4 uint8 [.., k, n / 2], or int4 [..,
                             * k, n] */
  const velo_tensor* scale; /* out: float32: [], [.., k] of tokens, [.., n] of channels, [.., k /
                             * group_size, n] of groups */
  int64_t over;             /* VELO_QUANTIZED_OVER_*, default tensor: what has a scale of its own */
  int64_t format;           /* VELO_QUANTIZED_FORMAT_*, default int8: of y */
  int64_t group_size;       /* default 0, in [0, 1048576]: of groups: a divisor of k, 32, 64, 128
                             * or another multiple of 32 */
} velo_quantize_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_QUANTIZE_ARGS_INIT \
  { \
    sizeof(velo_quantize_args), 0, 0, 0, 0, VELO_QUANTIZED_OVER_TENSOR, \
    VELO_QUANTIZED_FORMAT_INT8, 0 \
  }

/* `scale = max(abs(x)) / limit`; `y = round(x / scale)`.
 * Symmetric: limit is 127, of int4 7; the scale of zeros is 1; ties round to even. NaN and Inf
 * become the scale, whose y are 0.
 * int4: two's complement, two to a byte along the last dimension, the first in the low half.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: two reads of x, one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_quantize(velo_stream stream, const velo_quantize_args* args);

/* ---- weight_quant_matmul --------------------------------------------------------------------- */

typedef struct velo_weight_quant_matmul_args {
  uint32_t struct_size;      /* sizeof(velo_weight_quant_matmul_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [.., k] */
  const velo_tensor* weight; /* in; int8 | uint8 | int4: int8 [k, n]; int4 as uint8 [k, n / 2] or
                              * int4 [k, n] */
  const velo_tensor* scale;  /* in; float32 | bfloat16 | float16: [n], or [groups, n] for each k
                              * / groups, a multiple of 32; float32 or dtype of x */
  const velo_tensor* offset; /* in, or NULL; float32 | bfloat16 | float16: shape and dtype of
                              * scale; NULL = 0 */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or dtype
                              * of x */
  const velo_tensor* y;      /* out: [.., n], dtype of x */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [n, k], int4 in pairs
                              * along k */
} velo_weight_quant_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT \
  { sizeof(velo_weight_quant_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = x @ ((weight + offset) * scale) + bias`.
 * A product with a weight of int8 or int4, as quantize makes it over channel or group, and of a
 * stored [n, k] over token; its elements become float32 on their way; products and sums in float32,
 * rounded once. Sizes are below 2^31.
 * Up to 16 rows are multiplied in another order than 17 and more, so the bits of a row may differ
 * between the two; within each they do not depend on how many rows there are.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-11 to 1e+11: as matmul of the same float32
 * weight.
 * Cost: one read of the weight; 2 m n k operations.
 * Source: MindSpeed npu_ffn, torch._weight_int8pack_mm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_weight_quant_matmul(velo_stream stream,
                                              const velo_weight_quant_matmul_args* args);

/* ---- weight_quant_matmul_backward ------------------------------------------------------------ */

typedef struct velo_weight_quant_matmul_backward_args {
  uint32_t struct_size;      /* sizeof(velo_weight_quant_matmul_backward_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: [.., n] */
  const velo_tensor* weight; /* in; int8 | uint8 | int4: int8 [k, n]; int4 as uint8 [k, n / 2] or
                              * int4 [k, n] */
  const velo_tensor* scale;  /* in; float32 | bfloat16 | float16: [n] or [groups, n]; float32 or
                              * dtype of dy */
  const velo_tensor* offset; /* in, or NULL; float32 | bfloat16 | float16: shape and dtype of
                              * scale; NULL = 0 */
  const velo_tensor* dx;     /* out: [.., k], dtype of dy */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [n, k] */
} velo_weight_quant_matmul_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_WEIGHT_QUANT_MATMUL_BACKWARD_ARGS_INIT \
  { sizeof(velo_weight_quant_matmul_backward_args), 0, 0, 0, 0, 0, 0, 0 }

/* `dx = dy @ ((weight + offset) * scale)^T`.
 * The weight and its scales have no gradient.
 *
 * Gradient of velo_weight_quant_matmul.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-11 to 1e+11: as weight_quant_matmul.
 * Cost: one read of the weight; 2 m n k operations.
 * Source: gradient of weight_quant_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_weight_quant_matmul_backward(
    velo_stream stream, const velo_weight_quant_matmul_backward_args* args);

VELO_END_C

#endif
