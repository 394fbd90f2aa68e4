/* Plans for recompute: which outputs of a known step are freed and made again, so that it runs
 * within a budget of bytes in least time.
 *
 * The host adds the operations of a step - forward and backward - in the order in which they run:
 * seconds, bytes of the output, which outputs each takes. velo_recompute_plan_solve finds a
 * sequence of computing and freeing for a budget (velo_recompute_plan_get_step), in which every
 * operation runs after its inputs were made, first runs keep their order, and no more than the
 * budget is there at any moment.
 *
 * Quality. Up to 16 operations the sequence is optimal: an exact search proves that no other takes
 * less, or that the budget has none. For more operations the best sequence is hard to find. Greedy
 * ones come first, DTR's among them, so that none is worse than that; outputs then stay where there
 * is room, and up to 1,024 operations a search over what stays between the stages of the step
 * follows. Up to 63 operations the exact search ends it, limited to 131,072 states. `optimal` of
 * the numbers says what was proven. All searches are limited by work and not by time: the same
 * operations, budget and seed give the same sequence on every machine.
 *
 * A plan belongs to no context and no thread; its calls are not to overlap.
 */
#ifndef VELO_RECOMPUTE_PLAN_H
#define VELO_RECOMPUTE_PLAN_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_recompute_plan_s* velo_recompute_plan;

/* An operation with one output. What it takes from outside the step is no input: it is there. */
typedef struct velo_recompute_op {
  uint32_t struct_size;
  int32_t keep;       /* 1 = the output is there at the end of the step */
  double seconds;     /* of running it once, 0 to 1e18 */
  uint64_t bytes;     /* of its output */
  uint64_t workspace; /* bytes it needs beside while it runs */
  const int64_t*
      inputs;          /* indexes of the operations whose outputs it takes, all before it; copied */
  int64_t input_count; /* inputs may be NULL when this is 0 */
} velo_recompute_op;

#define VELO_RECOMPUTE_OP_INIT \
  { sizeof(velo_recompute_op), 0, 0, 0, 0, 0, 0 }

typedef struct velo_recompute_plan_options {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  uint64_t budget;   /* most bytes of outputs and workspace at any moment */
  uint64_t seed;     /* of the choices that are left to chance */
} velo_recompute_plan_options;

#define VELO_RECOMPUTE_PLAN_OPTIONS_INIT \
  { sizeof(velo_recompute_plan_options), 0, 0, 1 }

typedef int32_t velo_recompute_step_kind;
enum {
  VELO_RECOMPUTE_STEP_COMPUTE = 0, /* run the operation: its output is there from now on */
  VELO_RECOMPUTE_STEP_FREE = 1     /* its output is there no longer */
};

typedef struct velo_recompute_step {
  uint32_t struct_size;
  velo_recompute_step_kind kind;
  int64_t op; /* its index */
} velo_recompute_step;

#define VELO_RECOMPUTE_STEP_INIT \
  { sizeof(velo_recompute_step), 0, 0 }

typedef struct velo_recompute_plan_stats {
  uint32_t struct_size;
  int32_t solved;      /* 1 = there are steps */
  uint64_t ops;        /* their number */
  uint64_t steps;      /* their number */
  uint64_t bytes_all;  /* most bytes at a moment when nothing is made again */
  uint64_t bytes_peak; /* of the steps */
  double seconds;      /* of every operation once */
  double seconds_more; /* that the steps take beyond it */
  int32_t optimal;     /* 1 = proven: no steps within the budget take less; always up to 16 ops */
  int32_t reserved;
} velo_recompute_plan_stats;

#define VELO_RECOMPUTE_PLAN_STATS_INIT \
  { sizeof(velo_recompute_plan_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A plan without operations. plan: receives the handle; destroy it with
 * velo_recompute_plan_destroy. Thread class: any. Errors: NULL, MEMORY. */
VELO_API velo_status velo_recompute_plan_create(velo_recompute_plan* plan);

/* Ends a plan. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_recompute_plan_destroy(velo_recompute_plan plan);

/* Adds an operation behind those there are. index: receives its index, counted from 0; may be NULL.
 * Steps found before are gone.
 * Thread class: per-handle. Errors: NULL (plan, op; op->inputs with a count), HANDLE, STRUCT,
 * ARGUMENT (seconds; bytes whose sum is 2^63 and more; an input not before the operation),
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_recompute_plan_add(velo_recompute_plan plan, const velo_recompute_op* op,
                                             int64_t* index);

/* Finds steps within a budget. Where none are found, the record names the least budget for which
 * some were (up to 16 operations: for which some exist), and the operation that alone needs more;
 * steps found before stay then.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (the budget), UNSUPPORTED (a
 * field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_recompute_plan_solve(velo_recompute_plan plan,
                                               const velo_recompute_plan_options* options);

/* A step, by its place. step: receives it, at most step->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such step), STATE (not
 * solved). */
VELO_API velo_status velo_recompute_plan_get_step(velo_recompute_plan plan, int64_t index,
                                                  velo_recompute_step* step);

/* Numbers of a plan. stats: receives them, at most stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE, MEMORY. */
VELO_API velo_status velo_recompute_plan_get_stats(velo_recompute_plan plan,
                                                   velo_recompute_plan_stats* stats);

VELO_END_C

#endif
