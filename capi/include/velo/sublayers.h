/* Layers with experts on other ranks: the order of their parts, in which messages travel while
 * something else is computed.
 *
 * Such a layer is attention, a message that takes rows to their experts (dispatch), the experts,
 * and a message back (combine); backward the same from its end. A plan is the order of these steps
 * on two streams, one that computes and one for messages:
 *
 * - a forward and a backward of two micro-batches at once: the messages of one travel while the
 *   other computes, as in DualPipeV;
 * - a forward or a backward by itself: the shared expert, through which all rows go, is computed
 *   beside dispatch and the gradient of combine, and the weight gradients of experts beside the
 *   gradient of dispatch;
 * - the same in slices: the messages of a slice travel while another is computed. A slice has
 *   some of the experts, some of the rows that go to experts, or some of the rows of the
 *   sequence, attention's queries included.
 *
 * A step begins when the step before it on its stream is done, and all that it needs; so a plan has
 * a price: with the times of the parts it says how long all steps take, and how much of that time
 * nothing is computed.
 *
 * Plans belong to no context; they never change, so calls may overlap. Equal descriptions give
 * equal plans, so ranks that make the same description send their messages in the same order.
 * Sources: DeepSeek-AI's DualPipe (arXiv:2412.19437); MindSpeed's pipe-experts and AMPipe.
 */
#ifndef VELO_SUBLAYERS_H
#define VELO_SUBLAYERS_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_sublayers_s* velo_sublayers;

/* Parts of a layer, forward (F), gradient of inputs (B), gradient of weights (W). A layer without
 * experts on other ranks has no messages and no shared expert; its EXPERTS are its feed-forward
 * block. */
typedef int32_t velo_sublayer_kind;
enum {
  VELO_SUBLAYER_ATTENTION_F = 1,  /* attention and router */
  VELO_SUBLAYER_DISPATCH_F = 2,   /* message: rows to the ranks of their experts */
  VELO_SUBLAYER_EXPERTS_F = 3,    /* routed experts */
  VELO_SUBLAYER_COMBINE_F = 4,    /* message: rows back */
  VELO_SUBLAYER_SHARED_F = 5,     /* the shared expert, which all rows go through: no message */
  VELO_SUBLAYER_COMBINE_B = 6,    /* message: gradients to the ranks of their experts */
  VELO_SUBLAYER_EXPERTS_B = 7,    /* routed experts */
  VELO_SUBLAYER_DISPATCH_B = 8,   /* message: gradients back */
  VELO_SUBLAYER_SHARED_B = 9,     /* the shared expert, inputs and weights */
  VELO_SUBLAYER_ATTENTION_B = 10, /* attention and router */
  VELO_SUBLAYER_EXPERTS_W = 11,   /* routed experts */
  VELO_SUBLAYER_ATTENTION_W = 12, /* attention and router */
  VELO_SUBLAYER_SEND_B = 13       /* message: the chunk's gradient to the stage before */
};

/* The rows or experts of a slice. */
typedef int32_t velo_sublayer_slicing;
enum {
  VELO_SUBLAYER_WHOLE = 0,      /* everything: one slice */
  VELO_SUBLAYER_BY_EXPERT = 1,  /* some of the experts, with the rows that go to them */
  VELO_SUBLAYER_BY_ROWS = 2,    /* some of the rows that go to experts */
  VELO_SUBLAYER_BY_SEQUENCE = 3 /* some of the rows of all parts; attention's keys are whole */
};

/* A step of a plan. Of BY_EXPERT and BY_ROWS the messages and the experts of layers with messages
 * are cut into slices, of BY_SEQUENCE all kinds but SEND_B; others have slice 0. */
typedef struct velo_sublayer_step {
  velo_sublayer_kind kind;
  int32_t layer;   /* of its chunk, from 0; of SEND_B 0 */
  int32_t slice;   /* from 0 */
  int32_t message; /* 1: on the stream of messages; 0: on the one that computes */
} velo_sublayer_step;

/* Bits of velo_sublayers_desc.flags. */
enum {
  VELO_SUBLAYERS_SHARED = 1, /* layers with messages have a shared expert */
  VELO_SUBLAYERS_SEND = 2    /* a backward ends with SEND_B */
};

/* The layers of a plan, their parts' times, and the slices. */
typedef struct velo_sublayers_desc {
  uint32_t struct_size;
  uint32_t flags;                /* bits: VELO_SUBLAYERS_* */
  int32_t forward_layers;        /* of the chunk that goes forward, 0 to 4096 */
  int32_t backward_layers;       /* of the chunk that goes backward, 0 to 4096 */
  velo_sublayer_slicing slicing; /* VELO_SUBLAYER_*; WHOLE where both numbers above are not 0 */
  int32_t slices;                /* 1 to 64, with WHOLE at most 1; 0: as many of 1 to 8 as give
                                    the least makespan, of equal ones the fewest */
  const int32_t* forward_dense;  /* [forward_layers] 1: the layer has no messages, 0: it has; NULL:
                                    all have */
  const int32_t* backward_dense; /* [backward_layers], as forward_dense */
  const double* times;           /* [14], by kind, the time of a whole layer's part, 0 to 1e18; the
                                    first is not read; NULL: 1 each */
  double latency;                /* time that each message takes besides, 0 to 1e18 */
  const velo_sublayer_step* order; /* an order of the caller's own, which is checked; NULL: the
                                      plan's */
  int64_t order_steps;             /* its length; 0 with NULL */
} velo_sublayers_desc;

#define VELO_SUBLAYERS_DESC_INIT \
  { sizeof(velo_sublayers_desc), 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0 }

/* Numbers of a plan; times in the unit of the description's. */
typedef struct velo_sublayers_info {
  uint32_t struct_size;
  int32_t slices;
  int64_t steps;        /* of both streams */
  int64_t messages;     /* of these, on the stream of messages */
  double makespan;      /* from the first step's begin to the last one's end */
  double computing;     /* sum of the steps that compute */
  double communicating; /* sum of the messages */
  double exposed;       /* time in which nothing is computed */
} velo_sublayers_info;

#define VELO_SUBLAYERS_INFO_INIT \
  { sizeof(velo_sublayers_info), 0, 0, 0, 0, 0, 0, 0 }

/* When a step of a run began and ended, in nanoseconds of the monotonic clock. */
typedef struct velo_sublayer_span {
  int64_t begin; /* -1: it did not run */
  int64_t end;
} velo_sublayer_span;

/* A text that a plan writes. */
typedef int32_t velo_sublayers_format;
enum {
  VELO_SUBLAYERS_JSON = 0, /* an object of forward_layers, backward_layers, slicing, slices,
                              makespan, computing, communicating, exposed, and steps: step, layer,
                              slice, stream, begin, end, needs (indices of steps) */
  VELO_SUBLAYERS_SVG = 1   /* a picture: both streams, time to the right, colored by kind */
};

/* Makes a plan. desc: copied, with all that it points at. plan: receives the handle; destroy it
 * with velo_sublayers_destroy. Thread class: any. Errors: NULL, STRUCT, ARGUMENT (the field that
 * makes no sense, alone or with others; the first step of an order that stands before one that it
 * needs, is there twice, or is no step; layers times slices above 65536), UNSUPPORTED (a field of
 * newer headers), MEMORY. */
VELO_API velo_status velo_sublayers_create(const velo_sublayers_desc* desc, velo_sublayers* plan);

/* Ends a plan. NULL is ignored, and so is (with a log line) a call from inside its run (types.h).
 * Thread class: per-handle. */
VELO_API void velo_sublayers_destroy(velo_sublayers plan);

/* Numbers of a plan. info: receives them, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_sublayers_get_info(velo_sublayers plan, velo_sublayers_info* info);

/* The steps of both streams in the order in which velo_sublayers_run starts them: each stands
 * behind all that it needs. steps: receives the first `capacity` of them; may be NULL when that is
 * 0. count: receives how many there are; may be NULL. Thread class: any. Errors: NULL, HANDLE,
 * ARGUMENT (capacity), STATE. */
VELO_API velo_status velo_sublayers_get_steps(velo_sublayers plan, velo_sublayer_step* steps,
                                              int64_t capacity, int64_t* count);

/* The steps that a step needs, by their indices in rising order. needs, capacity, count: as of
 * velo_sublayers_get_steps. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such step,
 * capacity), STATE, MEMORY. */
VELO_API velo_status velo_sublayers_get_needs(velo_sublayers plan, int64_t step, int64_t* needs,
                                              int64_t capacity, int64_t* count);

/* The plan as a text. spans: [steps], those of a run, whose times the text then has, in
 * nanoseconds from the first begin; NULL: the times of the description. buffer: the caller's,
 * `capacity` bytes, zero-terminated; NULL with capacity 0 asks for the size alone. needed: receives
 * the size with its terminator; may be NULL. Thread class: any. Errors: NULL (plan, buffer),
 * HANDLE, ARGUMENT (format, also for a picture of more than 65536 steps; spans), STATE, MEMORY. */
VELO_API velo_status velo_sublayers_write(velo_sublayers plan, const velo_sublayer_span* spans,
                                          velo_sublayers_format format, char* buffer,
                                          uint64_t capacity, uint64_t* needed);

/* Starts a step: queues its work on `stream`, or on an inline stream does it. Anything but VELO_OK
 * ends the run with VELO_ERR_FOREIGN. */
typedef velo_status (*velo_sublayer_fn)(void* user, velo_stream stream,
                                        const velo_sublayer_step* step);

/* Reports, once and before the run waits for its streams, that it ends early: `step` failed, or an
 * earlier one whose queued work did. The place to end groups (velo_group_abort), so that no other
 * rank waits for messages that do not come. */
typedef void (*velo_sublayers_failed_fn)(void* user, const velo_sublayer_step* step,
                                         velo_status status);

/* The functions that carry a plan out. */
typedef struct velo_sublayers_run_desc {
  uint32_t struct_size;
  uint32_t reserved;               /* 0 */
  void* user;                      /* passed to the functions */
  velo_sublayer_fn compute;        /* starts steps that compute */
  velo_sublayer_fn message;        /* starts messages; not needed by a plan without any */
  velo_sublayers_failed_fn failed; /* may be NULL */
  velo_sublayer_span* spans;       /* [steps], receives when each began and ended; may be NULL */
} velo_sublayers_run_desc;

#define VELO_SUBLAYERS_RUN_DESC_INIT \
  { sizeof(velo_sublayers_run_desc), 0, 0, 0, 0, 0, 0 }

/* Carries a plan out: calls the functions for its steps one after another on the calling thread,
 * lets each stream wait for what a step needs of the other, and returns when both streams have done
 * all. So messages overlap with what is computed if theirs is a created stream; with two inline
 * streams everything is done in the order of the steps. If a function or queued work fails no more
 * steps are started; the run waits for what is queued and returns the failure, and no stream waits
 * for a step that was not started. In use meanwhile (types.h): plan and streams. compute, messages:
 * streams of one context, which may be the same. Thread class: any. Errors: NULL (also a function
 * that the plan needs), HANDLE, STRUCT, ARGUMENT (streams of two contexts, desc.reserved),
 * UNSUPPORTED (a field of newer headers), STATE (called by work that others wait for), FULL,
 * MEMORY, IO, PEER (both of queued work), FOREIGN, INTERNAL (of queued work). */
VELO_API velo_status velo_sublayers_run(velo_stream compute, velo_stream messages,
                                        velo_sublayers plan, const velo_sublayers_run_desc* desc);

VELO_END_C

#endif
