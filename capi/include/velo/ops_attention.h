/* Attention with the softmax fused between its two products.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/attention.json: change that and build the target `generate`. */
#ifndef VELO_OPS_ATTENTION_H
#define VELO_OPS_ATTENTION_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Order of dimensions, the slowest first. */
enum {
  VELO_ATTENTION_LAYOUT_BSND = 0, /* [B, S, N, D] */
  VELO_ATTENTION_LAYOUT_BNSD = 1, /* [B, N, S, D] */
  VELO_ATTENTION_LAYOUT_SBH = 2,  /* [S, B, N * D] */
  VELO_ATTENTION_LAYOUT_BSH = 3,  /* [B, S, N * D] */
  VELO_ATTENTION_LAYOUT_TND = 4   /* [T, N, D], sequences of different lengths one after another */
};

/* Shape and order of a value a row. */
enum {
  VELO_ATTENTION_STATISTICS_COMPACT = 0,  /* [B, N, Sq], tnd [T, N] */
  VELO_ATTENTION_STATISTICS_EIGHTFOLD = 1 /* [B, N, Sq, 8], each value 8 times; tnd [T, N, 8], in
                                           * memory [N, Sq, 8] of one sequence after the other */
};

/* How pse enters the score A = query key of row i and key j. */
enum {
  VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE = 0,  /* scale * A + pse */
  VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE = 1, /* scale * (A + pse) */
  VELO_ATTENTION_PSE_TYPE_ALIBI = 2,              /* scale * A - pse * abs(i + q_start_idx - j -
                                                   * kv_start_idx) */
  VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT = 3          /* the root of that distance */
};

/* Which keys j a row i sees; no mode but all_mask needs a mask tensor. */
enum {
  VELO_ATTENTION_SPARSE_MODE_FULL = 0,                   /* i - pre_tokens <= j <= i +
                                                          * next_tokens; by default all */
  VELO_ATTENTION_SPARSE_MODE_ALL_MASK = 1,               /* all that atten_mask leaves */
  VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL = 2,         /* j <= i */
  VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL = 3,      /* j <= i + d with d = Skv - Sq */
  VELO_ATTENTION_SPARSE_MODE_BAND = 4,                   /* i + d - pre_tokens <= j <= i + d +
                                                          * next_tokens */
  VELO_ATTENTION_SPARSE_MODE_PREFIX = 5,                 /* j <= i + d or j < prefix; not for tnd */
  VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED = 6,      /* as prefix, in every layout */
  VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND = 7, /* tnd: band in the last sequence with
                                                          * queries, right_down_causal in the
                                                          * others */
  VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL = 8     /* tnd: band in the first sequence with
                                                          * queries, left_up_causal in the others */
};

/* ---- fusion_attention ------------------------------------------------------------------------ */

typedef struct velo_fusion_attention_args {
  uint32_t struct_size;              /* sizeof(velo_fusion_attention_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* query;          /* in; float32 | bfloat16 | float16; strided: [.., N, D] in
                                      * the order of layout */
  const velo_tensor* key;            /* in; float32 | bfloat16 | float16; strided: dtype of query */
  const velo_tensor* value;          /* in; float32 | bfloat16 | float16; strided: dtype of query */
  const velo_tensor* attention_out;  /* out; strided: shape and dtype of query with Dv for D */
  const velo_tensor* softmax_max;    /* out, or NULL: float32, the largest score a row sees; its
                                      * shape is that of statistics */
  const velo_tensor* softmax_sum;    /* out, or NULL: the same of the sum of exp(score -
                                      * softmax_max) over the keys a row sees, so that
                                      * softmax_max + log(softmax_sum) is the log-sum-exp of the
                                      * row */
  int64_t layout;                    /* VELO_ATTENTION_LAYOUT_*, default bsnd: order of
                                      * dimensions of query, key, value, attention_out and their
                                      * gradients */
  int64_t head_num;                  /* default 0, in [0, 1048576]: query heads; needed by sbh
                                      * and bsh, elsewhere 0 or what the shape says */
  double scale;                      /* default 1.0: factor of the products, usually 1 / sqrt(D);
                                      * finite in float32 */
  int64_t sparse_mode;               /* VELO_ATTENTION_SPARSE_MODE_*, default full: which keys a
                                      * row sees */
  int64_t pre_tokens;                /* default 2147483647, in [-2147483648, 2147483647]: full,
                                      * band and modes 7 and 8: keys left of the diagonal that a
                                      * row sees; 2147483647: all */
  int64_t next_tokens;               /* default 2147483647, in [-2147483648, 2147483647]: the
                                      * same to the right */
  const velo_ints* prefix;           /* in, or NULL: prefix modes, which need it: a length for
                                      * each sequence, max(Skv - Sq, 0) to Skv */
  int64_t statistics;                /* VELO_ATTENTION_STATISTICS_*, default compact: shape and
                                      * order of softmax_max and softmax_sum */
  const velo_tensor* atten_mask;     /* in, or NULL; uint8 | bool; strided: 1 hides; [Sq, Skv] or
                                      * [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv];
                                      * read in modes 0, 1 and 5, a constant of MindSpeed's shape
                                      * in the others */
  const velo_tensor* pse;            /* in, or NULL; float32 | bfloat16 | float16; strided: dtype
                                      * of query, [B or 1, N or 1, Sq or 1, Skv], or the last
                                      * 1024 rows where Sq = Skv > 1024 and for tnd; alibi:
                                      * float32 slopes [N] or [B, N] */
  int64_t pse_type;                  /* VELO_ATTENTION_PSE_TYPE_*, default added_before_scale:
                                      * how pse enters a score */
  int64_t q_start_idx;               /* default 0, in [-1000000, 1000000]: alibi: position of the
                                      * first query */
  int64_t kv_start_idx;              /* default 0, in [-1000000, 1000000]: alibi: position of the
                                      * first key */
  double keep_prob;                  /* default 1.0, in [0.0, 1.0]: share of probabilities that
                                      * dropout keeps, times 1 / keep_prob; 0 drops all */
  int64_t seed;                      /* default 0: of dropout, as the operator dropout has it */
  int64_t offset;                    /* default 0: of dropout */
  const velo_ints* dropout_origin;   /* in, or NULL: 4 values: where the call's [B, N, Sq, Skv]
                                      * begins in the whole, whose indices decide; tnd: [1, N, T,
                                      * longest Skv] */
  const velo_ints* dropout_extents;  /* in, or NULL: 4 values, the sizes of the whole; by default
                                      * the call's own */
  const velo_ints* actual_seq_qlen;  /* in, or NULL: tnd: ends of the query sequences,
                                      * cumulative, the last equal to T; ignored by other layouts */
  const velo_ints* actual_seq_kvlen; /* in, or NULL: tnd: ends of the key sequences, as many as
                                      * actual_seq_qlen */
} velo_fusion_attention_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FUSION_ATTENTION_ARGS_INIT \
  { \
    sizeof(velo_fusion_attention_args), 0, 0, 0, 0, 0, 0, 0, VELO_ATTENTION_LAYOUT_BSND, 0, 1.0, \
    VELO_ATTENTION_SPARSE_MODE_FULL, 2147483647, 2147483647, 0, VELO_ATTENTION_STATISTICS_COMPACT, \
    0, 0, VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE, 0, 0, 1.0, 0, 0, 0, 0, 0, 0 \
  }

/* `attention_out = softmax(scale * query @ key^T) @ value`.
 * pse is added to scores, dropout multiplies probabilities; softmax_sum does not know of dropout.
 * For every head, over the keys a row sees; query head h reads key head h / (N / Nkv).
 * Shapes: bsnd [B, S, N, D], bnsd [B, N, S, D], sbh [S, B, N * D], bsh [B, S, N * D], tnd [T, N,
 * D]; key and value have Nkv heads, N % Nkv = 0; D and Dv are 1..512 and may differ.
 * A row that sees no key, or only keys with a score of -Inf, gives 0, with the lowest finite float
 * as its maximum and sum 0. Tensors may be strided with unit stride in the last dimension; rows of
 * outputs do not overlap each other.
 * A score is scale times a product of rows, rounded to float32 once; softmax_max and softmax_sum
 * are of these very scores, in the gradient too, so that forward and gradient agree however large
 * they are, as long as they stay finite in float32.
 * NaN or Inf spoils the rows that see it; in value, and in key for the gradient, it may spoil rows
 * from which the mask hides it, too, as 0 * NaN does in a plain product.
 * No S x S buffer: scratch is O(S * D) a thread. The same bits for any number of threads; a row's
 * depend on its query and the keys it sees alone.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 4.0: float32 2e-6 of the largest |value|
 * a row sees, float16 half an ulp more; bfloat16 2^-8 of it; softmax_sum 2e-6 (float32, float16)
 * and 2e-4 (bfloat16) relative; for inputs of any finite magnitude 1e-6 S of them more, S the sum
 * of |query||key| times |scale| of the largest score, if it is finite.
 * Cost: one read of query and attention_out, one read of key and value a key head; compute-bound.
 * Source: Dao et al. 2022, arXiv:2205.14135; Milakov and Gimelshein 2018, arXiv:1805.02867.
 * Also called npu_fusion_attention.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_fusion_attention(velo_stream stream,
                                           const velo_fusion_attention_args* args);

/* ---- fusion_attention_backward --------------------------------------------------------------- */

typedef struct velo_fusion_attention_backward_args {
  uint32_t struct_size;              /* sizeof(velo_fusion_attention_backward_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* query;          /* in; float32 | bfloat16 | float16; strided: the forward
                                      * input */
  const velo_tensor* key;            /* in; float32 | bfloat16 | float16; strided: the forward
                                      * input */
  const velo_tensor* value;          /* in; float32 | bfloat16 | float16; strided: the forward
                                      * input */
  const velo_tensor* dy;             /* in; float32 | bfloat16 | float16; strided: gradient of
                                      * attention_out: its shape and dtype */
  const velo_tensor* softmax_max;    /* in; float32: from the forward pass */
  const velo_tensor* softmax_sum;    /* in; float32: from the forward pass */
  const velo_tensor* attention_out;  /* in; float32 | bfloat16 | float16; strided: from the
                                      * forward pass */
  const velo_tensor* dquery;         /* out; strided: shape and dtype of query */
  const velo_tensor* dkey;           /* out; float32 | bfloat16 | float16; strided: shape of key;
                                      * its dtype or float32 */
  const velo_tensor* dvalue;         /* out; float32 | bfloat16 | float16; strided: shape of
                                      * value; dtype of dkey */
  const velo_tensor* dpse;           /* out, or NULL; strided: shape and dtype of pse, whose
                                      * pse_type is 0 or 1 and which has all its rows; costs two
                                      * more products a score */
  int64_t accumulate;                /* 0 or 1, default 0: 1 adds to dkey and dvalue instead of
                                      * writing them */
  int64_t layout;                    /* VELO_ATTENTION_LAYOUT_*, default bsnd: order of
                                      * dimensions of query, key, value, attention_out and their
                                      * gradients */
  int64_t head_num;                  /* default 0, in [0, 1048576]: query heads; needed by sbh
                                      * and bsh, elsewhere 0 or what the shape says */
  double scale;                      /* default 1.0: factor of the products, usually 1 / sqrt(D);
                                      * finite in float32 */
  int64_t sparse_mode;               /* VELO_ATTENTION_SPARSE_MODE_*, default full: which keys a
                                      * row sees */
  int64_t pre_tokens;                /* default 2147483647, in [-2147483648, 2147483647]: full,
                                      * band and modes 7 and 8: keys left of the diagonal that a
                                      * row sees; 2147483647: all */
  int64_t next_tokens;               /* default 2147483647, in [-2147483648, 2147483647]: the
                                      * same to the right */
  const velo_ints* prefix;           /* in, or NULL: prefix modes, which need it: a length for
                                      * each sequence, max(Skv - Sq, 0) to Skv */
  int64_t statistics;                /* VELO_ATTENTION_STATISTICS_*, default compact: shape and
                                      * order of softmax_max and softmax_sum */
  const velo_tensor* atten_mask;     /* in, or NULL; uint8 | bool; strided: 1 hides; [Sq, Skv] or
                                      * [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv];
                                      * read in modes 0, 1 and 5, a constant of MindSpeed's shape
                                      * in the others */
  const velo_tensor* pse;            /* in, or NULL; float32 | bfloat16 | float16; strided: dtype
                                      * of query, [B or 1, N or 1, Sq or 1, Skv], or the last
                                      * 1024 rows where Sq = Skv > 1024 and for tnd; alibi:
                                      * float32 slopes [N] or [B, N] */
  int64_t pse_type;                  /* VELO_ATTENTION_PSE_TYPE_*, default added_before_scale:
                                      * how pse enters a score */
  int64_t q_start_idx;               /* default 0, in [-1000000, 1000000]: alibi: position of the
                                      * first query */
  int64_t kv_start_idx;              /* default 0, in [-1000000, 1000000]: alibi: position of the
                                      * first key */
  double keep_prob;                  /* default 1.0, in [0.0, 1.0]: share of probabilities that
                                      * dropout keeps, times 1 / keep_prob; 0 drops all */
  int64_t seed;                      /* default 0: of dropout, as the operator dropout has it */
  int64_t offset;                    /* default 0: of dropout */
  const velo_ints* dropout_origin;   /* in, or NULL: 4 values: where the call's [B, N, Sq, Skv]
                                      * begins in the whole, whose indices decide; tnd: [1, N, T,
                                      * longest Skv] */
  const velo_ints* dropout_extents;  /* in, or NULL: 4 values, the sizes of the whole; by default
                                      * the call's own */
  const velo_ints* actual_seq_qlen;  /* in, or NULL: tnd: ends of the query sequences,
                                      * cumulative, the last equal to T; ignored by other layouts */
  const velo_ints* actual_seq_kvlen; /* in, or NULL: tnd: ends of the key sequences, as many as
                                      * actual_seq_qlen */
} velo_fusion_attention_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_fusion_attention_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_ATTENTION_LAYOUT_BSND, 0, 1.0, VELO_ATTENTION_SPARSE_MODE_FULL, 2147483647, 2147483647, \
    0, VELO_ATTENTION_STATISTICS_COMPACT, 0, 0, VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE, 0, 0, \
    1.0, 0, 0, 0, 0, 0, 0 \
  }

/* `delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`;
 * `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`.
 * P: the probabilities of the forward pass.
 * dkey and dvalue add up over the query heads of a key head. softmax_max, softmax_sum and
 * attention_out may be those of a longer row of which key and value hold a part.
 * No S x S buffer: scratch is O(S * D) a thread. The same bits for any number of threads.
 *
 * Gradient of velo_fusion_attention.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-09 to 4.0: norm-wise 5e-6 in float32, half an
 * ulp more in float16, 2^-7 in bfloat16; for inputs of any finite magnitude 1e-6 S more, S as in
 * fusion_attention.
 * Cost: a few reads of each input and one write of each gradient; compute-bound.
 * Source: gradient of fusion_attention.
 * Also called npu_fusion_attention_grad.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_fusion_attention_backward(
    velo_stream stream, const velo_fusion_attention_backward_args* args);

/* ---- ring_attention_update ------------------------------------------------------------------- */

typedef struct velo_ring_attention_update_args {
  uint32_t struct_size;             /* sizeof(velo_ring_attention_update_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* prev_out;      /* in; float32 | bfloat16 | float16: [.., N, D] in the order
                                     * of layout */
  const velo_tensor* prev_max;      /* in: float32 [B, N, S] or [B, N, S, 8], tnd [T, N] or [T,
                                     * N, 8], as fusion_attention's statistics */
  const velo_tensor* prev_sum;      /* in; float32: shape of prev_max; from 0 */
  const velo_tensor* cur_out;       /* in; float32 | bfloat16 | float16: shape and dtype of
                                     * prev_out */
  const velo_tensor* cur_max;       /* in; float32: shape of prev_max */
  const velo_tensor* cur_sum;       /* in; float32: shape of prev_max; from 0 */
  const velo_tensor* out;           /* out: shape and dtype of prev_out; may be it */
  const velo_tensor* max;           /* out: shape of prev_max; may be it */
  const velo_tensor* sum;           /* out: shape of prev_max; may be prev_sum */
  int64_t layout;                   /* VELO_ATTENTION_LAYOUT_*, default sbh: order of dimensions
                                     * of prev_out */
  const velo_ints* actual_seq_qlen; /* in, or NULL: tnd with statistics [T, N, 8]: ends of the
                                     * sequences, cumulative, with or without a leading zero */
} velo_ring_attention_update_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_RING_ATTENTION_UPDATE_ARGS_INIT \
  { \
    sizeof(velo_ring_attention_update_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_ATTENTION_LAYOUT_SBH, 0 \
  }

/* `max = max(prev_max, cur_max)`; `p = prev_sum * exp(prev_max - max)`; `c = cur_sum * exp(cur_max
 * - max)`; `sum = p + c`; `out = prev_out * p / sum + cur_out * c / sum`.
 * Merges the attention of the same queries over two parts of the keys, a step of ring attention.
 * Where both sums are 0 the result is 0; equal infinite maxima count as equal.
 *
 * In place: out may be prev_out; max may be prev_max; sum may be prev_sum.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 8e+01: float32 3e-6 of the largest
 * output, 16 bits half an ulp more; sums 3e-6 relative.
 * Cost: one read of prev_out and cur_out, one write of out.
 * Source: Liu et al. 2023, arXiv:2310.01889; MindSpeed's npu_ring_attention_update.
 * Also called npu_ring_attention_update.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_ring_attention_update(velo_stream stream,
                                                const velo_ring_attention_update_args* args);

/* ---- flash_attention ------------------------------------------------------------------------- */

typedef struct velo_flash_attention_args {
  uint32_t struct_size;                   /* sizeof(velo_flash_attention_args) */
  uint32_t reserved;                      /* 0 */
  const velo_tensor* query;               /* in; float32 | bfloat16 | float16; strided: [B, N, S,
                                           * D] in the order of io_layout */
  const velo_tensor* key;                 /* in; float32 | bfloat16 | float16; strided: shape and
                                           * dtype of query */
  const velo_tensor* value;               /* in; float32 | bfloat16 | float16; strided: shape and
                                           * dtype of query */
  const velo_tensor* atten_mask;          /* in, or NULL; uint8 | bool; strided: [S, S], 1 hides */
  const velo_tensor* alibi_mask;          /* in, or NULL; float32 | bfloat16 | float16; strided:
                                           * dtype of query, [B or 1, N or 1, S or 1, S]: added
                                           * to scores */
  const velo_tensor* attention_out;       /* out; strided: shape and dtype of query */
  const velo_tensor* softmax_log_max_sum; /* out, or NULL: float32 [B, N, S]: log of the sum of
                                           * exp(score) */
  int64_t head_num;                       /* default 0, in [0, 1048576]: heads; needed by bsh and
                                           * sbh, elsewhere 0 or what the shape says */
  int64_t io_layout;                      /* VELO_ATTENTION_LAYOUT_*, default bnsd: bnsd, bsh or
                                           * sbh */
  double scale_value;                     /* default 1.0: factor of the products */
  double q_scale;                         /* default 1.0: 1 */
  double keep_prob;                       /* default 1.0, in [0.0, 1.0]: as fusion_attention has
                                           * it */
  int64_t pre_tokens;                     /* default 2147483647: a hint: keys that the first
                                           * column shows; atten_mask alone decides */
  int64_t next_tokens;                    /* default 1: a hint: keys that the first row shows;
                                           * atten_mask alone decides */
  int64_t precise_mode;                   /* default 0: 0 */
  int64_t seed;                           /* default 0: of dropout */
  int64_t offset;                         /* default 0: of dropout */
} velo_flash_attention_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FLASH_ATTENTION_ARGS_INIT \
  { \
    sizeof(velo_flash_attention_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, VELO_ATTENTION_LAYOUT_BNSD, 1.0, \
    1.0, 1.0, 2147483647, 1, 0, 0, 0 \
  }

/* `attention_out = softmax(scale_value * query @ key^T + alibi_mask) @ value`.
 * AscendSpeed's interface to attention: equal shapes, one statistic a row; fusion_attention does
 * the same and more. Dropout multiplies probabilities.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 4.0: float32 2e-6 of the largest |value|
 * a row sees, float16 half an ulp more; bfloat16 2^-8 of it; softmax_sum 2e-6 (float32, float16)
 * and 2e-4 (bfloat16) relative; for inputs of any finite magnitude 1e-6 S of them more, S the sum
 * of |query||key| times |scale| of the largest score, if it is finite.
 * Cost: one read of query, key and value, one write of attention_out; compute-bound.
 * Source: Dao et al. 2022, arXiv:2205.14135; AscendSpeed's flash_attention.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_flash_attention(velo_stream stream,
                                          const velo_flash_attention_args* args);

/* ---- flash_attention_backward ---------------------------------------------------------------- */

typedef struct velo_flash_attention_backward_args {
  uint32_t struct_size;                   /* sizeof(velo_flash_attention_backward_args) */
  uint32_t reserved;                      /* 0 */
  const velo_tensor* query;               /* in; float32 | bfloat16 | float16; strided: [B, N, S,
                                           * D] in the order of io_layout */
  const velo_tensor* key;                 /* in; float32 | bfloat16 | float16; strided: shape and
                                           * dtype of query */
  const velo_tensor* value;               /* in; float32 | bfloat16 | float16; strided: shape and
                                           * dtype of query */
  const velo_tensor* dy;                  /* in; float32 | bfloat16 | float16; strided: gradient
                                           * of attention_out */
  const velo_tensor* softmax_log_max_sum; /* in; float32: from the forward pass */
  const velo_tensor* attention_out;       /* in; float32 | bfloat16 | float16; strided: from the
                                           * forward pass */
  const velo_tensor* atten_mask;          /* in, or NULL; uint8 | bool; strided: [S, S], 1 hides */
  const velo_tensor* alibi_mask;          /* in, or NULL; float32 | bfloat16 | float16; strided:
                                           * dtype of query, [B or 1, N or 1, S or 1, S]: added
                                           * to scores */
  const velo_tensor* dquery;              /* out; strided: shape and dtype of query */
  const velo_tensor* dkey;                /* out; strided: shape and dtype of query */
  const velo_tensor* dvalue;              /* out; strided: shape and dtype of query */
  int64_t head_num;                       /* default 0, in [0, 1048576]: heads; needed by bsh and
                                           * sbh, elsewhere 0 or what the shape says */
  int64_t io_layout;                      /* VELO_ATTENTION_LAYOUT_*, default bnsd: bnsd, bsh or
                                           * sbh */
  double scale_value;                     /* default 1.0: factor of the products */
  double q_scale;                         /* default 1.0: 1 */
  double keep_prob;                       /* default 1.0, in [0.0, 1.0]: as fusion_attention has
                                           * it */
  int64_t pre_tokens;                     /* default 2147483647: a hint: keys that the first
                                           * column shows; atten_mask alone decides */
  int64_t next_tokens;                    /* default 1: a hint: keys that the first row shows;
                                           * atten_mask alone decides */
  int64_t precise_mode;                   /* default 0: 0 */
  int64_t seed;                           /* default 0: of dropout */
  int64_t offset;                         /* default 0: of dropout */
} velo_flash_attention_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_FLASH_ATTENTION_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_flash_attention_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    VELO_ATTENTION_LAYOUT_BNSD, 1.0, 1.0, 1.0, 2147483647, 1, 0, 0, 0 \
  }

/* `P = exp(score - softmax_log_max_sum)`; `dS = P * (dy @ value^T - sum[D](dy * attention_out))`;
 * `dquery = scale_value * dS @ key`; `dkey = scale_value * dS^T @ query`; `dvalue = P^T @ dy`.
 * alibi_mask has no gradient.
 *
 * Gradient of velo_flash_attention.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-09 to 4.0: norm-wise 5e-6 in float32, half an
 * ulp more in float16, 2^-7 in bfloat16; for inputs of any finite magnitude 1e-6 S more, S as in
 * fusion_attention.
 * Cost: a few reads of each input and one write of each gradient; compute-bound.
 * Source: gradient of flash_attention.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_flash_attention_backward(velo_stream stream,
                                                   const velo_flash_attention_backward_args* args);

/* ---- cached_attention ------------------------------------------------------------------------ */

typedef struct velo_cached_attention_args {
  uint32_t struct_size;             /* sizeof(velo_cached_attention_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* query;         /* in; float32 | bfloat16 | float16; strided: [B, Sq, N, D];
                                     * D up to 576 */
  const velo_tensor* key;           /* in; float32 | bfloat16 | float16 | int8; strided: Nkv
                                     * heads, N % Nkv = 0; dtype of query or int8 */
  const velo_tensor* value;         /* in; float32 | bfloat16 | float16 | int8; strided: shape of
                                     * key with Dv for D, up to 512; dtype of key */
  const velo_tensor* key_scale;     /* in, or NULL; float32; strided: int8: factors, shape of key
                                     * without D */
  const velo_tensor* value_scale;   /* in, or NULL; float32; strided: int8: factors, shape of
                                     * value without Dv */
  const velo_tensor* block_table;   /* in, or NULL; int32: [B, P]: pages of each sequence in
                                     * order; read as far as its length goes, and checked when
                                     * the call runs */
  const velo_tensor* cache_seqlens; /* in, or NULL; int32: [B]: keys of each sequence, those of
                                     * the new rows among them, checked when the call runs;
                                     * needed beside block_table, else by default Skv */
  const velo_tensor* attention_out; /* out; strided: [B, Sq, N, Dv], dtype of query */
  double scale;                     /* default 1.0: factor of the products, usually 1 / sqrt(D);
                                     * finite in float32 */
  int64_t pre_tokens;               /* default 2147483647, in [0, 2147483647]: keys before its
                                     * own that a row sees; 2147483647: all */
} velo_cached_attention_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CACHED_ATTENTION_ARGS_INIT \
  { sizeof(velo_cached_attention_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0, 2147483647 }

/* `attention_out = softmax(scale * query @ key^T) @ value`.
 * Attention of the last Sq tokens of each sequence over a cache that holds all of them, made for Sq
 * of 1 to 16: row i of Sq sees the keys up to length - Sq + i.
 * key and value are [B, Skv, Nkv, D], or with block_table [pages, page size, Nkv, D], any order of
 * dimensions in memory; value may lie in key's first columns. An int8 cache counts times a float of
 * its head and token, as quantize over token gives it. The caller writes the new tokens into the
 * cache before the call.
 * A row's bits depend on its query and the keys it sees alone. A row without keys gives 0.
 * A row of the result has the same bits among any number of rows: of a whole sequence, of its
 * chunks or one by one.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 4.0: float32 2e-6 of the largest |value|
 * a row sees, float16 half an ulp more; bfloat16 2^-7 of it; for inputs of any finite magnitude
 * 1e-6 S more, S as in fusion_attention.
 * Cost: one read of the cache up to each length; one write of attention_out.
 * Source: Dao et al. 2023, flash-decoding; Kwon et al. 2023, arXiv:2309.06180.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_cached_attention(velo_stream stream,
                                           const velo_cached_attention_args* args);

/* ---- generate_mask --------------------------------------------------------------------------- */

typedef struct velo_generate_mask_args {
  uint32_t struct_size;         /* sizeof(velo_generate_mask_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* positions; /* in; int32 | int64: any shape; a row of the mask each, from 0 */
  const velo_tensor* mask;      /* out: uint8, shape of positions with keys appended */
  int64_t sparse_mode;          /* VELO_ATTENTION_SPARSE_MODE_*, default full: full: the window;
                                 * or a mode with a constant, all but all_mask and prefix */
  int64_t keys;                 /* default 2048, in [0, 2147483647]: columns; of a constant the
                                 * first, up to 2048 */
  int64_t pre_tokens;           /* default 2147483647, in [-2147483648, 2147483647]: columns left
                                 * of its position that a row shows; 2147483647: all */
  int64_t next_tokens;          /* default 0, in [-2147483648, 2147483647]: the same to the right */
} velo_generate_mask_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_GENERATE_MASK_ARGS_INIT \
  { sizeof(velo_generate_mask_args), 0, 0, 0, VELO_ATTENTION_SPARSE_MODE_FULL, 2048, 2147483647, 0 }

/* `mask[i, j] = step(positions[i] - pre_tokens - j) + step(j - positions[i] - next_tokens)`.
 * step is 1 above 0: 1 hides a key from the row of queries at a position, a mask for softmax. A
 * mode other than full gives rows of the constant that attention's atten_mask has there, whatever
 * the tokens: positions 0 to 2047 of the strict upper triangle, and in prefix_compressed 1024 more,
 * whose right half is 1.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one write of mask.
 * Source: MindSpeed's generate_mask; fusion_attention's sparse modes.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_generate_mask(velo_stream stream, const velo_generate_mask_args* args);

/* ---- alibi_slopes ---------------------------------------------------------------------------- */

typedef struct velo_alibi_slopes_args {
  uint32_t struct_size;      /* sizeof(velo_alibi_slopes_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* heads;  /* in; int32 | int64: any shape; heads, from 0 */
  const velo_tensor* slopes; /* out: float32, shape of heads */
  int64_t head_num;          /* default 8, in [1, 1048576]: heads of all ranks */
} velo_alibi_slopes_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ALIBI_SLOPES_ARGS_INIT \
  { sizeof(velo_alibi_slopes_args), 0, 0, 0, 8 }

/* `slopes[i] = 2^(-8 * (heads[i] + 1) / p)`.
 * p is the largest power of two up to head_num; heads from p on have 2^(-4 (2 (h - p) + 1) / p). A
 * rank gives the heads that it has; the result is a pse of fusion_attention's alibi.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: computed in double, rounded once.
 * Cost: one write of slopes.
 * Source: Press et al. 2022, arXiv:2108.12409; MindSpeed's alibi.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_alibi_slopes(velo_stream stream, const velo_alibi_slopes_args* args);

VELO_END_C

#endif
