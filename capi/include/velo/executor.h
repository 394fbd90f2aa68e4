/* Executors: a pipeline schedule carried out, each rank's part by a thread or a process of its own.
 *
 * An executor is one rank's. It goes through the rank's row of a schedule and calls the host's
 * functions: each gets what its action needs and says what it made, and the executor moves that to
 * the rank with the stage behind, or before. What crosses between two stages are tensors, up to
 * VELO_EXECUTOR_TENSORS of them, with sizes that may differ from one micro-batch to the next; sizes
 * travel only when they change.
 *
 * Messages go over a link: functions that move bytes to and from other ranks. A mailbox
 * (velo_mailbox) has links for ranks that are threads of one process, a group (velo_group_get_link)
 * for ranks that are processes, of one host or many; a host may bring links of its own.
 *
 * Rows with SEND and RECV send and receive where they say so; other rows send as soon as something
 * is made, and receive when it is needed.
 *
 * What fails on one rank - a function of the host, a message that does not come, a call of
 * velo_executor_cancel - ends the run of all: that rank's call returns its failure, the others'
 * VELO_ERR_PEER with that rank and the first cause.
 *
 * Streams. The host's functions queue their work on the stream of the run. Before it sends, and
 * before it lets go of inputs, the executor waits until what is queued there is done; on the inline
 * stream there is nothing to wait for.
 *
 * Optimizer steps. OPTIMIZER is an action like others, and what a step has to know of all ranks'
 * gradients, such as their norm or whether one is not a number, is the host's own matter: usually
 * all ranks wait for the last of them. With `validation` in its description an executor does not
 * wait. At the OPTIMIZER that ends its row a rank measures its gradients, hears what the ranks
 * before it measured, and steps by as much. The next run begins with forwards; before the first
 * action of another kind it hears what all measured. A rank that stepped otherwise than that asks
 * for rolls back and steps again, and the forwards since are done again, on all ranks: the results
 * have the bits of steps that waited. This is the post-validation of zero bubble pipelines
 * (arXiv:2401.10241), with a rollback that is exact where the host keeps a copy.
 */
#ifndef VELO_EXECUTOR_H
#define VELO_EXECUTOR_H

#include "velo/group.h"
#include "velo/schedule.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_mailbox_s* velo_mailbox;
typedef struct velo_executor_s* velo_executor;

enum {
  VELO_EXECUTOR_TENSORS = 16 /* the most that cross between two stages at once */
};

/* The functions of a link and of an executor are called inside of velo_executor_run,
 * velo_executor_settle, velo_executor_cancel or velo_executor_get_timeline. In use meanwhile
 * (types.h): the executor, the stream of the run, and the mailbox or group whose link it has.
 *
 * Gives `size` bytes to a rank; when it returns they may be overwritten. It must not wait for the
 * other rank, unless the link says so, or rows have SEND and RECV. */
typedef velo_status (*velo_link_send_fn)(void* user, int32_t to, const void* bytes, uint64_t size);

/* Waits for the next bytes that a rank gave to this one, which were as many, and in that order. */
typedef velo_status (*velo_link_receive_fn)(void* user, int32_t from, void* bytes, uint64_t size);

/* Makes calls of all ranks fail, those under way too; called from any thread, several times. */
typedef void (*velo_link_abort_fn)(void* user, const char* why);

/* As velo_link_send_fn, but does not wait for the other rank: the bytes stay as they are until
 * `finish` has returned, or `abort` was called. They go on while other functions of the link are
 * called, which does not change the order in which a rank is given what it is sent. */
typedef velo_status (*velo_link_start_send_fn)(void* user, int32_t to, const void* bytes,
                                               uint64_t size);

/* Waits until all bytes that were started may be overwritten. */
typedef velo_status (*velo_link_finish_fn)(void* user);

/* As velo_link_receive_fn, without a copy: `bytes` receives where they lie, aligned to 64, for
 * this rank alone to read and write until it gives them back; or NULL, and then they are still
 * to be received. */
typedef velo_status (*velo_link_borrow_fn)(void* user, int32_t from, uint64_t size, void** bytes);

/* Takes back what was borrowed, in any order, before the run returns; after a failure, too. What it
 * throws is ignored. */
typedef void (*velo_link_give_back_fn)(void* user, void* bytes);

/* Bits of velo_link.flags. */
enum {
  VELO_LINK_WAITS = 1 /* a send may wait for its receive: schedules without a SEND in any row are
                         carried out as velo_schedule_lower makes them */
};

/* How one rank reaches others. Failures are passed on with their record, where the function left
 * one by failing in a call of velo's.
 *
 * With start_send a link that WAITS lets ranks send to each other at the same time: an executor
 * starts what it sends between two actions that compute, receives, and finishes before the next
 * one computes. Sends that velo put into rows then come before the receives next to them. All
 * ranks' links are alike in this. */
typedef struct velo_link {
  uint32_t struct_size;
  uint32_t flags; /* bits: VELO_LINK_WAITS */
  void* user;     /* passed to the functions */
  velo_link_send_fn send;
  velo_link_receive_fn receive;
  velo_link_abort_fn abort; /* may be NULL: a failure then reaches others by their own deadlines */
  velo_link_start_send_fn start_send; /* with finish and abort; NULL = send is called */
  velo_link_finish_fn finish;
  velo_link_borrow_fn borrow; /* with give_back; NULL = receive is called */
  velo_link_give_back_fn give_back;
} velo_link;

#define VELO_LINK_INIT \
  { sizeof(velo_link), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The arguments of a function of the host; everything lives until it returns.
 *
 * Inputs. Of F: what the stage before made; none in the first stage. Of I and B: gradients of the
 * stage's outputs; none in the last. Of an FB: those of its F, and as `other_inputs` those of its
 * B. They are in memory of the executor, or that it borrowed of the link, there until B or W of the
 * same stage and micro-batch is done.
 *
 * Outputs, to be filled in from the first on, with their count: compact tensors in memory of the
 * host. Of F: what the stage behind gets; of I and B: gradients of the stage's inputs, for the
 * stage before. Those of the last stage's F, and of the first one's I or B, go nowhere. Where a
 * stage makes none the next one's inputs have the count 0 and no data; one that is filled in and
 * not counted is refused, as is the reverse. What they describe must stay until `released` is
 * called for the action, or the run ends. */
typedef struct velo_executor_call {
  uint32_t struct_size;
  int32_t rank;
  velo_action action;
  uint32_t reserved;
  velo_stream stream; /* on which to work, as given to velo_executor_run */
  velo_tensors inputs;
  velo_tensors other_inputs;
  velo_tensor* outputs;       /* room for VELO_EXECUTOR_TENSORS, all zero */
  velo_tensor* other_outputs; /* the same, of an FB's B */
  int64_t output_count;       /* 0; to be set */
  int64_t other_output_count;
} velo_executor_call;

#define VELO_EXECUTOR_CALL_INIT \
  { sizeof(velo_executor_call), 0, {0, 0, 0, 0, 0}, 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0 }

/* Does an action. Anything but VELO_OK ends the run with VELO_ERR_FOREIGN. */
typedef velo_status (*velo_executor_fn)(void* user, velo_executor_call* call);

/* Reports that the outputs of an F, I or B are needed no more. */
typedef void (*velo_executor_released_fn)(void* user, const velo_action* action);

/* Bits of velo_executor_desc.flags. */
enum {
  VELO_EXECUTOR_RECORD = 1 /* keeps when each action began and ended; after each, the executor waits
                              for the stream */
};

/* Functions of validation: any result but VELO_OK ends the run of all with VELO_ERR_FOREIGN. */

/* Writes what this rank has to say of its gradients; they are whole, and stay until the step is
 * validated. state: `state_size` bytes, written when the function returns. */
typedef velo_status (*velo_executor_measure_fn)(void* user, velo_stream stream, void* state);

/* Decides a step from the states of the first `known` ranks: the factor on its gradients, 0
 * for no step at all, NaN as long as it is undecided; from all ranks it is a number. The same
 * for the same states on every rank.
 * states: `state_size` bytes each, one behind the other. */
typedef velo_status (*velo_executor_decide_fn)(void* user, const void* states, int32_t known,
                                               int32_t ranks, double* factor);

/* Updates the parameters of an OPTIMIZER's stage. factor: neither 0 nor NaN. final: 0 = it may be
 * rolled back, so what was there before is to be kept; 1 = it will not be. */
typedef velo_status (*velo_executor_step_fn)(void* user, velo_stream stream,
                                             const velo_action* action, double factor,
                                             int32_t final);

/* Puts back what was there before the last steps of all of the rank's stages. */
typedef velo_status (*velo_executor_rollback_fn)(void* user, velo_stream stream);

/* The forwards of this run are void and will come again, if there were any; `released` is not
 * called for them. */
typedef velo_status (*velo_executor_forget_fn)(void* user);

/* How steps are taken before all is known. Functions get desc.user. In every rank's row there are
 * OPTIMIZER actions, and nothing behind them. */
typedef struct velo_executor_validation {
  uint32_t struct_size;
  uint32_t reserved;   /* 0 */
  uint64_t state_size; /* bytes that a rank measures, 1 to 65536; the same on all ranks */
  velo_executor_measure_fn measure;
  velo_executor_decide_fn decide;
  velo_executor_step_fn step; /* in place of `other` */
  velo_executor_rollback_fn rollback;
  velo_executor_forget_fn forget; /* may be NULL */
} velo_executor_validation;

#define VELO_EXECUTOR_VALIDATION_INIT \
  { sizeof(velo_executor_validation), 0, 0, 0, 0, 0, 0, 0 }

/* The outcome of a rank's steps. */
typedef struct velo_executor_stats {
  uint32_t struct_size;
  uint32_t reserved;   /* 0 */
  int64_t steps;       /* validated */
  int64_t rolled_back; /* of these, undone by this rank */
  int64_t deferred;    /* not done by this rank until all was known */
  int64_t skipped;     /* none was to be done */
  int64_t repeated;    /* some rank had stepped otherwise, so forwards were done again */
} velo_executor_stats;

#define VELO_EXECUTOR_STATS_INIT \
  { sizeof(velo_executor_stats), 0, 0, 0, 0, 0, 0 }

/* The actions in the rows of each kind of schedule; a row may lack some, as with few micro-batches.
 * An executor needs `forward` for F, `backward` for B, `input` for I, `weight` for W, and for FB
 * `fused`, or else `forward` and `backward`; `other`, where there is one, is called for the rest.
 *
 *   GPIPE, 1F1B, LOOPED_BFS, 1F1B_V, SEQ1F1B          F B
 *   INTERLEAVED                                       F B
 *   INTERLEAVED with OVERLAP                          F B FB
 *   ZBH1, ZBH2, ZB1P, ZBV, ZBV_GREEDY, VHALF, VMIN    F I W
 *   DUALPIPE, DUALPIPEV                               F B I W FB
 *   NANOPIPE                                          F B I W
 *   NANOPIPE with SWAP                                F B I W OFFLOAD RELOAD
 *   RIPIPE                                            F B RECOMPUTE
 *   AUTO                                              F, and B or I W, or B I W FB
 *
 * With the flag OPTIMIZER rows have that, too; other flags change the order alone. */
typedef struct velo_executor_desc {
  uint32_t struct_size;
  uint32_t reserved;         /* 0 */
  int32_t rank;              /* whose row is run */
  uint32_t flags;            /* bits: VELO_EXECUTOR_RECORD */
  const velo_link* link;     /* copied; may be NULL where the schedule has one rank */
  void* user;                /* passed to the functions */
  velo_executor_fn forward;  /* F; like the others, needed where the row has such actions */
  velo_executor_fn input;    /* I */
  velo_executor_fn weight;   /* W */
  velo_executor_fn backward; /* B */
  velo_executor_fn fused;    /* FB; NULL = forward, then backward */
  velo_executor_fn other;    /* all else but SEND and RECV; may be NULL */
  velo_executor_released_fn released;         /* may be NULL */
  const velo_executor_validation* validation; /* copied; NULL = steps are the host's matter */
} velo_executor_desc;

#define VELO_EXECUTOR_DESC_INIT \
  { sizeof(velo_executor_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A mailbox for ranks that are threads of this process. timeout_ns: the longest that a rank waits
 * for a message. mailbox: receives the handle; destroy it with velo_mailbox_destroy.
 * Thread class: any. Errors: NULL, ARGUMENT (ranks: 1 to 256; timeout_ns: 1 or more), MEMORY. */
VELO_API velo_status velo_mailbox_create(int32_t ranks, int64_t timeout_ns, velo_mailbox* mailbox);

/* Ends a mailbox: functions of its links return VELO_ERR_HANDLE. No run over them may be under way
 * on another thread. NULL is ignored, and so is (with a log line) a call from inside such a run
 * (types.h).
 * Thread class: per-handle. */
VELO_API void velo_mailbox_destroy(velo_mailbox mailbox);

/* The link of a rank. link: receives it, at most link->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such rank), STATE. */
VELO_API velo_status velo_mailbox_get_link(velo_mailbox mailbox, int32_t rank, velo_link* link);

/* The link of a group's rank. Its messages are those of the group, which ends when a run fails;
 * once it is destroyed they are VELO_ERR_HANDLE. The group's ranks are the schedule's. Where ranks
 * share memory (LOCAL, SHM) it starts sends, and each rank lends up to 32 times the group's buffer,
 * at most 256 MiB, to those who receive: messages of 16 KiB and more that find room there are
 * copied once, others twice. link: receives it, at most link->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_group_get_link(velo_group group, velo_link* link);

/* An executor of one rank of a schedule, as it stands now. Memory for what is received is of the
 * context, unless the link lends it. executor: receives the handle; destroy it with
 * velo_executor_destroy.
 * Thread class: any. Errors: NULL (also a function that the row, validation or another of the link
 * needs), HANDLE, STRUCT, ARGUMENT (rank, flags, those of the link; with validation, state_size
 * and rows that do not end with OPTIMIZER), UNSUPPORTED (a field of newer headers), STATE,
 * MEMORY. */
VELO_API velo_status velo_executor_create(velo_context context, velo_schedule schedule,
                                          const velo_executor_desc* desc, velo_executor* executor);

/* Ends an executor. NULL is ignored, and so is (with a log line) a call while it runs, or from
 * inside one that uses it (types.h).
 * Thread class: per-handle. */
VELO_API void velo_executor_destroy(velo_executor executor);

/* Runs the rank's row once, on the calling thread, while the other ranks run theirs. After a
 * failure the executor is of no more use (STATE), unless the schedule has one rank; a step that
 * was not validated stays as it is. stream: of the executor's context; functions of the host
 * work on it. Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (stream), STATE (failed
 * before; a row without an action that another needs), MEMORY, TIMEOUT, PEER, FOREIGN, RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE (the last five: outputs of the host). */
VELO_API velo_status velo_executor_run(velo_stream stream, velo_executor executor);

/* Validates the step of the last run, which the next one would have done: all ranks call it, and
 * then have the parameters of a step that waited. For whoever reads them between runs. stream:
 * as of velo_executor_run, which says what happens after a failure. Thread class: per-handle.
 * Errors: NULL, HANDLE, ARGUMENT (stream), STATE (no validation; failed before), MEMORY,
 * TIMEOUT, PEER, FOREIGN. */
VELO_API velo_status velo_executor_settle(velo_stream stream, velo_executor executor);

/* The outcome of this rank's steps, all 0 without validation. stats: receives it, at most
 * stats->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_executor_get_stats(velo_executor executor, velo_executor_stats* stats);

/* Ends the run that is under way on any rank, or the next one.
 * Thread class: any. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_executor_cancel(velo_executor executor);

/* When all ranks did what in the last run: all ranks call it, and all receive the same, in
 * nanoseconds from the first action of any; clocks are taken to agree, as those of one host do. Of
 * forwards that were void it has the second ones.
 * timeline: receives the handle; destroy it with velo_timeline_destroy.
 * Thread class: per-handle. Errors: NULL, HANDLE, STATE (no run, or not recorded), MEMORY, TIMEOUT,
 * PEER, FOREIGN. */
VELO_API velo_status velo_executor_get_timeline(velo_executor executor, velo_timeline* timeline);

VELO_END_C

#endif
