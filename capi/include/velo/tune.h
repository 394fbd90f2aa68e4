/* Which layout of a job trains fastest: a search over ways to cut a model and its batch over
 * accelerators, by a model of costs and memory.
 *
 * A job is two JSON texts. The config says what is trained and on how many accelerators; the
 * profile says what an accelerator and the links between them give. Every candidate of the search
 * is a layout: tensor, pipeline, context and expert parallel sizes, chunks a pipeline rank holds,
 * micro-batch, what is recomputed, the order of the pipeline (schedule.h), how layers are split
 * over stages, how ranks share attention (sequence_plan.h), slices of products that overlap with
 * their exchange, how tokens get to their experts, tensor ranks in two dimensions, splits of
 * sequences, whether tensor ranks share rows, and ZeRO's stage. The last seven are fields of a
 * plan and of a rejection; the others are fields of its velo_tuning_layout. A candidate either
 * becomes a plan, priced by the simulator of schedules and with memory itemised by rank, or is
 * rejected with a reason. examples/tune/README.md lists keys, units, defaults and formulas;
 * VELO_TUNING_ASSUMPTIONS repeats them, and VELO_TUNING_JSON has, of an order that a search found,
 * the cap and the costs with which velo_schedule_create makes it again.
 *
 * Nothing is measured or run: a plan is as good as its profile.
 *
 * Tunings belong to no context and no thread; calls with the same one are not to overlap.
 */
#ifndef VELO_TUNE_H
#define VELO_TUNE_H

#include "velo/schedule.h"
#include "velo/sequence_plan.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_tuning_s* velo_tuning;

/* Activations that a backward pass recomputes instead of keeping. */
typedef int32_t velo_tuning_recompute;
enum {
  VELO_TUNING_RECOMPUTE_NONE = 0,
  VELO_TUNING_RECOMPUTE_CORE = 1,       /* scores and weights of attention, where no fused attention
                                           leaves them out anyway */
  VELO_TUNING_RECOMPUTE_ACTIVATION = 2, /* outputs of the activation function of feed-forwards */
  VELO_TUNING_RECOMPUTE_FULL = 3,       /* all of a layer but its input */
  VELO_TUNING_RECOMPUTE_NORMS = 4 /* outputs of norms, of activation functions, of up-projections
                                           in latent attention, and of experts */
};

/* How layers are split over stages. */
typedef int32_t velo_tuning_split;
enum {
  VELO_TUNING_SPLIT_EVEN = 0, /* as many layers on each, or one fewer on the first and the last */
  VELO_TUNING_SPLIT_BALANCED = 1 /* so that the slowest stage, embedding and output counted, is as
                                    fast as it can be */
};

/* How tokens get into the order of their experts and back. */
typedef int32_t velo_tuning_rearrange;
enum {
  VELO_TUNING_REARRANGE_INDEX = 0,  /* by the numbers of their rows */
  VELO_TUNING_REARRANGE_ONE_HOT = 1 /* by products with matrices of zeros and ones */
};

/* Why a candidate is no plan. */
typedef int32_t velo_tuning_reason;
enum {
  VELO_TUNING_REASON_HEADS = 1,    /* tp, tp_x or tp / tp_x does not divide what it cuts, where it
                                      must or there are fewer of that, or more ranks exchange heads
                                      than there are */
  VELO_TUNING_REASON_RANKS = 2,    /* tp * cp * pp does not divide the accelerators */
  VELO_TUNING_REASON_EXPERTS = 3,  /* ep does not divide the experts, or tp * cp * dp */
  VELO_TUNING_REASON_BATCH = 4,    /* dp * micro_batch does not divide the batch */
  VELO_TUNING_REASON_SEQUENCE = 5, /* cp, times tp if tensor ranks share the rows, times
                                      sequence_splits, exceeds the sequence, or does not divide it
                                      where parts must be equal */
  VELO_TUNING_REASON_LAYERS = 6,   /* layers do not divide into stages, or are fewer than those
                                      that need one: all but the first and the last */
  VELO_TUNING_REASON_SCHEDULE = 7, /* no schedule of the kind has this size, or this memory */
  VELO_TUNING_REASON_MEMORY = 8,   /* a rank needs more than there is */
  VELO_TUNING_REASON_SLOWER = 9,   /* slower than as many plans as were to be kept */
  VELO_TUNING_REASON_SAME = 10     /* does not differ from another candidate */
};

/* A way to cut a job. Of a rejected one, 0 (recompute, kind, split: -1) is whatever it may be. */
typedef struct velo_tuning_layout {
  int32_t tp;           /* ranks that share each layer's tensors */
  int32_t pp;           /* ranks of the pipeline */
  int32_t vpp;          /* stages that each of them holds */
  int32_t dp;           /* ranks that share the batch */
  int32_t cp;           /* ranks that share each sequence */
  int32_t ep;           /* ranks that share the experts, among tp * cp * dp */
  int32_t micro_batch;  /* sequences that go through a stage at once */
  int32_t microbatches; /* of a step, through each pipeline */
  velo_tuning_recompute recompute;
  velo_schedule_kind kind;
  velo_tuning_split split;
  int32_t reserved; /* 0 */
} velo_tuning_layout;

typedef struct velo_tune_desc {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const char* config;
  uint64_t config_length; /* bytes */
  const char* profile;    /* NULL: the config's member "profile", else all defaults */
  uint64_t profile_length;
  int32_t accelerators; /* instead of the config's; 0 = as it says */
  int32_t keep;         /* plans to find, at most 10000; 0 = the config's search.keep */
} velo_tune_desc;

#define VELO_TUNE_DESC_INIT \
  { sizeof(velo_tune_desc), 0, 0, 0, 0, 0, 0, 0 }

typedef struct velo_tuning_info {
  uint32_t struct_size;
  int32_t accelerators;
  int64_t candidates; /* plans + rejections */
  int64_t plans;
  int64_t rejections;
  int64_t nearest; /* where there are no plans: the rejection that lacks least memory; else -1 */
  int64_t memory;  /* bytes that a rank may need */
} velo_tuning_info;

#define VELO_TUNING_INFO_INIT \
  { sizeof(velo_tuning_info), 0, 0, 0, 0, 0, 0 }

/* A layout that fits, and what a step takes. */
typedef struct velo_tuning_plan {
  uint32_t struct_size;
  int32_t fullest; /* the pipeline rank that needs most memory */
  velo_tuning_layout layout;
  int64_t memory;           /* bytes that it needs */
  double step_seconds;      /* pipeline + gradients + optimizer */
  double pipeline_seconds;  /* simulated */
  double gradient_seconds;  /* gradients summed and parameters gathered, as far as not hidden */
  double optimizer_seconds; /* update of the parameters */
  double bubble;            /* part of pipeline_seconds that ranks idle, on average */
  double tokens_per_second; /* of all accelerators */
  double utilization;       /* operations that the model needs, over what accelerators could do */
  velo_sequence_kind cp_algorithm; /* how ranks share attention; -1 where no ranks share it:
                                      cp is 1, and tp_x is 0 or tp */
  int32_t cp_ulysses;              /* neighbors of a hybrid that exchange heads; else 0 */
  int32_t tp_slices; /* slices in which a product overlaps with its exchange; 1: no overlap; 0
                        where tp is 1 */
  velo_tuning_rearrange token_rearrange; /* INDEX without experts */
  int32_t tp_x;              /* of tp = tp_x * tp_y ranks in two dimensions; 0: in one */
  int32_t sequence_splits;   /* parts of each sequence that SEQ1F1B orders apart; else 0 */
  int32_t sequence_parallel; /* 1: tensor ranks share the rows between matrices; 0: each has all */
  int32_t zero; /* what ranks with the same parameters share: 0 nothing, 1 optimizer states, 2
                   gradients, too */
} velo_tuning_plan;

#define VELO_TUNING_PLAN_INIT                                                                     \
  {                                                                                               \
    sizeof(velo_tuning_plan), 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0                                                                       \
  }

/* Memory of a rank of a plan's pipeline, in bytes. */
typedef struct velo_tuning_memory {
  uint32_t struct_size;
  int32_t layers; /* that the rank holds */
  int64_t parameters;
  int64_t gradients;
  int64_t optimizer;
  int64_t activations;   /* most that is held at a time, by the schedule's order */
  int64_t workspace;     /* of the profile, and what a backward pass makes again */
  int64_t communication; /* buffers */
  int64_t total;
} velo_tuning_memory;

#define VELO_TUNING_MEMORY_INIT \
  { sizeof(velo_tuning_memory), 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct velo_tuning_rejection {
  uint32_t struct_size;
  velo_tuning_reason code;
  velo_tuning_layout layout;
  char reason[200];                /* a sentence */
  velo_sequence_kind cp_algorithm; /* -1 where a plan's is, or the reason holds for any */
  int32_t cp_ulysses;              /* neighbors of a hybrid that exchange heads; else 0 */
  int32_t tp_slices;               /* as a plan's; 0 where tp is 1 or the reason holds for any */
  velo_tuning_rearrange token_rearrange; /* as a plan's; INDEX where the reason holds for any */
  int32_t tp_x;                          /* as a plan's */
  int32_t sequence_splits;               /* as a plan's; 0 where the reason holds for any */
  int32_t sequence_parallel;             /* as a plan's; -1 where the reason holds for any */
  int32_t zero;                          /* as a plan's; -1 where the reason holds for any */
} velo_tuning_rejection;

#define VELO_TUNING_REJECTION_INIT                                                                 \
  {                                                                                                \
    sizeof(velo_tuning_rejection), 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0}, 0, 0, 0, 0, 0, 0, \
        0, 0                                                                                       \
  }

/* A text of a tuning. */
typedef int32_t velo_tuning_format;
enum {
  VELO_TUNING_SUMMARY = 0,    /* plans as a table, memory of the best, reasons, for people */
  VELO_TUNING_JSON = 1,       /* the same as data, memory of every plan, assumptions */
  VELO_TUNING_REJECTED = 2,   /* CSV: a rejected candidate a row */
  VELO_TUNING_ASSUMPTIONS = 3 /* formulas and every key with its value */
};

/* Searches. desc: copied. tuning: receives the handle; destroy it with velo_tuning_destroy. That
 * nothing fits is no error: the tuning has no plans then.
 * Thread class: any. Errors: NULL, STRUCT, PARSE (no JSON, or not UTF-8, named with line and
 * column), ARGUMENT (a member, named by its path, or a field of desc), UNSUPPORTED (a field of
 * newer headers), MEMORY. */
VELO_API velo_status velo_tune(const velo_tune_desc* desc, velo_tuning* tuning);

/* Ends a tuning. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_tuning_destroy(velo_tuning tuning);

/* Numbers of a tuning. info: receives them, at most info->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_tuning_get_info(velo_tuning tuning, velo_tuning_info* info);

/* A plan by its place, the fastest first; of equally fast ones that with least memory. plan:
 * receives it, at most plan->struct_size bytes. Thread class: per-handle. Errors: NULL, HANDLE,
 * STRUCT, ARGUMENT (no such plan), STATE. */
VELO_API velo_status velo_tuning_get_plan(velo_tuning tuning, int64_t index,
                                          velo_tuning_plan* plan);

/* Memory of a rank of a plan's pipeline. memory: receives it, at most memory->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such plan, no such rank),
 * STATE. */
VELO_API velo_status velo_tuning_get_memory(velo_tuning tuning, int64_t index, int32_t rank,
                                            velo_tuning_memory* memory);

/* A candidate that is no plan, and why, by its place. rejection: receives it, at most
 * rejection->struct_size bytes. Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT
 * (no such rejection), STATE, MEMORY. */
VELO_API velo_status velo_tuning_get_rejection(velo_tuning tuning, int64_t index,
                                               velo_tuning_rejection* rejection);

/* A tuning as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with capacity 0
 * asks for the size alone. needed: receives the size with its terminator; may be NULL.
 * Thread class: per-handle. Errors: NULL (tuning, buffer), HANDLE, ARGUMENT (format), STATE,
 * MEMORY. */
VELO_API velo_status velo_tuning_write(velo_tuning tuning, velo_tuning_format format, char* buffer,
                                       uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
