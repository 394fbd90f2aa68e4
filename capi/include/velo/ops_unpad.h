/* Sequences of several lengths one after the other, without padding.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/unpad.json: change that and build the target `generate`. */
#ifndef VELO_OPS_UNPAD_H
#define VELO_OPS_UNPAD_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The products of attention, and of its gradients, over sequences without padding; s is a
 * sequence's length, D the columns of a head, hidden = head_num * D. */
enum {
  VELO_STRIDED_MATMUL_PRESET_NONE = 0,       /* the lists state the products */
  VELO_STRIDED_MATMUL_PRESET_BMM1 = 1,       /* scores = q k^T, not scaled: a, b rows of hidden,
                                              * c [head_num, s, s] */
  VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD1 = 2, /* dq = dscores k: a [head_num, s, s], b, c rows of
                                              * hidden */
  VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD2 = 3, /* dk^T = q^T dscores: a rows of hidden, b
                                              * [head_num, s, s], c [head_num, D, s] */
  VELO_STRIDED_MATMUL_PRESET_BMM2 = 4,       /* out = p v, laid out as bmm1_grad1 */
  VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD1 = 5, /* dp = dout v^T, laid out as bmm1 */
  VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD2 = 6  /* dv = p^T dout: a [head_num, s, s], b, c rows of
                                              * hidden */
};

/* ---- pad_seqlen ------------------------------------------------------------------------------ */

typedef struct velo_pad_seqlen_args {
  uint32_t struct_size;     /* sizeof(velo_pad_seqlen_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [T, H], T the sum of seq_len */
  const velo_ints* seq_len; /* in: the length of each sequence, each at most max_seq_len */
  const velo_tensor* y;     /* out: [sequences, max_seq_len, H], dtype of x */
  int64_t max_seq_len;      /* default 1, in [0, 2147483647]: the length of the rows */
} velo_pad_seqlen_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PAD_SEQLEN_ARGS_INIT \
  { sizeof(velo_pad_seqlen_args), 0, 0, 0, 0, 1 }

/* `y[i, j] = x[start[i] + j]`.
 * Sequences that lie one after the other become rows of a batch, filled with zeros from their
 * lengths on; start[i] is the sum of the lengths before.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of x and one write of y.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_pad_seqlen(velo_stream stream, const velo_pad_seqlen_args* args);

/* ---- pad_seqlen_backward --------------------------------------------------------------------- */

typedef struct velo_pad_seqlen_backward_args {
  uint32_t struct_size;     /* sizeof(velo_pad_seqlen_backward_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* dy;    /* in; float32 | bfloat16 | float16: [sequences, max_seq_len, H] */
  const velo_ints* seq_len; /* in: the length of each sequence */
  const velo_tensor* dx;    /* out: [T, H], T the sum of seq_len; dtype of dy */
} velo_pad_seqlen_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PAD_SEQLEN_BACKWARD_ARGS_INIT \
  { sizeof(velo_pad_seqlen_backward_args), 0, 0, 0, 0 }

/* `dx[start[i] + j] = dy[i, j]`.
 * For j below the length of sequence i; what was padding has no gradient.
 *
 * Gradient of velo_pad_seqlen.
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read and one write of dx.
 * Source: gradient of pad_seqlen.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_pad_seqlen_backward(velo_stream stream,
                                              const velo_pad_seqlen_backward_args* args);

/* ---- unpad_seqlen ---------------------------------------------------------------------------- */

typedef struct velo_unpad_seqlen_args {
  uint32_t struct_size;     /* sizeof(velo_unpad_seqlen_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [sequences, S, H] */
  const velo_ints* seq_len; /* in: the length of each sequence, each at most S */
  const velo_tensor* y;     /* out: [T, H], T the sum of seq_len; dtype of x */
} velo_unpad_seqlen_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_SEQLEN_ARGS_INIT \
  { sizeof(velo_unpad_seqlen_args), 0, 0, 0, 0 }

/* `y[start[i] + j] = x[i, j]`.
 * For j below the length of sequence i: the rows of a batch, without their padding, one after the
 * other.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read and one write of y.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_seqlen(velo_stream stream, const velo_unpad_seqlen_args* args);

/* ---- unpad_seqlen_backward ------------------------------------------------------------------- */

typedef struct velo_unpad_seqlen_backward_args {
  uint32_t struct_size;     /* sizeof(velo_unpad_seqlen_backward_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* dy;    /* in; float32 | bfloat16 | float16: [T, H], T the sum of seq_len */
  const velo_ints* seq_len; /* in: the length of each sequence, each at most max_seq_len */
  const velo_tensor* dx;    /* out: [sequences, max_seq_len, H], dtype of dy */
  int64_t max_seq_len;      /* default 1, in [0, 2147483647]: S of the forward input */
} velo_unpad_seqlen_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_SEQLEN_BACKWARD_ARGS_INIT \
  { sizeof(velo_unpad_seqlen_backward_args), 0, 0, 0, 0, 1 }

/* `dx[i, j] = dy[start[i] + j]`.
 * Zeros from the length of sequence i on.
 *
 * Gradient of velo_unpad_seqlen.
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of dy and one write of dx.
 * Source: gradient of unpad_seqlen.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_seqlen_backward(velo_stream stream,
                                                const velo_unpad_seqlen_backward_args* args);

/* ---- unpad_gen_attention_mask ---------------------------------------------------------------- */

typedef struct velo_unpad_gen_attention_mask_args {
  uint32_t struct_size;     /* sizeof(velo_unpad_gen_attention_mask_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* mask;  /* in; float32 | bfloat16 | float16: [sequences, m, S, S], m mostly 1 */
  const velo_ints* seq_len; /* in: the length of each sequence, each at most S */
  const velo_tensor* y;     /* out: flat, head_num * m times the sum of the squared lengths;
                             * dtype of mask */
  int64_t head_num;         /* default 1, in [1, 2147483647]: copies of each */
} velo_unpad_gen_attention_mask_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_GEN_ATTENTION_MASK_ARGS_INIT \
  { sizeof(velo_unpad_gen_attention_mask_args), 0, 0, 0, 0, 1 }

/* `y[h] = mask[i]`.
 * For each sequence of length s and each of its masks head_num copies of the first s rows and
 * columns.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of mask and one write of y.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_gen_attention_mask(velo_stream stream,
                                                   const velo_unpad_gen_attention_mask_args* args);

/* ---- unpad_rope ------------------------------------------------------------------------------ */

typedef struct velo_unpad_rope_args {
  uint32_t struct_size;       /* sizeof(velo_unpad_rope_args) */
  uint32_t reserved;          /* 0 */
  const velo_tensor* q;       /* in; float32 | bfloat16 | float16: [T, Hq], T the sum of seq_len;
                               * Hq a multiple of D and of Hk */
  const velo_tensor* k;       /* in; float32 | bfloat16 | float16: [T, Hk], Hk a multiple of D;
                               * dtype of q */
  const velo_tensor* cos;     /* in; float32 | bfloat16 | float16: [positions, D], float32 or
                               * dtype of q; D even */
  const velo_tensor* sin;     /* in; float32 | bfloat16 | float16: shape and dtype of cos */
  const velo_tensor* seq_len; /* in; int32 | int64: [sequences], each at most positions, checked
                               * when the call runs */
  const velo_tensor* q_out;   /* out: shape and dtype of q; may be q itself */
  const velo_tensor* k_out;   /* out: shape and dtype of k; may be k itself */
} velo_unpad_rope_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_ROPE_ARGS_INIT \
  { sizeof(velo_unpad_rope_args), 0, 0, 0, 0, 0, 0, 0, 0 }

/* `q_out = q * cos + rotate(q) * sin`.
 * Likewise k; by heads, where rotate exchanges the halves of a head and negates the first, as
 * rotary_position_embedding does by halves. Sequences lie one after the other, and the positions of
 * each, rows of cos and sin, begin at 0.
 *
 * In place: q_out may be q; k_out may be k.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as rotary_position_embedding.
 * Cost: one read and one write of q and k.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_rope(velo_stream stream, const velo_unpad_rope_args* args);

/* ---- unpad_rope_backward --------------------------------------------------------------------- */

typedef struct velo_unpad_rope_backward_args {
  uint32_t struct_size;       /* sizeof(velo_unpad_rope_backward_args) */
  uint32_t reserved;          /* 0 */
  const velo_tensor* dq_out;  /* in; float32 | bfloat16 | float16: [T, Hq] */
  const velo_tensor* dk_out;  /* in; float32 | bfloat16 | float16: [T, Hk], dtype of dq_out */
  const velo_tensor* cos;     /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* sin;     /* in; float32 | bfloat16 | float16: the forward table */
  const velo_tensor* seq_len; /* in; int32 | int64: as in the forward call */
  const velo_tensor* dq;      /* out: shape and dtype of dq_out; may be dq_out itself */
  const velo_tensor* dk;      /* out: shape and dtype of dk_out; may be dk_out itself */
  int64_t upstream;           /* 0 or 1, default 0: the formula of AscendSpeed, not the gradient */
} velo_unpad_rope_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_ROPE_BACKWARD_ARGS_INIT \
  { sizeof(velo_unpad_rope_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dq = dq_out * cos + rotate^T(dq_out * sin)`.
 * Likewise dk. With upstream the formula that AscendSpeed has in its place, `dq = dq_out * (cos +
 * [sin2, -sin1])`, sin1 and sin2 the halves of sin: it is the gradient only where both halves of
 * dq_out are equal.
 *
 * Gradient of velo_unpad_rope.
 * In place: dq may be dq_out; dk may be dk_out.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as rotary_position_embedding.
 * Cost: one read and one write of dq and dk.
 * Source: gradient of unpad_rope.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_rope_backward(velo_stream stream,
                                              const velo_unpad_rope_backward_args* args);

/* ---- unpad_softmax --------------------------------------------------------------------------- */

typedef struct velo_unpad_softmax_args {
  uint32_t struct_size;     /* sizeof(velo_unpad_softmax_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: flat, head_num times the sum of
                             * the squared lengths; or [n, flat], n of these */
  const velo_ints* seq_len; /* in: the length of each sequence */
  const velo_tensor* y;     /* out: shape and dtype of x; may be x itself */
  int64_t head_num;         /* default 1, in [1, 2147483647]: heads */
} velo_unpad_softmax_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_SOFTMAX_ARGS_INIT \
  { sizeof(velo_unpad_softmax_args), 0, 0, 0, 0, 1 }

/* `y[r, i] = exp(x[r, i]) / sum[j](exp(x[r, j]))`.
 * For each sequence of length s, head_num * s rows of s elements, one after the other.
 *
 * In place: y may be x.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as softmax.
 * Cost: one read of x and one write of y.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_softmax(velo_stream stream, const velo_unpad_softmax_args* args);

/* ---- unpad_softmax_backward ------------------------------------------------------------------ */

typedef struct velo_unpad_softmax_backward_args {
  uint32_t struct_size;     /* sizeof(velo_unpad_softmax_backward_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* dy;    /* in; float32 | bfloat16 | float16: as y */
  const velo_tensor* y;     /* in; float32 | bfloat16 | float16: the forward output: shape and
                             * dtype of dy */
  const velo_ints* seq_len; /* in: the length of each sequence */
  const velo_tensor* dx;    /* out: shape and dtype of dy; may be dy or y itself */
  int64_t head_num;         /* default 1, in [1, 2147483647]: heads */
} velo_unpad_softmax_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_SOFTMAX_BACKWARD_ARGS_INIT \
  { sizeof(velo_unpad_softmax_backward_args), 0, 0, 0, 0, 0, 1 }

/* `dx[r, i] = y[r, i] * (dy[r, i] - sum[j](dy[r, j] * y[r, j]))`.
 *
 * Gradient of velo_unpad_softmax.
 * In place: dx may be dy or y.
 * Accuracy: for inputs that are 0 or of magnitude 1e-15 to 1e+15: as softmax_backward.
 * Cost: two reads and one write of dx.
 * Source: gradient of unpad_softmax.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_softmax_backward(velo_stream stream,
                                                 const velo_unpad_softmax_backward_args* args);

/* ---- unpad_strided_batch_matmul -------------------------------------------------------------- */

typedef struct velo_unpad_strided_batch_matmul_args {
  uint32_t struct_size;         /* sizeof(velo_unpad_strided_batch_matmul_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* a;         /* in; float32 | bfloat16 | float16: flat, [elements] of all its
                                 * matrices, not [tokens, hidden]; or [r, elements], r of these */
  const velo_tensor* b;         /* in; float32 | bfloat16 | float16: likewise, as many of them;
                                 * dtype of a */
  const velo_tensor* c;         /* out: likewise; dtype of a */
  const velo_ints* m;           /* in, or NULL: rows of op(a) and c of each sequence; needed
                                 * without preset */
  const velo_ints* n;           /* in, or NULL: columns of op(b) and c */
  const velo_ints* k;           /* in, or NULL: columns of op(a), rows of op(b) */
  const velo_ints* lda;         /* in, or NULL: elements between stored rows of a; NULL: their
                                 * length */
  const velo_ints* ldb;         /* in, or NULL: elements between stored rows of b; NULL: their
                                 * length */
  const velo_ints* ldc;         /* in, or NULL: elements between stored rows of c; NULL: their
                                 * length */
  const velo_ints* stride_a;    /* in, or NULL: elements between the matrices of two heads in a;
                                 * NULL: their size */
  const velo_ints* stride_b;    /* in, or NULL: elements between the matrices of two heads in b;
                                 * NULL: their size */
  const velo_ints* stride_c;    /* in, or NULL: elements between the matrices of two heads in c;
                                 * NULL: their size */
  const velo_ints* transpose_a; /* in, or NULL: 1 where a is stored [k, m]; NULL: nowhere */
  const velo_ints* transpose_b; /* in, or NULL: 1 where b is stored [n, k]; NULL: nowhere */
  const velo_ints* seq_len;     /* in, or NULL: with a preset the length s of each sequence, in
                                 * place of all lists */
  int64_t head_num;             /* default 1, in [1, 2147483647]: products of each sequence */
  int64_t head_dim;             /* default 1, in [1, 2147483647]: with a preset the columns of a
                                 * head */
  int64_t preset;               /* VELO_STRIDED_MATMUL_PRESET_*, default none: the lists of a
                                 * product of attention */
} velo_unpad_strided_batch_matmul_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_STRIDED_BATCH_MATMUL_ARGS_INIT \
  { \
    sizeof(velo_unpad_strided_batch_matmul_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    1, 1, VELO_STRIDED_MATMUL_PRESET_NONE \
  }

/* `c[i, h] = op(a[i, h]) @ op(b[i, h])`.
 * A product for each sequence i and head h, all in one parallel region; op(x) is x or its
 * transpose, products and sums as in matmul. The matrices of sequence i begin in a behind head_num
 * times the m k elements of each sequence before, likewise in b (k n) and c (m n); those of its
 * heads lie a stride apart. A list whose matrices leave the tensor, or overlap in c, is
 * VELO_ERR_ARGUMENT, which names the element, before anything is written.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each product.
 * Source: AscendSpeed (unpad family).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_strided_batch_matmul(
    velo_stream stream, const velo_unpad_strided_batch_matmul_args* args);

/* ---- unpad_strided_batch_matmul_backward ----------------------------------------------------- */

typedef struct velo_unpad_strided_batch_matmul_backward_args {
  uint32_t struct_size;         /* sizeof(velo_unpad_strided_batch_matmul_backward_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* dc;        /* in; float32 | bfloat16 | float16: as c */
  const velo_tensor* a;         /* in, or NULL; float32 | bfloat16 | float16: as in the forward
                                 * call, dtype of dc; db needs it */
  const velo_tensor* b;         /* in, or NULL; float32 | bfloat16 | float16: as in the forward
                                 * call, dtype of dc; da needs it */
  const velo_tensor* da;        /* out, or NULL: as a, dtype of dc */
  const velo_tensor* db;        /* out, or NULL: as b, dtype of dc */
  const velo_ints* m;           /* in, or NULL: rows of op(a) and c of each sequence; needed
                                 * without preset */
  const velo_ints* n;           /* in, or NULL: columns of op(b) and c */
  const velo_ints* k;           /* in, or NULL: columns of op(a), rows of op(b) */
  const velo_ints* lda;         /* in, or NULL: elements between stored rows of a; NULL: their
                                 * length */
  const velo_ints* ldb;         /* in, or NULL: elements between stored rows of b; NULL: their
                                 * length */
  const velo_ints* ldc;         /* in, or NULL: elements between stored rows of c; NULL: their
                                 * length */
  const velo_ints* stride_a;    /* in, or NULL: elements between the matrices of two heads in a;
                                 * NULL: their size */
  const velo_ints* stride_b;    /* in, or NULL: elements between the matrices of two heads in b;
                                 * NULL: their size */
  const velo_ints* stride_c;    /* in, or NULL: elements between the matrices of two heads in c;
                                 * NULL: their size */
  const velo_ints* transpose_a; /* in, or NULL: 1 where a is stored [k, m]; NULL: nowhere */
  const velo_ints* transpose_b; /* in, or NULL: 1 where b is stored [n, k]; NULL: nowhere */
  const velo_ints* seq_len;     /* in, or NULL: with a preset the length s of each sequence, in
                                 * place of all lists */
  int64_t head_num;             /* default 1, in [1, 2147483647]: products of each sequence */
  int64_t head_dim;             /* default 1, in [1, 2147483647]: with a preset the columns of a
                                 * head */
  int64_t preset;               /* VELO_STRIDED_MATMUL_PRESET_*, default none: the lists of a
                                 * product of attention */
} velo_unpad_strided_batch_matmul_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_UNPAD_STRIDED_BATCH_MATMUL_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_unpad_strided_batch_matmul_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0, 0, 0, 1, 1, VELO_STRIDED_MATMUL_PRESET_NONE \
  }

/* `da[i, h] = dc[i, h] @ op(b[i, h])^T`; `db[i, h] = op(a[i, h])^T @ dc[i, h]`.
 * Either left out; da and db are laid out as a and b are, transposed where those are, and their
 * matrices must not overlap.
 *
 * Gradient of velo_unpad_strided_batch_matmul.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each product of da and of db.
 * Source: gradient of unpad_strided_batch_matmul.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_unpad_strided_batch_matmul_backward(
    velo_stream stream, const velo_unpad_strided_batch_matmul_backward_args* args);

VELO_END_C

#endif
