/* Pipeline schedules: in which order the ranks of a pipeline work on the stages of a model.
 *
 * A model is cut into stages 0, 1, .. one behind the other; every rank holds one stage or several.
 * A step's batch is cut into micro-batches. Each goes forward through all stages and back again:
 *
 *   F  forward of a stage for a micro-batch
 *   I  gradient of its inputs, which the stage before waits for
 *   W  gradient of its weights, which nobody waits for
 *   B  I and W at once
 *   FB forward of one micro-batch and B of another at once, so that the communication of one hides
 *      behind the arithmetic of the other
 *
 * A schedule says for every rank which action comes when, and nothing else: it can be proven
 * (velo_schedule_check), priced (velo_schedule_simulate), drawn, and carried out by whoever has the
 * stages. It is generated (velo_schedule_create) or read from a text (velo_schedule_read). Texts
 * are those of PyTorch's pipelining: 2F0 is F of stage 2 for micro-batch 0, (0F7;7B3)OVERLAP_F_B an
 * FB.
 *
 * Where the order follows a formula no list is built: a schedule of 25 million actions takes a few
 * kilobytes a rank, and any action of it is worked out when it is asked for.
 *
 * Schedules and timelines belong to no context and no thread; calls with the same one are not to
 * overlap.
 */
#ifndef VELO_SCHEDULE_H
#define VELO_SCHEDULE_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_schedule_s* velo_schedule;
typedef struct velo_timeline_s* velo_timeline;

/* A kind of action of a rank. The numbers up to 12 are PyTorch's. */
typedef int32_t velo_action_kind;
enum {
  VELO_ACTION_F = 1,       /* forward */
  VELO_ACTION_I = 2,       /* gradient of the inputs */
  VELO_ACTION_W = 3,       /* gradient of the weights, of a micro-batch whose I is done */
  VELO_ACTION_UNSHARD = 4, /* gathers the parameters of a stage from the ranks that share them */
  VELO_ACTION_RESHARD = 5, /* lets go of gathered parameters */
  VELO_ACTION_SEND_F = 6,  /* the stage's output goes to the stage behind */
  VELO_ACTION_RECV_F = 7,  /* the stage's input comes from the stage before */
  VELO_ACTION_SEND_B = 8,  /* the gradient of its input goes to the stage before */
  VELO_ACTION_RECV_B = 9,  /* the gradient of its output comes from the stage behind */
  VELO_ACTION_B = 10,      /* I and W at once */
  VELO_ACTION_FB = 11,     /* F, and B of another micro-batch, at once */
  VELO_ACTION_REDUCE_GRAD = 12, /* sums the gradients of a stage over the ranks that share it */
  VELO_ACTION_RECOMPUTE = 13,   /* makes activations again: the F of the micro-batch kept its input
                                   alone */
  VELO_ACTION_OFFLOAD = 14,     /* what the stage holds for the micro-batch goes to the host, beside
                                   what is computed */
  VELO_ACTION_RELOAD = 15,      /* it comes back */
  VELO_ACTION_OPTIMIZER = 16    /* updates the parameters of a stage */
};

/* One action. */
typedef struct velo_action {
  velo_action_kind kind;
  int32_t stage;            /* of an FB: of its F */
  int32_t microbatch;       /* of an FB: of its F; -1 where the kind has none */
  int32_t other_stage;      /* of an FB: of its B; else -1 */
  int32_t other_microbatch; /* of an FB: of its B; else -1 */
} velo_action;

/* How an order is made; P ranks, M micro-batches, V chunks (stages) a rank. executor.h has which
 * actions each consists of. */
typedef int32_t velo_schedule_kind;
enum {
  VELO_SCHEDULE_CUSTOM = 0,      /* by the caller: empty until velo_schedule_read */
  VELO_SCHEDULE_GPIPE = 1,       /* all F, then all B */
  VELO_SCHEDULE_1F1B = 2,        /* F and B by turns: at most P - r activations on rank r */
  VELO_SCHEDULE_INTERLEAVED = 3, /* 1F1B over V chunks a rank: a bubble of a V-th */
  VELO_SCHEDULE_LOOPED_BFS = 4,  /* GPipe over V chunks a rank, all micro-batches through each */
  VELO_SCHEDULE_ZBH1 = 5,        /* 1F1B with W apart, in its memory */
  VELO_SCHEDULE_ZBH2 = 6,        /* W apart, in twice the memory: no rank idles; by costs and cap */
  VELO_SCHEDULE_ZB1P = 7,        /* interleaved with W apart */
  VELO_SCHEDULE_ZBV = 8,         /* two chunks a rank, down the ranks and up, W apart: no rank idles
                                    at equal costs, in 1F1B's memory */
  VELO_SCHEDULE_ZBV_GREEDY = 9,  /* the same by costs and cap */
  VELO_SCHEDULE_VHALF = 10,      /* the same in half of the memory */
  VELO_SCHEDULE_VMIN = 11,       /* the same in a third of the memory, at equal costs */
  VELO_SCHEDULE_1F1B_V = 12,     /* two chunks, down and up, B whole: two thirds of the memory */
  VELO_SCHEDULE_DUALPIPE = 13,   /* from both ends, FB; a rank has a stage of both directions */
  VELO_SCHEDULE_DUALPIPEV = 14,  /* the same on half of the ranks, as two chunks down and up */
  VELO_SCHEDULE_SEQ1F1B = 15,    /* 1F1B over splits of sequences */
  VELO_SCHEDULE_AUTO = 16, /* the shortest that is found for costs within a cap, never longer than
                              a kind of these that fits; V 1 or 2 */
  VELO_SCHEDULE_NANOPIPE = 17, /* interleaved; rank r puts off as many W to the end as it warms up
                                  less than rank 0 */
  VELO_SCHEDULE_RIPIPE = 18    /* interleaved with RECOMPUTE where the rank waits: at most P V
                                  stages' activations held */
};

/* Bits of velo_schedule_desc.flags. */
enum {
  VELO_SCHEDULE_EXTRA_WARMUP =
      1, /* INTERLEAVED: one F more before the first B, so that an F and the
                                     B next to it are of different micro-batches */
  VELO_SCHEDULE_NO_DW_DETACH =
      2,                        /* DUALPIPE, DUALPIPEV: B whole at the end, too, for less memory */
  VELO_SCHEDULE_OVERLAP = 4,    /* INTERLEAVED: F and the B next to it as one FB; with an extra
                                     warm-up */
  VELO_SCHEDULE_IN_ADVANCE = 8, /* RIPIPE: all activations are made again, ahead of the gradient
                                     that they wait for */
  VELO_SCHEDULE_SWAP = 16,      /* NANOPIPE: what W that are put off need is on the host
                                     meanwhile */
  VELO_SCHEDULE_OPTIMIZER = 32  /* any kind of at most 2^25 actions, all of which are then stored:
                                     rows end with OPTIMIZER of each of the rank's stages */
};

/* Costs of actions, in any unit of time, of a whole rank for one micro-batch: a stage takes its
 * share, a V-th where a rank has V of them. Sizes, in any unit of memory, count for
 * velo_timeline_get_memory and texts alone; without them memory is in micro-batches'
 * activations. */
typedef struct velo_schedule_costs {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  double forward;    /* F */
  double input;      /* I */
  double weight;     /* W; B takes input + weight */
  double fused;      /* FB; -1 = forward + input + weight */
  double latency;    /* from the end of an action until another rank has what it made */
  double transfer;   /* how long a message takes the way from one rank to another, beside latency;
                        others wait behind it */
  double recompute;  /* RECOMPUTE; -1 = forward */
  double offload;    /* OFFLOAD; a rank's copies go one after another, beside what it computes */
  double reload;     /* RELOAD */
  double gather;    /* UNSHARD of all of a rank's stages; a rank's collectives go one after another,
                        beside what it computes */
  double reduce;    /* REDUCE_GRAD of all of a rank's stages */
  double optimizer; /* OPTIMIZER of all of a rank's stages */
  double pending;   /* the part of activations held between I and W */
  double checkpoint;    /* the part of activations held until RECOMPUTE */
  double embedding;     /* E of a layout, in layers */
  double predictor;     /* m of a layout, in layers */
  double loss;          /* L of a layout, in layers */
  const double* shares; /* by stage: how much of the model it is, in any unit; NULL = by its layers,
                           or all alike */
  int64_t share_count;  /* stages; 0 where shares is NULL */
  double weight_size;   /* what the weights of a P-th of the model take, in any unit of memory */
  double gradient_size; /* its gradients */
  double optimizer_size;  /* its optimizer states */
  double activation_size; /* activations of a micro-batch in a P-th of the model */
  double message_size;    /* a message of a micro-batch between stages */
} velo_schedule_costs;

#define VELO_SCHEDULE_COSTS_INIT                                                                  \
  {                                                                                               \
    sizeof(velo_schedule_costs), 0, 1, 1, 1, -1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, \
        0, 0, 1, 0                                                                                \
  }

typedef struct velo_schedule_desc {
  uint32_t struct_size;
  velo_schedule_kind kind;
  int32_t ranks;        /* P; 0 for CUSTOM */
  int32_t microbatches; /* M, of both directions together; 0 for CUSTOM */
  int32_t chunks;       /* V; 0 = as the kind has it: 2 for INTERLEAVED, LOOPED_BFS, ZB1P */
  int32_t group;  /* INTERLEAVED: micro-batches that go through a chunk before the next chunk's
                           turn, P to M; 0 = P */
  int32_t splits; /* SEQ1F1B: parts of a micro-batch's sequence; 0 = 1 */
  uint32_t flags; /* bits: VELO_SCHEDULE_EXTRA_WARMUP.. */
  double cap;     /* ZBH2, ZBV_GREEDY, AUTO: most activations held, in micro-batches of a whole
                           rank; 0 = 2P - 1, P, P */
  const velo_schedule_costs* costs; /* what ZBH2, ZBV_GREEDY, AUTO order by; NULL = all 1; copied */
  int32_t layers;     /* of the model, those that do nothing too; 0 = as the layout has it, or not
                           known */
  int32_t noop_count; /* how many layers do nothing */
  const char* layout; /* what each stage holds, "Et*3|(tt|)*4tmL"; NULL = as many layers each;
                           copied */
  const int32_t* noop_layers; /* their numbers; copied */
} velo_schedule_desc;

#define VELO_SCHEDULE_DESC_INIT \
  { sizeof(velo_schedule_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct velo_schedule_info {
  uint32_t struct_size;
  velo_schedule_kind kind;
  int32_t ranks;
  int32_t stages;
  int32_t microbatches;
  int32_t layers;  /* of the model; 0 = not known */
  int64_t actions; /* of all ranks */
} velo_schedule_info;

#define VELO_SCHEDULE_INFO_INIT \
  { sizeof(velo_schedule_info), 0, 0, 0, 0, 0, 0 }

/* A stage's place and contents. A layout says for every stage, in the order of stages, what it
 * holds: E is the embedding, t a layer, m a layer that predicts tokens further on, L the loss.
 * `|` ends a stage, which may hold nothing; x*3 is xxx, (..)*3 repeats what is in parentheses,
 * commas mean nothing. */
typedef struct velo_stage_info {
  uint32_t struct_size;
  int32_t rank;        /* that holds it; -1 = none */
  int32_t chunk;       /* as that rank counts its stages */
  int32_t first_layer; /* of its layers; -1 where layers are not known */
  int32_t layers;      /* how many it has */
  int32_t noop_layers; /* how many of them do nothing */
  int32_t predictors;  /* m: layers that predict tokens further on */
  int32_t embedding;   /* 1 = E is here */
  int32_t loss;        /* 1 = L is here */
} velo_stage_info;

#define VELO_STAGE_INFO_INIT \
  { sizeof(velo_stage_info), 0, 0, 0, 0, 0, 0, 0, 0 }

/* A text of a schedule. */
typedef int32_t velo_schedule_format;
enum {
  VELO_SCHEDULE_CSV = 0, /* a rank a row, its actions separated by commas, as PyTorch dumps them */
  VELO_SCHEDULE_JSON = 1 /* an object with all that there is to say; what is left out follows as for
                            CSV */
};

/* Violations of a schedule. */
typedef int32_t velo_violation_code;
enum {
  VELO_VIOLATION_MISSING = 1,   /* a stage lacks an F, or its I, W or B, of a micro-batch */
  VELO_VIOLATION_DUPLICATE = 2, /* it has one twice, or a B beside an I or W */
  VELO_VIOLATION_ORDER = 3,     /* an action stands before one of the same rank that it needs */
  VELO_VIOLATION_PLACEMENT = 4, /* a stage is on two ranks, or on none */
  VELO_VIOLATION_STUCK = 5,     /* ranks wait for each other for ever */
  VELO_VIOLATION_MESSAGE =
      6,                   /* a send without its receive or the other way round, one twice, or one
                                 without another rank */
  VELO_VIOLATION_FIFO = 7, /* two ranks receive in another order than they send */
  VELO_VIOLATION_RENDEZVOUS = 8, /* ranks wait for ever where a send waits for its receive */
  VELO_VIOLATION_BATCHED =
      9, /* ranks wait for ever where sends and receives that stand together end
                                 together */
  VELO_VIOLATION_REDUCE = 10,    /* a stage's gradients are summed before its last W */
  VELO_VIOLATION_OPTIMIZER = 11, /* a stage's parameters are updated before its gradients are whole
                                    and summed */
  VELO_VIOLATION_OFFLOAD = 12,   /* an action needs what is on the host, or what is there goes there
                                    again */
  VELO_VIOLATION_UNSHARD = 13    /* an action needs parameters that have been let go */
};

typedef struct velo_violation {
  uint32_t struct_size;
  velo_violation_code code;
  int32_t rank;       /* where; -1 = of no one rank */
  int32_t reserved;   /* 0 */
  int64_t index;      /* of the action in the rank's order; -1 = of none */
  velo_action action; /* what stands there, or what is missing */
  char reason[172];   /* a sentence */
} velo_violation;

#define VELO_VIOLATION_INIT                                \
  {                                                        \
    sizeof(velo_violation), 0, 0, 0, 0, {0, 0, 0, 0, 0}, { \
      0                                                    \
    }                                                      \
  }

/* A schedule of a kind. desc: copied. schedule: receives the handle; destroy it with
 * velo_schedule_destroy.
 * Thread class: any. Errors: NULL, STRUCT, ARGUMENT (what makes no sense in desc, or not for its
 * kind; a cap in which no order is found), UNSUPPORTED (a field of newer headers), MEMORY. */
VELO_API velo_status velo_schedule_create(const velo_schedule_desc* desc, velo_schedule* schedule);

/* Ends a schedule. Timelines made of it stay. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_schedule_destroy(velo_schedule schedule);

/* Puts the schedule of a text in the place of what is there; its kind is VELO_SCHEDULE_CUSTOM from
 * then on, or what JSON says. text: `length` bytes. What it does not say follows from it: stages
 * and micro-batches are those named, a stage is on the rank that first names it. Whether it
 * makes sense is not asked here (velo_schedule_check). Thread class: per-handle. Errors: NULL,
 * HANDLE, ARGUMENT (format; what is no action, named with its place), PARSE (no JSON), STATE,
 * MEMORY. */
VELO_API velo_status velo_schedule_read(velo_schedule schedule, velo_schedule_format format,
                                        const char* text, uint64_t length);

/* Numbers of a schedule. info: receives them, at most info->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_schedule_get_info(velo_schedule schedule, velo_schedule_info* info);

/* The name of a kind in texts and in the velo command, a static string: "zbv-greedy".
 * Thread class: any. Errors: NULL, ARGUMENT (no such kind). */
VELO_API velo_status velo_schedule_kind_name(velo_schedule_kind kind, const char** name);

/* Gives a stage's place and contents. info: receives it, at most info->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such stage), STATE. */
VELO_API velo_status velo_schedule_get_stage(velo_schedule schedule, int32_t stage,
                                             velo_stage_info* info);

/* How many actions a rank has.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (no such rank), STATE. */
VELO_API velo_status velo_schedule_get_length(velo_schedule schedule, int32_t rank,
                                              int64_t* length);

/* Actions `first` to `first` + `count` - 1 of a rank's order. actions: receives `count` of them.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (no such rank, or no such actions),
 * STATE. */
VELO_API velo_status velo_schedule_get_actions(velo_schedule schedule, int32_t rank, int64_t first,
                                               int64_t count, velo_action* actions);

/* A schedule as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with capacity
 * 0 asks for the size alone. needed: receives the size with its terminator; may be NULL.
 * Thread class: per-handle. Errors: NULL (schedule, buffer), HANDLE, ARGUMENT (format), STATE,
 * MEMORY. */
VELO_API velo_status velo_schedule_write(velo_schedule schedule, velo_schedule_format format,
                                         char* buffer, uint64_t capacity, uint64_t* needed);

/* A schedule with sends and receives among its actions, in an order in which no rank ever waits for
 * ever, whether sends return at once, wait for their receives, or go in groups. Sends and receives
 * that are there are replaced; UNSHARD, RESHARD and REDUCE_GRAD stay. lowered: receives the handle;
 * destroy it with velo_schedule_destroy.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (more than 2^25 actions), STATE (ranks
 * would wait for ever), MEMORY. */
VELO_API velo_status velo_schedule_lower(velo_schedule schedule, velo_schedule* lowered);

/* Proves a schedule or finds what is wrong with it: every stage does everything once and on one
 * rank, in an order that its rank and all ranks together can keep; sends and receives, where
 * there are any, too. violations: receives how many there are, at most 1000: ask for each by
 * velo_schedule_get_violation. Thread class: per-handle. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_schedule_check(velo_schedule schedule, int64_t* violations);

/* Gives a violation that velo_schedule_check found, by its index. violation: receives it, at most
 * violation->struct_size bytes.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such violation), STATE (not
 * checked). */
VELO_API velo_status velo_schedule_get_violation(velo_schedule schedule, int64_t index,
                                                 velo_violation* violation);

/* When every action would begin and end. Times are exact where costs have few decimal digits:
 * 0.1 is a tenth. costs: copied; may be NULL for all defaults. timeline: receives the handle;
 * destroy it with velo_timeline_destroy. Thread class: per-handle. Errors: NULL (schedule,
 * timeline), HANDLE, STRUCT, ARGUMENT (a cost), UNSUPPORTED (a field of newer headers), STATE
 * (ranks would wait for ever), MEMORY. */
VELO_API velo_status velo_schedule_simulate(velo_schedule schedule,
                                            const velo_schedule_costs* costs,
                                            velo_timeline* timeline);

VELO_END_C

#endif
