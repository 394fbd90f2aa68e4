/* Matrix products with the communication that tensor parallelism puts next to them, in slices: what
 * one slice says to the other ranks is on its way while the next is multiplied.
 * All ranks of the group make the call, in the same order; it has its place among the collectives
 * of the group. Level 2 slices it, levels 0 and 1 run product and collective one after the other.
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

/* ---- matmul_all_reduce ----------------------------------------------------------------------- */

typedef struct velo_matmul_all_reduce_args {
  uint32_t struct_size;      /* sizeof(velo_matmul_all_reduce_args) */
  uint32_t reserved;         /* 0 */
  velo_group group;          /* in, or NULL: the ranks, of the stream's context; NULL: this one
                              * alone */
  const velo_tensor* x;      /* in; float32 | bfloat16: [.., k], the leading dimensions folded
                              * into m rows */
  const velo_tensor* weight; /* in; float32 | bfloat16: [k, n], or [n, k] with transpose_weight;
                              * dtype of x */
  const velo_tensor* y;      /* out: [.., n], dtype of x */
  int64_t transpose_weight;  /* 0 or 1, default 0: 1 when weight is stored [n, k] */
} velo_matmul_all_reduce_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MATMUL_ALL_REDUCE_ARGS_INIT \
  { sizeof(velo_matmul_all_reduce_args), 0, 0, 0, 0, 0, 0 }

/* `y = sum[ranks](x @ op(weight))`.
 * A linear layer whose weight is cut along its inputs (row parallel): each rank has k of them.
 * op(weight) is weight or its transpose; sums in float32; each rank's product is rounded to y's
 * dtype, then the sum.
 * Its gradient needs no communication: matmul of dy and weight with the other transpose_weight,
 * matmul_add_fp32 for the weight. With transpose_weight it is the gradient to x of a layer whose
 * weight is cut along its outputs (column parallel).
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32: as matmul; bfloat16:
 * half an ulp of each rank's product and of the sum; the same bits on all ranks, at levels 1 and 2,
 * from run to run.
 * Cost: 2 m n k operations, and the all_reduce of m n elements.
 * Source: MindSpeed CoC and npu_mm_all_reduce_base.
 * Also called npu_mm_all_reduce_base.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_matmul_all_reduce(velo_stream stream,
                                            const velo_matmul_all_reduce_args* args);

VELO_END_C

#endif
