/* Profiles: when the work of a context began and ended, as a trace and as data.
 *
 * A profiler records from its creation until it is stopped: operators of all streams, collectives
 * and messages of the context's groups, ranges that the host marks, and with a higher level their
 * work and waits. A context has one that records at a time. What it recorded is read after the
 * stop, event by event or as a trace for Perfetto (https://ui.perfetto.dev), in which each thread
 * of the process has a track. Traces of several ranks are joined from VELO_PROFILER_EVENTS.
 *
 * Times are of CLOCK_MONOTONIC, in nanoseconds, so that those of ranks on one host fit together.
 * Memory for all events is taken at the creation. An event takes 120 bytes and 0.15 us; a
 * context without a profiler pays a load a call. Events beyond the number asked for are counted and
 * not kept.
 */
#ifndef VELO_PROFILER_H
#define VELO_PROFILER_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* How much is recorded. */
typedef int32_t velo_profiler_level;
enum {
  VELO_PROFILER_TIMES = 0, /* operators, collectives, messages and ranges, by name */
  VELO_PROFILER_WORK = 1,  /* also their flops and bytes */
  VELO_PROFILER_WAITS = 2  /* also the time of work in its queue, and of waits for events */
};

typedef struct velo_profiler_desc {
  uint32_t struct_size;
  uint32_t reserved;
  velo_profiler_level level;
  int32_t rank;      /* of the process among those that are traced, from 0 on */
  uint64_t events;   /* that are kept, 1 to 2^24 */
  const char* label; /* of the process in the trace, at most 63 bytes of UTF-8; NULL = "rank N" */
} velo_profiler_desc;

#define VELO_PROFILER_DESC_INIT \
  { sizeof(velo_profiler_desc), 0, VELO_PROFILER_TIMES, 0, 65536, 0 }

typedef struct velo_profiler_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t events;  /* kept */
  uint64_t dropped; /* that found no room */
  int64_t begin_ns; /* of the recording */
  int64_t end_ns;   /* 0 = not stopped */
} velo_profiler_stats;

#define VELO_PROFILER_STATS_INIT \
  { sizeof(velo_profiler_stats), 0, 0, 0, 0, 0 }

/* The kind of an event. */
typedef int32_t velo_profiler_kind;
enum {
  VELO_PROFILER_OPERATOR = 0,   /* a call of an operator; detail: its kernel */
  VELO_PROFILER_COLLECTIVE = 1, /* a call of a group; detail: the group's label */
  VELO_PROFILER_RANGE = 2,      /* marked by the host */
  VELO_PROFILER_WAIT = 3,       /* for an event; or "queue": of work, whose function is the detail,
                                   in its queue */
  VELO_PROFILER_FAILED = 4      /* a call of a group that failed; detail: the group's label */
};

typedef struct velo_profiler_event {
  uint32_t struct_size;
  uint32_t reserved;
  velo_profiler_kind kind;
  int32_t thread;     /* of the process, as the system numbers them */
  int64_t begin_ns;   /* when it began */
  int64_t end_ns;     /* when it ended */
  const char* name;   /* "matmul", "all_reduce", the text of a range; the profiler's */
  const char* detail; /* "" = none; the profiler's */
  double flops;       /* of an operator, as velo_op_cost has them; 0 below level 1 */
  double bytes;       /* of an operator read and written, of a collective moved; 0 below level 1 */
} velo_profiler_event;

#define VELO_PROFILER_EVENT_INIT \
  { sizeof(velo_profiler_event), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A text of a profile. */
typedef int32_t velo_profiler_format;
enum {
  VELO_PROFILER_TRACE = 0, /* Chrome's trace events, a JSON object, for Perfetto; the process is the
                              rank */
  VELO_PROFILER_EVENTS = 1 /* the elements of its list traceEvents alone, a line each, to be joined
                              with those of other ranks by commas; never empty */
};

/* Begins to record calls that begin from now on. desc: copied. profiler: receives the handle;
 * destroy it with velo_profiler_destroy. Its context, when destroyed, ends it, too: the handle is
 * refused from then on. Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (label: also
 * bytes that are no UTF-8), UNSUPPORTED (a field of newer headers), STATE (another profiler of the
 * context records), MEMORY. */
VELO_API velo_status velo_profiler_create(velo_context context, const velo_profiler_desc* desc,
                                          velo_profiler* profiler);

/* Stops and ends a profiler. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_profiler_destroy(velo_profiler profiler);

/* Begins a range of the calling thread, inside of those that it has begun before. text: at most 63
 * bytes of UTF-8, copied. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (text: longer, or no
 * UTF-8), STATE (the profiler has stopped), MEMORY. */
VELO_API velo_status velo_profiler_begin(velo_profiler profiler, const char* text);

/* Ends the calling thread's last range that has not ended. Thread class: any. Errors: NULL, HANDLE,
 * STATE (there is none), MEMORY. */
VELO_API velo_status velo_profiler_end(velo_profiler profiler);

/* Records no more; ends the ranges of all threads. Calls that have not ended are not recorded. A
 * second time it does nothing. Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_profiler_stop(velo_profiler profiler);

/* How much was recorded. stats: struct_size is set by the caller. Thread class: any. Errors: NULL,
 * HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_profiler_get_stats(velo_profiler profiler, velo_profiler_stats* stats);

/* An event by its index below stats.events, in the order of the ends. event: struct_size is set by
 * the caller. Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (index), STATE (not
 * stopped). */
VELO_API velo_status velo_profiler_get_event(velo_profiler profiler, int64_t index,
                                             velo_profiler_event* event);

/* The profile as a text. buffer: receives at most `capacity` bytes, the last of them zero; with
 * NULL and capacity 0 only the size is asked for. needed: receives how many bytes all of it takes
 * with the zero behind it; may be NULL. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (format),
 * STATE (not stopped), MEMORY. */
VELO_API velo_status velo_profiler_write(velo_profiler profiler, velo_profiler_format format,
                                         char* buffer, uint64_t capacity, uint64_t* needed);

/* The trace into a file, for its owner alone to read, which takes the place of an ordinary file
 * that was at `path`. It is there whole or not at all. Thread class: any. Errors: NULL, HANDLE,
 * ARGUMENT (an empty path), STATE (not stopped), MEMORY, IO. */
VELO_API velo_status velo_profiler_save(velo_profiler profiler, const char* path);

VELO_END_C

#endif
