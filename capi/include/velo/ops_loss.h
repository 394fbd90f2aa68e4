/* Losses.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/loss.json: change that and build the target `generate`. */
#ifndef VELO_OPS_LOSS_H
#define VELO_OPS_LOSS_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* How per-token losses become the result. */
enum {
  VELO_REDUCTION_NONE = 0, /* one loss a token */
  VELO_REDUCTION_MEAN = 1, /* mean over tokens that count */
  VELO_REDUCTION_SUM = 2   /* sum over tokens that count */
};

/* ---- cross_entropy --------------------------------------------------------------------------- */

typedef struct velo_cross_entropy_args {
  uint32_t struct_size;             /* sizeof(velo_cross_entropy_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* logits;        /* in; float32 | bfloat16 | float16: [T, V] */
  const velo_tensor* targets;       /* in; int32 | int64: [T]; each in [0, V) or ignore_index,
                                     * else VELO_ERR_ARGUMENT before anything is written */
  const velo_tensor* loss;          /* out: float32, [T] or [] */
  const velo_tensor* lse;           /* out, or NULL: float32, [T]: log-sum-exp of each row, what
                                     * the gradient needs */
  int64_t ignore_index;             /* default -100: the target that does not count */
  int64_t reduction;                /* VELO_REDUCTION_*, default mean: how tokens become one
                                     * number */
  const velo_tensor* class_weights; /* in, or NULL: float32, [V]: w; NULL: each is 1 */
  double label_smoothing;           /* default 0.0, in [0.0, 1.0]: e */
} velo_cross_entropy_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CROSS_ENTROPY_ARGS_INIT \
  { sizeof(velo_cross_entropy_args), 0, 0, 0, 0, 0, -100, VELO_REDUCTION_MEAN, 0, 0.0 }

/* `lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * w[targets[t]] * (lse[t] -
 * logits[t, targets[t]]) + e / V * sum[v](w[v] * (lse[t] - logits[t, v]))`.
 * w is class_weights, 1 where there are none, and e label_smoothing. loss[t] is 0 where targets[t]
 * is ignore_index.
 * A logit of +Inf makes lse[t] and loss[t] +Inf, as the formula says, and loss[t] NaN where it is
 * the target's; torch's loss[t] is NaN in either case.
 * reduction none gives [T]; mean divides the sum by the sum of w[targets[t]] over the tokens that
 * count (0 when none does); sum adds.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: float32 1e-6 relative to the largest logit, times the largest weight.
 * Cost: one read of logits.
 * Source: definition (log-softmax and negative log-likelihood).
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_cross_entropy(velo_stream stream, const velo_cross_entropy_args* args);

/* ---- cross_entropy_backward ------------------------------------------------------------------ */

typedef struct velo_cross_entropy_backward_args {
  uint32_t struct_size;             /* sizeof(velo_cross_entropy_backward_args) */
  uint32_t reserved;                /* 0 */
  const velo_tensor* dloss;         /* in: float32, shape of loss */
  const velo_tensor* logits;        /* in; float32 | bfloat16 | float16: the forward input */
  const velo_tensor* targets;       /* in; int32 | int64: the forward targets */
  const velo_tensor* lse;           /* in: float32, [T], from the forward pass */
  const velo_tensor* dlogits;       /* out: shape and dtype of logits; may be logits itself */
  int64_t ignore_index;             /* default -100: as in the forward call */
  int64_t reduction;                /* VELO_REDUCTION_*, default mean: as in the forward call */
  const velo_tensor* class_weights; /* in, or NULL; float32: as in the forward call */
  double label_smoothing;           /* default 0.0, in [0.0, 1.0]: as in the forward call */
} velo_cross_entropy_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT \
  { sizeof(velo_cross_entropy_backward_args), 0, 0, 0, 0, 0, 0, -100, VELO_REDUCTION_MEAN, 0, 0.0 }

/* `b[t, v] = (1 - e) * w[v] * [v = targets[t]] + e / V * w[v]`; `dlogits[t, v] = (exp(logits[t, v]
 * - lse[t]) * sum[u](b[t, u]) - b[t, v]) * dloss[t]`.
 * [v = targets[t]] is 1 where that holds, else 0: without weights and smoothing dlogits is (softmax
 * - one-hot) * dloss[t]. It is 0 in ignored rows, and dloss[t] the share of dloss that the
 * reduction gives token t. In place over the logits, no second logits tensor is needed.
 *
 * Gradient of velo_cross_entropy.
 * In place: dlogits may be logits.
 * Accuracy: float32 1e-6 of dloss_t; bfloat16 half an ulp more; float16 half an ulp and 4e-6 of the
 * probability.
 * Cost: one read of logits and one write of dlogits.
 * Source: gradient of cross_entropy.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_cross_entropy_backward(velo_stream stream,
                                                 const velo_cross_entropy_backward_args* args);

VELO_END_C

#endif
