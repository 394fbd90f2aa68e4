/* Swap: memory whose contents wait elsewhere while nobody needs them.
 *
 * A swap keeps objects: ranges of memory, each known by a number. velo_swap_out copies an object to
 * a tier (other memory of the host, or files) and velo_swap_in brings it back; both return as soon
 * as the copy is queued. Copies run on two threads of the swap's own, one for each direction,
 * beside the work of streams, which goes on computing meanwhile; calls on one object take effect in
 * their order. A prefetch is a velo_swap_in long before the use.
 *
 * Order. A copy begins when the stream it was given has done all work queued so far. velo_swap_wait
 * lets a stream wait for an object; an event given to the call passes when the copy has ended.
 *
 * Failures. A copy that fails leaves the object where it was, in memory or in the tier, and drops
 * the copies queued behind it for the same object. The failure belongs to the object: it is
 * returned by velo_swap_wait, or kept by the stream that was to wait, so that no work runs on
 * contents that are not there. A page that came back damaged is such a failure, and named. The
 * failure is forgotten when the same copy is asked for once more. An event passes in either case.
 *
 * Memory. An object added without memory has memory from the pool `memory` of the description: it
 * goes back to the pool when the object is out, and comes from it again, elsewhere, for its return.
 * Memory that the caller gave stays the caller's; while the object is out it is his to use.
 *
 * Planned steps. A swap carries out what a plan has decided (velo_plan_solve_swaps,
 * velo_plan_place_swaps):
 *
 *   velo_swap_begin_step(swap, plan, memory, stream);
 *   for (int64_t stage = 0; stage < stages; ++stage) {
 *     velo_swap_begin_stage(swap, &time);
 *     work_of_stage(time, stream);
 *   }
 *   velo_swap_end_step(swap);
 *
 * All buffers of the plan live in one arena of the planned size. Transfers run beside the stages; a
 * stage waits for what it uses, and a place for what has to leave it, so that contents are right
 * however long transfers and stages take. velo_swap_get_buffer tells where a buffer is in a stage:
 * it may come back to another address. A buffer has the plan's size, which a recording rounds up.
 *
 * Files. The disk tier makes one file in each directory and gives it no name (or takes the name
 * back at once, where the file system knows no files without): it ends with the process, however
 * that ends. It is readable by its owner alone, and no symbolic link is followed. Files are written
 * around the page cache where the file system allows, by io_uring where the system allows, else by
 * threads: velo_swap_get_stats says which and why. What is around the page cache goes straight
 * between disk and memory that begins at a multiple of 4096 bytes, as the pool's does here; other
 * memory costs a copy. A file keeps its size until the swap ends; what objects gave back is used
 * again.
 */
#ifndef VELO_SWAP_H
#define VELO_SWAP_H

#include "velo/plan.h"
#include "velo/pool.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_swap_s* velo_swap;

/* The tier that objects go to. */
typedef int32_t velo_swap_tier;
enum {
  VELO_SWAP_HOST = 0, /* other memory of the host */
  VELO_SWAP_DISK = 1  /* files */
};

/* How files are read and written. */
typedef int32_t velo_swap_engine;
enum {
  VELO_SWAP_ENGINE_AUTO = 0,    /* io_uring, and threads where the system refuses it */
  VELO_SWAP_ENGINE_URING = 1,   /* io_uring; of a description: or fail */
  VELO_SWAP_ENGINE_THREADS = 2, /* threads that read and write */
  VELO_SWAP_ENGINE_COPY = 3     /* of counters alone: no file, the processor copies */
};

/* When an object is used again. */
typedef int32_t velo_swap_use;
enum {
  VELO_SWAP_WARM = 0, /* soon: it is kept as it is */
  VELO_SWAP_COLD = 1  /* late: files keep it packed where that saves an eighth of a block */
};

/* The state of an object. */
typedef int32_t velo_swap_state;
enum {
  VELO_SWAP_RESIDENT = 0,  /* in memory */
  VELO_SWAP_LEAVING = 1,   /* on its way to the tier, or queued for it */
  VELO_SWAP_OUT = 2,       /* in the tier */
  VELO_SWAP_RETURNING = 3, /* on its way into memory, or queued for it */
  VELO_SWAP_UPDATING = 4   /* in the tier, its slices in velo_swap_update */
};

typedef struct velo_swap_desc {
  uint32_t struct_size;
  velo_swap_tier tier;
  velo_pool memory;        /* of objects that are added without memory; NULL = none are */
  velo_pool pool;          /* host tier: where objects are that are out; NULL = a pool of its own */
  const char* directories; /* disk tier: for its files, separated by ':'; blocks go round them */
  uint64_t limit;          /* most bytes of objects that are out; 0 = no limit */
  uint64_t block;          /* disk tier: bytes of a page, which is read and written at once; a power
                              of two from 4 KiB to 64 MiB */
  int32_t depth;           /* disk tier: blocks under way in a direction, 1 to 64, and as many of
                              memory to stage them */
  int32_t checksums;       /* disk tier: 1 = the CRC of every page is compared when it returns */
  int32_t direct;          /* disk tier: 1 = around the page cache where the file system allows */
  velo_swap_engine engine; /* disk tier */
  uint64_t minimum;        /* objects of fewer bytes stay where they are in velo_swap_forward */
} velo_swap_desc;

#define VELO_SWAP_DESC_INIT                                                                      \
  {                                                                                              \
    sizeof(velo_swap_desc), VELO_SWAP_HOST, 0, 0, 0, 0, 1 << 20, 8, 1, 1, VELO_SWAP_ENGINE_AUTO, \
        512 << 10                                                                                \
  }

/* Facts about an object. */
typedef struct velo_swap_object {
  uint32_t struct_size;
  velo_swap_state state; /* when all that is queued has been done */
  void* memory;          /* where it is or will be; NULL: out, and none is known for its return */
  uint64_t bytes;        /* its size */
  uint64_t bytes_stored; /* what it takes in the tier; 0: nothing */
  int64_t layer;         /* as assigned; -1 = none */
} velo_swap_object;

#define VELO_SWAP_OBJECT_INIT \
  { sizeof(velo_swap_object), 0, 0, 0, 0, 0 }

/* Updates a slice of several objects in place. user: as given. offset, bytes: the slice, counted in
 * every object from its start. slices: of each object, in the order of the call, where its slice is
 * now, aligned to 64 bytes. 0 = go on; anything else ends the update with VELO_ERR_FOREIGN, as an
 * exception does. It may call velo, but not with these objects. In use meanwhile (types.h): the
 * swap. */
typedef int32_t (*velo_swap_update_fn)(void* user, uint64_t offset, uint64_t bytes,
                                       void* const* slices);

/* Makes a swap, its threads and its files. desc: copied; may be NULL for all defaults. swap:
 * receives the handle; destroy it with velo_swap_destroy, before its pools. Thread class: any.
 * Errors: NULL (context, swap), HANDLE (context, pools), STRUCT, ARGUMENT, UNSUPPORTED (a field
 * of newer headers; an engine that the system refuses), STATE, MEMORY, IO (a directory, named). */
VELO_API velo_status velo_swap_create(velo_context context, const velo_swap_desc* desc,
                                      velo_swap* swap);

/* Finishes what is queued and ends the swap with all its objects; what was out is lost. Its
 * context's end ends it, too. NULL is ignored, and so is (with a log line) a call while
 * velo_swap_update runs, or from inside one that uses the swap (types.h).
 * Thread class: per-handle. */
VELO_API void velo_swap_destroy(velo_swap swap);

/* Adds an object of `bytes` bytes, resident. memory: the caller's, which holds it; NULL = from the
 * pool `memory` of the description, contents undefined. object: receives its number, from 1, never
 * used again.
 * Thread class: any. Errors: NULL (swap, object), HANDLE, ARGUMENT (bytes 0, use), STATE (no
 * memory, and no pool for it), MEMORY, FOREIGN (the pool's pressure callback). */
VELO_API velo_status velo_swap_add(velo_swap swap, void* memory, uint64_t bytes, velo_swap_use use,
                                   uint64_t* object);

/* Forgets an object, wherever it is; copies that were asked for finish first, and only then is its
 * room in the tier free: where another needs it within the limit, velo_swap_wait before the drop
 * leaves none to finish. stream: for memory of
 * the pool's, whose queued work may still use it; NULL = nobody. Memory of the caller's is his
 * again when the call returns, which waits for these copies, or, where stream is a queue, to its
 * later work. Thread class: any. Errors: NULL (swap), HANDLE (swap, stream), ARGUMENT (no such
 * object), STATE (in an update; copies to wait for, and a call from work that others wait for),
 * FULL (the stream's queue; nothing was dropped), MEMORY. */
VELO_API velo_status velo_swap_drop(velo_swap swap, uint64_t object, velo_stream stream);

/* Copies a resident or returning object to the tier when the stream's work queued so far is done.
 * event: recorded at the end of the copy, from where on the memory is free for other use; may be
 * NULL.
 * Thread class: any. Errors: NULL (swap, stream), HANDLE, ARGUMENT (no such object), STATE (not in
 * memory), FULL, MEMORY, IO (a failure that the object holds). */
VELO_API velo_status velo_swap_out(velo_swap swap, uint64_t object, velo_stream stream,
                                   velo_event event);

/* Copies an object back that is out or leaving. memory: where to, the caller's; NULL = the
 * memory it was added with, or some of the pool's. stream: whose work queued so far may still
 * use that memory. event: recorded at the end of the copy; may be NULL. Thread class: any.
 * Errors: NULL (swap, stream), HANDLE, ARGUMENT (no such object; memory for one whose memory is
 * the pool's), STATE (not out), FULL, MEMORY, IO (a failure that the object holds), FOREIGN (the
 * pool's pressure callback). */
VELO_API velo_status velo_swap_in(velo_swap swap, uint64_t object, void* memory, velo_stream stream,
                                  velo_event event);

/* Lets all later work of `stream` wait until no copy of the object is queued or under way; on the
 * inline stream the caller waits. A copy that fails gives its failure to the stream.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such object), STATE, FULL, MEMORY, IO (the
 * failure that the object holds). */
VELO_API velo_status velo_swap_wait(velo_swap swap, uint64_t object, velo_stream stream);

/* Gives the facts about an object. info: receives it, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such object), STATE. */
VELO_API velo_status velo_swap_get_object(velo_swap swap, uint64_t object, velo_swap_object* info);

/* Puts an object into the bucket of a layer: what the layer's forward pass keeps for its backward
 * pass. An object that several layers keep goes into the bucket of the last, since that one's
 * backward pass comes first: it moves once.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such object; layer below 0), STATE,
 * MEMORY. */
VELO_API velo_status velo_swap_assign(velo_swap swap, uint64_t object, int64_t layer);

/* Says that the forward pass of a layer is queued on `stream`: velo_swap_out for every object of
 * its bucket that is resident and no smaller than desc.minimum. Thread class: any. Errors: NULL,
 * HANDLE, ARGUMENT (layer below 0), STATE, FULL, MEMORY, IO (a failure that an object holds). */
VELO_API velo_status velo_swap_forward(velo_swap swap, int64_t layer, velo_stream stream);

/* Says that the backward pass of a layer is queued on `stream` next: brings back what is still
 * out of its bucket, lets the stream wait for it, and prefetches the bucket of the layer below,
 * which is the next one to be used. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (layer
 * below 0), STATE, FULL, MEMORY, IO (a failure that an object holds), FOREIGN (the pool's
 * pressure callback). */
VELO_API velo_status velo_swap_backward(velo_swap swap, int64_t layer, velo_stream stream);

/* Updates objects that are out, slice by slice: while one slice is in `update`, the next comes
 * in and the one before goes out, so that memory for three slices of each is enough. `update`
 * sees the same bytes as if the objects were resident. Returns when all slices are in the tier
 * again. objects: `count` numbers of objects of one size, out. slices: how many to cut them
 * into; the tier may round their size up. After a failure the slices before the one it names are
 * updated and the others are not, but for those in `update` or on their way out; all objects are
 * out. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (count, slices below 1, an object named
 * twice or of another size, no such object), STATE (not out; called by work that others wait
 * for), FULL, MEMORY, IO, FOREIGN (update). */
VELO_API velo_status velo_swap_update(velo_swap swap, const uint64_t* objects, int64_t count,
                                      int64_t slices, velo_swap_update_fn update, void* user);

/* Begins a step of a plan's placed swaps; the plan may change or end meanwhile. memory:
 * bytes_planned bytes of the caller's, which nobody else may use until all work of the step is
 * done; NULL = from the pool `memory` of the description, kept for the next step of that size on
 * that stream, and until the swap ends. stream: where the stages run; it must outlive the step.
 * Thread class: per-handle. Errors: NULL (swap, plan, stream), HANDLE, STATE (a step that has
 * not ended; a plan whose swaps have no places; no memory, and no pool for it; called by work
 * that others wait for), MEMORY, FOREIGN (the pool's pressure callback). */
VELO_API velo_status velo_swap_begin_step(velo_swap swap, velo_plan plan, void* memory,
                                          velo_stream stream);

/* Begins the next stage: all work queued on the stream so far is of the stages before, all that
 * follows is of this one, and begins when what it uses is in memory; on the inline stream the
 * caller waits. Transfers that the plan has during this stage begin, each when its turn has
 * come. time: receives the time of the plan at which the stage ends; may be NULL. After a
 * failure the step can only be ended. Thread class: per-handle. Errors: NULL (swap), HANDLE
 * (swap, stream), STATE (no step; no stage left; a failure before), FULL, MEMORY, IO (a
 * transfer's failure, which names the buffer). */
VELO_API velo_status velo_swap_begin_stage(velo_swap swap, int64_t* time);

/* Gives the address of a buffer that the stage uses, valid until the stage ends. A buffer used for
 * reading alone must not be written: the tier may still hold its contents. buffer: its index in
 * the plan. memory: receives its first byte. Thread class: per-handle. Errors: NULL (swap,
 * memory), HANDLE, ARGUMENT (a buffer that the stage does not use), STATE (no stage; a failure
 * before). */
VELO_API velo_status velo_swap_get_buffer(velo_swap swap, int64_t buffer, void** memory);

/* Ends the step; its buffers are gone when the work queued on the stream is done. A step that
 * has stages left, or had a failure, ends here: the call waits for its transfers. Thread class:
 * per-handle. Errors: NULL (swap), HANDLE, STATE (no step; transfers to wait for, and a call
 * from work that others wait for), FULL, MEMORY. */
VELO_API velo_status velo_swap_end_step(velo_swap swap);

/* Counters of a swap. Seconds are those in which the copies of a direction were under way; bytes
 * over seconds is what the tier gives. */
typedef struct velo_swap_stats {
  uint32_t struct_size;
  velo_swap_engine engine; /* how files are read and written; COPY: there are none */
  uint64_t objects;        /* their number, and that of a step's buffers */
  uint64_t objects_out;    /* of these in the tier */
  uint64_t bytes_held;     /* of objects in the tier */
  uint64_t bytes_stored;   /* what they take there */
  uint64_t bytes_peak;     /* highest value of bytes_held */
  uint64_t bytes_out;      /* copied to the tier so far */
  uint64_t bytes_in;       /* copied back so far */
  uint64_t failures;       /* copies that failed so far */
  double seconds_out;
  double seconds_in;
  double seconds_checksum_out; /* of seconds_out in checksums */
  double seconds_checksum_in;  /* of seconds_in in checksums */
  char how[192];               /* engine, page cache, and why they were chosen */
} velo_swap_stats;

#define VELO_SWAP_STATS_INIT                                          \
  {                                                                   \
    sizeof(velo_swap_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { \
      0                                                               \
    }                                                                 \
  }

/* Fills the caller's struct, at most stats->struct_size bytes of it.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_swap_get_stats(velo_swap swap, velo_swap_stats* stats);

VELO_END_C

#endif
