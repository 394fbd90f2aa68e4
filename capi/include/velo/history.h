/* Inspection of a pool: the memory of its streams, its last events, and a snapshot of it.
 *
 * History. A pool keeps its last allocations and frees, what the system gave it and got back, the
 * requests it refused and the host's notes about them, once velo_pool_record has been called;
 * until then it keeps nothing. An event takes 48 bytes and 17 ns. All are in order, those of
 * several threads, too.
 *
 * Snapshot. velo_pool_snapshot and velo_pool_save give out blocks, counters and history. JSON and
 * pickle have the structure of torch.cuda.memory._snapshot(), which its viewer and
 * torch.cuda._memory_viz read: `segments` are stretches of addresses with memory behind them, with
 * their blocks; `device_traces` has one trace, the history, each entry with the action's name,
 * address, size as requested, stream (0 = the host's order), time, and as its one frame the purpose
 * and the last note. Of an `oom`, device_free is what the pool had in all and largest_hole in
 * one piece. Times are the system clock's as it is when the snapshot is taken: if that is set or
 * runs unevenly, an event's time differs a little from one snapshot to the next; the order never
 * does. `velo` has the counters. The timeline is a picture (SVG) of live bytes by purpose and of
 * reserved bytes over the time that the history holds.
 *
 * What other threads do meanwhile may be in one part of a snapshot and not yet in another.
 */
#ifndef VELO_HISTORY_H
#define VELO_HISTORY_H

#include "velo/pool.h"

VELO_BEGIN_C

typedef int32_t velo_snapshot_format;
enum {
  VELO_SNAPSHOT_JSON = 0,    /* torch's structure as JSON */
  VELO_SNAPSHOT_PICKLE = 1,  /* the same as a pickle of protocol 2, without code */
  VELO_SNAPSHOT_TIMELINE = 2 /* a picture of the history, SVG */
};

/* Starts the history afresh: the last `events` events are kept from now on, at most 2^24; 0
 * stops it and keeps what there is. Memory for all of them is taken at once and stays the
 * pool's. Thread class: any. Errors: NULL, HANDLE, ARGUMENT, STATE, MEMORY (nothing has
 * changed). */
VELO_API velo_status velo_pool_record(velo_pool pool, uint64_t events);

/* Says something in the history: of a block, by its first byte, or with memory NULL of all that
 * follows ("step 3", "forward"), until the next such text. text: at most 255 bytes of UTF-8,
 * copied. Thread class: any. Errors: NULL (pool, text), HANDLE, ARGUMENT (no block in use; the
 * text), STATE (nothing is recorded), MEMORY. */
VELO_API velo_status velo_pool_note(velo_pool pool, const void* memory, const char* text);

/* The pool as it is, in the form asked for. buffer: receives at most `capacity` bytes, the last of
 * them zero; with NULL and capacity 0 only the size is asked for. needed: receives how many bytes
 * all of it takes with the zero behind it; may be NULL. The next call may need more: the pool goes
 * on living.
 * Thread class: any. Errors: NULL (pool, buffer), HANDLE, ARGUMENT (format), STATE, MEMORY. */
VELO_API velo_status velo_pool_snapshot(velo_pool pool, velo_snapshot_format format, char* buffer,
                                        uint64_t capacity, uint64_t* needed);

/* The same into a file, for its owner alone to read, which takes the place of an ordinary file that
 * was at `path`. It is there whole or not at all: after a failure what was there is there still.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (format; an empty path), STATE, MEMORY, IO
 * (no such folder, no right, disk full, or something else than an ordinary file at `path`: a
 * link, a device). */
VELO_API velo_status velo_pool_save(velo_pool pool, velo_snapshot_format format, const char* path);

/* Memory that a pool holds for one stream; bytes in whole blocks. */
typedef struct velo_pool_stream_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_live;    /* of blocks in use that were allocated on the stream */
  uint64_t blocks_live;   /* their number */
  uint64_t bytes_pending; /* freed on it, and it has not come so far */
} velo_pool_stream_stats;

#define VELO_POOL_STREAM_STATS_INIT \
  { sizeof(velo_pool_stream_stats), 0, 0, 0, 0 }

/* Fills the caller's struct, at most stats->struct_size bytes of it. stream: NULL and inline
 * streams stand for the order of the host's calls. Walks over all blocks. Thread class: any.
 * Errors: NULL (pool, stats), HANDLE (pool, stream), STRUCT, STATE. */
VELO_API velo_status velo_pool_get_stream_stats(velo_pool pool, velo_stream stream,
                                                velo_pool_stream_stats* stats);

VELO_END_C

#endif
