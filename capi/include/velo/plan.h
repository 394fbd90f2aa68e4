/* The static plan: addresses for buffers whose lifetimes are known before they are used.
 *
 * A training step allocates the same buffers again and again. Who knows their lifetimes can give
 * each a fixed address in one block of memory, without fragmentation and without an allocator at
 * run time. A plan takes buffers (by velo_plan_add, or from a text), finds addresses
 * (velo_plan_solve) and gives them back (velo_plan_get_buffer, velo_plan_write).
 *
 * Quality. No block can be smaller than the most bytes alive at one time, the lower bound; how far
 * the height found lies above it is always known (velo_plan_get_stats). Heuristics come first and
 * take milliseconds; search closes the gap they leave, on the calling thread, until the height is
 * the lower bound or at most `capacity`, or time is up. The same buffers, seed and enough time give
 * the same addresses on every machine.
 *
 * Alignment is a matter of sizes: addresses are sums of sizes, so sizes that are multiples of 64
 * give addresses that are.
 *
 * A plan belongs to no context and no thread; its calls are not to overlap.
 */
#ifndef VELO_PLAN_H
#define VELO_PLAN_H

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
  VELO_PLAN_SVG = 2      /* a picture of time and addresses; written only */
};

typedef struct velo_plan_desc {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  uint64_t capacity; /* a height that is low enough, and the most bytes of a buffer; 0 = no such
                        height: the lower bound alone is low enough */
} velo_plan_desc;

#define VELO_PLAN_DESC_INIT \
  { sizeof(velo_plan_desc), 0, 0 }

typedef struct velo_plan_options {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  double seconds;    /* of search at most; 0 = heuristics alone */
  uint64_t seed;     /* of the choices that are left to chance */
} velo_plan_options;

#define VELO_PLAN_OPTIONS_INIT \
  { sizeof(velo_plan_options), 0, 10, 1 }

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
} velo_plan_stats;

#define VELO_PLAN_STATS_INIT \
  { sizeof(velo_plan_stats), 0, 0, 0, 0, 0 }

/* An empty plan. desc: copied; may be NULL for all defaults. plan: receives the handle; destroy it
 * with velo_plan_destroy.
 * Thread class: any. Errors: NULL (plan), STRUCT, ARGUMENT (capacity), UNSUPPORTED (a field of newer
 * headers), MEMORY. */
VELO_API velo_status velo_plan_create(const velo_plan_desc* desc, velo_plan* plan);

/* Ends a plan. NULL is ignored.
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
 * the CSV ids must differ from each other and from those there are (of velo_plan_add: the index).
 * Of a log a buffer lives from the place of its allocation among the rows to that of its free, or
 * to the end. Addresses found before are gone.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (format; what makes no sense in the
 * text, named with line and column), STATE, MEMORY. */
VELO_API velo_status velo_plan_read(velo_plan plan, velo_plan_format format, const char* text,
                                    uint64_t length);

/* Finds an address for every buffer, so that those alive at one time lie apart. A height above the
 * capacity is no failure: ask velo_plan_get_stats. options: copied; may be NULL for all defaults.
 * Thread class: per-handle. Errors: NULL (plan), HANDLE, STRUCT, ARGUMENT (seconds), UNSUPPORTED (a
 * field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_plan_solve(velo_plan plan, const velo_plan_options* options);

/* A buffer, by its index in the order of adding. buffer: receives it, at most buffer->struct_size
 * bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such index), STATE. */
VELO_API velo_status velo_plan_get_buffer(velo_plan plan, int64_t index, velo_plan_buffer* buffer);

/* Numbers of a plan. stats: receives them, at most stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE, MEMORY. */
VELO_API velo_status velo_plan_get_stats(velo_plan plan, velo_plan_stats* stats);

/* A solved plan as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with
 * capacity 0 asks for the size alone. needed: receives the size with its terminator; may be NULL.
 * Thread class: per-handle. Errors: NULL (plan, buffer), HANDLE, ARGUMENT (format), STATE (not
 * solved), MEMORY. */
VELO_API velo_status velo_plan_write(velo_plan plan, velo_plan_format format, char* buffer,
                                     uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
