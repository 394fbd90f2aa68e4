/* Weight packs: a weight matrix, or one for each expert, laid out once in the order the matrix
 * kernels read it.
 *
 * Packing a matrix costs about two reads and one write of it; a packed product runs 1.1-1.25x
 * faster than a plain one. Make a pack per weight, and update it after each optimizer step. A pack
 * without a count goes to velo_matmul in place of `b`, or to matmul_add, matmul_swiglu and
 * rms_norm_matmul; with a count to velo_grouped_matmul, of int8 to velo_quant_grouped_matmul, in
 * place of `weight`. With weight_only it goes to velo_weight_quant_matmul, or with a count to
 * velo_weight_quant_grouped_matmul, which are 1.0-1.7x as fast as with a plain weight [n, k].
 *
 * A pack with weight_only has one form for all processors. Any other has the form that the kernels
 * of its context's instruction set read (the key `isa`); where others run, the reference reads it,
 * element by element. Any context may multiply with a pack, as long as its own context lives; only
 * streams of that order an update before a product.
 */
#ifndef VELO_PACK_H
#define VELO_PACK_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_pack_desc {
  uint32_t struct_size;
  int32_t transpose; /* 0: the weight is [k, n]; 1: the weight is [n, k] and is packed transposed */
  velo_dtype dtype;  /* float32, bfloat16 or float16; int8 with a count, and k up to 131071; with
                      * weight_only int8 or int4 */
  uint32_t weight_only; /* 1: an int8 or int4 weight for products with x of floating point */
  int64_t k; /* rows of op(weight): the inner size of the product; below 2^31, as n and count */
  int64_t n; /* columns of op(weight): the width of the result; all together below 2^57 elements */
  /* number of matrices, one for each expert: the weight is [count, k, n], or [count, n, k] with
   * transpose; 0: one matrix, [k, n] or [n, k] */
  int64_t count;
} velo_pack_desc;

#define VELO_PACK_DESC_INIT \
  { sizeof(velo_pack_desc), 0, {VELO_DTYPE_FLOAT, 32, 1}, 0, 0, 0, 0 }

/* Creates a pack of zeros; its memory comes from the context's allocator here, never later. desc is
 * copied; destroy the pack with velo_pack_destroy.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (transpose, weight_only), SHAPE, DTYPE,
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY, FOREIGN (the host's allocator gave
 * unaligned memory). */
VELO_API velo_status velo_pack_create(velo_context context, const velo_pack_desc* desc,
                                      velo_pack* pack);

/* Frees a pack; NULL is ignored, and so is (with a log line) a call from inside one that uses it
 * (types.h). Calls that use it later, queued ones too, fail with VELO_ERR_HANDLE; none may be
 * running, so synchronize the streams that use it first.
 * Thread class: per-handle. */
VELO_API void velo_pack_destroy(velo_pack pack);

/* Copies a weight into the pack, on the stream. weight: of the shape that the desc states and
 * the pack's dtype, int4 also as uint8 with two in each along the last dimension; unit inner
 * stride, of int4 even strides elsewhere; its data must live until the work is done.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (a stream of another context), RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE, STATE. */
VELO_API velo_status velo_pack_update(velo_stream stream, velo_pack pack,
                                      const velo_tensor* weight);

VELO_END_C

#endif
