/* Parameter updates and the norm that clips them.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/optimizer.json: change that and build the target `generate`. */
#ifndef VELO_OPS_OPTIMIZER_H
#define VELO_OPS_OPTIMIZER_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The rounding of a parameter halfway between two of bfloat16. */
enum {
  VELO_BF16_ROUNDING_HALF_UP = 0,  /* to the larger magnitude */
  VELO_BF16_ROUNDING_HALF_EVEN = 1 /* to the even one */
};

/* ---- apply_fused_adamw ----------------------------------------------------------------------- */

typedef struct velo_apply_fused_adamw_args {
  uint32_t struct_size;           /* sizeof(velo_apply_fused_adamw_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* grad;        /* in; float32 | bfloat16 | float16: shape of param */
  const velo_tensor* scale;       /* in, or NULL: float32, []: factor on the gradient, such as a
                                   * clip factor; NULL = 1 */
  const velo_tensor* param;       /* in and out; float32 | bfloat16 | float16: any shape */
  const velo_tensor* master;      /* in and out, or NULL: float32, shape of param: the exact
                                   * parameters when param has 16 bits */
  const velo_tensor* m;           /* in and out; float32 | bfloat16 | float16: first moment,
                                   * shape of param */
  const velo_tensor* v;           /* in and out; float32 | bfloat16 | float16: second moment,
                                   * shape and dtype of m */
  const velo_tensor* v_max;       /* in and out, or NULL; float32 | bfloat16 | float16: largest
                                   * second moment, shape of param; required by amsgrad */
  int64_t step;                   /* default 1, in [1, 4503599627370496]: number of this update,
                                   * from 1 */
  double lr;                      /* default 0.001: learning rate */
  double beta1;                   /* default 0.9, in [0.0, 1.0]: decay of the first moment */
  double beta2;                   /* default 0.999, in [0.0, 1.0]: decay of the second moment */
  double epsilon;                 /* default 1e-08, >= 0.0: added to the root */
  double weight_decay;            /* default 0.0: decoupled weight decay */
  int64_t amsgrad;                /* 0 or 1, default 0: 1 divides by the largest second moment so
                                   * far */
  int64_t maximize;               /* 0 or 1, default 0: 1 ascends */
  const velo_tensor* step_tensor; /* in, or NULL; int32 | int64: []: the number of this update in
                                   * place of step, read when the update runs; at least 1, else
                                   * VELO_ERR_ARGUMENT before anything is written */
  const velo_tensor* lr_tensor;   /* in, or NULL: float32, []: the learning rate in place of lr,
                                   * read when the update runs */
} velo_apply_fused_adamw_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_APPLY_FUSED_ADAMW_ARGS_INIT \
  { \
    sizeof(velo_apply_fused_adamw_args), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0.001, 0.9, 0.999, 1e-08, 0.0, \
    0, 0, 0, 0 \
  }

/* `g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 *
 * v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) +
 * epsilon)`.
 * h is v, by amsgrad the largest v so far; maximize negates g. One pass, in place.
 * p is `master` when given, else `param`; param receives p rounded to its dtype. Arithmetic in
 * float32, bias corrections in double.
 * step and lr come from step_tensor and lr_tensor where these are given, so that one compiled or
 * queued step serves every update.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 1e+18: float32 4 ulp of the update; a
 * larger gradient, whose (1 - beta2) * g^2 is infinite in float32, makes v infinite and takes no
 * step, a smaller one adds nothing to v, so that with epsilon 0 and v 0 its step is infinite.
 * Cost: float32: 28 bytes a parameter; 16 bits with float32 master and moments: 26 to 30.
 * Source: Loshchilov and Hutter 2017, arXiv:1711.05101; Reddi et al. 2018 (amsgrad).
 * Also called npu_apply_fused_adamw_v2.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_apply_fused_adamw(velo_stream stream,
                                            const velo_apply_fused_adamw_args* args);

/* ---- apply_fused_ema_adamw ------------------------------------------------------------------- */

typedef struct velo_apply_fused_ema_adamw_args {
  uint32_t struct_size;           /* sizeof(velo_apply_fused_ema_adamw_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* grad;        /* in; float32: shape of param */
  const velo_tensor* param;       /* in and out; float32: any shape */
  const velo_tensor* m;           /* in and out; float32: first moment, shape of param */
  const velo_tensor* v;           /* in and out; float32: second moment, shape of param */
  const velo_tensor* ema;         /* in and out; float32: running average of param, its shape */
  int64_t step;                   /* default 1, in [1, 4503599627370496]: number of this update,
                                   * from 1 */
  double lr;                      /* default 0.001: learning rate */
  double ema_decay;               /* default 0.9999, in [0.0, 1.0]: decay of the average */
  double beta1;                   /* default 0.9, in [0.0, 1.0]: decay of the first moment */
  double beta2;                   /* default 0.999, in [0.0, 1.0]: decay of the second moment */
  double epsilon;                 /* default 1e-08, >= 0.0: added to the root */
  int64_t mode;                   /* default 1, in [0, 1]: 1: decoupled weight decay (AdamW); 0:
                                   * it is added to the gradient (Adam) */
  int64_t bias_correction;        /* 0 or 1, default 1: 0 leaves the moments as they are */
  double weight_decay;            /* default 0.0: weight decay */
  const velo_tensor* step_tensor; /* in, or NULL; int32 | int64: []: the number of this update in
                                   * place of step, as in apply_fused_adamw */
} velo_apply_fused_ema_adamw_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_APPLY_FUSED_EMA_ADAMW_ARGS_INIT \
  { \
    sizeof(velo_apply_fused_ema_adamw_args), 0, 0, 0, 0, 0, 0, 1, 0.001, 0.9999, 0.9, 0.999, \
    1e-08, 1, 1, 0.0, 0 \
  }

/* `m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1
 * - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema =
 * ema_decay * ema + (1 - ema_decay) * p`.
 * In mode 0 weight_decay * p is added to grad instead. One pass, in place, in float32; bias
 * corrections in double.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 1e+18: 4 ulp of the update and of the
 * largest element.
 * Cost: 36 bytes a parameter.
 * Source: Loshchilov and Hutter 2017, arXiv:1711.05101; MindSpeed's npu_apply_fused_ema_adamw.
 * Also called npu_apply_fused_ema_adamw.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_apply_fused_ema_adamw(velo_stream stream,
                                                const velo_apply_fused_ema_adamw_args* args);

/* ---- multi_tensor_adamw ---------------------------------------------------------------------- */

typedef struct velo_multi_tensor_adamw_args {
  uint32_t struct_size;           /* sizeof(velo_multi_tensor_adamw_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensors* grad;       /* in; float32 | bfloat16 | float16: shapes of param */
  const velo_tensor* scale;       /* in, or NULL: float32, []: factor on all gradients; NULL = 1 */
  const velo_tensors* param;      /* in and out; float32 | bfloat16 | float16: any shapes */
  const velo_tensors* master;     /* in and out, or NULL: float32, shapes of param: the exact
                                   * parameters when param has 16 bits */
  const velo_tensors* m;          /* in and out; float32 | bfloat16 | float16: first moments,
                                   * shapes of param */
  const velo_tensors* v;          /* in and out; float32 | bfloat16 | float16: second moments,
                                   * shapes and dtypes of m */
  const velo_tensors* v_max;      /* in and out, or NULL; float32 | bfloat16 | float16: largest
                                   * second moments, shapes of param; required by amsgrad */
  int64_t step;                   /* default 1, in [1, 4503599627370496]: number of this update,
                                   * from 1 */
  double lr;                      /* default 0.001: learning rate */
  double beta1;                   /* default 0.9, in [0.0, 1.0]: decay of the first moment */
  double beta2;                   /* default 0.999, in [0.0, 1.0]: decay of the second moment */
  double epsilon;                 /* default 1e-08, >= 0.0: added to the root */
  double weight_decay;            /* default 0.0: decoupled weight decay */
  int64_t amsgrad;                /* 0 or 1, default 0: 1 divides by the largest second moment so
                                   * far */
  int64_t maximize;               /* 0 or 1, default 0: 1 ascends */
  const velo_tensor* step_tensor; /* in, or NULL; int32 | int64: []: the number of this update in
                                   * place of step, as in apply_fused_adamw */
  const velo_tensor* lr_tensor;   /* in, or NULL: float32, []: the learning rate in place of lr,
                                   * read when the update runs */
} velo_multi_tensor_adamw_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MULTI_TENSOR_ADAMW_ARGS_INIT \
  { \
    sizeof(velo_multi_tensor_adamw_args), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0.001, 0.9, 0.999, 1e-08, \
    0.0, 0, 0, 0, 0 \
  }

/* `g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 *
 * v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) +
 * epsilon)`.
 * apply_fused_adamw of every parameter of a list, bit for bit, in one call: one pass over all of
 * them, cut into equal slices, so that thousands of small parameters cost little more than one of
 * their size. h is v, with amsgrad the largest v so far; p is master where there is one.
 * Every list has as many tensors as param, in its order. Each tensor has a dtype of its own; scale,
 * step and the rates hold for all.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 1e+18: as apply_fused_adamw.
 * Cost: as apply_fused_adamw.
 * Source: Loshchilov and Hutter 2017, arXiv:1711.05101; Reddi et al. 2018 (amsgrad); apex's
 * multi_tensor_adam.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_multi_tensor_adamw(velo_stream stream,
                                             const velo_multi_tensor_adamw_args* args);

/* ---- multi_tensor_ema_adamw ------------------------------------------------------------------ */

typedef struct velo_multi_tensor_ema_adamw_args {
  uint32_t struct_size;           /* sizeof(velo_multi_tensor_ema_adamw_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensors* grad;       /* in; float32: shapes of param */
  const velo_tensors* param;      /* in and out; float32: any shapes */
  const velo_tensors* m;          /* in and out; float32: first moments, shapes of param */
  const velo_tensors* v;          /* in and out; float32: second moments, shapes of param */
  const velo_tensors* ema;        /* in and out; float32: running averages of param, its shapes */
  int64_t step;                   /* default 1, in [1, 4503599627370496]: number of this update,
                                   * from 1 */
  double lr;                      /* default 0.001: learning rate */
  double ema_decay;               /* default 0.9999, in [0.0, 1.0]: decay of the averages */
  double beta1;                   /* default 0.9, in [0.0, 1.0]: decay of the first moment */
  double beta2;                   /* default 0.999, in [0.0, 1.0]: decay of the second moment */
  double epsilon;                 /* default 1e-08, >= 0.0: added to the root */
  int64_t mode;                   /* default 1, in [0, 1]: 1: decoupled weight decay (AdamW); 0:
                                   * it is added to the gradient (Adam) */
  int64_t bias_correction;        /* 0 or 1, default 1: 0 leaves the moments as they are */
  double weight_decay;            /* default 0.0: weight decay */
  const velo_tensor* step_tensor; /* in, or NULL; int32 | int64: []: the number of this update in
                                   * place of step, as in apply_fused_adamw */
} velo_multi_tensor_ema_adamw_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MULTI_TENSOR_EMA_ADAMW_ARGS_INIT \
  { \
    sizeof(velo_multi_tensor_ema_adamw_args), 0, 0, 0, 0, 0, 0, 1, 0.001, 0.9999, 0.9, 0.999, \
    1e-08, 1, 1, 0.0, 0 \
  }

/* `m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1
 * - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema =
 * ema_decay * ema + (1 - ema_decay) * p`.
 * apply_fused_ema_adamw of every parameter of a list, bit for bit, in one call, as
 * multi_tensor_adamw is apply_fused_adamw.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 1e+18: as apply_fused_ema_adamw.
 * Cost: 36 bytes a parameter.
 * Source: Loshchilov and Hutter 2017, arXiv:1711.05101; MindSpeed's npu_apply_fused_ema_adamw.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_multi_tensor_ema_adamw(velo_stream stream,
                                                 const velo_multi_tensor_ema_adamw_args* args);

/* ---- global_norm ----------------------------------------------------------------------------- */

typedef struct velo_global_norm_args {
  uint32_t struct_size;              /* sizeof(velo_global_norm_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* x;              /* in; float32 | bfloat16 | float16: any shape */
  const velo_tensor* sum_of_squares; /* in and out: float64, [] */
  const velo_tensor* norm;           /* out, or NULL: float32, [] */
  const velo_tensor* clip;           /* out, or NULL: float32, []: what apply_fused_adamw takes
                                      * as scale */
  double max_norm;                   /* default 1.0, >= 0.0: the norm to clip to */
  int64_t accumulate;                /* 0 or 1, default 0: 1 adds to sum_of_squares instead of
                                      * writing it */
} velo_global_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GLOBAL_NORM_ARGS_INIT \
  { sizeof(velo_global_norm_args), 0, 0, 0, 0, 0, 1.0, 0 }

/* `sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm +
 * 1e-6))`.
 * clip is 0 for an infinite sum_of_squares and NaN for one that is NaN; it is right where norm
 * alone exceeds float32. The sum is in double, and added to what is there with accumulate.
 * For several gradients call multi_tensor_global_norm, or this once for each with accumulate = 1
 * after the first; the last call's norm and clip hold for all.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: partial sums of up to 1024 in float32, in units that keep their squares normal, and
 * their sum in double, in a fixed tree.
 * Cost: one read of x.
 * Source: Pascanu et al. 2013, arXiv:1211.5063.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_global_norm(velo_stream stream, const velo_global_norm_args* args);

/* ---- multi_tensor_global_norm ---------------------------------------------------------------- */

typedef struct velo_multi_tensor_global_norm_args {
  uint32_t struct_size;              /* sizeof(velo_multi_tensor_global_norm_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensors* x;             /* in; float32 | bfloat16 | float16: any shapes */
  const velo_tensor* sum_of_squares; /* in and out: float64, [] */
  const velo_tensor* norm;           /* out, or NULL: float32, [] */
  const velo_tensor* clip;           /* out, or NULL: float32, []: what multi_tensor_adamw takes
                                      * as scale */
  double max_norm;                   /* default 1.0, >= 0.0: the norm to clip to */
  int64_t accumulate;                /* 0 or 1, default 0: 1 adds to sum_of_squares instead of
                                      * writing it */
} velo_multi_tensor_global_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT \
  { sizeof(velo_multi_tensor_global_norm_args), 0, 0, 0, 0, 0, 1.0, 0 }

/* `sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm +
 * 1e-6))`.
 * global_norm of every tensor of a list, one after another, bit for bit, in one call: the sum runs
 * over the elements of all of them. Each tensor has a dtype of its own.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: as global_norm.
 * Cost: one read of x.
 * Source: Pascanu et al. 2013, arXiv:1211.5063; apex's multi_tensor_l2norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_multi_tensor_global_norm(velo_stream stream,
                                                   const velo_multi_tensor_global_norm_args* args);

/* ---- bf16_param_split ------------------------------------------------------------------------ */

typedef struct velo_bf16_param_split_args {
  uint32_t struct_size;        /* sizeof(velo_bf16_param_split_args) */
  uint32_t reserved;           /* 0 */
  const velo_tensor* master;   /* in; float32: any shape */
  const velo_tensor* v;        /* in and out, or NULL; float32 | bfloat16 | float16: second
                                * moment, shape of master: half_even sets its sign, plain for a
                                * tie and negative for none; unread by half_up */
  const velo_tensor* param;    /* out: bfloat16, shape of master */
  const velo_tensor* residual; /* out: uint8, shape of master with 2 appended */
  int64_t rounding;            /* VELO_BF16_ROUNDING_*, default half_up: where master lies
                                * halfway between two of bfloat16 */
} velo_bf16_param_split_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_BF16_PARAM_SPLIT_ARGS_INIT \
  { sizeof(velo_bf16_param_split_args), 0, 0, 0, 0, 0, VELO_BF16_ROUNDING_HALF_UP }

/* `param = bfloat16(master)`; `residual = master - param`.
 * On bits: of bits(master) + 0x8000, less 1 for a tie, param is the upper half and residual the
 * lower, its low byte first. So the 4 bytes of a master parameter hold param, too, and
 * bf16_param_merge gives it back bit for bit; a caller that keeps the two merges a part at a time,
 * updates it and splits it again.
 * half_up rounds magnitudes of a half up and knows no ties. half_even rounds them to even; the sign
 * of v, which is never negative by itself, keeps which were ties.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: param half an ulp; residual and v exact; a NaN whose bits from 0x7fff8000 on overflow
 * becomes a zero in param alone.
 * Cost: 8 bytes a parameter, with v 4 to 8 more.
 * Source: MindSpeed --reuse-fp32-param.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_bf16_param_split(velo_stream stream,
                                           const velo_bf16_param_split_args* args);

/* ---- bf16_param_merge ------------------------------------------------------------------------ */

typedef struct velo_bf16_param_merge_args {
  uint32_t struct_size;        /* sizeof(velo_bf16_param_merge_args) */
  uint32_t reserved;           /* 0 */
  const velo_tensor* param;    /* in; bfloat16: any shape */
  const velo_tensor* residual; /* in; uint8: shape of param with 2 appended */
  const velo_tensor* v;        /* in and out, or NULL; float32 | bfloat16 | float16: as
                                * bf16_param_split left it */
  const velo_tensor* master;   /* out: float32, shape of param */
  int64_t rounding;            /* VELO_BF16_ROUNDING_*, default half_up: as in bf16_param_split */
} velo_bf16_param_merge_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_BF16_PARAM_MERGE_ARGS_INIT \
  { sizeof(velo_bf16_param_merge_args), 0, 0, 0, 0, 0, VELO_BF16_ROUNDING_HALF_UP }

/* `master = param + residual`.
 * The inverse of bf16_param_split, bit for bit: the bits of param and residual together, less
 * 0x8000, plus 1 for a tie. half_even takes ties from the sign of v and makes v plain again.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: 8 bytes a parameter, with v 4 to 8 more.
 * Source: MindSpeed --reuse-fp32-param.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_bf16_param_merge(velo_stream stream,
                                           const velo_bf16_param_merge_args* args);

VELO_END_C

#endif
