/* Planned collectives: described once, started as often as wanted.
 *
 * What a collective needs besides its turn is made once: arguments are checked, the algorithm's
 * scratch and the ranks' parts stay. A start costs less than a call, and where a rank's memory is
 * its own (SELF, LOCAL, SHM) none but the first few asks for memory. In all else a start is the
 * call of group.h of that kind, and meets either on the other ranks: work of a stream, done when
 * the call returns on an inline stream, its request an event recorded behind it, in the order of
 * the group's calls.
 *
 *   velo_collective_create(group, &desc, &sum)
 *   for each step:
 *     ..                                        new numbers in the memory of desc.in
 *     velo_collective_start(stream, sum)
 *     velo_event_record(event, stream)
 *
 * A collective may be started again before it has ended: starts are carried out one after the
 * other, on whatever streams they are; each reads and writes the same memory, which is the
 * caller's, and must stay where it was, as large, until the last has ended.
 *
 * The group. A collective belongs to one rank of a group and does not keep it: the others learn of
 * a rank that leaves when it does. Once the group is destroyed a start is refused (HANDLE), as it
 * is once the group has ended (PEER, and what ended it); the survivors of velo_group_shrink plan
 * anew. A child of a fork can start nothing of its parent's (STATE).
 */
#ifndef VELO_COLLECTIVE_H
#define VELO_COLLECTIVE_H

#include "velo/group.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_collective_s* velo_collective;

/* Which function of group.h a collective stands for: velo_group_all_reduce, .. */
typedef int32_t velo_collective_kind;
enum {
  VELO_COLLECTIVE_BARRIER = 0,
  VELO_COLLECTIVE_ALL_REDUCE = 1,
  VELO_COLLECTIVE_REDUCE = 2,
  VELO_COLLECTIVE_BROADCAST = 3,
  VELO_COLLECTIVE_ALL_GATHER = 4,
  VELO_COLLECTIVE_ALL_GATHER_V = 5,
  VELO_COLLECTIVE_REDUCE_SCATTER = 6,
  VELO_COLLECTIVE_REDUCE_SCATTER_V = 7,
  VELO_COLLECTIVE_ALL_TO_ALL = 8,
  VELO_COLLECTIVE_ALL_TO_ALL_V = 9,
  VELO_COLLECTIVE_GATHER = 10,
  VELO_COLLECTIVE_GATHER_V = 11,
  VELO_COLLECTIVE_SCATTER = 12,
  VELO_COLLECTIVE_SCATTER_V = 13,
  VELO_COLLECTIVE_SEND = 14,
  VELO_COLLECTIVE_RECEIVE = 15,
  VELO_COLLECTIVE_EXCHANGE = 16
};

/* The arguments of a collective: those of its function; others are not looked at. BARRIER is the
 * default, and refused beside tensors or messages: their kind was forgotten. */
typedef struct velo_collective_desc {
  uint32_t struct_size;
  velo_collective_kind kind;
  int32_t rank; /* the function's root, to or from */
  uint32_t reserved;
  const velo_reduction* reduction; /* NULL = the sum */
  const velo_tensor* in;           /* what is given; x */
  const velo_tensor* out;          /* what is got */
  const int64_t* in_counts;        /* of REDUCE_SCATTER_V, ALL_TO_ALL_V and SCATTER_V */
  const int64_t* in_offsets;       /* of the last two */
  const int64_t* out_counts; /* of ALL_GATHER_V, ALL_TO_ALL_V and GATHER_V, as are out_offsets */
  const int64_t* out_offsets;
  const velo_group_message* messages; /* of EXCHANGE */
  int64_t message_count;
} velo_collective_desc;

#define VELO_COLLECTIVE_DESC_INIT \
  { sizeof(velo_collective_desc), VELO_COLLECTIVE_BARRIER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Plans a collective of this rank. Meets nobody: the other ranks plan theirs, or call the
 * function of that kind. desc: copied, with all it points to but the elements of tensors, which
 * must stay; what is asked of the arguments, and what the record calls them, is as of that
 * function. collective: receives the handle; destroy it with velo_collective_destroy. Thread
 * class: any. Errors: NULL (group, desc, collective, an argument of the kind), HANDLE, STRUCT,
 * ARGUMENT (desc.kind, and what that function refuses), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * OVERLAP, UNSUPPORTED (a field of newer headers; what the transport cannot carry out), STATE,
 * MEMORY. */
VELO_API velo_status velo_collective_create(velo_group group, const velo_collective_desc* desc,
                                            velo_collective* collective);

/* Forgets the plan; what was started goes on, on memory that is the caller's. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_collective_destroy(velo_collective collective);

/* Calls the collective with what is in its tensors' memory when its turn comes.
 * Thread class: any. Errors: NULL, HANDLE (also of a group that was destroyed), ARGUMENT (a
 * stream of another context), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_collective_start(velo_stream stream, velo_collective collective);

/* Measures what collectives of a group take, on all ranks that call it: seven kinds of 1 KiB to
 * 16 MiB of float32, the slowest rank's medians; 0.3 s of two ranks of one host, and 32 MiB on
 * each. From then on velo_collective_explain predicts times. May be called again. Thread class:
 * any. Errors: NULL, HANDLE, ARGUMENT (a stream of another context), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_measure(velo_stream stream, velo_group group);

/* Writes as JSON which way the collective takes and why: `operation`, `transport`, `bytes` of
 * the largest tensor of this rank, `ways` in the order in which they are tried (name, chosen,
 * reason), `steps` through memory between the ranks and the bytes of one (0: none), and by
 * velo_group_measure the time that a call of so many bytes takes, `predicted_ns`, with the
 * `latency_ns` of the smallest and the `bytes_per_second` of the largest; null: not measured.
 * Reads of tensors where they lie (velo_group_desc.pool) take less. Meets nobody. buffer,
 * capacity, needed: as of velo_group_describe. Thread class: any. Errors: NULL (collective;
 * buffer with a capacity), HANDLE (also of a group that was destroyed), STATE, MEMORY. */
VELO_API velo_status velo_collective_explain(velo_collective collective, char* buffer,
                                             uint64_t capacity, uint64_t* needed);

/* Writes what is planned as JSON: the operation, its bytes of this rank, and how often it was
 * started. buffer, capacity, needed: as of velo_group_describe. Thread class: any. Errors: NULL
 * (collective; buffer with a capacity), HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_collective_describe(velo_collective collective, char* buffer,
                                              uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
