/* Normalization: rows scaled to unit root mean square or unit variance, with a learned gain.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/norm.json: change that and build the target `generate`. */
#ifndef VELO_OPS_NORM_H
#define VELO_OPS_NORM_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* ---- rms_norm -------------------------------------------------------------------------------- */

typedef struct velo_rms_norm_args {
  uint32_t struct_size;     /* sizeof(velo_rms_norm_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [..., n], compact rows */
  const velo_tensor* gamma; /* in; float32 | bfloat16 | float16: trailing dimensions of x;
                             * float32, or the dtype of x */
  const velo_tensor* y;     /* out: shape and dtype of x; may be x itself */
  const velo_tensor* rstd;  /* out, or NULL: float32, the shape of x with a 1 for each dimension
                             * that gamma has; what the gradient needs; NaN where these hold no
                             * element */
  double epsilon;           /* default 1e-06, >= 0.0: added to the mean square; a finite number */
} velo_rms_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RMS_NORM_ARGS_INIT \
  { sizeof(velo_rms_norm_args), 0, 0, 0, 0, 0, 1e-06 }

/* `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`.
 * The mean is over the trailing dimensions that gamma has. x: [..., n]; gamma: [n] (or more
 * trailing dimensions); the products are computed in float32.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: y may be x.
 * Accuracy: float32: 4 ulp of y for rows up to 2^20, whatever their magnitude; bfloat16 and
 * float16: half an ulp of the float32 result; denormal bfloat16 results are zero in kernel
 * avx512_bf16.
 * Cost: one read and one write of x.
 * Source: Zhang and Sennrich 2019, arXiv:1910.07467.
 * Also called npu_rms_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rms_norm(velo_stream stream, const velo_rms_norm_args* args);

/* ---- rms_norm_backward ----------------------------------------------------------------------- */

typedef struct velo_rms_norm_backward_args {
  uint32_t struct_size;      /* sizeof(velo_rms_norm_backward_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* gamma;  /* in; float32 | bfloat16 | float16: the forward gain */
  const velo_tensor* rstd;   /* in; float32: from the forward pass */
  const velo_tensor* dx;     /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dgamma; /* out, or NULL: float32, shape of gamma */
  int64_t accumulate;        /* 0 or 1, default 0: 1 adds to dgamma instead of writing it */
} velo_rms_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RMS_NORM_BACKWARD_ARGS_INIT \
  { sizeof(velo_rms_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x *
 * rstd)`.
 *
 * Gradient of velo_rms_norm.
 * In place: dx may be dy.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: dx: 8 ulp of the largest term of
 * a row, in bfloat16 and float16 half an ulp more; denormal bfloat16 results are zero in kernel
 * avx512_bf16; dgamma: float32 sums in a fixed tree; beyond those magnitudes it holds, for the rstd
 * of the forward call, while dy * gamma * x and its sum over a row are normal float32 numbers.
 * Cost: two reads and one write of x.
 * Source: gradient of rms_norm.
 * Also called npu_rms_norm_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rms_norm_backward(velo_stream stream,
                                            const velo_rms_norm_backward_args* args);

/* ---- layer_norm ------------------------------------------------------------------------------ */

typedef struct velo_layer_norm_args {
  uint32_t struct_size;     /* sizeof(velo_layer_norm_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [..., n], compact rows */
  const velo_tensor* gamma; /* in, or NULL; float32 | bfloat16 | float16: trailing dimensions of
                             * x; float32, or the dtype of x; NULL = 1 */
  const velo_tensor* beta;  /* in, or NULL; float32 | bfloat16 | float16: shape of gamma, [n]
                             * without it; float32, or the dtype of x; NULL = 0 */
  const velo_tensor* y;     /* out: shape and dtype of x; may be x itself */
  const velo_tensor* mean;  /* out, or NULL: float32, the shape of x with a 1 for each normalized
                             * dimension; what the gradient needs; NaN where these hold no
                             * element */
  const velo_tensor* rstd;  /* out, or NULL: like mean */
  double epsilon;           /* default 1e-05, >= 0.0: added to the mean square; a finite number */
} velo_layer_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_LAYER_NORM_ARGS_INIT \
  { sizeof(velo_layer_norm_args), 0, 0, 0, 0, 0, 0, 0, 1e-05 }

/* `mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma +
 * beta`.
 * The means are over the trailing dimensions that gamma has, over the last where it is left out;
 * computed in float32.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: y may be x.
 * Accuracy: float32: 4 ulp of y and 5 of the largest term, for rows up to 2^20, whatever their
 * magnitude, but where y is denormal; bfloat16 and float16: half an ulp of the float32 result;
 * denormal bfloat16 results are zero in kernel avx512_bf16.
 * Cost: one read and one write of x.
 * Source: Ba, Kiros and Hinton 2016, arXiv:1607.06450.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_layer_norm(velo_stream stream, const velo_layer_norm_args* args);

/* ---- layer_norm_backward --------------------------------------------------------------------- */

typedef struct velo_layer_norm_backward_args {
  uint32_t struct_size;      /* sizeof(velo_layer_norm_backward_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* gamma;  /* in, or NULL; float32 | bfloat16 | float16: the forward gain; NULL
                              * = 1 */
  const velo_tensor* mean;   /* in; float32: from the forward pass */
  const velo_tensor* rstd;   /* in; float32: from the forward pass */
  const velo_tensor* dx;     /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dgamma; /* out, or NULL: float32, the normalized dimensions of x */
  const velo_tensor* dbeta;  /* out, or NULL: like dgamma */
  int64_t accumulate;        /* 0 or 1, default 0: 1 adds to dgamma and dbeta instead of writing
                              * them */
} velo_layer_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_LAYER_NORM_BACKWARD_ARGS_INIT \
  { sizeof(velo_layer_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma
 * = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`.
 *
 * Gradient of velo_layer_norm.
 * In place: dx may be dy.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: dx: 8 ulp of the largest term of
 * a row, in bfloat16 and float16 half an ulp more; 1e-6 where the terms of a row cancel, as in a
 * row of one element; dgamma, dbeta: float32 sums in a fixed tree; beyond those magnitudes it
 * holds, for the mean and rstd of the forward call, while the products and their sums over a row
 * are normal float32 numbers.
 * Cost: two reads and one write of x.
 * Source: gradient of layer_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_layer_norm_backward(velo_stream stream,
                                              const velo_layer_norm_backward_args* args);

/* ---- dropout_add_rms_norm -------------------------------------------------------------------- */

typedef struct velo_dropout_add_rms_norm_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_add_rms_norm_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* x;             /* in; float32 | bfloat16 | float16: [..., n] */
  const velo_tensor* residual;      /* in, or NULL; float32 | bfloat16 | float16: shape of x;
                                     * float32, or the dtype of x; NULL = 0 */
  const velo_tensor* gamma;         /* in; float32 | bfloat16 | float16: [n]; float32, or the
                                     * dtype of x if the residual has that, too */
  const velo_tensor* rowscale;      /* in, or NULL; float32 | bfloat16 | float16: shape of x
                                     * without n, dtype of x; NULL = 1 */
  const velo_tensor* layerscale;    /* in, or NULL; float32 | bfloat16 | float16: [n], dtype of
                                     * x; NULL = 1 */
  const velo_tensor* y;             /* out: shape and dtype of x; may be x itself */
  const velo_tensor* pre_norm;      /* out, or NULL: z, shape of x, dtype of the residual; may be
                                     * the residual itself */
  const velo_tensor* mask;          /* out, or NULL: uint8, shape of x: 1 where an element is
                                     * kept, else 0 */
  const velo_tensor* rstd;          /* out, or NULL: float32, shape of x with 1 for n; what the
                                     * gradient needs */
  double p;                         /* default 0.0, in [0.0, 1.0]: probability of dropping an
                                     * element, as `dropout` has it; 1 drops all */
  int64_t seed;                     /* default 0: key of the generator, as `dropout` has it */
  int64_t offset;                   /* default 0: upper half of its counter, as `dropout` has it */
  double epsilon;                   /* default 1e-05, >= 0.0: added to the mean square; a finite
                                     * number */
  int64_t residual_in_fp32;         /* 0 or 1, default 0: 1 makes pre_norm float32; without a
                                     * residual only */
  const velo_ints* dropout_origin;  /* in, or NULL: a value for each dimension of x: where x
                                     * begins in the whole, whose indices decide */
  const velo_ints* dropout_extents; /* in, or NULL: the sizes of the whole; by default those of x */
} velo_dropout_add_rms_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT \
  { \
    sizeof(velo_dropout_add_rms_norm_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 1e-05, 0, 0, \
    0 \
  }

/* `z = dropout(x * rowscale * layerscale) + residual`; `y = z / sqrt(mean(z^2) + epsilon) * gamma`.
 * Decisions of dropout are those of `dropout` for the element's index in x, or in the whole where x
 * is a part of one; the mean is over the last dimension; computed in float32, z unrounded.
 *
 * In place: y may be x; pre_norm may be residual.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: float32: 5 ulp of the value and 8
 * of the largest term of a sum; bfloat16 and float16: half an ulp of the float32 result; denormal
 * bfloat16 results are zero in kernel avx512_bf16; beyond those magnitudes it holds while products
 * of x and its scales are normal float32 numbers.
 * Cost: one read of x and residual, one write of y and pre_norm; one byte an element of mask.
 * Source: Dao et al., flash-attn's dropout_add_layer_norm.
 * Also called npu_dropout_add_rms_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout_add_rms_norm(velo_stream stream,
                                               const velo_dropout_add_rms_norm_args* args);

/* ---- dropout_add_rms_norm_backward ----------------------------------------------------------- */

typedef struct velo_dropout_add_rms_norm_backward_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_add_rms_norm_backward_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* dy;            /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* dpre_norm;     /* in, or NULL; float32 | bfloat16 | float16: gradient of
                                     * pre_norm, like it; NULL = 0 */
  const velo_tensor* x;             /* in, or NULL; float32 | bfloat16 | float16: the forward
                                     * input; what drowscale and dlayerscale need */
  const velo_tensor* pre_norm;      /* in; float32 | bfloat16 | float16: from the forward pass;
                                     * float32, or the dtype of x */
  const velo_tensor* gamma;         /* in; float32 | bfloat16 | float16: the forward gain */
  const velo_tensor* rowscale;      /* in, or NULL; float32 | bfloat16 | float16: that of the
                                     * forward call */
  const velo_tensor* layerscale;    /* in, or NULL; float32 | bfloat16 | float16: that of the
                                     * forward call */
  const velo_tensor* rstd;          /* in; float32: from the forward pass */
  const velo_tensor* dx;            /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dresidual;     /* out, or NULL: shape and dtype of pre_norm; may be
                                     * dpre_norm itself */
  const velo_tensor* dgamma;        /* out, or NULL: float32, [n] */
  const velo_tensor* drowscale;     /* out, or NULL: float32, shape of rowscale */
  const velo_tensor* dlayerscale;   /* out, or NULL: float32, [n] */
  double p;                         /* default 0.0, in [0.0, 1.0]: that of the forward call */
  int64_t seed;                     /* default 0: that of the forward call */
  int64_t offset;                   /* default 0: that of the forward call */
  int64_t accumulate;               /* 0 or 1, default 0: 1 adds to the gradients of gains and
                                     * scales instead of writing them */
  const velo_ints* dropout_origin;  /* in, or NULL: that of the forward call */
  const velo_ints* dropout_extents; /* in, or NULL: those of the forward call */
} velo_dropout_add_rms_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_ADD_RMS_NORM_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_dropout_add_rms_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0.0, 0, 0, 0, 0, 0 \
  }

/* `dz = dpre_norm + rms_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`;
 * `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale
 * = sum[columns](dz * m * layerscale * x)`.
 * The mask is drawn again from seed, offset and the place in the whole; dgamma as the norm's
 * gradient has it.
 *
 * Gradient of velo_dropout_add_rms_norm.
 * In place: dx may be dy; dresidual may be dpre_norm.
 * Accuracy: for inputs that are 0 or of magnitude 1e-05 to 1e+05: 16 ulp of the largest term of a
 * row, in bfloat16 and float16 half an ulp more; 1e-6 where the terms of a row cancel; sums over
 * rows: float32 in a fixed tree; beyond those magnitudes it holds, for the statistics of the
 * forward call, while the products and their sums over a row are normal float32 numbers.
 * Cost: one read of dy, pre_norm, dpre_norm and x, one write of dx and dresidual.
 * Source: gradient of dropout_add_rms_norm.
 * Also called npu_dropout_add_rms_norm_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout_add_rms_norm_backward(
    velo_stream stream, const velo_dropout_add_rms_norm_backward_args* args);

/* ---- dropout_add_layer_norm ------------------------------------------------------------------ */

typedef struct velo_dropout_add_layer_norm_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_add_layer_norm_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* x;             /* in; float32 | bfloat16 | float16: [..., n] */
  const velo_tensor* residual;      /* in, or NULL; float32 | bfloat16 | float16: shape of x;
                                     * float32, or the dtype of x; NULL = 0 */
  const velo_tensor* gamma;         /* in; float32 | bfloat16 | float16: [n]; float32, or the
                                     * dtype of x if the residual has that, too */
  const velo_tensor* beta;          /* in, or NULL; float32 | bfloat16 | float16: shape and dtype
                                     * of gamma; NULL = 0 */
  const velo_tensor* rowscale;      /* in, or NULL; float32 | bfloat16 | float16: shape of x
                                     * without n, dtype of x; NULL = 1 */
  const velo_tensor* layerscale;    /* in, or NULL; float32 | bfloat16 | float16: [n], dtype of
                                     * x; NULL = 1 */
  const velo_tensor* y;             /* out: shape and dtype of x; may be x itself */
  const velo_tensor* pre_norm;      /* out, or NULL: z, shape of x, dtype of the residual; may be
                                     * the residual itself */
  const velo_tensor* mask;          /* out, or NULL: uint8, shape of x: 1 where an element is
                                     * kept, else 0 */
  const velo_tensor* mean;          /* out, or NULL: float32, shape of x with 1 for n; what the
                                     * gradient needs */
  const velo_tensor* rstd;          /* out, or NULL: float32, shape of x with 1 for n; what the
                                     * gradient needs */
  double p;                         /* default 0.0, in [0.0, 1.0]: probability of dropping an
                                     * element, as `dropout` has it; 1 drops all */
  int64_t seed;                     /* default 0: key of the generator, as `dropout` has it */
  int64_t offset;                   /* default 0: upper half of its counter, as `dropout` has it */
  double epsilon;                   /* default 1e-05, >= 0.0: added to the mean square; a finite
                                     * number */
  int64_t residual_in_fp32;         /* 0 or 1, default 0: 1 makes pre_norm float32; without a
                                     * residual only */
  const velo_ints* dropout_origin;  /* in, or NULL: a value for each dimension of x: where x
                                     * begins in the whole, whose indices decide */
  const velo_ints* dropout_extents; /* in, or NULL: the sizes of the whole; by default those of x */
} velo_dropout_add_layer_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_ADD_LAYER_NORM_ARGS_INIT \
  { \
    sizeof(velo_dropout_add_layer_norm_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, \
    1e-05, 0, 0, 0 \
  }

/* `z = dropout(x * rowscale * layerscale) + residual`; `mu = mean(z)`; `y = (z - mu) / sqrt(mean((z
 * - mu)^2) + epsilon) * gamma + beta`.
 * Decisions of dropout are those of `dropout` for the element's index in x, or in the whole where x
 * is a part of one; the mean is over the last dimension; computed in float32, z unrounded.
 *
 * In place: y may be x; pre_norm may be residual.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: float32: 5 ulp of the value and 8
 * of the largest term of a sum; bfloat16 and float16: half an ulp of the float32 result; denormal
 * bfloat16 results are zero in kernel avx512_bf16; beyond those magnitudes it holds while products
 * of x and its scales are normal float32 numbers.
 * Cost: one read of x and residual, one write of y and pre_norm; one byte an element of mask.
 * Source: Dao et al., flash-attn's dropout_add_layer_norm.
 * Also called npu_dropout_add_layer_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout_add_layer_norm(velo_stream stream,
                                                 const velo_dropout_add_layer_norm_args* args);

/* ---- dropout_add_layer_norm_backward --------------------------------------------------------- */

typedef struct velo_dropout_add_layer_norm_backward_args {
  uint32_t struct_size;             /* sizeof(velo_dropout_add_layer_norm_backward_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* dy;            /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* dpre_norm;     /* in, or NULL; float32 | bfloat16 | float16: gradient of
                                     * pre_norm, like it; NULL = 0 */
  const velo_tensor* x;             /* in, or NULL; float32 | bfloat16 | float16: the forward
                                     * input; what drowscale and dlayerscale need */
  const velo_tensor* pre_norm;      /* in; float32 | bfloat16 | float16: from the forward pass;
                                     * float32, or the dtype of x */
  const velo_tensor* gamma;         /* in; float32 | bfloat16 | float16: the forward gain */
  const velo_tensor* rowscale;      /* in, or NULL; float32 | bfloat16 | float16: that of the
                                     * forward call */
  const velo_tensor* layerscale;    /* in, or NULL; float32 | bfloat16 | float16: that of the
                                     * forward call */
  const velo_tensor* mean;          /* in; float32: from the forward pass */
  const velo_tensor* rstd;          /* in; float32: from the forward pass */
  const velo_tensor* dx;            /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dresidual;     /* out, or NULL: shape and dtype of pre_norm; may be
                                     * dpre_norm itself */
  const velo_tensor* dgamma;        /* out, or NULL: float32, [n] */
  const velo_tensor* dbeta;         /* out, or NULL: float32, [n] */
  const velo_tensor* drowscale;     /* out, or NULL: float32, shape of rowscale */
  const velo_tensor* dlayerscale;   /* out, or NULL: float32, [n] */
  double p;                         /* default 0.0, in [0.0, 1.0]: that of the forward call */
  int64_t seed;                     /* default 0: that of the forward call */
  int64_t offset;                   /* default 0: that of the forward call */
  int64_t accumulate;               /* 0 or 1, default 0: 1 adds to the gradients of gains and
                                     * scales instead of writing them */
  const velo_ints* dropout_origin;  /* in, or NULL: that of the forward call */
  const velo_ints* dropout_extents; /* in, or NULL: those of the forward call */
} velo_dropout_add_layer_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_DROPOUT_ADD_LAYER_NORM_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_dropout_add_layer_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0.0, 0, 0, 0, 0, 0 \
  }

/* `dz = dpre_norm + layer_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`;
 * `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale
 * = sum[columns](dz * m * layerscale * x)`.
 * The mask is drawn again from seed, offset and the place in the whole; dgamma and dbeta as the
 * norm's gradient has them.
 *
 * Gradient of velo_dropout_add_layer_norm.
 * In place: dx may be dy; dresidual may be dpre_norm.
 * Accuracy: for inputs that are 0 or of magnitude 1e-05 to 1e+05: 16 ulp of the largest term of a
 * row, in bfloat16 and float16 half an ulp more; 1e-6 where the terms of a row cancel; sums over
 * rows: float32 in a fixed tree; beyond those magnitudes it holds, for the statistics of the
 * forward call, while the products and their sums over a row are normal float32 numbers.
 * Cost: one read of dy, pre_norm, dpre_norm and x, one write of dx and dresidual.
 * Source: gradient of dropout_add_layer_norm.
 * Also called npu_dropout_add_layer_norm_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_dropout_add_layer_norm_backward(
    velo_stream stream, const velo_dropout_add_layer_norm_backward_args* args);

VELO_END_C

#endif
