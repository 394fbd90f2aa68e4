/* The static plan: addresses for buffers whose lifetimes are known before they are used.
 *
 * A training step allocates the same buffers again and again. Who knows their lifetimes can give
 * each a fixed address in one block of memory, without fragmentation and without an allocator at
 * run time. A plan takes buffers (by velo_plan_add, or from a text), finds addresses
 * (velo_plan_solve) and gives them back (velo_plan_get_buffer, velo_plan_write).
 *
 * Quality. No block can be smaller than the most bytes alive at one time, the lower bound; how far
 * the height found lies above it is always known (velo_plan_get_stats). Heuristics come first and
 * take milliseconds; search closes the gap they leave, until the height is the lower bound or at
 * most `capacity`, or time is up. On the calling thread alone the same buffers, seed and enough
 * time give the same addresses on every machine; several threads search each in a way of its own.
 *
 * Alignment is a matter of sizes: addresses are sums of sizes, so sizes that are multiples of 64
 * give addresses that are.
 *
 * Steps. A plan with a pool learns the buffers itself. Between velo_plan_begin and velo_plan_end
 * all that is allocated through the plan (velo_plan_allocate, velo_plan_allocator) is one step:
 *
 *   begin(RECORD), the step, end     what is requested, used and freed becomes the buffers of the
 *                                    plan; the memory comes from the pool
 *   solve
 *   begin(REPLAY), the step, end     any number of times: what is asked for as it was recorded lies
 *                                    at its address, everything else comes from the pool
 *
 * In a replay the requests of a thread are held against what was recorded of one thread, in order.
 * A request of another size lies at the place of the one expected when it fits there; one that is
 * new, too large, or whose place is not free yet, comes from the pool; whatever was left out is
 * found again by those that follow, so that a difference stays one. All are counted
 * (velo_plan_get_step). The memory behind addresses comes with their first use, and goes back to
 * the system where the pool would else have to hold more than it and the plan ever did. What is
 * alive when a recorded step ends, what work queued on a stream is to use, and what is larger than
 * the capacity, is the pool's in the replay as well.
 *
 * Threads. Allocations, frees and uses may come from several threads at once. Each thread follows
 * one thread of the recording: the one that calls velo_plan_begin its own, every other the first
 * not yet followed whose first request is the same. What one thread frees late for another's
 * request is seen: that request comes from the pool.
 *
 * A plan belongs to no context and no thread. Its calls are not to overlap but for those of thread
 * class `any`. It must outlive what is allocated through it, and its pool must outlive it.
 */
#ifndef VELO_PLAN_H
#define VELO_PLAN_H

#include "velo/context.h"
#include "velo/pool.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_plan_s* velo_plan;

/* A text that a plan reads or writes. Columns are found by their names, in any order; lines end in
 * LF or CRLF. */
typedef int32_t velo_plan_format;
enum {
  VELO_PLAN_CSV = 0,     /* id,lower,upper,size, written with offset: a buffer a row */
  VELO_PLAN_RMM_LOG = 1, /* Thread,Time,Action,Pointer,Size,Stream: an event a row; read only */
  VELO_PLAN_SVG = 2,     /* a picture of time and addresses; written only */
  VELO_PLAN_SWAPS = 3    /* the swaps of velo_plan_solve_swaps as JSON; written only */
};

/* The way a step is treated. */
typedef int32_t velo_plan_mode;
enum {
  VELO_PLAN_RECORD = 0, /* its requests become the plan's buffers */
  VELO_PLAN_REPLAY = 1  /* its requests are answered from the plan */
};

/* How a buffer is used. */
typedef int32_t velo_access;
enum {
  VELO_ACCESS_READ = 0, /* its contents stay */
  VELO_ACCESS_WRITE = 1 /* they change */
};

typedef struct velo_plan_desc {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  uint64_t capacity; /* a height that is low enough, and the most bytes of a buffer; 0 = no such
                        height: the lower bound alone is low enough */
  velo_pool pool;    /* of its steps, and must outlive the plan; NULL = it has no steps */
} velo_plan_desc;

#define VELO_PLAN_DESC_INIT \
  { sizeof(velo_plan_desc), 0, 0, 0 }

typedef struct velo_plan_options {
  uint32_t struct_size;
  int32_t threads; /* that search, the calling one of them: 1 to 64 */
  double seconds;  /* of search at most; 0 = heuristics alone */
  uint64_t seed;   /* of the choices that are left to chance */
} velo_plan_options;

#define VELO_PLAN_OPTIONS_INIT \
  { sizeof(velo_plan_options), 1, 10, 1 }

typedef struct velo_plan_buffer {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t lower;     /* first time at which it is alive */
  int64_t upper;     /* first time after that at which it is not */
  uint64_t bytes;    /* its size */
  int64_t offset;    /* its address, from 0; -1 = none so far */
} velo_plan_buffer;

#define VELO_PLAN_BUFFER_INIT \
  { sizeof(velo_plan_buffer), 0, 0, 0, 0, 0 }

typedef struct velo_plan_stats {
  uint32_t struct_size;
  int32_t solved;       /* 1 = every buffer has an address */
  uint64_t buffers;     /* their number */
  uint64_t capacity;    /* as given; 0 = none */
  uint64_t lower_bound; /* most bytes alive at one time: no height is less */
  uint64_t height;      /* bytes from address 0 that the buffers need; 0 before velo_plan_solve */
  uint64_t uses;        /* the number of uses */
} velo_plan_stats;

#define VELO_PLAN_STATS_INIT \
  { sizeof(velo_plan_stats), 0, 0, 0, 0, 0, 0 }

/* An empty plan. desc: copied; may be NULL for all defaults. plan: receives the handle; destroy it
 * with velo_plan_destroy.
 * Thread class: any. Errors: NULL (plan), HANDLE (desc.pool), STRUCT, ARGUMENT (capacity),
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_plan_create(const velo_plan_desc* desc, velo_plan* plan);

/* Ends a plan. What is allocated at its addresses stays mapped. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_plan_destroy(velo_plan plan);

/* Adds a buffer of `bytes` bytes, alive in the half-open range of times [lower, upper): one whose
 * lower is another's upper may have its address. index: receives the buffer's index, counted from
 * 0; may be NULL. Addresses found before are gone.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, ARGUMENT (lower not below upper; bytes 0,
 * above the capacity, or of a sum of 2^63 and more), STATE, MEMORY. */
VELO_API velo_status velo_plan_add(velo_plan plan, int64_t lower, int64_t upper, uint64_t bytes,
                                   int64_t* index);

/* Adds the buffers of a text, all of them or, on failure, none. text: `length` bytes, copied. Of
 * the CSV ids must differ from each other and from those there are (of velo_plan_add: the
 * index); they are UTF-8 without control characters. Of a pointer that a log allocates again,
 * and of an index that was an id before, the CSV that is written has the id with a number behind
 * it, so that it can be read again. Of a log a buffer lives from the place of its allocation
 * among the rows to that of its free, or to the end. Addresses found before are gone. Thread
 * class: per-handle. Errors: NULL, HANDLE, ARGUMENT (format; what makes no sense in the text,
 * named with line and column), STATE, MEMORY. */
VELO_API velo_status velo_plan_read(velo_plan plan, velo_plan_format format, const char* text,
                                    uint64_t length);

/* Finds an address for every buffer, so that those alive at one time lie apart. A height above the
 * capacity is no failure: ask velo_plan_get_stats. options: copied; may be NULL for all defaults.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, STRUCT, ARGUMENT (seconds, threads),
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_plan_solve(velo_plan plan, const velo_plan_options* options);

/* A buffer, by its index in the order of adding. buffer: receives it, at most buffer->struct_size
 * bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_plan_get_buffer(velo_plan plan, int64_t index, velo_plan_buffer* buffer);

/* Numbers of a plan. stats: receives them, at most stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE, MEMORY. */
VELO_API velo_status velo_plan_get_stats(velo_plan plan, velo_plan_stats* stats);

/* A solved plan, or its solved swaps, as a text. buffer: the caller's, `capacity` bytes,
 * zero-terminated; NULL with capacity 0 asks for the size alone. needed: receives the size with
 * its terminator; may be NULL. Thread class: per-handle. Errors: NULL (plan, buffer), HANDLE,
 * ARGUMENT (format), STATE (not solved), MEMORY. */
VELO_API velo_status velo_plan_write(velo_plan plan, velo_plan_format format, char* buffer,
                                     uint64_t capacity, uint64_t* needed);

/* A use of a buffer: at a time, for reading or writing. Which of two uses at one time is first is
 * not known. */
typedef struct velo_plan_use_info {
  uint32_t struct_size;
  velo_access access;
  int64_t buffer; /* its index */
  int64_t time;   /* within its life */
} velo_plan_use_info;

#define VELO_PLAN_USE_INFO_INIT \
  { sizeof(velo_plan_use_info), VELO_ACCESS_READ, 0, 0 }

/* Adds a use of a buffer. A buffer without uses counts as written when its life begins and read
 * when it ends. Thread class: per-handle. Errors: NULL (plan), HANDLE, ARGUMENT (no such index;
 * a time outside the buffer's life; access), STATE, MEMORY. */
VELO_API velo_status velo_plan_add_use(velo_plan plan, int64_t index, int64_t time,
                                       velo_access access);

/* Adds computing that takes so many seconds and ends at a time: it needs all that is used after the
 * computing before it, up to that time.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, ARGUMENT (seconds), STATE, MEMORY. */
VELO_API velo_status velo_plan_add_work(velo_plan plan, int64_t time, double seconds);

/* A use, by its place in the order of adding. use: receives it, at most use->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_plan_get_use(velo_plan plan, int64_t index, velo_plan_use_info* use);

/* Begins a step of a plan with a pool. A recording takes the place of the plan's buffers, uses and
 * computing when it ends; a replay needs a recording that is solved.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, ARGUMENT (mode), STATE (no pool; a step
 * that has not ended; nothing recorded, or not solved), MEMORY. */
VELO_API velo_status velo_plan_begin(velo_plan plan, velo_plan_mode mode);

/* Ends the step.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, STATE (there is none), MEMORY (it has not
 * ended). */
VELO_API velo_status velo_plan_end(velo_plan plan);

/* A block for a request, as of velo_pool_allocate; outside a step, one of the pool. memory:
 * receives its first byte; give it back with velo_plan_free. Thread class: any. Errors: NULL,
 * HANDLE (plan, its pool, stream), STRUCT, ARGUMENT, UNSUPPORTED (a field of newer headers),
 * STATE (no pool), MEMORY, FOREIGN (the pool's pressure callback). */
VELO_API velo_status velo_plan_allocate(velo_plan plan, const velo_pool_request* request,
                                        void** memory);

/* Takes a block back, of this step or an earlier one; as velo_pool_free.
 * Thread class: any. Errors: NULL (plan), HANDLE (plan, its pool, stream), ARGUMENT (no block in
 * use), STATE (no pool), FULL (the stream's queue; nothing was freed), MEMORY (for the marker in
 * the queue; nothing was freed). */
VELO_API velo_status velo_plan_free(velo_plan plan, void* memory, uint64_t bytes,
                                    velo_stream stream);

/* Says that the block at `memory`, its first byte, is used now. Recorded where a recording has the
 * block, else nothing happens.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (access), STATE (no pool), MEMORY. */
VELO_API velo_status velo_plan_use(velo_plan plan, const void* memory, velo_access access);

/* Says that computing of so many seconds ends now, which needed all that was used since the one
 * before it. Recorded in a recording, else nothing happens.
 * Thread class: any. Errors: NULL (plan), HANDLE, ARGUMENT (seconds), STATE (no pool), MEMORY. */
VELO_API velo_status velo_plan_work(velo_plan plan, double seconds);

/* Fills the caller's allocator, at most allocator->struct_size bytes of it, with functions that
 * allocate through the plan: for velo_context_desc, so that a context's memory is part of steps.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE (no pool). */
VELO_API velo_status velo_plan_allocator(velo_plan plan, velo_allocator* allocator);

/* The outcome of the step that has begun last. Requests are counted in the first that is
 * true of them. Bytes but of the step's requests are of the plan's whole life. */
typedef struct velo_plan_step {
  uint32_t struct_size;
  velo_plan_mode mode;
  uint64_t steps;               /* begun so far; 0 = nothing of what follows has been counted */
  uint64_t allocations;         /* requests of the step */
  uint64_t matched;             /* as recorded, at its address */
  uint64_t resized;             /* of another size, at the address of the one expected */
  uint64_t outliving;           /* as recorded, and the pool's there too */
  uint64_t displaced;           /* as recorded, but its address is not free: from the pool */
  uint64_t unexpected;          /* not as recorded: from the pool */
  uint64_t missing;             /* recorded but not asked for; once the step has ended */
  uint64_t bytes_planned;       /* the height of the plan: what addresses need at most */
  uint64_t bytes_reserved;      /* memory behind addresses now */
  uint64_t bytes_reserved_peak; /* highest value of bytes_reserved */
  uint64_t bytes_let_go;        /* given back to the system so far */
  uint64_t bytes_live;          /* of blocks in use at addresses, as requested */
} velo_plan_step;

#define VELO_PLAN_STEP_INIT \
  { sizeof(velo_plan_step), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most step->struct_size bytes of it.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE (no pool). */
VELO_API velo_status velo_plan_get_step(velo_plan plan, velo_plan_step* step);

/* How buffers are chosen that go to another tier. */
typedef int32_t velo_swap_policy;
enum {
  VELO_SWAP_FURTHEST = 0, /* the one whose next use lies furthest (Belady) */
  VELO_SWAP_SMART = 1,    /* by how many crowded stages its absence relieves, and its size; one that
                             would be late only when there is no other */
  VELO_SWAP_JOINT = 2     /* as it stalls least: buffers may also be dropped and made again */
};

typedef struct velo_swap_options {
  uint32_t struct_size;
  velo_swap_policy policy;
  uint64_t budget;             /* bytes of buffers that may be in memory at one time */
  double out_bytes_per_second; /* of the link that takes buffers away */
  double in_bytes_per_second;  /* of the link that brings them back; both work at once */
  double seconds;              /* of computing in a plan that says nothing of it, spread evenly over
                                 its times */
  uint64_t least_bytes;        /* smaller buffers stay */
  int32_t release_stages;      /* memory is free no sooner than so many stages after the last use */
  int32_t prefetch_stages; /* buffers come back no sooner than so many stages before the next use;
                                 0 = as soon as there is room */
} velo_swap_options;

#define VELO_SWAP_OPTIONS_INIT \
  { sizeof(velo_swap_options), VELO_SWAP_FURTHEST, 0, 12e9, 12e9, 0, 1 << 20, 0, 0 }

/* Plans which buffers are away when, so that the step fits the budget: by the plan's lifetimes,
 * uses and computing, whether it is solved or not. A stage of the step is the computing of one
 * velo_plan_work; without any, each time of the plan is one. With VELO_SWAP_JOINT a buffer that
 * nothing wrote since may be made again by the stage in which its life began, from what is used
 * in that stage, and what of that is not there before it; that is part of the stall. Swaps found
 * before are gone, and so are these when the plan's buffers, uses or computing change. Thread
 * class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (a stage needs more than the budget
 * at once; policy, rates, seconds, stages), UNSUPPORTED (a field of newer headers), STATE,
 * MEMORY. */
VELO_API velo_status velo_plan_solve_swaps(velo_plan plan, const velo_swap_options* options);

/* An action on a buffer. */
typedef int32_t velo_swap_action;
enum {
  VELO_SWAP_ACTION_IN = 0,   /* it comes back */
  VELO_SWAP_ACTION_OUT = 1,  /* it goes to the other tier */
  VELO_SWAP_ACTION_DROP = 2, /* its memory is free at once, its contents are lost */
  VELO_SWAP_ACTION_MAKE = 3  /* the computing of the stage in which its life began makes it again */
};

/* A transfer of planned swaps. */
typedef struct velo_plan_swap {
  uint32_t struct_size;
  velo_swap_action action;
  int64_t buffer; /* its index */
  int64_t after;  /* the time of the plan that is over when it begins */
  int64_t before; /* the time at which the buffer is used next */
  double begin;   /* seconds from the beginning of the planned step, stalls included */
  double end;
  int64_t stay; /* the stay in memory that this begins (IN, MAKE) or ends (OUT, DROP) */
} velo_plan_swap;

#define VELO_PLAN_SWAP_INIT \
  { sizeof(velo_plan_swap), 0, 0, 0, 0, 0, 0, 0 }

/* Totals of planned swaps. */
typedef struct velo_plan_swap_stats {
  uint32_t struct_size;
  int32_t solved;         /* 1 = there are swaps; else all that follows is 0 */
  uint64_t transfers;     /* their number, out and in */
  uint64_t bytes_out;     /* that go away */
  uint64_t bytes_in;      /* that come back */
  uint64_t bytes_peak;    /* most bytes in memory */
  uint64_t bytes_live;    /* most bytes alive: in memory without swaps */
  double compute_seconds; /* of the step without stalls */
  double stall_seconds;   /* that the step waits for transfers */
  double bound_seconds; /* that any plan within the budget waits at least; 0 of the joint policy */
  double make_seconds;  /* of stall_seconds, in which dropped buffers are made again */
  uint64_t stages;      /* of the step */
  uint64_t stays;       /* of buffers in memory, between their transfers */
  uint64_t
      bytes_planned; /* that all stays need at their places; bytes_peak is the least there can be */
  int32_t placed;    /* 1 = velo_plan_place_swaps has found the places */
  uint32_t reserved; /* 0 */
} velo_plan_swap_stats;

#define VELO_PLAN_SWAP_STATS_INIT \
  { sizeof(velo_plan_swap_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most stats->struct_size bytes of it.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_plan_get_swap_stats(velo_plan plan, velo_plan_swap_stats* stats);

/* A transfer, by its place in the order of their beginnings. Transfers of one direction follow one
 * another: each begins when `after` is over and the one before it has ended. swap: receives it, at
 * most swap->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_plan_get_swap(velo_plan plan, int64_t index, velo_plan_swap* swap);

/* Finds a place in one arena for every stay of a buffer in memory, as the solved swaps have them: a
 * buffer that comes back may come to another address. velo_swap_begin_step carries them out, in
 * an arena of bytes_planned bytes (velo_plan_get_swap_stats), which are within the budget
 * wherever places can be found that are. What velo_plan_solve has found stays. options: copied;
 * may be NULL for all defaults. Thread class: per-handle. Errors: NULL (plan), HANDLE, STRUCT,
 * ARGUMENT (seconds, threads), UNSUPPORTED (a field of newer headers; swaps that drop buffers),
 * STATE (no swaps), MEMORY. */
VELO_API velo_status velo_plan_place_swaps(velo_plan plan, const velo_plan_options* options);

/* A stay of a buffer in memory. Its begin and end count the moments of the planned step at which
 * memory is taken or freed: stays apart in moments may share addresses. */
typedef struct velo_plan_stay {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t buffer;    /* its index */
  int64_t begin;     /* first moment at which it is in memory */
  int64_t end;       /* first moment after that at which it is not */
  uint64_t bytes;    /* its size */
  int64_t offset;    /* its address, from 0; -1 = none so far */
} velo_plan_stay;

#define VELO_PLAN_STAY_INIT \
  { sizeof(velo_plan_stay), 0, 0, 0, 0, 0, 0 }

/* A stay, by its place in the order of their beginnings. stay: receives it, at most
 * stay->struct_size bytes. Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no
 * such index), STATE. */
VELO_API velo_status velo_plan_get_stay(velo_plan plan, int64_t index, velo_plan_stay* stay);

VELO_END_C

#endif
