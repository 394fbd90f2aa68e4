/* Adaptors: what goes between a velo_allocator and those that allocate from it.
 *
 * An adaptor is made over an allocator, a pool's or another adaptor's, and gives an allocator
 * itself; so they stack in any order: a trace over statistics over a limit over a pool. Each does
 * one thing: keep a limit, count, write a trace, or call the host. All are thread-safe as far as
 * what they stand on is. An adaptor must outlive what is allocated through it: after its end its
 * allocator gives nothing and takes nothing back.
 */
#ifndef VELO_ADAPTOR_H
#define VELO_ADAPTOR_H

#include "velo/context.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_adaptor_s* velo_adaptor;

typedef int32_t velo_adaptor_kind;
enum {
  VELO_ADAPTOR_LIMIT = 0,      /* no more than `limit` bytes at a time */
  VELO_ADAPTOR_STATISTICS = 1, /* counts: velo_adaptor_get_stats */
  VELO_ADAPTOR_TRACE = 2,      /* writes each call to the file `path` */
  VELO_ADAPTOR_CALLBACK = 3    /* tells the host: `event` */
};

typedef int32_t velo_memory_event;
enum {
  VELO_MEMORY_ALLOCATED = 0,
  VELO_MEMORY_FREED = 1,
  VELO_MEMORY_FAILED = 2 /* memory is NULL; 1 returned = try again, some was freed */
};

/* Receives each call after it was made, a free before it is. stream is the velo_stream that the
 * memory is for, or NULL. Returns 0 but for VELO_MEMORY_FAILED. Called from any thread. In use
 * meanwhile (types.h): the adaptor. Allocating through it gives NULL, with VELO_ERR_STATE in the
 * record; freeing works. Where it throws, the block goes back and the allocation gives NULL, with
 * VELO_ERR_FOREIGN in the record, as where upstream throws; a free goes on. */
typedef int32_t (*velo_memory_event_fn)(void* user, velo_memory_event event, void* memory,
                                        uint64_t bytes, void* stream);

typedef struct velo_adaptor_desc {
  uint32_t struct_size;
  velo_adaptor_kind kind;
  const velo_allocator* upstream; /* copied; what is below must outlive the adaptor */
  uint64_t limit;                 /* of a limit: bytes as requested, 0 = none at all */
  const char* path;               /* of a trace: the file, made anew, for its owner to read */
  velo_memory_event_fn event;     /* of a callback */
  void* event_user;
} velo_adaptor_desc;

#define VELO_ADAPTOR_DESC_INIT \
  { sizeof(velo_adaptor_desc), VELO_ADAPTOR_STATISTICS, 0, 0, 0, 0, 0 }

/* Makes an adaptor; destroy it with velo_adaptor_destroy. A trace is a CSV file with the columns of
 * RMM's log, Thread,Time,Action,Pointer,Size,Stream: Time counts calls, Action is allocate, free or
 * allocate failure. The file is new, and takes the place of an ordinary file at the path; a link, a
 * FIFO, a device or a folder there is refused.
 * Thread class: any. Errors: NULL (desc, adaptor, upstream or its functions, path, event), STRUCT,
 * ARGUMENT (kind; an empty path), UNSUPPORTED (a field of newer headers), IO (path), MEMORY. */
VELO_API velo_status velo_adaptor_create(const velo_adaptor_desc* desc, velo_adaptor* adaptor);

/* Ends an adaptor, and writes what is left of its trace. NULL is ignored, and so is (with a log
 * line) a call from inside one through it (types.h).
 * Thread class: per-handle. */
VELO_API void velo_adaptor_destroy(velo_adaptor adaptor);

/* Fills the caller's allocator, at most allocator->struct_size bytes of it: for
 * velo_context_desc, or for the next adaptor. Thread class: any. Errors: NULL, HANDLE, STRUCT,
 * STATE. */
VELO_API velo_status velo_adaptor_allocator(velo_adaptor adaptor, velo_allocator* allocator);

/* Counts of an adaptor; bytes as requested. A free is counted as its caller gives it: a wrong size,
 * or a second free, makes bytes_live wrong, but never less than 0. */
typedef struct velo_adaptor_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_live;  /* allocated and not freed */
  uint64_t bytes_peak;  /* highest value of bytes_live */
  uint64_t allocations; /* that succeeded so far */
  uint64_t frees;       /* so far */
  uint64_t failures;    /* allocations that failed so far */
} velo_adaptor_stats;

#define VELO_ADAPTOR_STATS_INIT \
  { sizeof(velo_adaptor_stats), 0, 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most stats->struct_size bytes of it, with the counters of a
 * limit or of statistics, which are exact. Thread class: any. Errors: NULL, HANDLE, STRUCT,
 * UNSUPPORTED (an adaptor that does not count), STATE. */
VELO_API velo_status velo_adaptor_get_stats(velo_adaptor adaptor, velo_adaptor_stats* stats);

/* Writes what a trace has kept so far to its file; of other adaptors there is nothing to write.
 * Thread class: any. Errors: NULL, HANDLE, STATE, IO (now or at an earlier write). */
VELO_API velo_status velo_adaptor_flush(velo_adaptor adaptor);

VELO_END_C

#endif
