/* Mixtures of experts: rows of tokens by expert.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/experts.json: change that and build the target `generate`. */
#ifndef VELO_OPS_EXPERTS_H
#define VELO_OPS_EXPERTS_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The score of an expert. */
enum {
  VELO_ROUTER_SCORE_SOFTMAX = 0, /* over all experts */
  VELO_ROUTER_SCORE_SIGMOID = 1  /* of each logit */
};

/* The score of a group of experts. */
enum {
  VELO_GROUP_SCORE_MAXIMUM = 0, /* its largest s + bias (DeepSeek-V2) */
  VELO_GROUP_SCORE_TOP2_SUM = 1 /* the sum of its two largest (DeepSeek-V3) */
};

/* Noise of a gate's choice. */
enum {
  VELO_GATE_NOISE_NONE = 0,   /* none */
  VELO_GATE_NOISE_RSAMPLE = 1 /* Gumbel's, in the choice of the last expert of a token */
};

/* The choices that an expert keeps within its capacity. */
enum {
  VELO_DROP_POLICY_PROBABILITY = 0, /* those of the largest weights, of equal ones the first */
  VELO_DROP_POLICY_POSITION = 1     /* the first */
};

/* ---- moe_token_permute ----------------------------------------------------------------------- */

typedef struct velo_moe_token_permute_args {
  uint32_t struct_size;              /* sizeof(velo_moe_token_permute_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* tokens;         /* in; float32 | bfloat16 | float16: [T, n] */
  const velo_tensor* indices;        /* in; int32 | int64: [T, k] or [T], the experts of each
                                      * token, -1 - expert for a dropped choice, which comes
                                      * after all; padded: [experts, capacity], the tokens of
                                      * each expert */
  const velo_tensor* permuted;       /* out: [rows, n], dtype of tokens */
  const velo_tensor* sorted_indices; /* out, or NULL: int32, [T k]; padded: as indices */
  const velo_tensor* counts;         /* out, or NULL: int64, [num_experts], the rows of each
                                      * expert in permuted: a group_list_tensor */
  int64_t num_out_tokens;            /* default 0, in [-2147483648, 2147483648]: rows kept; 0
                                      * all, negative: all but so many */
  int64_t num_experts;               /* default 0, in [0, 1048576]: indices are below it; counts
                                      * need it; 0: 65536 at most */
  int64_t padded_mode;               /* 0 or 1, default 0: 1: each expert has as many rows, whose
                                      * tokens indices lists */
} velo_moe_token_permute_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MOE_TOKEN_PERMUTE_ARGS_INIT \
  { sizeof(velo_moe_token_permute_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `permuted[sorted_indices[t * k + j]] = tokens[t]`.
 * The rows of tokens by expert, those of an expert by token and choice (a stable sort).
 * sorted_indices has the row of each choice, not, as Megatron-LM's, the choice of each row; rows
 * beyond those kept are not written.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of tokens, one write of permuted.
 * Source: MindSpeed npu_moe_token_permute.
 * Also called npu_moe_token_permute, npu_fused_moe_token_permute.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_moe_token_permute(velo_stream stream,
                                            const velo_moe_token_permute_args* args);

/* ---- moe_token_permute_backward -------------------------------------------------------------- */

typedef struct velo_moe_token_permute_backward_args {
  uint32_t struct_size;              /* sizeof(velo_moe_token_permute_backward_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* dpermuted;      /* in; float32 | bfloat16 | float16: [rows, n] */
  const velo_tensor* sorted_indices; /* in; int32 | int64: of the forward call, each row once;
                                      * padded: indices */
  const velo_tensor* dtokens;        /* out: [T, n], dtype of dpermuted */
  int64_t tokens;                    /* default 0, in [0, 2147483648]: T */
  int64_t padded_mode;               /* 0 or 1, default 0: 1: each expert has as many rows, whose
                                      * tokens sorted_indices lists */
} velo_moe_token_permute_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MOE_TOKEN_PERMUTE_BACKWARD_ARGS_INIT \
  { sizeof(velo_moe_token_permute_backward_args), 0, 0, 0, 0, 0, 0 }

/* `dtokens[t] = sum[j](dpermuted[sorted_indices[t * k + j]])`.
 * In the order of the choices, rounded once; choices without a row count nothing.
 *
 * Gradient of velo_moe_token_permute.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 sums, rounded once.
 * Cost: one read of dpermuted, one write of dtokens.
 * Source: gradient of moe_token_permute.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_moe_token_permute_backward(
    velo_stream stream, const velo_moe_token_permute_backward_args* args);

/* ---- moe_token_unpermute --------------------------------------------------------------------- */

typedef struct velo_moe_token_unpermute_args {
  uint32_t struct_size;              /* sizeof(velo_moe_token_unpermute_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* permuted;       /* in; float32 | bfloat16 | float16: [rows, n] */
  const velo_tensor* sorted_indices; /* in; int32 | int64: [T k], each row once; padded:
                                      * [experts, capacity], the token of each row */
  const velo_tensor* probs;          /* in, or NULL; float32 | bfloat16 | float16: [T, k], padded
                                      * [T, experts]; float32 or dtype of permuted; NULL: 1, and
                                      * k is 1 */
  const velo_tensor* tokens;         /* out: [T, n], dtype of permuted */
  const velo_ints* restore_shape;    /* in, or NULL: padded: [T, n] */
  int64_t padded_mode;               /* 0 or 1, default 0: 1: each expert has as many rows, whose
                                      * tokens sorted_indices lists */
} velo_moe_token_unpermute_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT \
  { sizeof(velo_moe_token_unpermute_args), 0, 0, 0, 0, 0, 0, 0 }

/* `tokens[t] = sum[j](probs[t, j] * permuted[sorted_indices[t * k + j]])`.
 * In float32 and in the order of the choices, rounded once; choices without a row count nothing.
 * Padded: over the rows of t, with the probability of their expert.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 sums, rounded once.
 * Cost: one read of permuted, one write of tokens.
 * Source: MindSpeed npu_moe_token_unpermute.
 * Also called npu_moe_token_unpermute, npu_fused_moe_token_unpermute.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_moe_token_unpermute(velo_stream stream,
                                              const velo_moe_token_unpermute_args* args);

/* ---- moe_token_unpermute_backward ------------------------------------------------------------ */

typedef struct velo_moe_token_unpermute_backward_args {
  uint32_t struct_size;              /* sizeof(velo_moe_token_unpermute_backward_args) */
  uint32_t reserved;                 /* 0 */
  const velo_tensor* dy;             /* in; float32 | bfloat16 | float16: [T, n] */
  const velo_tensor* permuted;       /* in, or NULL; float32 | bfloat16 | float16: of the forward
                                      * call; dprobs needs it */
  const velo_tensor* sorted_indices; /* in; int32 | int64: of the forward call */
  const velo_tensor* probs;          /* in, or NULL; float32 | bfloat16 | float16: of the forward
                                      * call */
  const velo_tensor* dpermuted;      /* out, or NULL: [rows, n], dtype of dy */
  const velo_tensor* dprobs;         /* out, or NULL: shape and dtype of probs */
  int64_t num_out_tokens;            /* default 0, in [-2147483648, 2147483648]: as in
                                      * moe_token_permute: how many rows there are */
  int64_t padded_mode;               /* 0 or 1, default 0: 1: each expert has as many rows, whose
                                      * tokens sorted_indices lists */
} velo_moe_token_unpermute_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT \
  { sizeof(velo_moe_token_unpermute_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dpermuted[sorted_indices[t * k + j]] = probs[t, j] * dy[t]`; `dprobs[t, j] =
 * sum(permuted[sorted_indices[t * k + j]] * dy[t])`.
 * Probabilities of choices without a row have gradient zero.
 *
 * Gradient of velo_moe_token_unpermute.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: float32 sums, rounded once.
 * Cost: one read of dy and permuted, one write of dpermuted.
 * Source: gradient of moe_token_unpermute.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_moe_token_unpermute_backward(
    velo_stream stream, const velo_moe_token_unpermute_backward_args* args);

/* ---- topk_router ----------------------------------------------------------------------------- */

typedef struct velo_topk_router_args {
  uint32_t struct_size;           /* sizeof(velo_topk_router_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* logits;      /* in; float32 | bfloat16 | float16: [T, E] */
  const velo_tensor* expert_bias; /* in, or NULL: float32, [E], for the choice alone */
  const velo_tensor* weights;     /* out: float32, [T, k] */
  const velo_tensor* indices;     /* out: int32, [T, k] */
  const velo_tensor* counts;      /* out, or NULL: int64, [E], choices before any is dropped */
  const velo_tensor* aux_loss;    /* out, or NULL: float32, a number */
  const velo_tensor* z_loss;      /* out, or NULL: float32, a number */
  int64_t k;                      /* default 2, in [1, 1048576]: experts of a token */
  int64_t score_function;         /* VELO_ROUTER_SCORE_*, default softmax: s of the logits */
  int64_t normalize;              /* 0 or 1, default 1: 1 divides the weights of a token by the
                                   * sum of its chosen s */
  double scale;                   /* default 1.0, in [0.0, 1e+18]: of the weights */
  int64_t num_groups;             /* default 1, in [1, 1048576]: groups of as many experts */
  int64_t kept_groups;            /* default 0, in [0, 1048576]: groups that are chosen from; 0
                                   * all */
  int64_t group_score;            /* VELO_GROUP_SCORE_*, default maximum: by which groups are
                                   * compared */
  int64_t capacity;               /* default 0, in [0, 1099511627776]: tokens of an expert at
                                   * most; 0 all */
  int64_t drop_policy;            /* VELO_DROP_POLICY_*, default probability: which choices
                                   * capacity keeps */
} velo_topk_router_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_TOPK_ROUTER_ARGS_INIT \
  { \
    sizeof(velo_topk_router_args), 0, 0, 0, 0, 0, 0, 0, 0, 2, VELO_ROUTER_SCORE_SOFTMAX, 1, 1.0, \
    1, 0, VELO_GROUP_SCORE_MAXIMUM, 0, VELO_DROP_POLICY_PROBABILITY \
  }

/* `w = scale * s / sum[chosen](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss =
 * mean(logsumexp(logits)^2)`.
 * Chosen are the k largest s + expert_bias, the best first, of equal ones the lower index; with
 * groups those of the best kept_groups groups. f is an expert's share of all choices before any is
 * dropped, p the mean of s / sum(s).
 * Beyond capacity an expert drops choices: weight 0, index -1 - expert, which moe_token_permute
 * takes.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: scores in float32, sums of tokens
 * in double; the choice is exact and the same for every kernel.
 * Cost: one read of logits.
 * Source: Megatron-LM; DeepSeek-V2 and V3 (arXiv:2405.04434, 2412.19437).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_topk_router(velo_stream stream, const velo_topk_router_args* args);

/* ---- topk_router_backward -------------------------------------------------------------------- */

typedef struct velo_topk_router_backward_args {
  uint32_t struct_size;         /* sizeof(velo_topk_router_backward_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* logits;    /* in; float32 | bfloat16 | float16: of the forward call */
  const velo_tensor* indices;   /* in; int32: of the forward call */
  const velo_tensor* counts;    /* in, or NULL; int64: [E]; daux_loss needs it */
  const velo_tensor* dweights;  /* in, or NULL; float32: [T, k] */
  const velo_tensor* daux_loss; /* in, or NULL; float32: a number */
  const velo_tensor* dz_loss;   /* in, or NULL; float32: a number */
  const velo_tensor* dlogits;   /* out: as logits */
  int64_t score_function;       /* VELO_ROUTER_SCORE_*, default softmax: s of the logits */
  int64_t normalize;            /* 0 or 1, default 1: 1 divides the weights of a token by the sum
                                 * of its chosen s */
  double scale;                 /* default 1.0, in [0.0, 1e+18]: of the weights */
  int64_t total_tokens;         /* default 0, in [0, 1099511627776]: tokens that the losses are
                                 * means over; 0: T */
} velo_topk_router_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT \
  { \
    sizeof(velo_topk_router_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, VELO_ROUTER_SCORE_SOFTMAX, 1, \
    1.0, 0 \
  }

/* `dlogits = ds * dweights + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`.
 * ds: from the weights to the logits, dp: from s / sum(s) to the logits, lse: logsumexp(logits).
 * The choice is constant; dropped choices take no gradient. Over ranks counts and total_tokens are
 * those of all.
 *
 * Gradient of velo_topk_router.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: scores in float32, sums of tokens
 * in double; the choice is exact and the same for every kernel.
 * Cost: one read of logits, one write of dlogits.
 * Source: gradient of topk_router.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_topk_router_backward(velo_stream stream,
                                               const velo_topk_router_backward_args* args);

/* ---- capacity_gate --------------------------------------------------------------------------- */

typedef struct velo_capacity_gate_args {
  uint32_t struct_size;           /* sizeof(velo_capacity_gate_args) */
  uint32_t reserved;              /* 0 */
  const velo_tensor* logits;      /* in; float32 | bfloat16 | float16: [T, E]; those of a
                                   * balanced gate come from sinkhorn */
  const velo_tensor* weights;     /* out: float32, [T, k] */
  const velo_tensor* indices;     /* out: int32, [T, k], the first choice first */
  const velo_tensor* positions;   /* out: int32, [T, k], the place of each choice at its expert */
  const velo_tensor* slot_tokens; /* out, or NULL: int32, [E, capacity], the token at each place;
                                   * -1 none */
  const velo_tensor* combine;     /* out, or NULL: float32, [T, E, capacity], the weights as a
                                   * matrix */
  const velo_tensor* dispatch;    /* out, or NULL: uint8, [T, E, capacity], 1 for each choice
                                   * that is kept */
  const velo_tensor* counts;      /* out, or NULL: int64, [E], choices before any is dropped */
  const velo_tensor* aux_loss;    /* out, or NULL: float32, a number */
  const velo_tensor* z_loss;      /* out, or NULL: float32, a number */
  int64_t k;                      /* default 1, in [1, 2]: experts of a token */
  double capacity_factor;         /* default 1.0, in [1e-06, 1e+06]: places over those that even
                                   * shares need */
  int64_t min_capacity;           /* default 4, in [1, 2147483647]: places of an expert at least,
                                   * where there are as many tokens */
  int64_t capacity;               /* default 0, in [0, 2147483647]: places of an expert, whatever
                                   * the factor; 0: by it; T: none is dropped */
  int64_t noise;                  /* VELO_GATE_NOISE_*, default none: of the choice */
  int64_t random_selection;       /* 0 or 1, default 0: 1: draws decide which tokens an expert
                                   * keeps; 0 where k is 2 */
  int64_t seed;                   /* default 0: key of the generator, modulo 2^64 */
  int64_t offset;                 /* default 0: upper half of its counter: another for each call
                                   * that shares the seed */
  int64_t first_token;            /* default 0, in [0, 1099511627776]: number of the first token
                                   * among those of all ranks */
} velo_capacity_gate_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CAPACITY_GATE_ARGS_INIT \
  { \
    sizeof(velo_capacity_gate_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1.0, 4, 0, \
    VELO_GATE_NOISE_NONE, 0, 0, 0, 0 \
  }

/* `w = s / sum[kept](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss = mean(logsumexp(logits)^2)`.
 * DeepSpeed's gates top-1 (w = s) and top-2 over s = softmax(logits): a token's first choice is the
 * expert of its largest logit, its second that of the next, of equal ones the lower index. f is an
 * expert's share of first choices before any is dropped, p the mean of s. The losses are means over
 * the tokens of the call.
 * An expert has `capacity` places: as many as given, or else min(T, max(min_capacity, ceil(T / E *
 * capacity_factor * k))), in float32 as DeepSpeed computes it. First choices take them in the order
 * of tokens, then second ones. With random_selection those of the largest draws are kept, of equal
 * ones the first. A choice beyond them is dropped: weight 0, position -1, index -1 - expert, which
 * moe_token_permute takes; of two choices the one that is kept has weight 1.
 * RSample adds Gumbel's noise, -log(-log(u)), to the logits that the last of the k choices
 * compares; weights and losses have none. With word(i) as of dropout, the draw of token t for
 * expert e is i = t * (E + 1) + e, that of the token itself e = E, u = (word + 1/2) / 2^32, and t
 * counts from first_token: ranks that have some of the tokens draw what one rank with all would.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: scores in float32, sums of tokens
 * in double; the choice is exact and the same for every kernel.
 * Cost: one read of logits.
 * Source: DeepSpeed top1gating, top2gating; GShard, arXiv:2006.16668; features F80, F81 of
 * MindSpeed.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_capacity_gate(velo_stream stream, const velo_capacity_gate_args* args);

/* ---- capacity_gate_backward ------------------------------------------------------------------ */

typedef struct velo_capacity_gate_backward_args {
  uint32_t struct_size;         /* sizeof(velo_capacity_gate_backward_args) */
  uint32_t reserved;            /* 0 */
  const velo_tensor* logits;    /* in; float32 | bfloat16 | float16: of the forward call */
  const velo_tensor* indices;   /* in; int32: of the forward call */
  const velo_tensor* positions; /* in, or NULL; int32: of the forward call; dcombine needs them */
  const velo_tensor* dweights;  /* in, or NULL; float32: [T, k] */
  const velo_tensor* dcombine;  /* in, or NULL; float32: [T, E, capacity] */
  const velo_tensor* daux_loss; /* in, or NULL; float32: a number */
  const velo_tensor* dz_loss;   /* in, or NULL; float32: a number */
  const velo_tensor* dlogits;   /* out: as logits */
} velo_capacity_gate_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CAPACITY_GATE_BACKWARD_ARGS_INIT \
  { sizeof(velo_capacity_gate_backward_args), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* `dlogits = ds * dw + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`.
 * ds: from the weights to the logits, dp: from p to the logits, lse: logsumexp(logits), dw:
 * dweights, and dcombine at the places of the choices. The choice is constant, noise and draws with
 * it; dropped choices take no gradient, nor does a weight that is 1 because the other choice was
 * dropped.
 *
 * Gradient of velo_capacity_gate.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+18: scores in float32, sums of tokens
 * in double; the choice is exact and the same for every kernel.
 * Cost: one read of logits, one write of dlogits.
 * Source: gradient of capacity_gate.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_capacity_gate_backward(velo_stream stream,
                                                 const velo_capacity_gate_backward_args* args);

/* ---- sinkhorn -------------------------------------------------------------------------------- */

typedef struct velo_sinkhorn_args {
  uint32_t struct_size;      /* sizeof(velo_sinkhorn_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* logits; /* in; float32 | bfloat16 | float16: [T, E] */
  const velo_tensor* y;      /* out: float32, [T, E] */
  double tolerance;          /* default 0.0001, in [0.0, 1e+18]: mean change of the factors of
                              * experts that ends the rounds */
  int64_t max_rounds;        /* default 1000, in [1, 100000]: rounds at most */
} velo_sinkhorn_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SINKHORN_ARGS_INIT \
  { sizeof(velo_sinkhorn_args), 0, 0, 0, 0.0001, 1000 }

/* `y = rows * exp(logits) * columns`.
 * A factor a token and one an expert, such that each token has about 1 / T and each expert about 1
 * / E in sum: rows = 1 / (T (sum_e exp(logits) columns + 1e-8)) and columns = 1 / (E (sum_t
 * exp(logits) rows + 1e-8)) in turn, columns from 1 on, until the mean change of the columns is at
 * most the tolerance. exp(logits) is not scaled, so logits beyond 700 overflow.
 * A balanced gate chooses by y: as the logits of capacity_gate (MindSpeed), or for the choice alone
 * (Megatron-LM).
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+02: in double, rounded once.
 * Cost: one read of logits, one write of y; 16 bytes an element for each round.
 * Source: Megatron-LM sinkhorn; BASE layers, arXiv:2103.16716.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_sinkhorn(velo_stream stream, const velo_sinkhorn_args* args);

/* ---- sinkhorn_backward ----------------------------------------------------------------------- */

typedef struct velo_sinkhorn_backward_args {
  uint32_t struct_size;       /* sizeof(velo_sinkhorn_backward_args) */
  uint32_t reserved;          /* 0 */
  const velo_tensor* logits;  /* in; float32 | bfloat16 | float16: of the forward call */
  const velo_tensor* dy;      /* in; float32: [T, E] */
  const velo_tensor* dlogits; /* out: as logits */
  double tolerance;           /* default 0.0001, in [0.0, 1e+18]: mean change of the factors of
                               * experts that ends the rounds */
  int64_t max_rounds;         /* default 1000, in [1, 100000]: rounds at most */
} velo_sinkhorn_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_SINKHORN_BACKWARD_ARGS_INIT \
  { sizeof(velo_sinkhorn_backward_args), 0, 0, 0, 0, 0.0001, 1000 }

/* `dlogits = exp(logits) * dpowers`.
 * dpowers is the gradient of exp(logits), back through all rounds of the forward call, which are
 * computed again.
 *
 * Gradient of velo_sinkhorn.
 * In place: no output may share memory with another tensor.
 * Accuracy: for inputs that are 0 or of magnitude 1e-18 to 1e+02: in double, rounded once.
 * Cost: one read of logits and dy, one write of dlogits; 48 bytes an element for each round.
 * Source: gradient of sinkhorn.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_sinkhorn_backward(velo_stream stream,
                                            const velo_sinkhorn_backward_args* args);

VELO_END_C

#endif
