/* Timelines: when the actions of a schedule begin and end, simulated (velo_schedule_simulate) or
 * measured (velo_executor_get_timeline), and what follows from that: makespan and bubbles, the
 * critical path, what each rank's memory holds, pictures.
 *
 * A timeline keeps the schedule that it was made of. Numbers are in the unit of the costs; of a
 * measured timeline in nanoseconds.
 *
 * Timelines belong to no context and no thread; calls with the same one are not to overlap.
 */
#ifndef VELO_TIMELINE_H
#define VELO_TIMELINE_H

#include "velo/schedule.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_timeline_stats {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  double makespan;   /* from the first action of any rank to the end of the last */
  double work;       /* what the actions of the rank take that works least */
  double beta;       /* makespan - work: the most that a rank is idle, by the clock */
  double sigma;      /* the most that a rank is idle between its own first and last action */
} velo_timeline_stats;

#define VELO_TIMELINE_STATS_INIT \
  { sizeof(velo_timeline_stats), 0, 0, 0, 0, 0 }

typedef struct velo_timeline_rank {
  uint32_t struct_size;
  uint32_t reserved;       /* 0 */
  double first;            /* when its first action begins */
  double last;             /* when its last action ends */
  double work;             /* what its actions take */
  double peak_activations; /* most activations held at a time, in micro-batches of a whole rank */
  double peak_offloaded;   /* most on the host at a time, in the same unit */
} velo_timeline_rank;

#define VELO_TIMELINE_RANK_INIT \
  { sizeof(velo_timeline_rank), 0, 0, 0, 0, 0, 0 }

/* A rank's memory at its peak, by category, in the unit of the costs' sizes. Weights and
 * optimizer states of a rank's stages are there all the time, weights that are gathered from
 * UNSHARD to RESHARD; gradients of a stage from its first W or B to the end of its OPTIMIZER; a
 * message from when it leaves its sender until the F that takes it begins, or the I or B ends. */
typedef struct velo_timeline_memory {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  double time;       /* when that is first */
  double total;      /* weights to messages */
  double weights;
  double gradients;
  double optimizer; /* states */
  double activations;
  double messages;
  double offloaded; /* most activations on the host, at any time */
} velo_timeline_memory;

#define VELO_TIMELINE_MEMORY_INIT \
  { sizeof(velo_timeline_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The cause that an action's begin waited for. */
typedef int32_t velo_path_cause;
enum {
  VELO_PATH_START = 0,     /* nothing: the timeline begins */
  VELO_PATH_RANK = 1,      /* an action of the same rank */
  VELO_PATH_MESSAGE = 2,   /* a message of another rank */
  VELO_PATH_COPY = 3,      /* a copy to the host or back */
  VELO_PATH_COLLECTIVE = 4 /* UNSHARD or REDUCE_GRAD */
};

/* One action of the critical path. */
typedef struct velo_path_step {
  velo_action action;
  int32_t rank;
  int64_t index; /* of the action in the rank's order */
  double begin;
  double length;
  double wait;           /* from the end of the step before, or from 0 */
  velo_path_cause cause; /* what it waited for: what the step before is to it */
  int32_t reserved;      /* 0 */
} velo_path_step;

/* A text of a timeline. */
typedef int32_t velo_timeline_format;
enum {
  VELO_TIMELINE_SUMMARY = 0,      /* the numbers, for people */
  VELO_TIMELINE_SUMMARY_JSON = 1, /* {"makespan", "work", "beta", "sigma", "peak_activations": [by
                                     rank], "critical_path": [by time], "memory": [by rank]}, the
                                     last two where there are at most 1048576 actions */
  VELO_TIMELINE_SVG = 2,          /* a picture: ranks from top to bottom, time to the right, a
                                     rectangle an action with its micro-batch; hatched: waiting;
                                     outlined: the critical path; where sizes are given, a bar a
                                     rank of its most memory by category, hollow what is
                                     offloaded */
  VELO_TIMELINE_TRACE = 3,        /* Chrome's trace events, JSON, for Perfetto; a unit of the costs
                                     is shown as a microsecond */
  VELO_TIMELINE_GRID = 4          /* the picture in characters */
};

/* Ends a timeline. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_timeline_destroy(velo_timeline timeline);

/* Numbers of a timeline. stats: receives them, at most stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_timeline_get_stats(velo_timeline timeline, velo_timeline_stats* stats);

/* Numbers of one rank. stats: receives them, at most stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such rank), STATE. */
VELO_API velo_status velo_timeline_get_rank(velo_timeline timeline, int32_t rank,
                                            velo_timeline_rank* stats);

/* Gives a rank's memory at its peak. memory: receives it, at most
 * memory->struct_size bytes. Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT
 * (no such rank; more than 2^25 actions), STATE, MEMORY. */
VELO_API velo_status velo_timeline_get_memory(velo_timeline timeline, int32_t rank,
                                              velo_timeline_memory* memory);

/* The critical path: the actions that the makespan consists of, by time. Lengths and waits of
 * all steps add up to the makespan. In a measured timeline the step before is what ended last of
 * all that the action needs. steps: receives the first `capacity` of them; may be NULL with
 * capacity 0. count: receives how many there are. Thread class: per-handle. Errors: NULL
 * (timeline, steps, count), HANDLE, ARGUMENT (capacity; more than 2^25 actions), STATE, MEMORY. */
VELO_API velo_status velo_timeline_get_path(velo_timeline timeline, int64_t capacity,
                                            velo_path_step* steps, int64_t* count);

/* A timeline as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with capacity
 * 0 asks for the size alone. needed: receives the size with its terminator; may be NULL. Pictures
 * and trace are of at most 1048576 actions.
 * Thread class: per-handle. Errors: NULL (timeline, buffer), HANDLE, ARGUMENT (format, also for too
 * many actions), STATE, MEMORY. */
VELO_API velo_status velo_timeline_write(velo_timeline timeline, velo_timeline_format format,
                                         char* buffer, uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
