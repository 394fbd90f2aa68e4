/* The memory pool: blocks of memory given and taken back without asking the system each time.
 *
 * A pool belongs to no context; it must outlive those that use it. It reserves a range of addresses
 * and backs with memory what is in use. Freed neighbors merge. Every thread keeps what it freed
 * last within reach; what it holds returns when it ends.
 *
 * Fit. Free blocks are indexed by size, below 4 KiB in a list for each size, above in 32 lists to a
 * power of two. A request takes the smallest block that is large enough of the first 8 in its
 * size's list, which begins with the block freed last. Without one it takes the first block of the
 * next list, whose blocks are at most a 16th too large; if that is empty, any of its own list that
 * is large enough; then the first block of the next list that has one. The rest of the block stays
 * free.
 *
 * Growth. Where no free block is large enough, the pool takes new memory where least is missing. If
 * it would then hold more than it ever held, and than a 1,024th above the most in use at a time,
 * pages of free blocks elsewhere serve in place of new ones, so that scattered holes become one
 * large block. The pool recycles so an eighth of the most it held; as much again, 32 MiB at most,
 * each time that the bytes handed out double; more as long as that takes less than a 64th of its
 * age; and whatever the limit or the system leaves no other way for. Ordinary and huge pools (the
 * default is ordinary) move whole huge pages, from Linux 5.7 on: one call of the system for each
 * run of them, 3 to 5 us, and nothing is copied, cleared or touched anew. Other pages, and those of
 * shared and locked pools, are let go and backed anew; the price is that of touching new pages.
 * velo_pool_trim gives pages back at once.
 *
 * Order. Memory allocated without a stream, or on a context's inline stream, is the caller's at
 * once, and freed in the same way it is anybody's at once. Memory that queued work of a stream uses
 * is freed on that stream, without waiting for it: it is the stream's own again at once, whose
 * later work runs behind, and others' when the stream has come so far. Memory that several streams
 * use is freed on one that has waited (velo_stream_wait) for the others.
 *
 * Lifetimes. Memory that stays (weights, gradients, states of an optimizer) is asked for with
 * VELO_LIFETIME_LONG: it lies apart, so that what comes and goes finds its holes again.
 *
 * Faults of the caller. A free of what is no block in use (freed before, of another owner, inside a
 * block) is refused with VELO_ERR_ARGUMENT and changes nothing, as long as threads do not free the
 * same block at the same time; a wrong size at free has no effect. A pool destroyed with blocks in
 * use leaves them mapped, and takes back through its velo_allocator what other objects still have.
 * With `checked` these are named with what is known of the block, sizes must be right, writes
 * beside a block or after its free are found (guards, fill patterns, and a quarantine of 32 MiB),
 * and the same block freed by two threads at once is seen. Every call then takes a lock and fills
 * memory.
 *
 * After fork a parent's pools are refused in the child with VELO_ERR_STATE; their memory is copied
 * as all memory is, but of shared pools, where both see the same.
 */
#ifndef VELO_POOL_H
#define VELO_POOL_H

#include "velo/context.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_pool_s* velo_pool;

/* The memory behind the addresses. */
typedef int32_t velo_pool_kind;
enum {
  VELO_POOL_ORDINARY = 0, /* pages of 4 KiB; huge ones in large blocks if written densely */
  VELO_POOL_HUGE = 1,   /* backed and let go by 2 MiB, with huge pages where the system has them */
  VELO_POOL_SHARED = 2, /* pages of a file in memory, which other processes can map */
  VELO_POOL_LOCKED = 3  /* never swapped out; where the system refuses or a control group has no
                           room, ordinary, and counted */
};

typedef int32_t velo_lifetime;
enum {
  VELO_LIFETIME_DEFAULT = 0, /* freed within the step */
  VELO_LIFETIME_LONG = 1     /* kept over steps */
};

/* The purpose of memory; statistics are kept by purpose. */
typedef int32_t velo_purpose;
enum {
  VELO_PURPOSE_OTHER = 0,
  VELO_PURPOSE_PARAMETER = 1,
  VELO_PURPOSE_GRADIENT = 2,
  VELO_PURPOSE_OPTIMIZER = 3,
  VELO_PURPOSE_ACTIVATION = 4,
  VELO_PURPOSE_WORKSPACE = 5,
  VELO_PURPOSE_COMMUNICATION = 6,
  VELO_PURPOSE_INPUT = 7
};

/* Called when a request of `bytes` finds no memory within the limit: 1 = some was freed or trimmed,
 * try again; 0 = let the request fail. After 16 answers of 1 in a row in which no block of the pool
 * was freed it fails, too. The callback may call the pool; a request of its own that finds no
 * memory is VELO_ERR_STATE. In use meanwhile (types.h): the pool, and what allocates. Called from
 * the thread that allocates; an exception or another answer is VELO_ERR_FOREIGN. */
typedef int32_t (*velo_pool_pressure_fn)(void* user, uint64_t bytes);

typedef struct velo_pool_desc {
  uint32_t struct_size;
  velo_pool_kind kind;
  uint64_t limit;                 /* most bytes reserved from the system; 0 = no limit */
  int32_t checked;                /* 1 = look after every block (see above) */
  uint32_t reserved;              /* 0 */
  velo_pool_pressure_fn pressure; /* or NULL: requests without memory fail at once */
  void* pressure_user;
  velo_log_fn log; /* receives a line for each fault of a caller that is found; or NULL */
  void* log_user;
} velo_pool_desc;

#define VELO_POOL_DESC_INIT \
  { sizeof(velo_pool_desc), VELO_POOL_ORDINARY, 0, 0, 0, 0, 0, 0, 0 }

typedef struct velo_pool_request {
  uint32_t struct_size;
  velo_lifetime lifetime;
  uint64_t bytes;       /* 0 gives a block of its own, too */
  uint64_t alignment;   /* a power of two up to 2 MiB; 0 and what is less than 64 mean 64 */
  velo_stream stream;   /* whose work uses the memory; NULL = the host, in the order of its calls */
  velo_purpose purpose; /* for the statistics */
  int32_t zero;         /* 1 = filled with zero; else the contents are undefined */
} velo_pool_request;

#define VELO_POOL_REQUEST_INIT \
  { sizeof(velo_pool_request), VELO_LIFETIME_DEFAULT, 0, 0, 0, VELO_PURPOSE_OTHER, 0 }

/* Reserves addresses for a pool; memory comes with the first request. desc: copied; may be NULL for
 * all defaults. pool: receives the handle; destroy it with velo_pool_destroy.
 * Thread class: any. Errors: NULL (pool), STRUCT, ARGUMENT, UNSUPPORTED (a field of newer headers),
 * MEMORY (no addresses, no file in memory). */
VELO_API velo_status velo_pool_create(const velo_pool_desc* desc, velo_pool* pool);

/* Gives all memory and addresses back to the system, but those of blocks in use: these stay mapped,
 * and a line goes to the log. NULL is ignored, and so is (with a log line) a call from inside one
 * that uses the pool (types.h). No thread that has used the pool may end meanwhile.
 * Thread class: per-handle. */
VELO_API void velo_pool_destroy(velo_pool pool);

/* A block of at least request->bytes bytes. memory: receives its first byte; give it back with
 * velo_pool_free.
 * Thread class: any. Errors: NULL, HANDLE (pool, stream), STRUCT, ARGUMENT, UNSUPPORTED (a field of
 * newer headers), STATE, MEMORY (the limit, or the system; the record has the largest hole),
 * FOREIGN (the pressure callback). */
VELO_API velo_status velo_pool_allocate(velo_pool pool, const velo_pool_request* request,
                                        void** memory);

/* Takes a block back. memory: its first byte; NULL is ignored. bytes: as requested. stream: whose
 * queued work may still use it; NULL = nobody.
 * Thread class: any. Errors: NULL (pool), HANDLE (pool, stream), ARGUMENT (no block in use;
 * checked: another size, a damaged block), STATE, FULL (the stream's queue; nothing was freed),
 * MEMORY (for the marker in the queue; nothing was freed). */
VELO_API velo_status velo_pool_free(velo_pool pool, void* memory, uint64_t bytes,
                                    velo_stream stream);

/* Lets memory of free blocks go until no more than `keep` bytes of them are left. released:
 * receives how much that was; may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_pool_trim(velo_pool pool, uint64_t keep, uint64_t* released);

/* Sets the most bytes the pool may reserve, 0 = no limit. What is reserved beyond it stays until it
 * is freed and trimmed, and until then nothing is added.
 * Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_pool_set_limit(velo_pool pool, uint64_t limit);

/* Fills the caller's allocator, at most allocator->struct_size bytes of it, with functions that
 * allocate from the pool: for velo_context_desc, so that a context's memory comes from the pool.
 * After velo_pool_destroy they allocate nothing, and take back what they allocated.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_pool_allocator(velo_pool pool, velo_allocator* allocator);

/* The pool as two plain functions, for hosts whose allocators have no user pointer (a framework's
 * pluggable allocator):
 *   void* allocate(int64_t bytes, int32_t device, void* stream)
 *   void deallocate(void* memory, int64_t bytes, int32_t device, void* stream)
 * stream is a velo_stream or NULL, device is not looked at; allocate returns NULL on failure. They
 * are made at run time (VELO_CAP_CLOSURES), or are of a few compiled beforehand; the same two for
 * each call. After velo_pool_destroy allocate gives NULL, and deallocate takes back what is in use:
 * with the last block both end.
 * Thread class: any. Errors: NULL, HANDLE, UNSUPPORTED (no code at run time, and none left of those
 * compiled beforehand), STATE, MEMORY. */
VELO_API velo_status velo_pool_functions(velo_pool pool, void** allocate, void** deallocate);

/* Looks at every block of a checked pool and names the first that somebody wrote beside or after
 * its free; of another pool there is nothing to look at. No block may be written meanwhile.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (a damaged block), STATE. */
VELO_API velo_status velo_pool_check(velo_pool pool);

/* Locates a block of a shared pool. file: receives the descriptor, which stays the pool's, and
 * offset the block's place in the file, for other processes to map.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no block in use), UNSUPPORTED (not a shared
 * pool), STATE. */
VELO_API velo_status velo_pool_locate(velo_pool pool, const void* memory, int32_t* file,
                                      uint64_t* offset);

/* Counters of a pool. Live is what callers have, in whole blocks. bytes_peak is exact where one
 * thread uses the pool; of several it is an upper bound, too high by no more than what threads
 * freed into their caches and, of each, a sixteenth of what it has and 1 MiB. Purposes index the
 * arrays. */
typedef struct velo_pool_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_live;          /* of blocks in use */
  uint64_t bytes_rounding;      /* of these, what nobody asked for */
  uint64_t bytes_peak;          /* highest value of bytes_live */
  uint64_t bytes_reserved;      /* backed with memory: live, cached and pending */
  uint64_t bytes_reserved_peak; /* highest value of bytes_reserved */
  uint64_t bytes_cached;        /* free, here or in the caches of threads */
  uint64_t bytes_pending;       /* freed on streams that have not come so far */
  uint64_t bytes_split;         /* of free blocks with a neighbor that holds memory */
  uint64_t bytes_largest_hole;  /* of the largest free block */
  uint64_t bytes_let_go;        /* given back to the system so far */
  uint64_t bytes_unlocked;      /* of a locked pool, what was not locked so far */
  uint64_t allocations;         /* blocks allocated so far */
  uint64_t frees;               /* blocks freed so far */
  uint64_t refused;             /* requests that found no memory so far */
  uint64_t purpose_live[8];     /* bytes_live by purpose */
  uint64_t purpose_peak[8];     /* highest value of each */
} velo_pool_stats;

#define VELO_POOL_STATS_INIT                                                     \
  {                                                                              \
    sizeof(velo_pool_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, { \
      0                                                                          \
    }                                                                            \
  }

/* Fills the caller's struct, at most stats->struct_size bytes of it. Walks over all blocks.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_pool_get_stats(velo_pool pool, velo_pool_stats* stats);

VELO_END_C

#endif
