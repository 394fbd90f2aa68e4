/* Rows of a table by index.
 *
 * Every function here runs on a stream, takes its arguments in a struct that begins with its own
 * size, and only grows at its end: start from the _INIT macro, set what you need. Tensors are
 * row-major views; a size written [..., n] means any number of leading dimensions. Where an output
 * may be strided, each of its strides is larger than all that the smaller ones reach. Of a double,
 * float32's range is taken.
 *
 * Generated from abi/spec/ops/embedding.json: change that and build the target `generate`. */
#ifndef VELO_OPS_EMBEDDING_H
#define VELO_OPS_EMBEDDING_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* ---- embedding ------------------------------------------------------------------------------- */

typedef struct velo_embedding_args {
  uint32_t struct_size;     /* sizeof(velo_embedding_args) */
  uint32_t reserved;        /* 0 */
  const velo_tensor* ids;   /* in; int32 | int64: any shape; each in [0, V), else
                             * VELO_ERR_ARGUMENT before anything is written */
  const velo_tensor* table; /* in; float32 | bfloat16 | float16: [V, D] */
  const velo_tensor* y;     /* out: shape of ids with D appended, dtype of table */
} velo_embedding_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_EMBEDDING_ARGS_INIT \
  { sizeof(velo_embedding_args), 0, 0, 0, 0 }

/* `y[t] = table[ids[t]]`.
 *
 * In place: no output may share memory with another tensor.
 * Accuracy: exact.
 * Cost: one read of the rows used and one write of y.
 * Source: definition.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_embedding(velo_stream stream, const velo_embedding_args* args);

/* ---- embedding_backward ---------------------------------------------------------------------- */

typedef struct velo_embedding_backward_args {
  uint32_t struct_size;      /* sizeof(velo_embedding_backward_args) */
  uint32_t reserved;         /* 0 */
  const velo_tensor* ids;    /* in; int32 | int64: as in the forward call */
  const velo_tensor* dy;     /* in; float32 | bfloat16 | float16: shape of ids with D appended */
  const velo_tensor* dtable; /* out: float32, [rows, D] */
  int64_t rows;              /* default 0, in [0, 1099511627776]: V, the rows of the table */
  int64_t accumulate;        /* 0 or 1, default 0: 1 adds to dtable instead of writing it */
} velo_embedding_backward_args;

/* Starting values: every attribute at its default, every pointer NULL. */
#define VELO_EMBEDDING_BACKWARD_ARGS_INIT \
  { sizeof(velo_embedding_backward_args), 0, 0, 0, 0, 0, 0 }

/* `dtable[ids[t]] += dy[t]`.
 * Over all t in order; rows no id names become zero, or keep their value with accumulate.
 *
 * Gradient of velo_embedding.
 * In place: no output may share memory with another tensor.
 * Accuracy: float32 sums in token order.
 * Cost: one read of dy, one read and write of the rows used.
 * Source: gradient of embedding.
 *
 * args is copied before the call returns; its tensors stay the caller's, and their data must
 * live until the work is done. Thread class: per-stream. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_embedding_backward(velo_stream stream,
                                             const velo_embedding_backward_args* args);

VELO_END_C

#endif
