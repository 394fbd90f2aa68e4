/* Groups: ranks that work on one thing together, and their collectives.
 *
 * A group has `size` ranks, numbered from 0; a handle is one of them, in a context of its own: two
 * ranks never share a context. The ranks are threads of one process (LOCAL), processes of one host
 * (SHM) or of one MPI job (MPI), or whatever a host has connected (HOST); SELF is a group of one
 * rank.
 *
 * Order. A collective is work of the stream that it is called on: done when the call returns on an
 * inline stream; queued on others, whose later work comes after it. To compute meanwhile, give
 * collectives a stream of their own and order it with events. Collectives never hold up the
 * products of their context. All ranks call the collectives of a group in the same order, with
 * arguments that fit; those of one group are carried out in the order of their calls, whatever
 * streams they are on. The request of a collective is an event recorded behind it, for which
 * velo_event_synchronize waits. No collective and no message takes a stream of another context
 * (ARGUMENT).
 *
 * Results are the same on all ranks, bit for bit, and from run to run: the group's ranks of each
 * host are combined in their order, then the hosts' results, in that of the hosts' lowest ranks; on
 * one host that is the order of the ranks. So it is for every reduction, collective and size.
 * float32 and narrower elements are combined in float32, also between hosts, and rounded once. Sums
 * of integers wrap; their averages are of the exact sum, rounded towards zero. Least and largest
 * are NaN where any rank has NaN.
 *
 * Faults. Nothing waits for ever. When ranks have not come within the deadline, leave, or call
 * something else, every rank that waits gets VELO_ERR_PEER: the record's `rank` is the lowest of
 * those at fault, `got` names all. A rank that is waited for, but itself waits for another of the
 * same group, is not at fault (over HOST its functions say who is); over LOCAL and SHM neither is
 * one that waits in another part of the same outermost group: the rank that it waits for is named,
 * by its number in the outermost group, with the call and the part where it was missed. A rank that
 * has nothing to wait for, at times the root of a broadcast, gets it from its next collective. The
 * group has then ended: later collectives fail with the same, outputs are undefined, and
 * velo_group_describe tells all that is known.
 */
#ifndef VELO_GROUP_H
#define VELO_GROUP_H

#include "velo/pool.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_group_s* velo_group;

/* How ranks reach each other. */
typedef int32_t velo_transport;
enum {
  VELO_TRANSPORT_AUTO = 0,  /* what fits */
  VELO_TRANSPORT_SELF = 1,  /* one rank */
  VELO_TRANSPORT_LOCAL = 2, /* threads of one process */
  VELO_TRANSPORT_SHM = 3,   /* processes of one host, through shared memory */
  VELO_TRANSPORT_MPI = 4,   /* processes of one MPI job, on one host or on many */
  VELO_TRANSPORT_HOST = 5   /* by the host's own collectives (host.h) */
};

/* How elements of several ranks become one. */
typedef int32_t velo_reduce_op;
enum {
  VELO_REDUCE_SUM = 0,
  VELO_REDUCE_AVG = 1, /* the sum divided by the number of ranks */
  VELO_REDUCE_MIN = 2,
  VELO_REDUCE_MAX = 3,
  VELO_REDUCE_CUSTOM = 4 /* what a function makes of them */
};

/* Combines `count` elements of the next rank with what those before it gave, into the same
 * place. It is called rank after rank, the first rank's elements being there already; over
 * several hosts for the ranks of each, and then for the hosts' results, so it must be
 * associative. Elements of a tensor come in several calls, all on the thread that carries out
 * the collective, and some of them on other ranks alone, which pass on the result. A collective
 * of the group that it calls on an inline stream is VELO_ERR_STATE. In use meanwhile (types.h):
 * stream and group. velo calls it itself over MPI and a host's functions, too, with this rank's
 * `user`. All ranks hand over functions that do the same, which nothing checks. One that cannot
 * go on calls velo_group_abort, or throws: VELO_ERR_FOREIGN on its rank. */
typedef void (*velo_reduce_fn)(void* user, const void* next, void* total, int64_t count,
                               const velo_dtype* dtype);

typedef struct velo_reduction {
  uint32_t struct_size;
  velo_reduce_op op;
  double scale; /* SUM and AVG of floating-point numbers: each element is multiplied by it first */
  velo_reduce_fn fn; /* of CUSTOM */
  void* user;        /* passed to fn */
} velo_reduction;

#define VELO_REDUCTION_INIT \
  { sizeof(velo_reduction), VELO_REDUCE_SUM, 1, 0, 0 }

/* Bits of velo_group_desc.flags. */
enum {
  VELO_GROUP_VERIFY = 1 /* results that must be the same on all ranks are compared */
};

struct velo_host_collectives;

typedef struct velo_group_desc {
  uint32_t struct_size;
  velo_transport transport;
  const char* label;  /* what the group is called in messages: "tp"; NULL = "group" */
  int64_t timeout_ns; /* a rank that was waited for so long is at fault; 600 s by default */
  uint64_t buffer;    /* bytes in which a rank stages what others read; rounded up; rank 0's hold;
                         two or three ranks take twice as much, of up to 2 MiB */
  const char* name;   /* by which processes find each other: 1 to 64 letters, digits, '.', '-', '_';
                         NULL = the job's, where a launcher started it */
  int32_t rank;       /* -1 = as the launcher says */
  int32_t size;       /* -1 = as the launcher says; without one: 1 */
  int64_t communicator; /* of MPI, as its Fortran integer; -1 = MPI_COMM_WORLD */
  const struct velo_host_collectives* host; /* of HOST: copied */
  uint32_t flags;                           /* bits: VELO_GROUP_VERIFY; the same on all ranks */
  uint32_t reserved;
  velo_pool pool; /* of SHM: a shared pool, whose tensors others read where they lie; or NULL */
} velo_group_desc;

#define VELO_GROUP_DESC_INIT                                                                       \
  {                                                                                                \
    sizeof(velo_group_desc), VELO_TRANSPORT_AUTO, 0, 600000000000, 512 << 10, 0, -1, -1, -1, 0, 0, \
        0, 0                                                                                       \
  }

/* Makes a rank of a group, and returns when all ranks have come, or within the deadline. Rank and
 * size come from the description, else from mpirun, torchrun or srun (SLURM_PROCID,
 * SLURM_STEP_NUM_TASKS), in this order, else the rank is alone. An incomplete set of such variables
 * is refused, and so is a batch script of several tasks, which Slurm runs once. While ranks of this
 * host are missing, the context's log names them, after 5 s and then every 30 s. Processes of one
 * host find each other by a socket in a folder of the user's own, `velo` in $XDG_RUNTIME_DIR or
 * /run/user/UID, or else /tmp/velo-UID (-XXXXXX, where another user took that name). They leave
 * nothing there; the next rank 0 in that folder removes what a killed one left. AUTO is SHM where
 * all ranks of a launcher are on this host, and MPI otherwise or where a communicator is named.
 *
 * MPI needs the plugin libvelo_mpi.so, in a folder of the configuration's plugin_path or beside
 * libvelo.so. The ranks are those of the communicator, all of which make the groups over it in the
 * same order; rank and size, where given, must be its own; name is not used. Where the host has not
 * initialized MPI, this call does, and MPI is finalized when the process ends; a host's own MPI
 * must allow calls from any thread (MPI_THREAD_MULTIPLE). MPI_Init waits for all processes of the
 * job and cannot be canceled: after the deadline it continues on a thread of its own, and a later
 * call waits for it. Until it ends it may change the environment, which a new context reads.
 *
 * A pool of SHM is of the kind VELO_POOL_SHARED, and must outlive the group and its parts, which
 * use it too; other ranks can read all of its memory. Where the tensors of all ranks lie in such
 * pools, all_reduce (in and out), reduce_scatter, all_gather, all_to_all (even, not in place) and
 * broadcast of 16 KiB and more (per part, where there are parts) copy nothing into the group's own
 * memory; otherwise they do, with the same bits and one wait more. Each rank holds up to two more
 * descriptors for each other rank. Other transports make no use of a pool.
 *
 * HOST needs desc.host; rank and size are those of its functions, all of which get a deadline, and
 * none of which is called before this call.
 *
 * VERIFY compares the CRCs of the results of all_reduce, broadcast and all_gather, one more message
 * for each; where they differ the group ends, and the fault names the ranks that differ from most.
 *
 * desc: copied; may be NULL for all defaults. group: receives the handle; destroy it with
 * velo_group_destroy.
 * Thread class: any. Errors: NULL (context, group, desc.name, desc.host and what it lacks), HANDLE,
 * STRUCT, ARGUMENT (also of the launcher's variables, a communicator that is none, a pool that
 * is not shared), UNSUPPORTED (a field of newer headers; more than 1024 ranks; a transport that
 * this call does not make; no plugin, or an MPI it cannot use), NOT_FOUND (a plugin that is none
 * of velo), ABI (a plugin of another release), STATE (others meet by that name now), MEMORY, IO,
 * PEER (ranks that did not come, or came twice, or with another size or release). */
VELO_API velo_status velo_group_create(velo_context context, const velo_group_desc* desc,
                                       velo_group* group);

/* Says whether groups can be made by way of a transport here: VELO_OK, or a status whose record
 * says what is missing. Meets nobody and does not initialize MPI. Thread class: any. Errors:
 * NULL, HANDLE, ARGUMENT (transport), STATE, MEMORY, UNSUPPORTED, NOT_FOUND, ABI, IO. */
VELO_API velo_status velo_transport_query(velo_context context, velo_transport transport);

/* Makes all ranks of a group of this process's threads: rank i in contexts[i]. contexts: `count`
 * different ones, on devices of one type. groups: receives a handle for each rank's thread.
 * Thread class: any. Errors: NULL (contexts, groups), HANDLE, STRUCT, ARGUMENT (count, a context
 * named twice), UNSUPPORTED (a field of newer headers; another transport), STATE, MEMORY. */
VELO_API velo_status velo_group_create_local(const velo_context* contexts, int32_t count,
                                             const velo_group_desc* desc, velo_group* groups);

/* Makes a group of some ranks of another, all of which call it with the same list, in the order of
 * their other calls on the parent; it returns when all have come. The others have no part in it.
 * ranks: `count` of the parent's, each once, the caller's among them; a rank's place in the list is
 * its rank in the new group, in the context of its parent. desc: copied; its transport, name, rank,
 * size and pool follow from the parent, and are left as VELO_GROUP_DESC_INIT has them; NULL = all
 * defaults, with the parent's deadline. group: receives the handle. Neither group needs the other
 * afterwards. A rank that ends one of them passes on the fault that it has met in another; errors
 * number ranks as the group that is no part, and name the part. Thread class: any. Errors: NULL
 * (parent, ranks, group), HANDLE, STRUCT, ARGUMENT (count, a rank that is not there, or named
 * twice, a list without the caller, desc), UNSUPPORTED (a field of newer headers; a transport
 * without parts), STATE (called by work of its context), MEMORY, IO, PEER (the parent has ended, or
 * ranks did not come, which does not end it, unless it is called again while a function of its host
 * has not returned). */
VELO_API velo_status velo_group_create_part(velo_group parent, const int32_t* ranks, int32_t count,
                                            const velo_group_desc* desc, velo_group* group);

/* Makes a group of the ranks that are left of one that has ended, in the order of their ranks.
 * All that are left call it; it waits for each rank whose process lives and which has not
 * destroyed its group, but for no rank that ended the group by being late, and for none beyond
 * the deadline. desc: as of velo_group_create_part. survivors: receives the handle; the old
 * group is still to be destroyed. After an error it may be called again, by all. Thread class:
 * any. Errors: NULL (group, survivors), HANDLE, STRUCT, ARGUMENT (desc), UNSUPPORTED (a field of
 * newer headers; a transport that cannot lose ranks), STATE (the group has not ended), MEMORY,
 * IO, PEER (the others went on without this rank, or another one was lost meanwhile). */
VELO_API velo_status velo_group_shrink(velo_group group, const velo_group_desc* desc,
                                       velo_group* survivors);

/* Finishes the rank's collectives that were called, each within its deadline, and leaves the group.
 * NULL is ignored, and so is (with a log line) a call from work of a stream with queued collectives
 * of the group, or from inside one that uses it (types.h). Thread class: per-handle. */
VELO_API void velo_group_destroy(velo_group group);

/* Ends the group: collectives under way on any rank fail with VELO_ERR_PEER within 50 ms, or
 * once a custom reduction's part is combined. May be called again, and at any time; waits for
 * nobody. Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_group_abort(velo_group group);

/* Facts about a group. */
typedef struct velo_group_info {
  uint32_t struct_size;
  velo_transport transport;
  int32_t rank;
  int32_t size;
  int64_t timeout_ns;
  uint64_t called;   /* collectives so far on this rank */
  uint64_t finished; /* of these done, or failed */
  int32_t failed;    /* 1: the group has ended */
  uint32_t reserved;
} velo_group_info;

#define VELO_GROUP_INFO_INIT \
  { sizeof(velo_group_info), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills at most info->struct_size bytes. Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_group_get_info(velo_group group, velo_group_info* info);

/* Writes all that is known of a group as JSON: label, transport, rank, size, how far each rank has
 * come, how many collectives read tensors where they lie (in_place), and what ended the group, if
 * anything did. buffer: caller's, capacity bytes, always zero-terminated; may be NULL with
 * capacity 0 to ask for the size. needed: receives the size with its zero byte; may be NULL.
 * Thread class: any. Errors: NULL (group; buffer with a capacity), HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_group_describe(velo_group group, char* buffer, uint64_t capacity,
                                         uint64_t* needed);

/* Writes the last 4096 operations that this rank called as JSON, the oldest first: the number of
 * the call, its sequence among the collectives of all ranks (null of messages, and before its
 * turn), what it is, bytes of this rank, state (called, begun, done, failed, dropped), and when
 * it began and ended, in nanoseconds of CLOCK_MONOTONIC, 0 if it has not. buffer, capacity,
 * needed: as of velo_group_describe; a text that has grown since it was asked for is cut. Thread
 * class: any. Errors: NULL (group; buffer with a capacity), HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_group_history(velo_group group, char* buffer, uint64_t capacity,
                                        uint64_t* needed);

/* Lets no rank go on before all have come.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_barrier(velo_stream stream, velo_group group);

/* Combines the elements of all ranks' `in` into every rank's `out`. reduction: copied; NULL = the
 * sum. in, out: compact, of one size on all ranks, float32, float64, float16, bfloat16, int8,
 * int32, int64 or uint8, for CUSTOM of any dtype of whole bytes; out of the same dtype, or, unless
 * CUSTOM, float32 for float16 or bfloat16 in. out may be in.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (reduction), RANK, SHAPE, DTYPE,
 * LAYOUT, DEVICE, OVERLAP, UNSUPPORTED (a field of newer headers), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_all_reduce(velo_stream stream, velo_group group,
                                           const velo_reduction* reduction, const velo_tensor* in,
                                           const velo_tensor* out);

/* Combines the elements of all ranks' `in` into `out` of the rank `root`. As velo_group_all_reduce,
 * but of one dtype; out: of others not looked at, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (root, reduction), RANK, SHAPE, DTYPE,
 * LAYOUT, DEVICE, OVERLAP, UNSUPPORTED (a field of newer headers), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_reduce(velo_stream stream, velo_group group, int32_t root,
                                       const velo_reduction* reduction, const velo_tensor* in,
                                       const velo_tensor* out);

/* Copies `x` of the rank `root` to all others' `x`. x: compact, of one size and dtype on all ranks.
 * Collectives that combine nothing take any dtype of whole bytes.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (root), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_broadcast(velo_stream stream, velo_group group, int32_t root,
                                          const velo_tensor* x);

/* Puts all ranks' `in`, in the order of the ranks, side by side into every rank's `out`. in: of one
 * size on all ranks; out: as large as all. in may be the rank's part of out.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT, RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP,
 * STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_all_gather(velo_stream stream, velo_group group,
                                           const velo_tensor* in, const velo_tensor* out);

/* The same of ranks with different numbers of elements. counts: for each rank, how many it has, the
 * same on all ranks. offsets: for each rank, where in out they go, without overlap; NULL = in a
 * row. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (counts and offsets that do not fit),
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_all_gather_v(velo_stream stream, velo_group group,
                                             const velo_tensor* in, const int64_t* counts,
                                             const int64_t* offsets, const velo_tensor* out);

/* Combines the elements of all ranks' `in`, and puts of the result each rank's part into its `out`,
 * in the order of the ranks. in: as large as all parts; dtypes as for velo_group_all_reduce. out
 * may be the rank's part of in.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (reduction), RANK, SHAPE, DTYPE,
 * LAYOUT, DEVICE, OVERLAP, UNSUPPORTED (a field of newer headers), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_reduce_scatter(velo_stream stream, velo_group group,
                                               const velo_reduction* reduction,
                                               const velo_tensor* in, const velo_tensor* out);

/* The same in parts of different sizes, one behind the other. counts: for each rank, how many
 * elements it gets, the same on all ranks. Thread class: any. Errors: NULL, HANDLE, STRUCT,
 * ARGUMENT (reduction, counts that do not fit), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP,
 * UNSUPPORTED (a field of newer headers), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_reduce_scatter_v(velo_stream stream, velo_group group,
                                                 const velo_reduction* reduction,
                                                 const velo_tensor* in, const int64_t* counts,
                                                 const velo_tensor* out);

/* Gives each rank its part of every rank's `in`, in the order of the ranks: part j of rank i's in
 * becomes part i of rank j's out. in, out: of one size on all ranks, a multiple of their number.
 * out may be in. Thread class: any. Errors: NULL, HANDLE, ARGUMENT, RANK, SHAPE, DTYPE, LAYOUT,
 * DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_all_to_all(velo_stream stream, velo_group group,
                                           const velo_tensor* in, const velo_tensor* out);

/* The same in parts of different sizes. in_counts, in_offsets: for each rank, how many elements it
 * is given, and where in `in` they are; out_counts, out_offsets: how many it gives, and where in
 * `out` they go. What one rank gives another must be what that expects. offsets: NULL = one behind
 * the other. out may be in where both are cut alike.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (counts and offsets that do not fit), RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_all_to_all_v(velo_stream stream, velo_group group,
                                             const velo_tensor* in, const int64_t* in_counts,
                                             const int64_t* in_offsets, const int64_t* out_counts,
                                             const int64_t* out_offsets, const velo_tensor* out);

/* Puts all ranks' `in`, in the order of the ranks, side by side into `out` of the rank `root`. in:
 * of one size on all ranks; may be the root's part of out. out: ignored on others, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (root), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_gather(velo_stream stream, velo_group group, int32_t root,
                                       const velo_tensor* in, const velo_tensor* out);

/* The same of ranks with different numbers of elements. counts, offsets: the root's, as for
 * velo_group_all_gather_v; of others not looked at, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (root, counts and offsets that do not fit),
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_gather_v(velo_stream stream, velo_group group, int32_t root,
                                         const velo_tensor* in, const int64_t* counts,
                                         const int64_t* offsets, const velo_tensor* out);

/* Gives each rank its part of `in` of the rank `root`, in the order of the ranks. out: of one size
 * on all ranks; may be the root's part of in. in: of others not looked at, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (root), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_scatter(velo_stream stream, velo_group group, int32_t root,
                                        const velo_tensor* in, const velo_tensor* out);

/* The same in parts of different sizes. counts, offsets: the root's: for each rank, how many
 * elements it gets, and where in `in` they are; NULL offsets = one behind the other. Of others not
 * looked at, may be NULL.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (root, counts and offsets that do not fit),
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_scatter_v(velo_stream stream, velo_group group, int32_t root,
                                          const velo_tensor* in, const int64_t* counts,
                                          const int64_t* offsets, const velo_tensor* out);

/* Sends `x` to the rank `to`, which receives it. It returns, or is done on its stream, when x may
 * be changed: when the other has it, or memory between the two. Messages from one rank to another
 * keep their order; other ranks have no part in them. A message to itself is copied, over any
 * transport, and must be sent before it is received or in the same exchange. x: compact, of any
 * dtype of whole bytes. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (to), RANK, SHAPE, DTYPE,
 * LAYOUT, DEVICE, UNSUPPORTED (a host without send and receive), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_send(velo_stream stream, velo_group group, int32_t to,
                                     const velo_tensor* x);

/* Receives into `x` what the rank `from` sends next. x: of the size and dtype that were sent.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (from), RANK, SHAPE, DTYPE, LAYOUT, DEVICE,
 * UNSUPPORTED (a host without send and receive), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_receive(velo_stream stream, velo_group group, int32_t from,
                                        const velo_tensor* x);

/* Which way a message goes. */
typedef int32_t velo_message_direction;
enum { VELO_MESSAGE_SEND = 0, VELO_MESSAGE_RECEIVE = 1 };

/* One of several messages. */
typedef struct velo_group_message {
  const velo_tensor* x;
  int32_t rank; /* to which, or from which */
  velo_message_direction direction;
} velo_group_message;

/* Sends and receives all at the same time, so that ranks may send to each other without waiting for
 * each other. messages: `count` of them, at most 4096; copied.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (count, ranks, directions), RANK, SHAPE, DTYPE,
 * LAYOUT, DEVICE, OVERLAP (what is received, with another), UNSUPPORTED (a host without send and
 * receive), STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_exchange(velo_stream stream, velo_group group,
                                         const velo_group_message* messages, int64_t count);

VELO_END_C

#endif
