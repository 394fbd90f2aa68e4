/* Operators that exchange parts of sequences between ranks.
 * All ranks of the group make the call, in the same order; it has its place among the collectives
 * of the group. At level 2 threads of a local group read each other's tensors, and processes (shm)
 * copy rows through shared memory. Otherwise, or if the group's buffer is too small, blocks are
 * packed and sent by an all-to-all. The bits are the same. All ranks have one level. Ranks whose
 * calls pass their own checks but disagree about rows, heads or the way all get VELO_ERR_PEER.
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

VELO_END_C

#endif
