/* Gradient buckets: gradients of ranks that hold the same parameters, combined while the backward
 * pass goes on.
 *
 * All gradients are one long tensor, cut into slices (the gradient of a layer's matrix, say), and
 * consecutive slices into buckets. When the last slice of a bucket is ready, its collective is
 * called on a stream of communication's own. All ranks send buckets off in the same order: the last
 * first, until the first step has shown rank 0 in which order they become ready; that is
 * everybody's from the second step on. Results are those of one all_reduce over all gradients, bit
 * for bit, in whatever buckets and in both modes, on one host or on several, unless a host's own
 * all_reduce (host.h) makes them.
 *
 * A step:
 *
 *   velo_buckets_ready(buckets, stream, slice)    for each slice, after the work that made it
 *   velo_buckets_finish(buckets, stream)          before the optimizer
 *
 * With REDUCE_SCATTER each rank then has the combined gradients of its own part of each bucket
 * alone, updates the parameters there, and brings them together again for the next forward pass:
 *
 *   velo_buckets_gather(buckets, stream, parameters)
 *   velo_buckets_wait(buckets, stream, slice)     before work that reads parameters of the slice
 *
 * At optimization levels 0 and 1 all collectives are called by velo_buckets_finish.
 */
#ifndef VELO_BUCKETS_H
#define VELO_BUCKETS_H

#include "velo/group.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_buckets_s* velo_buckets;

/* The use of a bucket's gradients. */
typedef int32_t velo_bucket_mode;
enum {
  VELO_BUCKETS_ALL_REDUCE = 0, /* every rank gets all */
  VELO_BUCKETS_REDUCE_SCATTER =
      1 /* every rank gets its own part; what the others' are is undefined */
};

typedef struct velo_buckets_desc {
  uint32_t struct_size;
  velo_bucket_mode mode;
  uint64_t bytes; /* a bucket ends with the slice that makes it so large */
  double scale;   /* the sum over the ranks of this times each gradient; 0 = their average */
} velo_buckets_desc;

#define VELO_BUCKETS_DESC_INIT \
  { sizeof(velo_buckets_desc), VELO_BUCKETS_ALL_REDUCE, 1 << 20, 0 }

/* Makes buckets, the same on all ranks of a group. stream: where collectives are called, of the
 * group's context; a queue, for overlap. stream and group: must outlive the buckets' calls.
 * gradients: compact, floating-point; combined in place. counts: how many elements each of
 * `count` slices has, one behind the other, all together those of gradients. desc: copied; may
 * be NULL for all defaults. buckets: receives the handle; destroy it with velo_buckets_destroy.
 * Thread class: any. Errors: NULL (stream, group, gradients, counts, buckets), HANDLE, STRUCT,
 * ARGUMENT (counts, desc, a stream of another context), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY. */
VELO_API velo_status velo_buckets_create(velo_stream stream, velo_group group,
                                         const velo_tensor* gradients, const int64_t* counts,
                                         int64_t count, const velo_buckets_desc* desc,
                                         velo_buckets* buckets);

/* Forgets the buckets; collectives that were called go on, on memory that is the caller's. NULL
 * is ignored. Thread class: per-handle. */
VELO_API void velo_buckets_destroy(velo_buckets buckets);

/* Says that the work of `stream` so far makes a slice what this rank has of it. To be called
 * once for a slice in a step, in any order; of several micro-batches in the last. Thread class:
 * per-handle. Errors: NULL, HANDLE, ARGUMENT (slice, a stream of another context), STATE (a
 * slice again), FULL, MEMORY, PEER. */
VELO_API velo_status velo_buckets_ready(velo_buckets buckets, velo_stream stream, int64_t slice);

/* Ends a step: slices that were not reported count as ready, and later work of `stream` comes
 * after all collectives; on an inline stream the call waits for them and says how they went, and
 * so it does in the first step, in which ranks agree on the order. Thread class: per-handle.
 * Errors: NULL, HANDLE, ARGUMENT (a stream of another context), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_buckets_finish(velo_buckets buckets, velo_stream stream);

/* Gathers what each rank has in its own parts into all ranks' `parameters`, bucket by bucket: those
 * whose gradients come last are first. Comes after the work of `stream` so far; the call waits for
 * nothing. parameters: compact, as many elements as gradients, of any dtype of whole bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (a stream of another context), RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_buckets_gather(velo_buckets buckets, velo_stream stream,
                                         const velo_tensor* parameters);

/* Lets later work of `stream` come after the slice's parameters are gathered; an inline stream
 * waits for them. Nothing was gathered yet: returns. Thread class: per-handle. Errors: NULL,
 * HANDLE, ARGUMENT (slice, a stream of another context), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_buckets_wait(velo_buckets buckets, velo_stream stream, int64_t slice);

/* Facts about all buckets. */
typedef struct velo_buckets_info {
  uint32_t struct_size;
  velo_bucket_mode mode;
  int64_t slices;
  int64_t buckets;
  int64_t steps; /* that were finished */
} velo_buckets_info;

#define VELO_BUCKETS_INFO_INIT \
  { sizeof(velo_buckets_info), 0, 0, 0, 0 }

/* Fills the caller's struct, at most info->struct_size bytes of it.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_buckets_get_info(velo_buckets buckets, velo_buckets_info* info);

/* One bucket; elements are of gradients, and of parameters. */
typedef struct velo_bucket {
  uint32_t struct_size;
  int32_t place;      /* in the order in which buckets are sent off */
  int64_t first;      /* its first slice */
  int64_t slices;     /* how many it has */
  int64_t offset;     /* its first element */
  int64_t count;      /* how many it has */
  int64_t own_offset; /* the first that is this rank's own */
  int64_t own_count;  /* how many are */
} velo_bucket;

#define VELO_BUCKET_INIT \
  { sizeof(velo_bucket), 0, 0, 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most bucket->struct_size bytes of it, with what is known of a
 * bucket. Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (index), STATE. */
VELO_API velo_status velo_buckets_get_bucket(velo_buckets buckets, int64_t index,
                                             velo_bucket* bucket);

VELO_END_C

#endif
