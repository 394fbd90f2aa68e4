/* Rotary position embedding.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/rope.json: change that and build the target `generate`. */
#ifndef VELO_OPS_ROPE_H
#define VELO_OPS_ROPE_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Which features are rotated together. */
enum {
  VELO_ROTARY_MODE_HALF = 0,       /* feature i with feature i + R/2 (GPT-NeoX, Llama in Hugging
                                    * Face) */
  VELO_ROTARY_MODE_INTERLEAVED = 1 /* feature 2i with feature 2i + 1 (GPT-J, the paper) */
};

/* ---- rotary_position_embedding --------------------------------------------------------------- */

typedef struct velo_rotary_position_embedding_args {
  uint32_t struct_size;   /* sizeof(velo_rotary_position_embedding_args) */
  uint32_t reserved;      /* 0 */
  const velo_tensor* x;   /* in; float32 | bfloat16 | float16; strided: [.., .., .., D] */
  const velo_tensor* cos; /* in; float32 | bfloat16 | float16: 4-D, broadcast against x: each
                           * size equals that of x or is 1; the last is the rotated width R,
                           * even, at most D; float32 or the dtype of x */
  const velo_tensor* sin; /* in; float32 | bfloat16 | float16: shape and dtype of cos */
  const velo_tensor* y;   /* out; strided: shape and dtype of x; may be x itself */
  int64_t mode;           /* VELO_ROTARY_MODE_*, default half: which features form a pair */
} velo_rotary_position_embedding_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT \
  { sizeof(velo_rotary_position_embedding_args), 0, 0, 0, 0, 0, VELO_ROTARY_MODE_HALF }

/* `y = x * cos + rotate(x) * sin`.
 * Over the first R features of the last dimension; the rest pass through.
 * half: rotate(x) = [-x[R/2:], x[:R/2]]; interleaved: rotate(x)[2i] = -x[2i+1], rotate(x)[2i+1] =
 * x[2i].
 * x is 4-D (BSND, BNSD or SBND: the broadcast shape of cos decides); x and y may be strided with
 * unit stride in the last dimension.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 2 ulp of the larger term;
 * bfloat16 and float16 half an ulp more.
 * Cost: one read and one write of x.
 * Source: Su et al. 2021, arXiv:2104.09864.
 * Also called npu_rotary_position_embedding.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rotary_position_embedding(
    velo_stream stream, const velo_rotary_position_embedding_args* args);

/* ---- rotary_position_embedding_backward ------------------------------------------------------ */

typedef struct velo_rotary_position_embedding_backward_args {
  uint32_t struct_size;    /* sizeof(velo_rotary_position_embedding_backward_args) */
  uint32_t reserved;       /* 0 */
  const velo_tensor* dy;   /* in; float32 | bfloat16 | float16; strided: shape and dtype of x */
  const velo_tensor* cos;  /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* sin;  /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* x;    /* in, or NULL; float32 | bfloat16 | float16; strided: the forward
                            * input, needed for dcos and dsin only */
  const velo_tensor* dx;   /* out; strided: shape and dtype of dy; may be dy itself */
  const velo_tensor* dcos; /* out, or NULL: float32, shape of cos; together with dsin */
  const velo_tensor* dsin; /* out, or NULL: float32, shape of sin; together with dcos */
  int64_t mode;            /* VELO_ROTARY_MODE_*, default half: as in the forward call */
} velo_rotary_position_embedding_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_rotary_position_embedding_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_ROTARY_MODE_HALF \
  }

/* `dx = dy * cos + rotate^T(dy * sin)`; `dcos = sum(dy * x)`; `dsin = sum(dy * rotate(x))`.
 * The sums are over the broadcast dimensions.
 *
 * Gradient of velo_rotary_position_embedding.
 * In place: dx may be dy.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as the forward call; dcos and
 * dsin: float32 sums in a fixed tree.
 * Cost: one read and one write of dy.
 * Source: gradient of rotary_position_embedding.
 * Also called npu_rotary_position_embedding_backward.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rotary_position_embedding_backward(
    velo_stream stream, const velo_rotary_position_embedding_backward_args* args);

VELO_END_C

#endif
