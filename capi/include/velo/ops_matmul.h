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
  const velo_tensor* bias; /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or the
                            * dtype of a */
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
 * in its place.
 * Its gradient is two more products: of a, matmul of dc and b with the other transpose_b; of b
 * stored [k, n], matmul of a and dc with transpose_a, of b stored [n, k] that of dc and a with
 * transpose_a (matmul_add_fp32 adds it to a float32 gradient); of bias, the sum of dc over rows.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: k * 2^-24 relative to the sum of
 * magnitudes; a bfloat16 or float16 c half an ulp more, infinite from 65520 on in float16; a
 * partial sum beyond float32 makes a result infinite or NaN; kernels amx and avx512_bf16 take
 * denormal bfloat16 inputs, products and results as zero.
 * Cost: 2 m n k operations.
 * Source: definition.
 * Also called npu_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul(velo_stream stream, const velo_matmul_args* args);

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

VELO_END_C

#endif
