/* Operators over sequences and vocabularies that are cut between ranks.
 * All ranks of the group make the call, in the same order and at one level; it has its place among
 * the collectives of the group. Threads of a local group read each other's tensors at level 2;
 * other ranks get messages or blocks, with the same bits. Ranks whose calls pass their own checks
 * but disagree about sizes, the plan or attributes all get VELO_ERR_PEER before rows move; the
 * record shows a hash of these.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/parallel.json: change that and build the target `generate`. */
#ifndef VELO_OPS_PARALLEL_H
#define VELO_OPS_PARALLEL_H

#include "velo/group.h"
#include "velo/introspect.h"
#include "velo/sequence_plan.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The dimension that is divided among ranks. */
enum {
  VELO_SEQUENCE_CUT_HEADS = 0, /* heads; all rows on each rank */
  VELO_SEQUENCE_CUT_ROWS = 1   /* rows; all heads on each rank */
};

/* ---- sequence_all_to_all --------------------------------------------------------------------- */

typedef struct velo_sequence_all_to_all_args {
  uint32_t struct_size;   /* sizeof(velo_sequence_all_to_all_args) */
  uint32_t reserved;      /* 0 */
  velo_group group;       /* in, or NULL: the ranks, of the stream's context; NULL: this one
                           * alone */
  const velo_tensor* x;   /* in; float32 | bfloat16 | float16: [rows, heads, ..]: to heads, this
                           * rank's rows of all heads; to rows, all rows of this rank's heads */
  const velo_tensor* y;   /* out: [rows, heads, ..] the other way, dtype of x */
  int64_t to;             /* VELO_SEQUENCE_CUT_*, default heads: the cut of y */
  const velo_ints* rows;  /* in, or NULL: [ranks]: rows of each rank, the same list on all; NULL:
                           * as many on each */
  const velo_ints* heads; /* in, or NULL: [2 ranks]: begin and end of each rank's heads, the same
                           * list on all; NULL: as many for each, one rank's after another's */
} velo_sequence_all_to_all_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT \
  { sizeof(velo_sequence_all_to_all_args), 0, 0, 0, 0, VELO_SEQUENCE_CUT_HEADS, 0, 0 }

/* `y = rows_or_heads(x)`.
 * Exchanges a cut of rows for a cut of heads, as Ulysses attention does before and after it. To
 * heads: x has this rank's rows of all heads, y all rows of this rank's heads. To rows is the way
 * back. Rows are concatenated in rank order; a batch within the sequence is folded into them, and
 * `rows` counts both.
 * Ranks may have the same head, as those of keys where there are fewer of them than ranks: to heads
 * every one of them gets it, and to rows their parts are summed in float32 in the order of ranks
 * and rounded once. So either way is the gradient of the other.
 * At level 2 processes (shm) copy rows through shared memory. At lower levels, or if the group's
 * buffer is too small, blocks are packed and sent by an all-to-all.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: exact, but for sums of heads that
 * several ranks have: in float32, rounded once.
 * Cost: one read of x, one write of y.
 * Source: DeepSpeed-Ulysses, Jacobs et al. 2023, arXiv:2309.14509.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_sequence_all_to_all(velo_stream stream,
                                              const velo_sequence_all_to_all_args* args);

/* ---- context_parallel_attention -------------------------------------------------------------- */

typedef struct velo_context_parallel_attention_args {
  uint32_t struct_size;             /* sizeof(velo_context_parallel_attention_args) */
  uint32_t reserved;                /* 0 */
  velo_group group;                 /* in, or NULL: the context-parallel ranks, of the stream's
                                     * context; NULL: this one alone */
  velo_sequence_plan plan;          /* in, or NULL: rows, tasks and messages of the ranks; it
                                     * must live until the call has run; NULL: a causal ring of
                                     * the group over one document, whose ranks have as many rows
                                     * each */
  const velo_tensor* query;         /* in; float32 | bfloat16 | float16; strided: [S, N, D] or
                                     * [B, S, N, D]: the rows of this rank, in the order of the
                                     * plan */
  const velo_tensor* key;           /* in; float32 | bfloat16 | float16; strided: the same with
                                     * Nkv heads, dtype of query */
  const velo_tensor* value;         /* in; float32 | bfloat16 | float16; strided: the same with
                                     * Nkv heads of Dv elements, dtype of query */
  const velo_tensor* attention_out; /* out; strided: shape and dtype of query with Dv for D */
  const velo_tensor* softmax_max;   /* out, or NULL: float32 [heads, rows] or [B, heads, rows] of
                                     * the queries that this rank computes: its own, or with
                                     * Ulysses all rows of its heads */
  const velo_tensor* softmax_sum;   /* out, or NULL: the same of the sum of exp(score -
                                     * softmax_max) */
  const velo_tensor* kept;          /* out, or NULL: [n], dtype of query: blocks of other ranks
                                     * that the plan keeps for the gradient, and for layers that
                                     * share the keys; velo_op_infer tells n */
  double scale;                     /* default 1.0: factor of the products, usually 1 / sqrt(D);
                                     * finite in float32 */
  const velo_tensor* alibi_slopes;  /* in, or NULL; float32: [N]: a score gets -slope * |i - j|
                                     * for rows i and j of the sequence */
  int64_t alibi_root;               /* 0 or 1, default 0: 1: -slope * sqrt(|i - j|) */
  double keep_prob;                 /* default 1.0, in [0.0, 1.0]: share of probabilities that
                                     * dropout keeps, times 1 / keep_prob; 0 drops all; decided
                                     * by the indices of the whole [B, N, sequence, sequence], so
                                     * that no cut changes it: ranks that have some heads or
                                     * sequences give dropout_origin */
  int64_t seed;                     /* default 0: of dropout, as the operator dropout has it */
  int64_t offset;                   /* default 0: of dropout */
  const velo_ints* dropout_origin;  /* in, or NULL: 2 values: where the call's [B, N] begins in
                                     * the whole [B, N, sequence, sequence], whose indices
                                     * decide; the same on all ranks of group */
  const velo_ints* dropout_extents; /* in, or NULL: 2 values, B and N of the whole; by default
                                     * the call's own */
  const velo_tensor* given;         /* in, or NULL; float32 | bfloat16 | float16: [n], dtype of
                                     * query: kept of the call of the layer that owns the keys,
                                     * which had the plan of KEYS_SHARED; where this plan is of
                                     * KEYS_GIVEN and takes any */
} velo_context_parallel_attention_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT \
  { \
    sizeof(velo_context_parallel_attention_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 0, 1.0, 0, \
    0, 0, 0, 0 \
  }

/* `attention_out = softmax(scale * query @ key^T) @ value`.
 * The rows of the sequence lie on ranks. The call carries out the forward of a sequence plan
 * (velo/sequence_plan.h): each rank has its rows of query, key and value, and gets its rows of the
 * result. The cells that a query sees are those of the plan. B sequences have the same plan. Query
 * head h reads key head h / (N / Nkv).
 * Partial outputs are float32; each is rounded once. A row that sees no key gives 0, with the
 * lowest finite float as its maximum and sum 0. NaN or Inf in a row of key or value may spoil
 * queries that do not see it, as 0 * NaN does in a plain product; which ones depends on the cut.
 * The bits depend on the plan and the instruction set, not on the transport or threads, nor on the
 * level from 1 on.
 * One group suffices: the family cp of a topology (velo/topology.h), or tp-y-cp where tp is in two
 * dimensions. Rank r of the group is rank r of the plan. With U = ulysses, r mod U is its place in
 * cp-ulysses, r div U its place in cp-ring, and `window` neighbors in cp-ring are cp-ring-intra.
 * The plan's messages are those of these families, and go beside computation without twins.
 * At level 2 ranks that are threads of a process read each other's rows where they lie; otherwise
 * rows are sent, in local and shm groups while the rank computes. A rank keeps what its gradient
 * needs in softmax_max, softmax_sum and kept; without kept nothing is copied for it.
 * A layer that attends to the keys of an earlier one has that layer's key and value, and the plan
 * of KEYS_GIVEN. It reads rows of other ranks in given, and has the bits of a layer that exchanges
 * them.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-17 to 4.0: as fusion_attention, whose bound
 * holds for the whole sequence; float32 1e-6 of the largest |value| a row sees more for each block
 * behind the first.
 * Cost: that of attention over the cells of this rank; the messages of the plan.
 * Source: Ring Attention, arXiv:2310.01889; DeepSpeed-Ulysses, arXiv:2309.14509; LoongTrain,
 * arXiv:2406.18485.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_context_parallel_attention(
    velo_stream stream, const velo_context_parallel_attention_args* args);

/* ---- context_parallel_attention_backward ----------------------------------------------------- */

typedef struct velo_context_parallel_attention_backward_args {
  uint32_t struct_size;             /* sizeof(velo_context_parallel_attention_backward_args) */
  uint32_t reserved;                /* 0 */
  velo_group group;                 /* in, or NULL: the context-parallel ranks, of the stream's
                                     * context; NULL: this one alone */
  velo_sequence_plan plan;          /* in, or NULL: rows, tasks and messages of the ranks; it
                                     * must live until the call has run; NULL: a causal ring of
                                     * the group over one document, whose ranks have as many rows
                                     * each */
  const velo_tensor* query;         /* in; float32 | bfloat16 | float16; strided: [S, N, D] or
                                     * [B, S, N, D]: the rows of this rank, in the order of the
                                     * plan */
  const velo_tensor* key;           /* in; float32 | bfloat16 | float16; strided: the same with
                                     * Nkv heads, dtype of query */
  const velo_tensor* value;         /* in; float32 | bfloat16 | float16; strided: the same with
                                     * Nkv heads of Dv elements, dtype of query */
  const velo_tensor* dy;            /* in; float32 | bfloat16 | float16; strided: gradient of
                                     * attention_out: its shape and dtype */
  const velo_tensor* softmax_max;   /* in; float32: from the forward pass */
  const velo_tensor* softmax_sum;   /* in; float32: from the forward pass */
  const velo_tensor* attention_out; /* in; float32 | bfloat16 | float16; strided: from the
                                     * forward pass */
  const velo_tensor* kept;          /* in, or NULL; float32 | bfloat16 | float16: from the
                                     * forward pass; NULL where it has no elements */
  const velo_tensor* dquery;        /* out; strided: shape and dtype of query */
  const velo_tensor* dkey;          /* out; strided: shape and dtype of key */
  const velo_tensor* dvalue;        /* out; strided: shape and dtype of value */
  double scale;                     /* default 1.0: factor of the products, usually 1 / sqrt(D);
                                     * finite in float32 */
  const velo_tensor* alibi_slopes;  /* in, or NULL; float32: [N]: a score gets -slope * |i - j|
                                     * for rows i and j of the sequence */
  int64_t alibi_root;               /* 0 or 1, default 0: 1: -slope * sqrt(|i - j|) */
  double keep_prob;                 /* default 1.0, in [0.0, 1.0]: share of probabilities that
                                     * dropout keeps, times 1 / keep_prob; 0 drops all; decided
                                     * by the indices of the whole [B, N, sequence, sequence], so
                                     * that no cut changes it: ranks that have some heads or
                                     * sequences give dropout_origin */
  int64_t seed;                     /* default 0: of dropout, as the operator dropout has it */
  int64_t offset;                   /* default 0: of dropout */
  const velo_ints* dropout_origin;  /* in, or NULL: 2 values: where the call's [B, N] begins in
                                     * the whole [B, N, sequence, sequence], whose indices
                                     * decide; the same on all ranks of group */
  const velo_ints* dropout_extents; /* in, or NULL: 2 values, B and N of the whole; by default
                                     * the call's own */
  const velo_tensor* given;         /* in, or NULL; float32 | bfloat16 | float16: as in the
                                     * forward pass */
} velo_context_parallel_attention_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CONTEXT_PARALLEL_ATTENTION_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_context_parallel_attention_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 1.0, 0, 0, 1.0, 0, 0, 0, 0, 0 \
  }

/* `delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`;
 * `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`.
 * The rows of the sequence lie on ranks; P: the probabilities of the forward pass. The call carries
 * out the gradient of the plan that the forward had, with its other fields as they were; kept is of
 * that plan alone. Parts of dkey and dvalue go from rank to rank in float32, and each gradient is
 * rounded once, at the rank that has its row. alibi_slopes have no gradient.
 *
 * Gradient of velo_context_parallel_attention.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-09 to 4.0: as fusion_attention_backward, whose
 * bound holds for the whole sequence; norm-wise 1e-6 more for each block behind the first.
 * Cost: that of the gradient of attention over the cells of this rank; the messages of the plan.
 * Source: gradient of context_parallel_attention.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_context_parallel_attention_backward(
    velo_stream stream, const velo_context_parallel_attention_backward_args* args);

/* ---- vocab_parallel_cross_entropy ------------------------------------------------------------ */

typedef struct velo_vocab_parallel_cross_entropy_args {
  uint32_t struct_size;       /* sizeof(velo_vocab_parallel_cross_entropy_args) */
  uint32_t reserved;          /* 0 */
  velo_group group;           /* in, or NULL: the ranks that the classes are cut between, of the
                               * stream's context; NULL: this one alone */
  const velo_tensor* logits;  /* in; float32 | bfloat16 | float16: [T, n]: this rank's classes */
  const velo_tensor* targets; /* in; int32 | int64: [T], the same on all ranks; each in [0, V) or
                               * ignore_index */
  const velo_tensor* loss;    /* out: float32, [T]; the same bits on all ranks */
  const velo_tensor* lse;     /* out, or NULL: float32, [T]: log-sum-exp over all classes, what
                               * the gradient needs */
  int64_t ignore_index;       /* default -100: the target that does not count */
  double label_smoothing;     /* default 0.0, in [0.0, 1.0]: e */
  int64_t vocab_begin;        /* default -1, in [-1, 1099511627776]: the first class of this
                               * rank; -1: rank * n; the ranks' columns hold each class once */
  int64_t vocab_size;         /* default 0, in [0, 1099511627776]: V, classes of all ranks; those
                               * from V on are padding, which counts nowhere and has the gradient
                               * 0; 0: n * ranks, or vocab_begin + n if that is more; needed
                               * where columns are uneven */
} velo_vocab_parallel_cross_entropy_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_VOCAB_PARALLEL_CROSS_ENTROPY_ARGS_INIT \
  { sizeof(velo_vocab_parallel_cross_entropy_args), 0, 0, 0, 0, 0, 0, -100, 0.0, -1, 0 }

/* `lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * (lse[t] - logits[t, targets[t]])
 * + e / V * sum[v](lse[t] - logits[t, v])`.
 * v runs over the classes of all ranks; a rank has n of them; e is label_smoothing. loss[t] is 0
 * where targets[t] is ignore_index. Four numbers a token and rank are exchanged and combined in
 * rank order, so that all ranks get the same bits. A target that is no class, or that not exactly
 * one rank has, fails with VELO_ERR_ARGUMENT after the exchange, and writes nothing. A logit of
 * +Inf makes lse[t] and loss[t] +Inf.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: float32 1e-6 relative to the largest logit, times the largest weight.
 * Cost: one read of logits, two with smoothing; 16 bytes a token and rank are exchanged.
 * Source: Megatron-LM's vocab_parallel_cross_entropy, Shoeybi et al. 2019, arXiv:1909.08053.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_vocab_parallel_cross_entropy(
    velo_stream stream, const velo_vocab_parallel_cross_entropy_args* args);

/* ---- vocab_parallel_cross_entropy_backward --------------------------------------------------- */

typedef struct velo_vocab_parallel_cross_entropy_backward_args {
  uint32_t struct_size;       /* sizeof(velo_vocab_parallel_cross_entropy_backward_args) */
  uint32_t reserved;          /* 0 */
  velo_group group;           /* in, or NULL: the ranks that the classes are cut between, of the
                               * stream's context; NULL: this one alone */
  const velo_tensor* dloss;   /* in: float32, [T]: divided by the count of the tokens of all
                               * ranks where a mean is wanted */
  const velo_tensor* logits;  /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* targets; /* in; int32 | int64: the forward targets */
  const velo_tensor* lse;     /* in: float32, [T], from the forward pass */
  const velo_tensor* dlogits; /* out: shape and dtype of logits; may be logits itself */
  int64_t ignore_index;       /* default -100: the target that does not count */
  double label_smoothing;     /* default 0.0, in [0.0, 1.0]: e */
  int64_t vocab_begin;        /* default -1, in [-1, 1099511627776]: the first class of this
                               * rank; -1: rank * n */
  int64_t vocab_size;         /* default 0, in [0, 1099511627776]: V, classes of all ranks; those
                               * from V on are padding, which counts nowhere and has the gradient
                               * 0; 0: n * ranks, or vocab_begin + n if that is more; needed
                               * where columns are uneven */
} velo_vocab_parallel_cross_entropy_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_VOCAB_PARALLEL_CROSS_ENTROPY_BACKWARD_ARGS_INIT \
  { sizeof(velo_vocab_parallel_cross_entropy_backward_args), 0, 0, 0, 0, 0, 0, 0, -100, 0.0, -1, 0 }

/* `dlogits[t, v] = (exp(logits[t, v] - lse[t]) - (1 - e) * [v = targets[t]] - e / V) * dloss[t]`.
 * [v = targets[t]] is 1 where that holds, else 0. It is 0 in ignored rows and padded classes. group
 * tells rank and size where vocab_begin and vocab_size do not; nothing is exchanged; in place over
 * the logits, no second logits tensor is needed.
 *
 * Gradient of velo_vocab_parallel_cross_entropy.
 * In place: dlogits may be logits.
 * Accuracy: float32 1e-6 of dloss_t; bfloat16 half an ulp more; float16 half an ulp and 4e-6 of the
 * probability.
 * Cost: one read of logits and one write of dlogits.
 * Source: gradient of vocab_parallel_cross_entropy.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_vocab_parallel_cross_entropy_backward(
    velo_stream stream, const velo_vocab_parallel_cross_entropy_backward_args* args);

/* ---- vocab_parallel_embedding ---------------------------------------------------------------- */

typedef struct velo_vocab_parallel_embedding_args {
  uint32_t struct_size;        /* sizeof(velo_vocab_parallel_embedding_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the ranks that the rows are cut between, of the
                                * stream's context; NULL: this one alone */
  const velo_tensor* indices;  /* in; int32 | int64: any shape, the same indices on all ranks;
                                * each in [0, V) */
  const velo_tensor* weight;   /* in; float32 | bfloat16 | float16: [v, h]: this rank's rows of
                                * the table */
  const velo_tensor* y;        /* out: shape of indices with h appended, dtype of weight; with
                                * sequence_parallel the first dimension is this rank's part of it */
  int64_t vocab_begin;         /* default -1, in [-1, 1099511627776]: the first row of this rank;
                                * -1: rank * v */
  int64_t vocab_size;          /* default 0, in [0, 1099511627776]: V, rows of all ranks; those
                                * from V on are padding, which no index may name; 0: v * ranks,
                                * or vocab_begin + v if that is more; needed where rows are
                                * uneven */
  int64_t sequence_parallel;   /* 0 or 1, default 0: 1: each rank gets its part of the first
                                * dimension of indices, which the ranks divide evenly or by
                                * token_rows; 0: each gets all of y */
  const velo_ints* token_rows; /* in, or NULL: [ranks]: rows of the first dimension of indices
                                * that each rank gets, the same list on all, with
                                * sequence_parallel alone; some may be 0; NULL: as many on each */
} velo_vocab_parallel_embedding_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT \
  { sizeof(velo_vocab_parallel_embedding_args), 0, 0, 0, 0, 0, -1, 0, 0, 0 }

/* `y[t] = table[indices[t]]`.
 * The rows of the table are cut between ranks; weight has those of this rank. The ranks first
 * compare their rows and a hash of their indices; then each row of y moves once, unchanged, from
 * the rank that has it: y has the bits of `embedding` of the whole table. An index that is no row
 * fails with VELO_ERR_ARGUMENT, as does one whose row not exactly one rank has, and as do indices
 * that differ between ranks; then no rank writes anything, and the group goes on.
 * At level 2 threads of a local group copy rows from each other's tables, and processes (shm) by
 * way of shared memory. At lower levels, or if the group's buffer is too small, rows are packed and
 * sent by an all-to-all.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of the rows used and one write of y; 24 bytes a rank are exchanged before.
 * Source: Megatron-LM's VocabParallelEmbedding, Shoeybi et al. 2019, arXiv:1909.08053; sequence
 * parallelism: Korthikanti et al. 2022, arXiv:2205.05198.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_vocab_parallel_embedding(velo_stream stream,
                                                   const velo_vocab_parallel_embedding_args* args);

/* ---- vocab_parallel_embedding_backward ------------------------------------------------------- */

typedef struct velo_vocab_parallel_embedding_backward_args {
  uint32_t struct_size;        /* sizeof(velo_vocab_parallel_embedding_backward_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the ranks that the rows are cut between, of the
                                * stream's context; NULL: this one alone */
  const velo_tensor* indices;  /* in; int32 | int64: as in the forward call */
  const velo_tensor* dy;       /* in; float32 | bfloat16 | float16: gradient of y, with its
                                * shape; without sequence_parallel the same on all ranks */
  const velo_tensor* dweight;  /* out: float32, [rows, h] */
  int64_t rows;                /* default 0, in [0, 1099511627776]: v, this rank's rows of the
                                * table */
  int64_t accumulate;          /* 0 or 1, default 0: 1 adds to dweight instead of writing it */
  int64_t vocab_begin;         /* default -1, in [-1, 1099511627776]: the first row of this rank;
                                * -1: rank * rows */
  int64_t vocab_size;          /* default 0, in [0, 1099511627776]: V, rows of all ranks, as in
                                * the forward call; 0: rows * ranks, or vocab_begin + rows if
                                * that is more */
  int64_t sequence_parallel;   /* 0 or 1, default 0: 1: dy has this rank's part of the first
                                * dimension of indices; 0: all of it */
  const velo_ints* token_rows; /* in, or NULL: as in the forward call */
} velo_vocab_parallel_embedding_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_VOCAB_PARALLEL_EMBEDDING_BACKWARD_ARGS_INIT \
  { sizeof(velo_vocab_parallel_embedding_backward_args), 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0 }

/* `dtable[indices[t]] += dy[t]`.
 * dweight has this rank's rows of dtable; the sums are over all t in order, as `embedding_backward`
 * has them. Rows that no index names become zero, or keep their value with accumulate. Without
 * sequence_parallel nothing is exchanged; group tells rank and size where vocab_begin and
 * vocab_size do not. With it each row of dy is sent to the rank that has the row of the table, and
 * the call fails as the forward does.
 *
 * Gradient of velo_vocab_parallel_embedding.
 * In place: no output may share memory with another tensor.
 * Accuracy: float32 sums in token order.
 * Cost: one read of this rank's rows of dy, one read and write of the rows used.
 * Source: gradient of vocab_parallel_embedding.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_vocab_parallel_embedding_backward(
    velo_stream stream, const velo_vocab_parallel_embedding_backward_args* args);

/* ---- column_parallel_linear ------------------------------------------------------------------ */

typedef struct velo_column_parallel_linear_args {
  uint32_t struct_size;        /* sizeof(velo_column_parallel_linear_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the tensor-parallel ranks, of the stream's
                                * context; NULL: this one alone */
  const velo_tensor* x;        /* in; float32 | bfloat16 | float16: [s, .., k] */
  const velo_tensor* weight;   /* in; float32 | bfloat16 | float16: [n, k]: this rank's outputs;
                                * dtype of x */
  const velo_tensor* bias;     /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or the
                                * dtype of x */
  const velo_tensor* y;        /* out: [S, .., n], dtype of x; with gather_output [S, .., N], the
                                * outputs of rank after rank; N = ranks * n, or the sum of
                                * columns */
  const velo_tensor* gathered; /* out, or NULL: x of all ranks, [S, .., k]: what the gradient to
                                * weight needs; [0] without sequence_parallel */
  int64_t sequence_parallel;   /* 0 or 1, default 0: 1: the rows of x are cut between the ranks;
                                * S: rows of all ranks; 0: every rank has all rows, and S is s */
  int64_t gather_output;       /* 0 or 1, default 0: 1: y has the outputs of all ranks; excludes
                                * sequence_parallel */
  const velo_ints* rows;       /* in, or NULL: [ranks]: s of each rank, the same list on all,
                                * with sequence_parallel alone; NULL: as many on each */
  int64_t parallel_num;        /* default 0, in [0, 1024]: slices of rows, as matmul_all_reduce
                                * has them */
  velo_pack packed;            /* in, or NULL: a pack of weight with transpose, [k, n], beside
                                * it: products read the pack where it has the form of their
                                * instruction set, and weight elsewhere; NULL: each call packs
                                * anew */
  const velo_ints* columns;    /* in, or NULL: [ranks]: n of each rank, the same list on all,
                                * with gather_output alone; some may be 0; NULL: as many on each */
} velo_column_parallel_linear_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT \
  { sizeof(velo_column_parallel_linear_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = gather_ranks(x) @ weight^T + bias`.
 * A linear layer whose outputs are cut between ranks: each has n of them, as torch's nn.Linear
 * stores its weight. With sequence_parallel the rows of x are cut between the ranks along the first
 * dimension, and y has those of all; without it x is whole on every rank, and nothing is sent
 * unless gather_output is set. n may differ between ranks; with gather_output their list is given.
 * The bits are those of all_gather and matmul with a bias.
 * With sequence_parallel, ranks that share memory multiply at level 2 in slices, as
 * all_gather_matmul does.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for m rows of all ranks; the all_gather of x, or of y with
 * gather_output.
 * Source: Megatron-LM's ColumnParallelLinear, Shoeybi et al. 2019, arXiv:1909.08053.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_column_parallel_linear(velo_stream stream,
                                                 const velo_column_parallel_linear_args* args);

/* ---- column_parallel_linear_backward --------------------------------------------------------- */

typedef struct velo_column_parallel_linear_backward_args {
  uint32_t struct_size;        /* sizeof(velo_column_parallel_linear_backward_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the tensor-parallel ranks, of the stream's
                                * context; NULL: this one alone */
  const velo_tensor* dy;       /* in; float32 | bfloat16 | float16: [S, .., n], dtype of x; with
                                * gather_output [S, .., N], of which this rank reads its n */
  const velo_tensor* x;        /* in, or NULL; float32 | bfloat16 | float16: [s, .., k], the
                                * forward input; dweight needs it or gathered */
  const velo_tensor* gathered; /* in, or NULL; float32 | bfloat16 | float16: [S, .., k] from the
                                * forward pass with sequence_parallel, in place of x; [0] counts
                                * as NULL */
  const velo_tensor* weight;   /* in; float32 | bfloat16 | float16: [n, k]: the forward weight;
                                * dtype of x */
  const velo_tensor* dx;       /* out, or NULL: [s, .., k], dtype of x */
  const velo_tensor* dweight;  /* out, or NULL: [n, k], the weight's gradient on this rank;
                                * float32, as main gradients are, or the dtype of x */
  const velo_tensor* dbias;    /* out, or NULL: float32, [n] */
  int64_t sequence_parallel;   /* 0 or 1, default 0: as in the forward call */
  int64_t gather_output;       /* 0 or 1, default 0: as in the forward call */
  int64_t accumulate;          /* 0 or 1, default 0: 1 adds to dweight and dbias (in float32,
                                * rounded once) */
  const velo_ints* rows;       /* in, or NULL: [ranks]: s of each rank, the same list on all,
                                * with sequence_parallel alone; NULL: as many on each */
  int64_t parallel_num;        /* default 0, in [0, 1024]: slices of rows, as matmul_all_reduce
                                * has them */
  velo_pack packed;            /* in, or NULL: a pack of weight, [n, k], beside it: the product
                                * for dx reads the pack where it has the form of its instruction
                                * set, and weight elsewhere; NULL: each call packs anew */
  const velo_ints* columns;    /* in, or NULL: as in the forward call */
} velo_column_parallel_linear_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_column_parallel_linear_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0 \
  }

/* `dx = sum_ranks(dy @ weight)`; `dweight = dy^T @ gather_ranks(x)`; `dbias = sum[rows](dy)`.
 * Any result left out: dweight and dbias where the weight is frozen, dx where only the weight's
 * gradient is wanted now. With sequence_parallel dx has this rank's rows of the sum; without it all
 * rows are summed on every rank. Each rank's product is rounded to the dtype of x, then the sum.
 * dweight reads `gathered`; without it x is gathered again, which saves its memory between the
 * passes. The ranks agree on which of these the call has.
 * At level 2, where ranks share memory, dx is summed in slices: rows of x that are gathered again
 * travel with them, or else the product for dweight fills the wait for the last slices.
 *
 * Gradient of velo_column_parallel_linear.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_all_reduce; dweight and
 * dbias as matmul.
 * Cost: 2 m n k operations for each of dx and dweight; the reduce_scatter or all_reduce of dx; the
 * all_gather of x where it is gathered again.
 * Source: gradient of column_parallel_linear.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_column_parallel_linear_backward(
    velo_stream stream, const velo_column_parallel_linear_backward_args* args);

/* ---- row_parallel_linear --------------------------------------------------------------------- */

typedef struct velo_row_parallel_linear_args {
  uint32_t struct_size;      /* sizeof(velo_row_parallel_linear_args) */
  uint32_t reserved;         /* 0 */
  velo_group group;          /* in, or NULL: the tensor-parallel ranks, of the stream's context;
                              * NULL: this one alone */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: [S, .., k] */
  const velo_tensor* weight; /* in; float32 | bfloat16 | float16: [n, k]: this rank's inputs;
                              * dtype of x */
  const velo_tensor* bias;   /* in, or NULL; float32 | bfloat16 | float16: [n], float32 or the
                              * dtype of x, the same on all ranks */
  const velo_tensor* y;      /* out: [s, .., n], dtype of x */
  int64_t sequence_parallel; /* 0 or 1, default 0: 1: y has this rank's rows, s of S; 0: all
                              * rows, and s is S */
  const velo_ints* rows;     /* in, or NULL: [ranks]: s of each rank, the same list on all, with
                              * sequence_parallel alone; NULL: as many on each */
  int64_t parallel_num;      /* default 0, in [0, 1024]: slices of rows, as matmul_all_reduce has
                              * them */
  velo_pack packed;          /* in, or NULL: a pack of weight with transpose, [k, n], beside it:
                              * products read the pack where it has the form of their instruction
                              * set, and weight elsewhere; NULL: each call packs anew */
} velo_row_parallel_linear_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROW_PARALLEL_LINEAR_ARGS_INIT \
  { sizeof(velo_row_parallel_linear_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `y = sum_ranks(x @ weight^T) + bias`.
 * A linear layer whose inputs are cut between ranks: each has k of them. With sequence_parallel the
 * rows of the sum are divided among the ranks along the first dimension; without it every rank has
 * all of them. Each rank's product is rounded to the dtype of x, then the sum, then the sum with
 * bias, which is added once. k may differ between ranks. The bits are those of matmul,
 * reduce_scatter or all_reduce, and an addition.
 * Ranks that share memory work at level 2 in slices, as matmul_reduce_scatter and matmul_all_reduce
 * do.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul_all_reduce, and half an
 * ulp for the bias.
 * Cost: 2 m n k operations, and the reduce_scatter or all_reduce of m n elements.
 * Source: Megatron-LM's RowParallelLinear, Shoeybi et al. 2019, arXiv:1909.08053.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_row_parallel_linear(velo_stream stream,
                                              const velo_row_parallel_linear_args* args);

/* ---- row_parallel_linear_backward ------------------------------------------------------------ */

typedef struct velo_row_parallel_linear_backward_args {
  uint32_t struct_size;       /* sizeof(velo_row_parallel_linear_backward_args) */
  uint32_t reserved;          /* 0 */
  velo_group group;           /* in, or NULL: the tensor-parallel ranks, of the stream's context;
                               * NULL: this one alone */
  const velo_tensor* dy;      /* in; float32 | bfloat16 | float16: [s, .., n], dtype of x */
  const velo_tensor* x;       /* in, or NULL; float32 | bfloat16 | float16: [S, .., k], the
                               * forward input; dweight needs it */
  const velo_tensor* weight;  /* in; float32 | bfloat16 | float16: [n, k]: the forward weight;
                               * dtype of x */
  const velo_tensor* dx;      /* out, or NULL: [S, .., k], dtype of x */
  const velo_tensor* dweight; /* out, or NULL: [n, k], the weight's gradient on this rank;
                               * float32, as main gradients are, or the dtype of x */
  const velo_tensor* dbias;   /* out, or NULL: float32, [n]: over the rows of all ranks */
  int64_t sequence_parallel;  /* 0 or 1, default 0: as in the forward call */
  int64_t accumulate;         /* 0 or 1, default 0: 1 adds to dweight and dbias (in float32,
                               * rounded once) */
  const velo_ints* rows;      /* in, or NULL: [ranks]: s of each rank, the same list on all, with
                               * sequence_parallel alone; NULL: as many on each */
  int64_t parallel_num;       /* default 0, in [0, 1024]: slices of rows, as matmul_all_reduce
                               * has them */
  velo_pack packed;           /* in, or NULL: a pack of weight, [n, k], beside it: the product
                               * for dx reads the pack where it has the form of its instruction
                               * set, and weight elsewhere; NULL: each call packs anew */
} velo_row_parallel_linear_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT \
  { sizeof(velo_row_parallel_linear_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dx = gather_ranks(dy) @ weight`; `dweight = gather_ranks(dy)^T @ x`; `dbias =
 * sum[rows](gather_ranks(dy))`.
 * Any result left out. With sequence_parallel dy is gathered once and serves all three; without it
 * dy is whole on every rank, and nothing is sent. dbias has the same bits on all ranks. The ranks
 * agree on which results the call has.
 * With sequence_parallel, ranks that share memory multiply at level 2 in slices, as
 * all_gather_matmul does.
 *
 * Gradient of velo_row_parallel_linear.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: as matmul.
 * Cost: 2 m n k operations for each of dx and dweight; the all_gather of dy.
 * Source: gradient of row_parallel_linear.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_row_parallel_linear_backward(
    velo_stream stream, const velo_row_parallel_linear_backward_args* args);

/* ---- parallel_rms_norm ----------------------------------------------------------------------- */

typedef struct velo_parallel_rms_norm_args {
  uint32_t struct_size;     /* sizeof(velo_parallel_rms_norm_args) */
  uint32_t reserved;        /* 0 */
  velo_group group;         /* in, or NULL: the ranks that the normalized dimensions are cut
                             * between, of the stream's context; NULL: this one alone */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [..., n]: this rank's part of
                             * the rows, compact; as many rows on all ranks, n may differ */
  const velo_tensor* gamma; /* in; float32 | bfloat16 | float16: trailing dimensions of x;
                             * float32, or the dtype of x */
  const velo_tensor* y;     /* out: shape and dtype of x; may be x itself */
  const velo_tensor* rstd;  /* out, or NULL: float32, the shape of x with a 1 for each normalized
                             * dimension; the same bits on all ranks; what the gradient needs;
                             * NaN where these hold no element */
  double epsilon;           /* default 1e-06, >= 0.0: added to the mean square; a finite number,
                             * the same on all ranks */
} velo_parallel_rms_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PARALLEL_RMS_NORM_ARGS_INIT \
  { sizeof(velo_parallel_rms_norm_args), 0, 0, 0, 0, 0, 0, 1e-06 }

/* `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`.
 * The normalized dimensions, those that gamma has, are cut between ranks, as 2D tensor parallelism
 * cuts them; the means are over all of a row. A rank sends one sum of squares a row, and adds those
 * of all ranks in rank order, in double: rstd has the same bits on all ranks, transports and
 * levels.
 *
 * In place: y may be x.
 * Accuracy: as rms_norm, whose bound holds for the whole row; the sums are in double.
 * Cost: two reads and one write of x; 8 bytes a row and rank are exchanged.
 * Source: MindSpeed's 2D tensor parallelism; Zhang and Sennrich 2019, arXiv:1910.07467.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_parallel_rms_norm(velo_stream stream,
                                            const velo_parallel_rms_norm_args* args);

/* ---- parallel_rms_norm_backward -------------------------------------------------------------- */

typedef struct velo_parallel_rms_norm_backward_args {
  uint32_t struct_size;      /* sizeof(velo_parallel_rms_norm_backward_args) */
  uint32_t reserved;         /* 0 */
  velo_group group;          /* in, or NULL: the ranks that the normalized dimensions are cut
                              * between, of the stream's context; NULL: this one alone */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* gamma;  /* in; float32 | bfloat16 | float16: the forward gain */
  const velo_tensor* rstd;   /* in; float32: from the forward pass */
  const velo_tensor* dx;     /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dgamma; /* out, or NULL: float32, shape of gamma */
  int64_t accumulate;        /* 0 or 1, default 0: 1 adds to dgamma instead of writing it */
} velo_parallel_rms_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PARALLEL_RMS_NORM_BACKWARD_ARGS_INIT \
  { sizeof(velo_parallel_rms_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x *
 * rstd)`.
 * The mean is over all of a row; one sum a row and rank is exchanged. dgamma has this rank's part
 * and is not exchanged.
 *
 * Gradient of velo_parallel_rms_norm.
 * In place: dx may be dy.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: as rms_norm_backward, whose bound
 * holds for the whole row; the sums over a row are in double, those over rows float32 in a fixed
 * tree.
 * Cost: two reads of x and dy, one write of dx; 8 bytes a row and rank are exchanged.
 * Source: gradient of parallel_rms_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_parallel_rms_norm_backward(
    velo_stream stream, const velo_parallel_rms_norm_backward_args* args);

/* ---- parallel_layer_norm --------------------------------------------------------------------- */

typedef struct velo_parallel_layer_norm_args {
  uint32_t struct_size;     /* sizeof(velo_parallel_layer_norm_args) */
  uint32_t reserved;        /* 0 */
  velo_group group;         /* in, or NULL: the ranks that the normalized dimensions are cut
                             * between, of the stream's context; NULL: this one alone */
  const velo_tensor* x;     /* in; float32 | bfloat16 | float16: [..., n]: this rank's part of
                             * the rows, compact; as many rows on all ranks, n may differ */
  const velo_tensor* gamma; /* in, or NULL; float32 | bfloat16 | float16: trailing dimensions of
                             * x; float32, or the dtype of x; NULL = 1 */
  const velo_tensor* beta;  /* in, or NULL; float32 | bfloat16 | float16: shape of gamma, [n]
                             * without it; float32, or the dtype of x; NULL = 0 */
  const velo_tensor* y;     /* out: shape and dtype of x; may be x itself */
  const velo_tensor* mean;  /* out, or NULL: float32, the shape of x with a 1 for each normalized
                             * dimension; the same bits on all ranks; what the gradient needs;
                             * NaN where these hold no element */
  const velo_tensor* rstd;  /* out, or NULL: like mean */
  double epsilon;           /* default 1e-05, >= 0.0: added to the mean square; a finite number,
                             * the same on all ranks */
} velo_parallel_layer_norm_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PARALLEL_LAYER_NORM_ARGS_INIT \
  { sizeof(velo_parallel_layer_norm_args), 0, 0, 0, 0, 0, 0, 0, 0, 1e-05 }

/* `mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma +
 * beta`.
 * The normalized dimensions, those that gamma has, are cut between ranks, as 2D tensor parallelism
 * cuts them; the means are over all of a row. Without gamma it is the last dimension. A rank sends
 * the sum of its part of a row and that of the squares around its own mean; they are combined in
 * rank order, in double, so that nothing cancels: mean and rstd have the same bits on all ranks,
 * transports and levels.
 *
 * In place: y may be x.
 * Accuracy: as layer_norm, whose bound holds for the whole row; the sums are in double.
 * Cost: three reads, one of them in cache, and one write of x; 16 bytes a row and rank are
 * exchanged.
 * Source: MindSpeed's 2D tensor parallelism; Ba, Kiros and Hinton 2016, arXiv:1607.06450.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_parallel_layer_norm(velo_stream stream,
                                              const velo_parallel_layer_norm_args* args);

/* ---- parallel_layer_norm_backward ------------------------------------------------------------ */

typedef struct velo_parallel_layer_norm_backward_args {
  uint32_t struct_size;      /* sizeof(velo_parallel_layer_norm_backward_args) */
  uint32_t reserved;         /* 0 */
  velo_group group;          /* in, or NULL: the ranks that the normalized dimensions are cut
                              * between, of the stream's context; NULL: this one alone */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: shape and dtype of x */
  const velo_tensor* x;      /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* gamma;  /* in, or NULL; float32 | bfloat16 | float16: the forward gain; NULL
                              * = 1 */
  const velo_tensor* mean;   /* in; float32: from the forward pass */
  const velo_tensor* rstd;   /* in; float32: from the forward pass */
  const velo_tensor* dx;     /* out: shape and dtype of x; may be dy itself */
  const velo_tensor* dgamma; /* out, or NULL: float32, the normalized dimensions of x */
  const velo_tensor* dbeta;  /* out, or NULL: like dgamma */
  int64_t accumulate;        /* 0 or 1, default 0: 1 adds to dgamma and dbeta instead of writing
                              * them */
} velo_parallel_layer_norm_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_PARALLEL_LAYER_NORM_BACKWARD_ARGS_INIT \
  { sizeof(velo_parallel_layer_norm_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma
 * = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`.
 * The means of g and g * h are over all of a row; two sums a row and rank are exchanged. dgamma and
 * dbeta have this rank's part and are not exchanged.
 *
 * Gradient of velo_parallel_layer_norm.
 * In place: dx may be dy.
 * Accuracy: for inputs that are 0 or of magnitude 1e-12 to 1e+12: as layer_norm_backward, whose
 * bound holds for the whole row; the sums over a row are in double, those over rows float32 in a
 * fixed tree.
 * Cost: two reads of x and dy, one write of dx; 16 bytes a row and rank are exchanged.
 * Source: gradient of parallel_layer_norm.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_parallel_layer_norm_backward(
    velo_stream stream, const velo_parallel_layer_norm_backward_args* args);

/* ---- capacity -------------------------------------------------------------------------------- */

typedef struct velo_capacity_args {
  uint32_t struct_size;        /* sizeof(velo_capacity_args) */
  uint32_t reserved;           /* 0 */
  velo_group group;            /* in, or NULL: the ranks, of the stream's context; NULL: this one
                                * alone */
  const velo_tensor* counts;   /* in; int64: [E], the choices of each expert on this rank */
  const velo_tensor* capacity; /* out: int64, a number */
  const velo_tensor* history;  /* in and out, or NULL; int64: [2 + n]: calls so far, the
                                * prediction, the last n maxima, of which call c has number c mod
                                * n; zeros before the first call; n is 5 in MindSpeed */
  int64_t tokens;              /* default 0, in [0, 1099511627776]: the most tokens of a rank,
                                * which the capacity never exceeds; the same on all; 0: any */
  int64_t initial;             /* default 256, in [1, 1099511627776]: the first prediction; the
                                * same on all ranks */
  int64_t period;              /* default 19, in [1, 1099511627776]: calls between predictions;
                                * the same on all ranks */
  int64_t margin;              /* default 20, in [0, 1099511627776]: of a prediction over the
                                * mean; the same on all ranks */
} velo_capacity_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CAPACITY_ARGS_INIT \
  { sizeof(velo_capacity_args), 0, 0, 0, 0, 0, 0, 256, 19, 20 }

/* `capacity = max_ranks(max[e](counts))`.
 * The places that an expert needs on any rank so that no gate drops a choice: the capacity of
 * capacity_gate without drops, the same on all ranks.
 * With history the capacity is a prediction, so that it seldom changes: initial before the first
 * one, and the maximum only where that is larger. After each `period` calls the next prediction is
 * the mean of the last n maxima and margin, rounded up, at most 2^40. Each rank keeps its history,
 * also in a checkpoint; where the predictions of ranks differ, the largest is that of all.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of counts, and 16 bytes from each rank.
 * Source: MindSpeed moe-no-drop, moe-dynamic-padding.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_capacity(velo_stream stream, const velo_capacity_args* args);

VELO_END_C

#endif
