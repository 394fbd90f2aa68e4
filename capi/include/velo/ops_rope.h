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

/* How a rotary embedding reaches positions beyond the trained ones. */
enum {
  VELO_ROPE_SCALING_NONE = 0,    /* it does not */
  VELO_ROPE_SCALING_LINEAR = 1,  /* positions / factor */
  VELO_ROPE_SCALING_DYNAMIC = 2, /* a base that grows with the length (dynamic NTK) */
  VELO_ROPE_SCALING_YARN = 3,    /* low frequencies / factor, by turns in the trained length */
  VELO_ROPE_SCALING_LLAMA3 = 4   /* low frequencies / factor, by wavelength */
};

/* Which features are rotated together. */
enum {
  VELO_ROTARY_MODE_HALF = 0,       /* feature i with feature i + R/2 (GPT-NeoX, Llama in Hugging
                                    * Face) */
  VELO_ROTARY_MODE_INTERLEAVED = 1 /* feature 2i with feature 2i + 1 (GPT-J, the paper) */
};

/* ---- rotary_position_embedding --------------------------------------------------------------- */

typedef struct velo_rotary_position_embedding_args {
  uint32_t struct_size;         /* sizeof(velo_rotary_position_embedding_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* x;         /* in; float32 | bfloat16 | float16; strided: [.., .., .., D] */
  const velo_tensor* cos;       /* in; float32 | bfloat16 | float16: 4-D, broadcast against x
                                 * (with positions [P, R]): each size equals that of x or is 1;
                                 * the last is the rotated width R, even, at most D; float32 or
                                 * the dtype of x */
  const velo_tensor* sin;       /* in; float32 | bfloat16 | float16: shape and dtype of cos */
  const velo_tensor* y;         /* out; strided: shape and dtype of x; may be x itself */
  int64_t mode;                 /* VELO_ROTARY_MODE_*, default half: which features form a pair */
  const velo_tensor* positions; /* in, or NULL; int32 | int64: 3-D, broadcast against the rows of
                                 * x: cos and sin are then [P, R], and a row of x takes the row
                                 * of the tables that it names, in [0, P), else VELO_ERR_ARGUMENT
                                 * before anything is written */
} velo_rotary_position_embedding_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT \
  { sizeof(velo_rotary_position_embedding_args), 0, 0, 0, 0, 0, VELO_ROTARY_MODE_HALF, 0 }

/* `y = x * cos + rotate(x) * sin`.
 * Over the first R features of the last dimension; the rest pass through.
 * half: rotate(x) = [-x[R/2:], x[:R/2]]; interleaved: rotate(x)[2i] = -x[2i+1], rotate(x)[2i+1] =
 * x[2i].
 * x is 4-D (BSND, BNSD or SBND: the broadcast shape of cos or positions decides); x and y may be
 * strided with unit stride in the last dimension.
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
  uint32_t struct_size;         /* sizeof(velo_rotary_position_embedding_backward_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* dy;        /* in; float32 | bfloat16 | float16; strided: shape and dtype of
                                 * x */
  const velo_tensor* cos;       /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* sin;       /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* x;         /* in, or NULL; float32 | bfloat16 | float16; strided: the
                                 * forward input, needed for dcos and dsin only */
  const velo_tensor* dx;        /* out; strided: shape and dtype of dy; may be dy itself */
  const velo_tensor* dcos;      /* out, or NULL: float32, shape of cos; together with dsin */
  const velo_tensor* dsin;      /* out, or NULL: float32, shape of sin; together with dcos */
  int64_t mode;                 /* VELO_ROTARY_MODE_*, default half: as in the forward call */
  const velo_tensor* positions; /* in, or NULL; int32 | int64: as in the forward call; dcos and
                                 * dsin are then [P, R], 0 in rows that no position names */
} velo_rotary_position_embedding_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_rotary_position_embedding_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_ROTARY_MODE_HALF, 0 \
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

/* ---- rope_frequencies ------------------------------------------------------------------------ */

typedef struct velo_rope_frequencies_args {
  uint32_t struct_size;           /* sizeof(velo_rope_frequencies_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* positions;   /* in; int32 | int64: any shape; each in [0, 2^24) */
  const velo_tensor* cos;         /* out: float32, shape of positions with D appended */
  const velo_tensor* sin;         /* out: float32, shape of cos */
  const velo_tensor* frequencies; /* out, or NULL: float32, [D / 2]: f */
  int64_t dim;                    /* default 128, in [2, 65536]: D, even: features that turn */
  double theta;                   /* default 1e+04, in [1.0625, 1e+18]: the slowest pair turns by
                                   * theta^(2 / D - 1) */
  int64_t scaling;                /* VELO_ROPE_SCALING_*, default none: how positions beyond the
                                   * trained ones are reached */
  double factor;                  /* default 1.0, in [1.0, 1e+09]: context length over
                                   * original_length */
  int64_t original_length;        /* default 4096, in [1, 16777216]: M: positions that the model
                                   * was trained on */
  double beta_fast;               /* default 32.0, in [1e-09, 1e+09]: yarn */
  double beta_slow;               /* default 1.0, in [1e-09, 1e+09]: yarn */
  double mscale;                  /* default 1.0, in [0.0, 1e+09]: yarn */
  double mscale_all_dim;          /* default 0.0, in [0.0, 1e+09]: yarn; not 0: the caller
                                   * multiplies its softmax scale by c(mscale_all_dim)^2 */
  double attention_factor;        /* default 0.0, in [0.0, 1e+09]: yarn: m, unless it is 0 */
  int64_t truncate;               /* 0 or 1, default 1: yarn: 1 rounds the ends of the ramp to
                                   * whole features */
  double low_freq_factor;         /* default 1.0, in [1e-09, 1e+09]: llama3 */
  double high_freq_factor;        /* default 4.0, in [1e-09, 1e+09]: llama3: more than
                                   * low_freq_factor */
  int64_t mode;                   /* VELO_ROTARY_MODE_*, default half: which features form a pair */
} velo_rope_frequencies_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROPE_FREQUENCIES_ARGS_INIT \
  { \
    sizeof(velo_rope_frequencies_args), 0, 0, 0, 0, 0, 128, 1e+04, VELO_ROPE_SCALING_NONE, 1.0, \
    4096, 32.0, 1.0, 1.0, 0.0, 0.0, 1, 1.0, 4.0, VELO_ROTARY_MODE_HALF \
  }

/* `cos[p, i] = m * cos(positions[p] * f[i])`; `sin[p, i] = m * sin(positions[p] * f[i])`; `f[i] =
 * theta^(-2 * i / D)`.
 * For i < D/2; each number stands twice in its row, as mode pairs features. m is 1 but for yarn.
 * The scalings change f as modeling_rope_utils of transformers defines them:
 * linear: f / factor. dynamic: theta (factor L / M - (factor - 1))^(D / (D - 2)) in place of theta,
 * where L, the largest position + 1, exceeds M, original_length.
 * yarn: f / factor where a feature turns less than beta_slow times in M positions, f where more
 * than beta_fast times, a ramp between; m = c(mscale) / c(mscale_all_dim), c(s) = 0.1 s ln(factor)
 * + 1.
 * llama3: f / factor for wavelengths above M / low_freq_factor, f below M / high_freq_factor, mixed
 * between.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: angles and functions in double, rounded once.
 * Cost: one write of cos and sin.
 * Source: transformers modeling_rope_utils; Peng et al. 2023, arXiv:2309.00071 (YaRN).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_rope_frequencies(velo_stream stream,
                                           const velo_rope_frequencies_args* args);

VELO_END_C

#endif
