/* Quantization to int8 and int4 with scales. Products of quantized tensors are in the family
 * matmul.
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

VELO_END_C

#endif
