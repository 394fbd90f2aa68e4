/* Matrix products with the communication that tensor parallelism puts next to them.
 * All ranks of the group make the call, in the same order; it has its place among the collectives
 * of the group. Levels 0 and 1 run product and collective one after the other. At level 2, where
 * ranks share memory (transports local and shm), they work in slices: what one has multiplied the
 * others read from where it was written, while the next slice is multiplied, and of gathered rows
 * each is multiplied from where it lies or is shown. All ranks have the same level, and the same
 * instruction set as far as it decides that (AVX2 or later on all of them; AMX on all or on none
 * for bfloat16): else all get PEER. What a call has written when another rank fails is undefined.
 * `packed` is a pack that holds the numbers of weight, which must be given, too: products read the
 * pack where it has the form of their instruction set, and weight elsewhere. If a pack is destroyed
 * while a call with it is queued, the call ends in HANDLE on this rank and in PEER on the others.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/overlap.json: change that and build the target `generate`. */
#ifndef VELO_OPS_OVERLAP_H
#define VELO_OPS_OVERLAP_H

#include "velo/group.h"
#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The part of the rows of tokens that a rank of group_tp has, by MindSpeed's numbers. */
enum {
  VELO_EXPERT_SHARD_COLUMNS = 0, /* all rows, some of their columns */
  VELO_EXPERT_SHARD_ROWS = 1     /* some rows, all of their columns */
};

/* Activation behind the product of an expert. */
enum {
  VELO_EXPERT_ACTIVATION_NONE = 0,    /* none */
  VELO_EXPERT_ACTIVATION_GELU = 1,    /* by the error function */
  VELO_EXPERT_ACTIVATION_SILU = 2,    /* x * sigmoid(x) */
  VELO_EXPERT_ACTIVATION_RELU = 3,    /* max(x, 0) */
  VELO_EXPERT_ACTIVATION_FASTGELU = 4 /* x * sigmoid(1.702 * x) */
};

/* The layout of x and y of grouped_matmul_all_reduce. */
enum {
  VELO_GROUPED_SPLIT_LISTS = 0, /* a tensor for each group */
  VELO_GROUPED_SPLIT_ONE_X = 1, /* one x, a y for each group */
  VELO_GROUPED_SPLIT_ONE_Y = 2, /* an x for each group, one y */
  VELO_GROUPED_SPLIT_ONE = 3    /* one x and one y */
};

/* Element type of a product of int8 by int8. */
enum {
  VELO_DEQUANTIZED_BY_SCALE = 0, /* bfloat16 for a scale of bfloat16, else float16 */
  VELO_DEQUANTIZED_FLOAT16 = 1,  /* float16 */
  VELO_DEQUANTIZED_BFLOAT16 = 2, /* bfloat16 */
  VELO_DEQUANTIZED_FLOAT32 = 3   /* float32 */
};

/* ---- matmul_all_reduce ----------------------------------------------------------------------- */

typedef struct velo_matmul_all_reduce_args {
  uint32_t struct_size;               /* sizeof(velo_matmul_all_reduce_args) */
  uint32_t reserved;                  /* 0 */
  velo_group group;                   /* in, or NULL: the ranks, of the stream's context; NULL:
                                       * this one alone */
  const velo_tensor* x;               /* in; float32 | bfloat16 | float16 | int8: [.., k], the
                                       * leading dimensions folded into m rows; int8 with
                                       * dequant_scale */
  const velo_tensor* weight;          /* in; float32 | bfloat16 | float16 | int8 | uint8 | int4:
                                       * [k, n], or [n, k] with transpose_weight; dtype of x;
                                       * with scale int8, or int4 as int4 or as two numbers in a
                                       * uint8, as of weight_quant_matmul */
  const velo_tensor* y;               /* out: [.., n], dtype of x; of output_dtype with
                                       * dequant_scale */
  int64_t transpose_weight;           /* 0 or 1, default 0: 1 when weight is stored [n, k] */
  int64_t parallel_num;               /* default 0, in [0, 1024]: slices of rows: 0 by
                                       * overlap.slices or chosen, 1 none, else at least so many,
                                       * where there are as many rows; the same on all ranks;
                                       * MindSpeed's coc-parallel-num */
  const velo_tensor* bias;            /* in, or NULL; float32 | bfloat16 | float16 | int32: [n]
                                       * or [1, n], float32 or the dtype of x; added to the
                                       * rounded sum, once, so all ranks give the same; int32
                                       * with dequant_scale, and then of this rank's product;
                                       * NULL = 0 */
  velo_pack packed;                   /* in, or NULL: a pack of op(weight), [k, n], beside
                                       * weight; NULL: each call packs anew */
  const velo_tensor* scale;           /* in, or NULL; float32 | bfloat16 | float16: of a
                                       * quantized weight: [1], [n], or [groups, n], float32 or
                                       * the dtype of x; NULL: the weight is not quantized, or x
                                       * is, too */
  const velo_tensor* offset;          /* in, or NULL; float32 | bfloat16 | float16: shape and
                                       * dtype of scale; NULL = 0 */
  int64_t group_size;                 /* default 0, >= 0: rows of k in a group of scale, a
                                       * multiple of 32 below k; the last group may have fewer;
                                       * 0: groups are equal */
  const velo_tensor* dequant_scale;   /* in, or NULL; float32 | bfloat16 | int64 | uint64: of
                                       * int8 by int8: [1], [n] or [1, n]; int64 and uint64 have
                                       * a float32 in the low half; bfloat16 for such a y alone */
  const velo_tensor* per_token_scale; /* in, or NULL; float32: [m], with dequant_scale alone;
                                       * NULL = 1 */
  int64_t output_dtype;               /* VELO_DEQUANTIZED_*, default by_scale: dtype of y with
                                       * dequant_scale */
} velo_matmul_all_reduce_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ALL_REDUCE_ARGS_INIT \
  { \
    sizeof(velo_matmul_all_reduce_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_DEQUANTIZED_BY_SCALE \
  }

/* `y = sum_ranks(x @ op(weight)) + bias`.
 * A linear layer whose weight is cut along its inputs (row parallel): each rank has k of them.
 * op(weight) is weight or its transpose; sums in float32; each rank's product is rounded to y's
 * dtype, then the sum.
 * A weight with scale is quantized and stands for (weight + offset) * scale, as in
 * weight_quant_matmul. Where dequant_scale is given, x and weight are int8, and a rank's product is
 * (x @ op(weight) + bias) * dequant_scale * per_token_scale, with exact sums in int32, as in
 * quant_grouped_matmul; its bias counts once for each rank that gives one. Both have slices of
 * columns, and no pack. All ranks give the same output_dtype.
 * Its gradient needs no communication: matmul of dy and weight with the other transpose_weight,
 * matmul_add_fp32 for the weight. With transpose_weight it is the gradient to x of a layer whose
 * weight is cut along its outputs (column parallel).
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32: as matmul; bfloat16 and
 * float16: half an ulp of each rank's product and of the sum; the same bits on all ranks, at levels
 * 1 and 2, from run to run.
 * Cost: 2 m n k operations, and the all_reduce of m n elements.
 * Source: MindSpeed CoC and npu_mm_all_reduce_base.
 * Also called npu_mm_all_reduce_base.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_all_reduce(velo_stream stream,
                                            const velo_matmul_all_reduce_args* args);

/* ---- matmul_reduce_scatter ------------------------------------------------------------------- */

typedef struct velo_matmul_reduce_scatter_args {
  uint32_t struct_size;      /* sizeof(velo_matmul_reduce_scatter_args) */
  uint32_t reserved;         /* 0 */
  velo_group group;          /* in, or NULL: the ranks, of the stream's context; NULL: this one
                              * alone */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [S, .., k]; S divides by the
                              * ranks, or is the sum of rows */
  const velo_tensor* weight; /* in; float32 | bfloat16 | float16: [k, n], or [n, k] with
                              * transpose_weight; dtype of x */
  const velo_tensor* y;      /* out: [S / ranks, .., n], or this rank's of rows, dtype of x */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [n, k] */
  int64_t parallel_num;      /* default 0, in [0, 1024]: slices of rows: 0 by overlap.slices or
                              * chosen, 1 none, else at least so many, where there are as many
                              * rows; the same on all ranks; MindSpeed's coc-parallel-num */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [n] or [1, n], float32
                              * or the dtype of x; added to the rounded sum, once, so all ranks
                              * give the same; NULL = 0 */
  velo_pack packed;          /* in, or NULL: a pack of op(weight), [k, n], beside weight; NULL:
                              * each call packs anew */
  const velo_ints* rows;     /* in, or NULL: [ranks]: rows of y of each rank, the same list on
                              * all; some may be 0; NULL: as many on each */
} velo_matmul_reduce_scatter_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT \
  { sizeof(velo_matmul_reduce_scatter_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = part_rank(sum_ranks(x @ op(weight))) + bias`.
 * A linear layer whose weight is cut along its inputs, with sequence parallelism: the rows of the
 * sum are divided among the ranks along the first dimension, evenly or by rows. Each rank's product
 * is rounded to the dtype of x, then the sum.
 * Its gradient: all_gather_matmul of dy and weight with the other transpose_weight, whose gathered
 * dy matmul_add_fp32 takes for the weight.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_all_reduce.
 * Cost: 2 m n k operations, and the reduce_scatter of m n elements.
 * Source: MindSpeed MC2 and CoC.
 * Also called npu_mm_reduce_scatter_base.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_reduce_scatter(velo_stream stream,
                                                const velo_matmul_reduce_scatter_args* args);

/* ---- all_gather_matmul ----------------------------------------------------------------------- */

typedef struct velo_all_gather_matmul_args {
  uint32_t struct_size;        /* sizeof(velo_all_gather_matmul_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the ranks, of the stream's context; NULL: this one
                                * alone */
  const velo_tensor* x;        /* in; float32 | bfloat16 | float16: [s, .., k] */
  const velo_tensor* weight;   /* in; float32 | bfloat16 | float16: [k, n], or [n, k] with
                                * transpose_weight; dtype of x */
  const velo_tensor* y;        /* out: [S, .., n], dtype of x; S = ranks * s, or the sum of rows */
  const velo_tensor* gathered; /* out, or NULL: x of all ranks, in their order along the first
                                * dimension: what the gradient to weight needs */
  int64_t transpose_weight;    /* 0 or 1, default 0: 1 when weight is stored [n, k] */
  int64_t parallel_num;        /* default 0, in [0, 1024]: slices of rows: 0 by overlap.slices or
                                * chosen, 1 none, else at least so many, where there are as many
                                * rows; the same on all ranks; MindSpeed's coc-parallel-num */
  const velo_tensor* bias;     /* in, or NULL; float32 | bfloat16 | float16: [n] or [1, n],
                                * float32 or the dtype of x; NULL = 0 */
  velo_pack packed;            /* in, or NULL: a pack of op(weight), [k, n], beside weight; NULL:
                                * each call packs anew */
  const velo_ints* rows;       /* in, or NULL: [ranks]: s of each rank, the same list on all;
                                * some may be 0; NULL: as many on each */
} velo_all_gather_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ALL_GATHER_MATMUL_ARGS_INIT \
  { sizeof(velo_all_gather_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = gather_ranks(x) @ op(weight) + bias`.
 * A linear layer whose weight is cut along its outputs, with sequence parallelism: the rows of all
 * ranks, in their order along the first dimension.
 * Its gradient: matmul_reduce_scatter of dy and weight with the other transpose_weight, and
 * matmul_add_fp32 of gathered and dy for the weight.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for m gathered rows, and the all_gather of m k elements.
 * Source: MindSpeed MC2 and CoC.
 * Also called npu_all_gather_base_mm, all_gather_matmul_v2.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_all_gather_matmul(velo_stream stream,
                                            const velo_all_gather_matmul_args* args);

/* ---- all_gather_matmul_reduce_scatter -------------------------------------------------------- */

typedef struct velo_all_gather_matmul_reduce_scatter_args {
  uint32_t struct_size;               /* sizeof(velo_all_gather_matmul_reduce_scatter_args) */
  uint32_t reserved;                  /* 0 */
  velo_group gather_group;            /* in, or NULL: the ranks whose x is gathered, of the
                                       * stream's context; NULL: this one alone */
  velo_group scatter_group;           /* in, or NULL: the ranks whose products are summed and
                                       * divided, another group; NULL: this one alone */
  const velo_tensor* x;               /* in; float32 | bfloat16 | float16: [s, .., k] */
  const velo_tensor* weight;          /* in; float32 | bfloat16 | float16: [k, n], or [n, k] with
                                       * transpose_weight; dtype of x */
  const velo_tensor* y;               /* out: [S / summing ranks, .., n], or this rank's of
                                       * scatter_rows, dtype of x; S = gathering ranks * s, or
                                       * the sum of gather_rows */
  const velo_tensor* gathered;        /* out, or NULL: x of all ranks, in their order along the
                                       * first dimension: what the gradient to weight needs */
  int64_t transpose_weight;           /* 0 or 1, default 0: 1 when weight is stored [n, k] */
  int64_t parallel_num;               /* default 0, in [0, 1024]: slices of rows: 0 by
                                       * overlap.slices or chosen, 1 none, else at least so many,
                                       * where there are as many rows; the same on all ranks;
                                       * MindSpeed's coc-parallel-num */
  const velo_tensor* bias;            /* in, or NULL; float32 | bfloat16 | float16: [n] or [1,
                                       * n], float32 or the dtype of x; added to the rounded sum,
                                       * once, so ranks of scatter_group give the same; NULL = 0 */
  velo_pack packed;                   /* in, or NULL: a pack of op(weight), [k, n], beside
                                       * weight; NULL: each call packs anew */
  const velo_ints* gather_rows;       /* in, or NULL: [gathering ranks]: s of each rank, the same
                                       * list on all of gather_group; some may be 0; NULL: as
                                       * many on each */
  const velo_ints* scatter_rows;      /* in, or NULL: [summing ranks]: rows of y of each rank,
                                       * the same list on all of scatter_group, with the sum S;
                                       * some may be 0; NULL: as many on each */
  const velo_tensor* beside;          /* in, or NULL; float32 | bfloat16 | float16: the shape and
                                       * dtype of y: rows that travel over scatter_group beside
                                       * the sum, in its pieces; of a gradient the layer's x
                                       * beside dx; on all ranks or none */
  const velo_tensor* beside_gathered; /* out, or NULL: [S, .., n]: beside of all ranks of
                                       * scatter_group, in their order: what the gradient to
                                       * weight needs; given on all ranks or none; [0] without
                                       * beside */
} velo_all_gather_matmul_reduce_scatter_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT \
  { \
    sizeof(velo_all_gather_matmul_reduce_scatter_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0 \
  }

/* `y = part_rank(sum_scatter(gather_ranks(x) @ op(weight))) + bias`.
 * A linear layer whose weight is cut in both ways (2D tensor parallelism): rows are gathered over
 * one group, multiplied, and their sum over the other group is divided among its ranks.
 * Its gradient: the same operator with the groups in each other's place, of dy and weight with the
 * other transpose_weight; and matmul_add_fp32 of its gathered and this one's for the weight. Where
 * this one's is not kept, the gradient gathers x again, as its beside.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_all_reduce.
 * Cost: 2 m n k operations for m gathered rows, and both collectives.
 * Source: MindSpeed 2D tensor parallelism.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_all_gather_matmul_reduce_scatter(
    velo_stream stream, const velo_all_gather_matmul_reduce_scatter_args* args);

/* ---- matmul_all_reduce_add_rms_norm ---------------------------------------------------------- */

typedef struct velo_matmul_all_reduce_add_rms_norm_args {
  uint32_t struct_size;             /* sizeof(velo_matmul_all_reduce_add_rms_norm_args) */
  uint32_t reserved;                /* 0 */
  velo_group group;                 /* in, or NULL: the ranks, of the stream's context; NULL:
                                     * this one alone */
  const velo_tensor* x;             /* in; float32 | bfloat16 | float16 | int8: [.., k], the
                                     * leading dimensions folded into m rows; int8 with
                                     * dequant_scale */
  const velo_tensor* weight;        /* in; float32 | bfloat16 | float16 | int8 | uint8 | int4:
                                     * [k, n], or [n, k] with transpose_weight; dtype of x; with
                                     * scale int8, or int4 as int4 or as two numbers in a uint8,
                                     * as of weight_quant_matmul */
  const velo_tensor* bias;          /* in, or NULL; float32 | bfloat16 | float16 | int32: [n] or
                                     * [1, n], float32 or the dtype of x, int32 with
                                     * dequant_scale; added to this rank's product, before the
                                     * sum: the same bias on all ranks counts as often as there
                                     * are ranks, unlike that of matmul_all_reduce; NULL = 0, and
                                     * other ranks may give one */
  const velo_tensor* residual;      /* in; float32 | bfloat16 | float16: [.., n] of m rows,
                                     * whatever their leading dimensions; float32, or the dtype
                                     * of x, and any of the three with dequant_scale; this rank's
                                     * is added */
  const velo_tensor* gamma;         /* in; float32 | bfloat16 | float16: [n]; float32, or the
                                     * dtype of norm_out */
  const velo_tensor* scale;         /* in, or NULL; float32 | bfloat16 | float16: of a quantized
                                     * weight: [1], [n], or [groups, n], as of matmul_all_reduce;
                                     * NULL: the weight is not quantized, or x is, too */
  const velo_tensor* offset;        /* in, or NULL; float32 | bfloat16 | float16: shape and dtype
                                     * of scale; NULL = 0 */
  const velo_tensor* y;             /* out: z, shape and dtype of residual; may be the residual
                                     * itself */
  const velo_tensor* norm_out;      /* out: shape of residual, dtype of x; dtype of residual with
                                     * dequant_scale */
  const velo_tensor* rstd;          /* out, or NULL: float32, shape of residual with 1 for n;
                                     * what the gradient needs */
  int64_t transpose_weight;         /* 0 or 1, default 0: 1 when weight is stored [n, k] */
  double epsilon;                   /* default 1e-06, in [0.0, 1.0]: added to the mean square */
  int64_t parallel_num;             /* default 0, in [0, 1024]: slices of rows, as of
                                     * matmul_all_reduce; the same on all ranks */
  velo_pack packed;                 /* in, or NULL: as of matmul_all_reduce; NULL with scale or
                                     * dequant_scale */
  int64_t group_size;               /* default 0, >= 0: of scale, as of matmul_all_reduce */
  const velo_tensor* dequant_scale; /* in, or NULL; float32 | bfloat16 | int64 | uint64: of int8
                                     * by int8: [1], [n] or [1, n], as of matmul_all_reduce;
                                     * bfloat16 for such a residual alone */
} velo_matmul_all_reduce_add_rms_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT \
  { \
    sizeof(velo_matmul_all_reduce_add_rms_norm_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    1e-06, 0, 0, 0, 0 \
  }

/* `z = sum_ranks(x @ op(weight) + bias) + residual`; `y = z`; `norm_out = z / sqrt(mean(z^2) +
 * epsilon) * gamma`.
 * The end of a layer whose weight is cut along its inputs (row parallel), the residual stream, and
 * the norm before the next layer. Each rank's product is rounded to the dtype of norm_out, then
 * their sum; z and its norm are computed in float32, z unrounded. A weight with scale is quantized
 * and stands for (weight + offset) * scale, as in weight_quant_matmul. Where dequant_scale is
 * given, x and weight are int8, and a rank's product is (x @ op(weight) + bias) * dequant_scale,
 * with exact sums in int32. Such slices are of columns.
 * y may be the residual itself: the form that upstream names with an underscore. Rows are normed
 * while sums of later slices are on their way; the sums lie in norm_out before that.
 * Its gradient: rms_norm_backward of the gradient of norm_out with y and rstd, plus that of y, is
 * the gradient of the residual and of the sum, whose own is that of matmul_all_reduce.
 *
 * In place: y may be residual.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 3e+01: the sum as matmul_all_reduce, y
 * and norm_out as dropout_add_rms_norm of that; beyond, too, while sums fit the dtype of x; without
 * a bias the same bits at levels 1 and 2 and, where residuals are the same, on all ranks.
 * Cost: 2 m n k operations, the all_reduce of m n elements, one read of residual, one write of y
 * and norm_out.
 * Source: MindSpeed npu_mm_all_reduce_add_rms_norm.
 * Also called npu_mm_all_reduce_add_rms_norm, npu_mm_all_reduce_add_rms_norm_.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_all_reduce_add_rms_norm(
    velo_stream stream, const velo_matmul_all_reduce_add_rms_norm_args* args);

/* ---- grouped_matmul_all_reduce --------------------------------------------------------------- */

typedef struct velo_grouped_matmul_all_reduce_args {
  uint32_t struct_size;        /* sizeof(velo_grouped_matmul_all_reduce_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the ranks, of the stream's context; NULL: this one
                                * alone */
  const velo_tensors* x;       /* in; float32 | bfloat16 | float16: [m, k] of each group, or one
                                * [m, k]; all of one dtype */
  const velo_tensors* weight;  /* in; float32 | bfloat16 | float16: [k, n] of each group, dtype
                                * of x; or one tensor */
  const velo_tensors* bias;    /* in, or NULL; float32 | bfloat16 | float16: [n] or [1, n] of
                                * each group, float32 or the dtype of x; NULL = 0 */
  const velo_tensors* y;       /* in and out; float32 | bfloat16 | float16: [m, n] of each group,
                                * or one [m, n]; dtype of x; written, never read */
  const velo_ints* group_list; /* in, or NULL: of one x: the end of each group's rows, the same
                                * list on all ranks; NULL for a list */
  int64_t split_item;          /* VELO_GROUPED_SPLIT_*, default lists: which of x and y are one
                                * tensor */
  int64_t parallel_num;        /* default 0, in [0, 1024]: slices of rows, as of
                                * matmul_all_reduce; the same on all ranks */
} velo_grouped_matmul_all_reduce_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT \
  { sizeof(velo_grouped_matmul_all_reduce_args), 0, 0, 0, 0, 0, 0, 0, VELO_GROUPED_SPLIT_LISTS, 0 }

/* `y[e] = sum_ranks(x[e] @ weight[e]) + bias[e]`.
 * grouped_matmul of weights that are cut along their inputs, and the sum over the ranks: each rank
 * has k columns of x[e] and k rows of weight[e]. Sums in float32; each rank's product is rounded to
 * y's dtype, then the sum; the bias is added to that, so all ranks give the same.
 * split_item says what x and y are. As one tensor x has the rows of the groups one after another,
 * which group_list cuts, and y those of the results. Of one x the weight may be a list, too, one
 * tensor [groups, k, n], or one [groups k, n].
 * At level 2 products of one n, of any k, go beside the sums, in slices that may span several
 * groups, if ranks see each other's memory; other ones are computed first, and summed in one
 * all_reduce. It has no gradient, as grouped_matmul_backward needs no communication.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_all_reduce.
 * Cost: 2 m n k operations, and the all_reduce of m n elements.
 * Source: MindSpeed npu_grouped_mat_mul_all_reduce.
 * Also called npu_grouped_mat_mul_all_reduce.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_grouped_matmul_all_reduce(
    velo_stream stream, const velo_grouped_matmul_all_reduce_args* args);

/* ---- all_to_all_all_gather_bmm --------------------------------------------------------------- */

typedef struct velo_all_to_all_all_gather_bmm_args {
  uint32_t struct_size;              /* sizeof(velo_all_to_all_all_gather_bmm_args) */
  uint32_t reserved;                 /* 0 */
  velo_group group_ep;               /* in, or NULL: the ranks among which experts lie, of the
                                      * stream's context; NULL: this one alone */
  velo_group group_tp;               /* in, or NULL: the ranks between which weights are cut,
                                      * another group; NULL: this one alone */
  const velo_tensor* x;              /* in; float32 | bfloat16 | float16: [E, C, H / tp], or [E,
                                      * C / tp, H]: C rows for each expert, those of an ep rank's
                                      * experts together */
  const velo_tensor* weight;         /* in; float32 | bfloat16 | float16: [E / ep, H, n], or [E /
                                      * ep, n, H] with transpose_weight; dtype of x */
  const velo_tensor* bias;           /* in, or NULL; float32 | bfloat16 | float16: [E / ep, n] or
                                      * [E / ep, 1, n], float32 or the dtype of x; NULL = 0 */
  const velo_tensor* y;              /* out: [E / ep, ep C, n], dtype of x */
  const velo_tensor* gathered;       /* out, or NULL: [E / ep, ep C, H]: the rows of each expert,
                                      * which the gradient to weight needs; need_allgather_out */
  const velo_tensor* pre_activation; /* out, or NULL: shape of y: the argument of act;
                                      * need_activation_feature */
  int64_t shard_type;                /* VELO_EXPERT_SHARD_*, default columns: what a rank of
                                      * group_tp has of the tokens' rows; the same on all ranks */
  int64_t act_type;                  /* VELO_EXPERT_ACTIVATION_*, default none: act */
  int64_t transpose_weight;          /* 0 or 1, default 0: 1 when weight is stored [E / ep, n, H] */
} velo_all_to_all_all_gather_bmm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT \
  { \
    sizeof(velo_all_to_all_all_gather_bmm_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_EXPERT_SHARD_COLUMNS, VELO_EXPERT_ACTIVATION_NONE, 0 \
  }

/* `rows[e] = gather_tp(all_to_all_ep(x))`; `y[e] = act(rows[e] @ op(weight[e]) + bias[e])`.
 * The way in of a layer of experts that lie on the ranks of group_ep, e being those of this rank,
 * with weights cut between the ranks of group_tp. A rank of tp has all rows of its tokens with H /
 * tp columns (shard_type columns), or C / tp of the rows (rows). An expert has its rows by rank of
 * ep, within that by rank of tp where those have rows.
 * The product with its bias is rounded to y's dtype, and the activation of that again. At level 2
 * products read the parts of the ranks of tp in place, if they see each other's memory.
 * Its gradient: of dz, act's gradient of dy at pre_activation, bmm_reduce_scatter_all_to_all with
 * weight and the other transpose_weight gives dx; grouped_matmul_backward of dz and gathered gives
 * that of weight and bias.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul, and of 16 bits half an
 * ulp of the argument of an activation.
 * Cost: 2 m n k operations an expert, the all_to_all of x and the all_gather of its rows.
 * Source: MindSpeed npu_all_to_all_all_gather_bmm.
 * Also called npu_all_to_all_all_gather_bmm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_all_to_all_all_gather_bmm(
    velo_stream stream, const velo_all_to_all_all_gather_bmm_args* args);

/* ---- bmm_reduce_scatter_all_to_all ----------------------------------------------------------- */

typedef struct velo_bmm_reduce_scatter_all_to_all_args {
  uint32_t struct_size;      /* sizeof(velo_bmm_reduce_scatter_all_to_all_args) */
  uint32_t reserved;         /* 0 */
  velo_group group_ep;       /* in, or NULL: as of all_to_all_all_gather_bmm */
  velo_group group_tp;       /* in, or NULL: as of all_to_all_all_gather_bmm */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [E / ep, ep C, k]: the rows of
                              * each expert, by rank of ep */
  const velo_tensor* weight; /* in; float32 | bfloat16 | float16: [E / ep, k, H], or [E / ep, H,
                              * k] with transpose_weight; dtype of x */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [E / ep, w] or [E /
                              * ep, 1, w] for y's width w, float32 or the dtype of x; NULL = 0 */
  const velo_tensor* y;      /* out: [E, C, H / tp], or [E, C / tp, H]; dtype of x */
  int64_t shard_type;        /* VELO_EXPERT_SHARD_*, default columns: what a rank of group_tp
                              * gets of the sums; the same on all ranks */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [E / ep, H, k] */
} velo_bmm_reduce_scatter_all_to_all_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_BMM_REDUCE_SCATTER_ALL_TO_ALL_ARGS_INIT \
  { \
    sizeof(velo_bmm_reduce_scatter_all_to_all_args), 0, 0, 0, 0, 0, 0, 0, \
    VELO_EXPERT_SHARD_COLUMNS, 0 \
  }

/* `y = all_to_all_ep(reduce_scatter_tp(x[e] @ op(weight[e])) + bias[e])`.
 * The way out of a layer of experts, e being those of this rank, with the groups, shard_type and
 * order of rows of all_to_all_all_gather_bmm. Each rank of tp has k columns of x[e] and k rows of
 * weight[e]. It sums H / tp columns of all rows, or C / tp of the rows that a rank of ep has.
 * Each rank's product is rounded to y's dtype, then the sum, in the order of the ranks; the bias is
 * added to that.
 * Its gradient: all_to_all_all_gather_bmm of dy and weight with the other transpose_weight gives dx
 * and, in gathered, what grouped_matmul_backward needs beside x for the weight; the bias gets the
 * sums of its columns of gathered.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_reduce_scatter.
 * Cost: 2 m n k operations an expert, the reduce_scatter of the products and the all_to_all of the
 * sums.
 * Source: MindSpeed npu_bmm_reduce_scatter_all_to_all.
 * Also called npu_bmm_reduce_scatter_all_to_all.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_bmm_reduce_scatter_all_to_all(
    velo_stream stream, const velo_bmm_reduce_scatter_all_to_all_args* args);

VELO_END_C

#endif
