/* Matrix products.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/matmul.json: change that and build the target `generate`. */
#ifndef VELO_OPS_MATMUL_H
#define VELO_OPS_MATMUL_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Activation within a feed-forward network; gated ones come last. */
enum {
  VELO_FFN_ACTIVATION_FASTGELU = 0, /* x * sigmoid(1.702 * x) */
  VELO_FFN_ACTIVATION_GELU = 1,     /* by the error function */
  VELO_FFN_ACTIVATION_RELU = 2,     /* max(x, 0) */
  VELO_FFN_ACTIVATION_SILU = 3,     /* x * sigmoid(x) */
  VELO_FFN_ACTIVATION_GEGLU = 4,    /* gelu of the gate times its factor */
  VELO_FFN_ACTIVATION_SWIGLU = 5,   /* silu of the gate times its factor */
  VELO_FFN_ACTIVATION_REGLU = 6     /* relu of the gate times its factor */
};

/* Element type of a quantized product. */
enum {
  VELO_QUANT_OUTPUT_FLOAT16 = 0,  /* float16 */
  VELO_QUANT_OUTPUT_BFLOAT16 = 1, /* bfloat16 */
  VELO_QUANT_OUTPUT_FLOAT32 = 2,  /* float32 */
  VELO_QUANT_OUTPUT_INT8 = 3      /* int8 */
};

/* Activation behind a quantized product, by MindSpeed's numbers. */
enum {
  VELO_QUANT_ACTIVATION_NONE = 0,      /* none */
  VELO_QUANT_ACTIVATION_RELU = 1,      /* relu */
  VELO_QUANT_ACTIVATION_GELU_TANH = 2, /* gelu by tanh */
  VELO_QUANT_ACTIVATION_GELU = 3,      /* gelu by the error function */
  VELO_QUANT_ACTIVATION_FAST_GELU = 4, /* x * sigmoid(1.702 * x) */
  VELO_QUANT_ACTIVATION_SILU = 5       /* x * sigmoid(x) */
};

/* What a list of groups holds. */
enum {
  VELO_GROUP_LIST_KIND_CUMULATIVE = 0, /* ends: never decreasing, the last the size of the axis */
  VELO_GROUP_LIST_KIND_COUNTS = 1      /* sizes, whose sum is that of the axis */
};

/* The axis that groups cut, by MindSpeed's numbers. */
enum {
  VELO_GROUP_TYPE_ROWS = 0, /* the rows of x */
  VELO_GROUP_TYPE_DEPTH = 2 /* the axis that is summed over */
};

/* Element type of a product. */
enum {
  VELO_PRODUCT_DTYPE_LIKE_A = 0, /* the dtype of a */
  VELO_PRODUCT_DTYPE_FLOAT32 = 1 /* float32 whatever the inputs */
};

/* ---- matmul ---------------------------------------------------------------------------------- */

typedef struct velo_matmul_args {
  uint32_t struct_size;    /* sizeof(velo_matmul_args) */
  uint32_t reserved;       /* 0 */
  const velo_tensor* a;    /* in; float32 | bfloat16 | float16; strided: [.., m, k], or [k, m]
                            * with transpose_a; unit stride in the last dimension */
  const velo_tensor* b;    /* in, or NULL; float32 | bfloat16 | float16; strided: [k, n], or [n,
                            * k] with transpose_b; dtype of a; unit stride in the last dimension;
                            * NULL when packed is given */
  velo_pack packed;        /* in, or NULL: the weight in place of b, of a's dtype; transpose_b
                            * must be 0 */
  const velo_tensor* bias; /* in, or NULL; float32 | bfloat16 | float16: float32 or the dtype of
                            * a; broadcast to c: each dimension, counted from the last, is c's, 1
                            * or missing */
  const velo_tensor* c;    /* in and out; float32 | bfloat16 | float16; strided: [.., m, n];
                            * dtype of a, or float32; unit stride in the last dimension */
  int64_t transpose_a;     /* 0 or 1, default 0: 1 when a is stored [k, m] */
  int64_t transpose_b;     /* 0 or 1, default 0: 1 when b is stored [n, k] */
  int64_t accumulate;      /* 0 or 1, default 0: 1 adds to c (in float32, rounded once) instead
                            * of writing it */
  int64_t dtype;           /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of c */
} velo_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ARGS_INIT \
  { sizeof(velo_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, VELO_PRODUCT_DTYPE_LIKE_A }

/* `c = op(a) @ op(b) + bias`.
 * op(x) is x or its transpose; products and sums in float32, rounded once.
 * a: [.., m, k] with leading dimensions folded into m (2-D when transposed); b: [k, n], or `packed`
 * in its place. Sizes are below 2^31.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: k * 2^-24 relative to the sum of
 * magnitudes; a bfloat16 or float16 c half an ulp more, infinite from 65520 on in float16; a
 * partial sum beyond float32 makes a result infinite or NaN; kernels amx and avx512_bf16 take
 * denormal bfloat16 inputs, products and results as zero.
 * Cost: 2 m n k operations.
 * Source: definition.
 * Also called npu_matmul, pure_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul(velo_stream stream, const velo_matmul_args* args);

/* ---- matmul_backward ------------------------------------------------------------------------- */

typedef struct velo_matmul_backward_args {
  uint32_t struct_size;     /* sizeof(velo_matmul_backward_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* dc;    /* in; float32 | bfloat16 | float16; strided: [.., m, n], strided as
                             * a of matmul */
  const velo_tensor* a;     /* in, or NULL; float32 | bfloat16 | float16; strided: [.., m, k],
                             * dtype of dc; db needs it */
  const velo_tensor* b;     /* in, or NULL; float32 | bfloat16 | float16; strided: [k, n], dtype
                             * of dc; da needs it */
  const velo_tensor* bias;  /* in, or NULL; float32 | bfloat16 | float16: for the shape of dbias */
  const velo_tensor* da;    /* out, or NULL; strided: shape of a, dtype of dc */
  const velo_tensor* db;    /* out, or NULL; strided: shape of b */
  const velo_tensor* dbias; /* out, or NULL: float32, shape of bias, or [n] without it */
  int64_t transpose_a;      /* 0 or 1, default 0: 1 when a is stored [k, m] */
  int64_t transpose_b;      /* 0 or 1, default 0: 1 when b is stored [n, k] */
  int64_t accumulate;       /* 0 or 1, default 0: 1 adds to db and dbias (in float32, rounded
                             * once) */
  int64_t dtype;            /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of db */
} velo_matmul_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_BACKWARD_ARGS_INIT \
  { sizeof(velo_matmul_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, VELO_PRODUCT_DTYPE_LIKE_A }

/* `da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[broadcast](dc)`.
 * Any result left out; da and db are laid out as a and b are, transposed where those are.
 *
 * Gradient of velo_matmul.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each of da and db.
 * Source: gradient of matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_backward(velo_stream stream,
                                          const velo_matmul_backward_args* args);

/* ---- matmul_add ------------------------------------------------------------------------------ */

typedef struct velo_matmul_add_args {
  uint32_t struct_size;    /* sizeof(velo_matmul_add_args) */
  uint32_t reserved;       /* 0 */
  const velo_tensor* a;    /* in; float32 | bfloat16 | float16; strided: as of matmul */
  const velo_tensor* b;    /* in, or NULL; float32 | bfloat16 | float16; strided: as of matmul */
  velo_pack packed;        /* in, or NULL: as of matmul */
  const velo_tensor* bias; /* in, or NULL; float32 | bfloat16 | float16: one row, [n] or [1, n],
                            * float32 or the dtype of a; add takes the others */
  const velo_tensor* add;  /* in; float32 | bfloat16 | float16: dtype of a; broadcast to c: each
                            * dimension, counted from the last, is c's, 1 or missing */
  const velo_tensor* c;    /* out; float32 | bfloat16 | float16; strided: [.., m, n], dtype of a;
                            * unit stride in the last dimension */
  int64_t transpose_a;     /* 0 or 1, default 0: 1 when a is stored [k, m] */
  int64_t transpose_b;     /* 0 or 1, default 0: 1 when b is stored [n, k] */
} velo_matmul_add_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ADD_ARGS_INIT \
  { sizeof(velo_matmul_add_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `c = op(a) @ op(b) + bias + add`.
 * matmul with a residual that is added in float32 before the one rounding, while the sums are in
 * registers.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_add(velo_stream stream, const velo_matmul_add_args* args);

/* ---- matmul_add_backward --------------------------------------------------------------------- */

typedef struct velo_matmul_add_backward_args {
  uint32_t struct_size;     /* sizeof(velo_matmul_add_backward_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* dc;    /* in; float32 | bfloat16 | float16; strided: [.., m, n], strided as
                             * a of matmul */
  const velo_tensor* a;     /* in, or NULL; float32 | bfloat16 | float16; strided: [.., m, k],
                             * dtype of dc; db needs it */
  const velo_tensor* b;     /* in, or NULL; float32 | bfloat16 | float16; strided: [k, n], dtype
                             * of dc; da needs it */
  const velo_tensor* add;   /* in, or NULL; float32 | bfloat16 | float16: for its shape; dadd
                             * needs it */
  const velo_tensor* da;    /* out, or NULL; strided: shape of a, dtype of dc */
  const velo_tensor* db;    /* out, or NULL; strided: shape of b, dtype of dc */
  const velo_tensor* dbias; /* out, or NULL: float32, [n] */
  const velo_tensor* dadd;  /* out, or NULL: shape of add, dtype of dc */
  int64_t transpose_a;      /* 0 or 1, default 0: 1 when a is stored [k, m] */
  int64_t transpose_b;      /* 0 or 1, default 0: 1 when b is stored [n, k] */
} velo_matmul_add_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ADD_BACKWARD_ARGS_INIT \
  { sizeof(velo_matmul_add_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[rows](dc)`; `dadd = sum[broadcast](dc)`.
 * Any result left out; da and db are laid out as a and b are, transposed where those are.
 *
 * Gradient of velo_matmul_add.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each of da and db.
 * Source: gradient of matmul_add.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_add_backward(velo_stream stream,
                                              const velo_matmul_add_backward_args* args);

/* ---- matmul_swiglu --------------------------------------------------------------------------- */

typedef struct velo_matmul_swiglu_args {
  uint32_t struct_size;      /* sizeof(velo_matmul_swiglu_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16; strided: [.., k]; unit stride
                              * in the last dimension */
  const velo_tensor* weight; /* in, or NULL; float32 | bfloat16 | float16; strided: [k, 2 n], or
                              * [2 n, k] with transpose_weight; dtype of x; unit stride in the
                              * last dimension; NULL when packed is given */
  velo_pack packed;          /* in, or NULL: the weight [k, 2 n] in its place, of x's dtype; n
                              * must be a multiple of 96, transpose_weight 0 */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [2 n], float32 or the
                              * dtype of x */
  const velo_tensor* y;      /* out; strided: [.., n], dtype of x; unit stride in the last
                              * dimension */
  const velo_tensor* h;      /* out, or NULL; strided: [.., 2 n], dtype of x: what the gradient
                              * needs */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when the weight is stored [2 n, k] */
} velo_matmul_swiglu_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_SWIGLU_ARGS_INIT \
  { sizeof(velo_matmul_swiglu_args), 0, 0, 0, 0, 0, 0, 0, 0 }

/* `silu(t) = t / (1 + exp(-t))`; `h = x @ op(weight) + bias`; `y = silu(h1) * h2`.
 * h1 and h2 are the halves of the last dimension of h: the gate's columns of the weight come first,
 * then the factor's. y is computed from sums in float32 and rounded once.
 * x: [.., k] of two dimensions or more, the leading ones folded into rows; weight: [k, 2 n], or
 * `packed` in its place.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-06 to 1e+06: h as a result of matmul in
 * float32, y then as of swiglu; beyond those magnitudes it holds while sums and y are finite in
 * float32.
 * Cost: 4 m n k operations.
 * Source: Shazeer 2020, arXiv:2002.05202.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_swiglu(velo_stream stream, const velo_matmul_swiglu_args* args);

/* ---- matmul_swiglu_backward ------------------------------------------------------------------ */

typedef struct velo_matmul_swiglu_backward_args {
  uint32_t struct_size;       /* sizeof(velo_matmul_swiglu_backward_args) */
  uint32_t reserved;          /* 0 */
  const velo_tensor* dy;      /* in; float32 | bfloat16 | float16: [.., n] */
  const velo_tensor* h;       /* in, or NULL; float32 | bfloat16 | float16: [.., 2 n], dtype of
                               * dy: from the forward call */
  const velo_tensor* x;       /* in, or NULL; float32 | bfloat16 | float16; strided: [.., k],
                               * dtype of dy; dweight needs it */
  const velo_tensor* weight;  /* in, or NULL; float32 | bfloat16 | float16; strided: as in the
                               * forward call, where that took a pack the weight itself; dx needs
                               * it */
  const velo_tensor* bias;    /* in, or NULL; float32 | bfloat16 | float16: the forward call's;
                               * read where h is computed again */
  const velo_tensor* dx;      /* out, or NULL; strided: shape of x, dtype of dy */
  const velo_tensor* dweight; /* out, or NULL; strided: shape of the weight */
  const velo_tensor* dbias;   /* out, or NULL: float32, [2 n] */
  int64_t transpose_weight;   /* 0 or 1, default 0: 1 when the weight is stored [2 n, k] */
  int64_t accumulate;         /* 0 or 1, default 0: 1 adds to dweight and dbias (in float32,
                               * rounded once) */
  int64_t dtype;              /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of dweight */
} velo_matmul_swiglu_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_SWIGLU_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_matmul_swiglu_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_PRODUCT_DTYPE_LIKE_A \
  }

/* `s = 1 / (1 + exp(-h1))`; `dh1 = dy * h2 * s * (1 + h1 * (1 - s))`; `dh2 = dy * h1 * s`; `dx = dh
 * @ op(weight)^T`; `dweight = op(x)^T @ dh`; `dbias = sum[rows](dh)`.
 * dh1 and dh2 are the halves of dh, which is rounded to the dtype of dy. Without `h` it is computed
 * again from x, weight and bias. Any result left out; dweight is laid out as the weight.
 *
 * Gradient of velo_matmul_swiglu.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 0.0001 to 1e+01: dh as a result of
 * swiglu_backward, its products as of matmul; in bfloat16 and float16 half an ulp of each dh more,
 * and of each h that is computed again, whose rounding the slope of silu magnifies: for inputs of
 * larger sums it holds with h given.
 * Cost: 4 m n k operations for each of dx and dweight, and for h where it is computed again.
 * Source: gradient of matmul_swiglu.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_swiglu_backward(velo_stream stream,
                                                 const velo_matmul_swiglu_backward_args* args);

/* ---- rms_norm_matmul ------------------------------------------------------------------------- */

typedef struct velo_rms_norm_matmul_args {
  uint32_t struct_size;      /* sizeof(velo_rms_norm_matmul_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [.., k] */
  const velo_tensor* gamma;  /* in; float32 | bfloat16 | float16: [k], float32 or the dtype of x */
  const velo_tensor* weight; /* in, or NULL; float32 | bfloat16 | float16; strided: [k, n], or
                              * [n, k] with transpose_weight; dtype of x; unit stride in the last
                              * dimension; NULL when packed is given */
  velo_pack packed;          /* in, or NULL: the weight in its place, of x's dtype;
                              * transpose_weight must be 0 */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or the
                              * dtype of x */
  const velo_tensor* y;      /* out; strided: [.., n], dtype of x; unit stride in the last
                              * dimension */
  const velo_tensor* rstd;   /* out, or NULL: float32, [.., 1]: what the gradient needs */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when the weight is stored [n, k] */
  double epsilon;            /* default 1e-06, >= 0.0: added to the mean square; a finite number */
} velo_rms_norm_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RMS_NORM_MATMUL_ARGS_INIT \
  { sizeof(velo_rms_norm_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1e-06 }

/* `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = (x * rstd * gamma) @ op(weight) + bias`.
 * The normed rows are rounded to the dtype of x, as rms_norm gives them; they go from the cache
 * into the product and are not kept.
 * x: [.., k] of two dimensions or more, the leading ones folded into rows; weight: [k, n], or
 * `packed` in its place.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-06 to 1e+06: normed rows as results of
 * rms_norm, their product as of matmul.
 * Cost: 2 m n k operations.
 * Source: Zhang and Sennrich 2019, arXiv:1910.07467.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rms_norm_matmul(velo_stream stream,
                                          const velo_rms_norm_matmul_args* args);

/* ---- rms_norm_matmul_backward ---------------------------------------------------------------- */

typedef struct velo_rms_norm_matmul_backward_args {
  uint32_t struct_size;       /* sizeof(velo_rms_norm_matmul_backward_args) */
  uint32_t reserved;          /* 0 */
  const velo_tensor* dy;      /* in; float32 | bfloat16 | float16; strided: [.., n], dtype of x */
  const velo_tensor* x;       /* in; float32 | bfloat16 | float16: [.., k], the forward input */
  const velo_tensor* gamma;   /* in; float32 | bfloat16 | float16: the forward gain */
  const velo_tensor* rstd;    /* in; float32: from the forward call */
  const velo_tensor* weight;  /* in, or NULL; float32 | bfloat16 | float16; strided: as in the
                               * forward call; dx and dgamma need it */
  const velo_tensor* dx;      /* out, or NULL: shape and dtype of x */
  const velo_tensor* dgamma;  /* out, or NULL: float32, [k] */
  const velo_tensor* dweight; /* out, or NULL; strided: shape of the weight */
  const velo_tensor* dbias;   /* out, or NULL: float32, [n] */
  int64_t transpose_weight;   /* 0 or 1, default 0: 1 when the weight is stored [n, k] */
  int64_t accumulate;         /* 0 or 1, default 0: 1 adds to dgamma, dweight and dbias (in
                               * float32, rounded once) */
  int64_t dtype;              /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of dweight */
} velo_rms_norm_matmul_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RMS_NORM_MATMUL_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_rms_norm_matmul_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_PRODUCT_DTYPE_LIKE_A \
  }

/* `h = dy @ op(weight)^T`; `g = h * gamma`; `dx = rstd * (g - x * rstd^2 * mean(g * x))`; `dgamma =
 * sum[rows](h * x * rstd)`; `dweight = (x * rstd * gamma)^T @ dy`; `dbias = sum[rows](dy)`.
 * The normed rows are computed again from x and rstd; they and the gradient of them are rounded to
 * the dtype of x. Any result left out; dweight is laid out as the weight.
 *
 * Gradient of velo_rms_norm_matmul.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 0.0001 to 1e+04: products as of matmul, dx and
 * dgamma then as of rms_norm_backward; in bfloat16 and float16 half an ulp of each number between
 * them more.
 * Cost: 2 m n k operations for dx and dgamma together, and for dweight.
 * Source: gradient of rms_norm_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rms_norm_matmul_backward(velo_stream stream,
                                                   const velo_rms_norm_matmul_backward_args* args);

/* ---- matmul_add_fp32 ------------------------------------------------------------------------- */

typedef struct velo_matmul_add_fp32_args {
  uint32_t struct_size;           /* sizeof(velo_matmul_add_fp32_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* total_input; /* in; float32 | bfloat16 | float16: [.., t, k] */
  const velo_tensor* grad_output; /* in; float32 | bfloat16 | float16: [.., t, n], dtype of
                                   * total_input */
  const velo_tensor* grad;        /* in and out: float32, [n, k] */
} velo_matmul_add_fp32_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ADD_FP32_ARGS_INIT \
  { sizeof(velo_matmul_add_fp32_args), 0, 0, 0, 0 }

/* `grad += grad_output^T @ total_input`.
 * The product is added in float32 without rounding to 16 bits.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 t n k operations.
 * Source: MindSpeed npu_matmul_add_fp32.
 * Also called npu_matmul_add_fp32.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_add_fp32(velo_stream stream,
                                          const velo_matmul_add_fp32_args* args);

/* ---- grouped_matmul -------------------------------------------------------------------------- */

typedef struct velo_grouped_matmul_args {
  uint32_t struct_size;                 /* sizeof(velo_grouped_matmul_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* x;                 /* in; float32 | bfloat16 | float16: [m, k], or [k, m]
                                         * with transpose_x */
  const velo_tensor* weight;            /* in, or NULL; float32 | bfloat16 | float16: [groups, k,
                                         * n], of depth [k, n], dtype of x; NULL when packed is
                                         * given */
  const velo_tensor* bias;              /* in, or NULL; float32 | bfloat16 | float16: [groups,
                                         * n], float32 or dtype of x; NULL for depth */
  const velo_tensor* y;                 /* in and out; float32 | bfloat16 | float16: [m, n], of
                                         * depth [groups, m, n] */
  const velo_ints* group_list;          /* in, or NULL: a number for each group, which may be
                                         * empty; or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [groups], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
  int64_t group_type;                   /* VELO_GROUP_TYPE_*, default rows: which axis the list
                                         * cuts */
  int64_t transpose_x;                  /* 0 or 1, default 0: 1 when x is stored [k, m], for
                                         * depth only */
  int64_t transpose_weight;             /* 0 or 1, default 0: 1 when weight is stored [groups, n,
                                         * k] or [n, k] */
  int64_t accumulate;                   /* 0 or 1, default 0: 1 adds to y (in float32, rounded
                                         * once) */
  int64_t dtype;                        /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of y */
  velo_pack packed;                     /* in, or NULL: a pack in place of weight, its count that
                                         * of the groups, of x's dtype; transpose_weight must be
                                         * 0; NULL for depth */
} velo_grouped_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GROUPED_MATMUL_ARGS_INIT \
  { \
    sizeof(velo_grouped_matmul_args), 0, 0, 0, 0, 0, 0, 0, VELO_GROUP_LIST_KIND_CUMULATIVE, \
    VELO_GROUP_TYPE_ROWS, 0, 0, 0, VELO_PRODUCT_DTYPE_LIKE_A, 0 \
  }

/* `y[e] = x[e] @ op(weight[e]) + bias[e]`.
 * x[e]: rows of x, one group after another; with group_type depth columns of op(x) by rows of
 * op(weight), a result for each group (of no depth: zero).
 * Products and sums as in matmul; all groups are one parallel region. A wrong list is
 * VELO_ERR_ARGUMENT before anything is written.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations.
 * Source: MindSpeed npu_gmm, npu_gmm_v2.
 * Also called npu_gmm, npu_gmm_v2.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_grouped_matmul(velo_stream stream, const velo_grouped_matmul_args* args);

/* ---- grouped_matmul_backward ----------------------------------------------------------------- */

typedef struct velo_grouped_matmul_backward_args {
  uint32_t struct_size;                 /* sizeof(velo_grouped_matmul_backward_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* dy;                /* in; float32 | bfloat16 | float16: [m, n] */
  const velo_tensor* x;                 /* in, or NULL; float32 | bfloat16 | float16: [m, k],
                                         * dtype of dy; dweight needs it */
  const velo_tensor* weight;            /* in, or NULL; float32 | bfloat16 | float16: [groups, k,
                                         * n], dtype of dy; dx needs it */
  const velo_tensor* dx;                /* out, or NULL: [m, k], dtype of dy */
  const velo_tensor* dweight;           /* out, or NULL: [groups, k, n] */
  const velo_tensor* dbias;             /* out, or NULL: float32, [groups, n] */
  const velo_ints* group_list;          /* in, or NULL: a number for each group, which may be
                                         * empty; or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [groups], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
  int64_t transpose_weight;             /* 0 or 1, default 0: 1 when weight is stored [groups, n,
                                         * k] */
  int64_t accumulate;                   /* 0 or 1, default 0: 1 adds to dweight and dbias */
  int64_t dtype;                        /* VELO_PRODUCT_DTYPE_*, default like_a: dtype of dweight */
} velo_grouped_matmul_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_grouped_matmul_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_GROUP_LIST_KIND_CUMULATIVE, 0, 0, VELO_PRODUCT_DTYPE_LIKE_A \
  }

/* `dx[e] = dy[e] @ op(weight[e])^T`; `dweight[e] = x[e]^T @ dy[e]`; `dbias[e] = sum[rows](dy[e])`.
 * Of groups of rows, any result left out; dweight is laid out as weight. Those of empty groups are
 * zero, or kept with accumulate.
 *
 * Gradient of velo_grouped_matmul.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each of dx and dweight.
 * Source: gradient of grouped_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_grouped_matmul_backward(velo_stream stream,
                                                  const velo_grouped_matmul_backward_args* args);

/* ---- grouped_matmul_add_fp32 ----------------------------------------------------------------- */

typedef struct velo_grouped_matmul_add_fp32_args {
  uint32_t struct_size;                 /* sizeof(velo_grouped_matmul_add_fp32_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* x;                 /* in; float32 | bfloat16 | float16: [m, k] */
  const velo_tensor* dy;                /* in; float32 | bfloat16 | float16: [m, n], dtype of x */
  const velo_tensor* grad;              /* in and out: float32, [groups, k, n] or [groups k, n] */
  const velo_ints* group_list;          /* in, or NULL: a number for each group, which may be
                                         * empty; or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [groups], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
} velo_grouped_matmul_add_fp32_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GROUPED_MATMUL_ADD_FP32_ARGS_INIT \
  { sizeof(velo_grouped_matmul_add_fp32_args), 0, 0, 0, 0, 0, 0, VELO_GROUP_LIST_KIND_CUMULATIVE }

/* `grad[e] += x[e]^T @ dy[e]`.
 * Groups of rows; the product is added in float32 without rounding to 16 bits, and empty groups
 * keep their grad.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations.
 * Source: MindSpeed npu_groupmatmul_add_fp32.
 * Also called npu_groupmatmul_add_fp32.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_grouped_matmul_add_fp32(velo_stream stream,
                                                  const velo_grouped_matmul_add_fp32_args* args);

/* ---- weight_quant_matmul --------------------------------------------------------------------- */

typedef struct velo_weight_quant_matmul_args {
  uint32_t struct_size;      /* sizeof(velo_weight_quant_matmul_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [.., k] */
  const velo_tensor* weight; /* in, or NULL; int8 | uint8 | int4: int8 [k, n]; int4 as uint8 [k,
                              * n / 2] or int4 [k, n]; NULL when packed is given */
  const velo_tensor* scale;  /* in; float32 | bfloat16 | float16: [n], or [groups, n] for each k
                              * / groups, a multiple of 32; float32 or dtype of x */
  const velo_tensor* offset; /* in, or NULL; float32 | bfloat16 | float16: shape and dtype of
                              * scale; NULL = 0 */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or dtype
                              * of x */
  const velo_tensor* y;      /* out: [.., n], dtype of x */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [n, k], int4 in pairs
                              * along k */
  int64_t row_invariant;     /* 0 or 1, default 0: 1 gives a row the same bits among any number
                              * of rows; it has them anyway where x is float32 or float16 and
                              * weight packed or not transposed, else more than 16 rows take
                              * longer */
  velo_pack packed;          /* in, or NULL: a pack with weight_only in place of weight;
                              * transpose_weight must be 0 */
} velo_weight_quant_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT \
  { sizeof(velo_weight_quant_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = x @ ((weight + offset) * scale) + bias`.
 * A product with a weight of int8 or int4, as quantize makes it over channel or group, and of a
 * stored [n, k] over token; its elements become float32 on their way, or bfloat16, which holds its
 * integers; sums in float32, rounded once. Sizes are below 2^31.
 * Up to 16 rows are multiplied in another order than 17 and more of bfloat16 or with a transposed
 * weight, so the bits of a row may differ between the two; within each, and with row_invariant in
 * all, they do not depend on how many rows there are.
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

/* ---- weight_quant_grouped_matmul ------------------------------------------------------------- */

typedef struct velo_weight_quant_grouped_matmul_args {
  uint32_t struct_size;                 /* sizeof(velo_weight_quant_grouped_matmul_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* x;                 /* in; float32 | bfloat16 | float16: [m, k] */
  const velo_tensor* weight;            /* in, or NULL; int8 | uint8 | int4: int8 [groups, k, n];
                                         * int4 as uint8 [groups, k, n / 2] or int4 [groups, k,
                                         * n]; NULL when packed is given */
  const velo_tensor* scale;             /* in; float32 | bfloat16 | float16: [groups, n], or
                                         * [groups, g, n] for each k / g, a multiple of 32;
                                         * float32 or dtype of x */
  const velo_tensor* offset;            /* in, or NULL; float32 | bfloat16 | float16: shape and
                                         * dtype of scale; NULL = 0 */
  const velo_tensor* bias;              /* in, or NULL; float32 | bfloat16 | float16: [groups,
                                         * n], float32 or dtype of x */
  const velo_tensor* y;                 /* out: [m, n], dtype of x */
  const velo_ints* group_list;          /* in, or NULL: a number for each group, which may be
                                         * empty; or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [groups], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
  int64_t transpose_weight;             /* 0 or 1, default 0: 1 when weight is stored [groups, n,
                                         * k], int4 in pairs along k */
  int64_t row_invariant;                /* 0 or 1, default 0: 1 gives a row the same bits among
                                         * any number of rows; it has them anyway where x is
                                         * float32 or float16 and weight packed or not
                                         * transposed, else more than 16 rows take longer */
  velo_pack packed;                     /* in, or NULL: a pack with weight_only in place of
                                         * weight, its count that of the groups; transpose_weight
                                         * must be 0 */
} velo_weight_quant_grouped_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT \
  { \
    sizeof(velo_weight_quant_grouped_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_GROUP_LIST_KIND_CUMULATIVE, 0, 0, 0 \
  }

/* `y[e] = x[e] @ ((weight[e] + offset[e]) * scale[e]) + bias[e]`.
 * x[e]: rows of x, one group after another. Each product is that of weight_quant_matmul, a group of
 * up to 16 rows as one of so few; a wrong list is VELO_ERR_ARGUMENT before anything is written.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-11 to 1e+11: as weight_quant_matmul.
 * Cost: 2 m n k operations.
 * Source: MindSpeed npu_weight_quant_gmm, npu_weight_quant_gmm_v2.
 * Also called npu_weight_quant_gmm, npu_weight_quant_gmm_v2.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_weight_quant_grouped_matmul(
    velo_stream stream, const velo_weight_quant_grouped_matmul_args* args);

/* ---- quant_grouped_matmul -------------------------------------------------------------------- */

typedef struct velo_quant_grouped_matmul_args {
  uint32_t struct_size;                 /* sizeof(velo_quant_grouped_matmul_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* x;                 /* in; int8: [m, k], k at most 131071 */
  const velo_tensor* weight;            /* in, or NULL; int8: [groups, k, n]; NULL when packed is
                                         * given */
  const velo_tensor* scale;             /* in; float32 | bfloat16 | int64: [groups, n]: float32;
                                         * bfloat16 for such a y; int64 for int8, a float32 in
                                         * the low half */
  const velo_tensor* per_token_scale;   /* in, or NULL; float32: [m]; NULL = 1, and for int8 */
  const velo_tensor* bias;              /* in, or NULL; int32: [groups, n], added to the sums;
                                         * NULL = 0 */
  const velo_tensor* y;                 /* out: [m, n] */
  const velo_ints* group_list;          /* in, or NULL: a number for each group, which may be
                                         * empty; or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [groups], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
  int64_t output_dtype;                 /* VELO_QUANT_OUTPUT_*, default float16: dtype of y; int8
                                         * rounds to even, NaN to 0, without an activation */
  int64_t act_type;                     /* VELO_QUANT_ACTIVATION_*, default none: the activation */
  int64_t transpose_weight;             /* 0 or 1, default 0: 1 when weight is stored [groups, n,
                                         * k] */
  velo_pack packed;                     /* in, or NULL: a pack of int8 in place of weight, its
                                         * count that of the groups; transpose_weight must be 0 */
} velo_quant_grouped_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_QUANT_GROUPED_MATMUL_ARGS_INIT \
  { \
    sizeof(velo_quant_grouped_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_GROUP_LIST_KIND_CUMULATIVE, VELO_QUANT_OUTPUT_FLOAT16, VELO_QUANT_ACTIVATION_NONE, 0, 0 \
  }

/* `y[e] = act((x[e] @ weight[e] + bias[e]) * scale[e] * per_token_scale[e])`.
 * x[e]: rows of x, one group after another. Sums are int32, exact but for a bias that leaves its
 * range; the rest is float32, rounded once. A wrong list is VELO_ERR_ARGUMENT before anything is
 * written.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: as the activation of the exact sum; int8 outputs are exact.
 * Cost: 2 m n k operations.
 * Source: MindSpeed npu_quant_gmm, npu_quant_gmm_v2.
 * Also called npu_quant_gmm, npu_quant_gmm_v2.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_quant_grouped_matmul(velo_stream stream,
                                               const velo_quant_grouped_matmul_args* args);

/* ---- ffn ------------------------------------------------------------------------------------- */

typedef struct velo_ffn_args {
  uint32_t struct_size;                 /* sizeof(velo_ffn_args) */
  uint32_t reserved;                    /* 0 */
  const velo_tensor* x;                 /* in; float32 | bfloat16 | float16 | int8: [.., k1] */
  const velo_tensor* weight1;           /* in; float32 | bfloat16 | float16 | int8 | uint8 |
                                         * int4: [experts, k1, n1], or [k1, n1]; dtype of x,
                                         * int8, or int4 as uint8 [.., n1 / 2] or int4 */
  const velo_tensor* weight2;           /* in; float32 | bfloat16 | float16 | int8 | uint8 |
                                         * int4: [experts, k2, n2], or [k2, n2], as weight1; k2
                                         * is n1, half of it where gated */
  const velo_tensor* bias1;             /* in, or NULL; float32 | bfloat16 | float16 | int32:
                                         * [experts, n1], or [n1]; float32 or dtype of x, int32
                                         * for int8 */
  const velo_tensor* bias2;             /* in, or NULL; float32 | bfloat16 | float16 | int32:
                                         * [experts, n2], or [n2], as bias1 */
  const velo_tensor* scale;             /* in, or NULL; float32: of x int8: [1], [experts], or
                                         * [experts, n1], [n1] */
  const velo_tensor* offset;            /* in, or NULL; float32: of x int8: [1] or [experts];
                                         * NULL = 0 */
  const velo_tensor* deq_scale1;        /* in, or NULL; float32 | bfloat16 | int64: of x int8:
                                         * [experts, n1], or [n1]; float32, bfloat16 for such a
                                         * y, int64 with a float32 in the low half */
  const velo_tensor* deq_scale2;        /* in, or NULL; float32 | bfloat16 | int64: of x int8:
                                         * [experts, n2], or [n2], dtype of deq_scale1 */
  const velo_tensor* antiquant_scale1;  /* in, or NULL; float32 | bfloat16 | float16: of
                                         * quantized weights: [experts, n1] or [experts, groups,
                                         * n1], without experts if there are none */
  const velo_tensor* antiquant_scale2;  /* in, or NULL; float32 | bfloat16 | float16: as
                                         * antiquant_scale1, of weight2 */
  const velo_tensor* antiquant_offset1; /* in, or NULL; float32 | bfloat16 | float16: as
                                         * antiquant_scale1; NULL = 0 */
  const velo_tensor* antiquant_offset2; /* in, or NULL; float32 | bfloat16 | float16: as
                                         * antiquant_scale2; NULL = 0 */
  const velo_tensor* y;                 /* out: [.., n2], dtype of x; of int8 output_dtype */
  const velo_ints* group_list;          /* in, or NULL: rows of each expert, which may have none
                                         * (expert_tokens_index, of kind counts expert_tokens);
                                         * or */
  const velo_tensor* group_list_tensor; /* in, or NULL; int64: [experts], in its place, checked
                                         * when the call runs */
  int64_t group_list_kind;              /* VELO_GROUP_LIST_KIND_*, default cumulative: what the
                                         * list says */
  int64_t activation;                   /* VELO_FFN_ACTIVATION_*, default relu: act; gated ones
                                         * without quantized weights */
  int64_t inner_precise;                /* default 0, in [0, 1]: MindSpeed's choice of precision,
                                         * which changes nothing here; 0 for bfloat16 */
  int64_t output_dtype;                 /* VELO_QUANT_OUTPUT_*, default float16: dtype of y for x
                                         * of int8; not int8 */
  int64_t row_invariant;                /* 0 or 1, default 0: as in weight_quant_matmul, for
                                         * weights of int8 or int4 alone; the other forms always
                                         * have it */
} velo_ffn_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FFN_ARGS_INIT \
  { \
    sizeof(velo_ffn_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_GROUP_LIST_KIND_CUMULATIVE, VELO_FFN_ACTIVATION_RELU, 0, VELO_QUANT_OUTPUT_FLOAT16, 0 \
  }

/* `y = act(x @ weight1 + bias1) @ weight2 + bias2`.
 * For rows in groups of an expert each, or all of one. A gated activation takes the first half of
 * its columns for the gate. What lies between is rounded to x's dtype.
 * Weights of int8 or int4 alone: as weight_quant_matmul, up to 16 rows of an expert as so few
 * there; what lies between in float32.
 * x and weights of int8: `h = act((x @ weight1 + bias1) * deq_scale1)`, `y = (round(h * scale +
 * offset) @ weight2 + bias2) * deq_scale2`, rounded within int8.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 0.0001 to 1e+04: float32: k * 2^-24 relative to
 * the sum of magnitudes, in both products; 16-bit: and half an ulp of what lies between, in int8
 * half a step of its scale.
 * Cost: 2 m (k1 n1 + k2 n2) operations.
 * Source: MindSpeed npu_ffn.
 * Also called npu_ffn.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_ffn(velo_stream stream, const velo_ffn_args* args);

VELO_END_C

#endif
