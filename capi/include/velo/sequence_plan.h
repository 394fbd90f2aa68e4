/* Sequence plans: how ranks share the attention of one sequence that is cut between them.
 *
 * A plan says which rows of a sequence each rank of a context-parallel group holds, and step by
 * step which queries a rank multiplies with which keys and which rows it sends, for the forward
 * and the gradient. It is data: it can be proven (velo_sequence_plan_check), priced
 * (velo_sequence_step) and drawn. velo_context_parallel_attention (velo/ops_parallel.h) carries it
 * out, or a host does.
 *
 * Kinds, for cp ranks
 *   ULYSSES     every rank gets all rows of its share of the heads, and gives its results back
 *   RING        keys and values go round the ranks, block by block; in windows where window > 1
 *   HYBRID      rings of cp / ulysses ranks, each of them neighbors that exchange heads
 *   ALL_GATHER  keys and values of all ranks on each
 *   ADAPTIVE    blocks of any mask, in rounds; HYBRID_ADAPTIVE: among cp / ulysses ring ranks, each
 *               of them neighbors that exchange heads
 *
 * Rows. A causal sequence lies in a zigzag, document by document: of 2c chunks a rank of c holds
 * chunks r and 2c-1-r, so that all ranks see as many cells where chunks are equal. With ULYSSES,
 * without causality and under a mask, rows are contiguous. In a HYBRID the neighbors share a ring
 * rank's rows in contiguous parts. Nothing has to divide: of n things in c parts the first n mod c
 * parts have one more. Tokens, labels, positions, masks and offsets of alibi all follow one list.
 *
 * Heads. Query heads are cut in the same way; a rank gets the key heads that its query heads need,
 * so that neighbors may have the same one, whose gradients are summed. With `kv_gather` each of the
 * neighbors gets all key heads, as an all-gather gives them.
 *
 * Adaptive plans. The sequence is cut into one block of rows for each ring rank. Rows that see the
 * same keys are put into the same block where that helps (principal components of the mask and
 * k-means); otherwise blocks are contiguous. They lie in a zigzag where that needs no more rounds
 * and the slowest ranks compute at least an eighth less, as with two blocks of a causal sequence. A
 * block of queries and a block of keys with a visible cell between them are a task; where all its
 * cells are visible, or all up to the query, it needs no mask. Tasks are computed in rounds, at
 * most one a rank and round: by the owner of the queries, which receives keys and values, or by the
 * owner of the keys, which receives queries and returns a part of the result. Keys with values are
 * two units of communication, queries one, and a returned part one, which counts in the two rounds
 * behind its own. No rank sends and receives more than six units in a round. In the usual rule the
 * first choices of a round ignore this limit; velo_sequence_info has the number of its rounds. The
 * gradient computes the same tasks in the same rounds with at most twelve units. Only rows with a
 * visible cell travel. Without a mask, causality and documents make one.
 *
 * MindSpeed's parameters of the adaptive kind. without_coarse: always so up to 1024 rows; of more,
 * their order is sought for 1024 parts, while tasks and cells are those of the whole mask.
 * only_reschedule: has no field; rows keep their order unless another one has fewer tasks, or
 * spreads as many more evenly. dynamic_attn_mask, manually_set_mask_list: a plan for each mask.
 *
 * Steps. A step first gets the messages that it needs, then sends its own, then computes. What is
 * sent in one step and needed in a later one travels beside the computation between. Of dq, dk and
 * dv the receiver adds a message to what it has, and the sender forgets it. The gradient of rings
 * begins with the block that the forward met last, and meets the others in reverse; dk and dv
 * follow one step behind, in float32, and end at their owner.
 *
 * A plan belongs to no context; it never changes, so calls may overlap. Its size is a few tasks and
 * messages for each pair of ranks and each document.
 * Sources: DeepSpeed-Ulysses (arXiv:2309.14509), Ring Attention (arXiv:2310.01889), LoongTrain
 * (arXiv:2406.18485), Megatron-LM's and MindSpeed's context parallelism (its adaptive one for
 * ADAPTIVE, its KV cache for kv_interval).
 */
#ifndef VELO_SEQUENCE_PLAN_H
#define VELO_SEQUENCE_PLAN_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_sequence_plan_s* velo_sequence_plan;

/* A way to share attention. */
typedef int32_t velo_sequence_kind;
enum {
  VELO_SEQUENCE_ULYSSES = 0,
  VELO_SEQUENCE_RING = 1,
  VELO_SEQUENCE_HYBRID = 2,
  VELO_SEQUENCE_ALL_GATHER = 3,
  VELO_SEQUENCE_ADAPTIVE = 4,
  VELO_SEQUENCE_HYBRID_ADAPTIVE = 5
};

/* A rank's cache of keys and values for the gradient. RING, HYBRID: those of other ranks, beside
 * the last block; they need not go round again, and take memory. The block before the last travels
 * in any case. ULYSSES, and HYBRID of one ring rank: the rank's own, as they were before the
 * exchange of heads, in place of the exchanged ones; the gradient exchanges them again, and less is
 * kept, most of all where ranks share key heads. The exchanged keys and values are kept without a
 * cache. */
typedef int32_t velo_sequence_cache;
enum {
  VELO_SEQUENCE_CACHE_NONE = 0, /* neither */
  VELO_SEQUENCE_CACHE_HALF = 1, /* keys */
  VELO_SEQUENCE_CACHE_FULL = 2  /* both */
};

/* The owner of the keys and values of a layer. Layers that share them need not exchange them again:
 * the plan of GIVEN sends no keys and values in its forward that the plan of SHARED with the same
 * other fields keeps for its gradient. With a cache that of SHARED keeps the block before the last,
 * too, so that of rings nothing that is cached travels again. */
typedef int32_t velo_sequence_keys;
enum {
  VELO_SEQUENCE_KEYS_OWN = 0,    /* the layer's alone */
  VELO_SEQUENCE_KEYS_SHARED = 1, /* the layer's; later layers attend to them, too */
  VELO_SEQUENCE_KEYS_GIVEN = 2   /* an earlier layer's; the call takes what that layer's has kept */
};

typedef struct velo_sequence_desc {
  uint32_t struct_size;
  velo_sequence_kind kind;
  int64_t cp;       /* ranks, up to 4096; of adaptive kinds up to 256 blocks of rows */
  int64_t ulysses;  /* HYBRID, HYBRID_ADAPTIVE: neighbors that exchange heads, a divisor of cp: with
                       1 HYBRID is RING, with cp it is ULYSSES; else 1 */
  int64_t window;   /* RING, HYBRID: ranks of a window; 1, or a divisor below the ring; else 1 */
  int64_t sequence; /* rows, below 2^31; up to 65536 with a mask or of an adaptive kind */
  const int64_t* document_ends; /* ascending, the last one the sequence's; documents may be empty;
                                   or NULL; copied */
  int64_t document_count;       /* 0 = one document */
  const uint8_t* mask;          /* [sequence, sequence], nonzero = hidden, in place of causality and
                                   documents, or NULL; copied */
  int64_t heads;                /* of queries, at least one for each rank that exchanges heads */
  int64_t kv_heads;             /* of keys and values; divides heads; 0 = heads */
  int64_t head_dim;             /* elements */
  int64_t element_bytes;        /* of a row's element, for the price: 2 or 4 */
  int32_t causal;               /* 1 = a query sees keys up to its own; 0 = its whole document */
  velo_sequence_cache kv_cache; /* ULYSSES, RING, HYBRID: the cache for the gradient */
  int64_t kv_interval;          /* layers without a cache between two with one: layer l has one
                                   where l mod (kv_interval + 1) is 0 */
  int64_t layers;               /* layers of the model, more than kv_interval */
  int64_t layer;                /* the layer whose plan this is, below layers; the owner's where
                                   keys are GIVEN */
  int64_t kv_gather;            /* where heads are exchanged: 1 = a rank gets all key heads; 0 =
                                   those that its query heads need */
  velo_sequence_keys keys;      /* the owner of the keys and values */
  int32_t reserved;             /* 0 */
} velo_sequence_desc;

#define VELO_SEQUENCE_DESC_INIT                                                                    \
  {                                                                                                \
    sizeof(velo_sequence_desc), VELO_SEQUENCE_RING, 1, 1, 1, 0, 0, 0, 0, 1, 0, 128, 2, 1, 0, 0, 1, \
        0, 0, 0, 0                                                                                 \
  }

/* The forward or the gradient. */
typedef int32_t velo_sequence_pass;
enum { VELO_SEQUENCE_FORWARD = 0, VELO_SEQUENCE_GRADIENT = 1 };

typedef struct velo_sequence_info {
  uint32_t struct_size;
  uint32_t reserved;      /* 0 */
  int64_t cp;             /* ranks */
  int64_t sequence;       /* rows */
  int64_t forward_steps;  /* of the forward */
  int64_t gradient_steps; /* of the gradient */
  int64_t rounds;         /* ADAPTIVE, HYBRID_ADAPTIVE: in which blocks are computed; else 0 */
  int64_t rule_rounds;    /* that the rule needs, whose first choices ignore the limit; else 0 */
  int64_t kv_layers;      /* layers with a cache */
} velo_sequence_info;

#define VELO_SEQUENCE_INFO_INIT \
  { sizeof(velo_sequence_info), 0, 0, 0, 0, 0, 0, 0, 0 }

/* The price of a rank's step. */
typedef struct velo_sequence_step {
  uint32_t struct_size;
  uint32_t reserved;       /* 0 */
  int64_t cells;           /* visible pairs of a query and a key, times heads */
  int64_t bytes_sent;      /* in messages that leave in this step */
  int64_t bytes_received;  /* in messages that this step needs; of the end in the last step */
  int64_t bytes_in_flight; /* of messages that are on their way to the rank */
  int64_t tasks;           /* what it computes */
  int64_t sends;           /* messages that leave in this step */
  int64_t receives;        /* messages that this step needs */
  int64_t bytes_kept;      /* of messages that the rank has by then and keeps for the gradient */
} velo_sequence_step;

#define VELO_SEQUENCE_STEP_INIT \
  { sizeof(velo_sequence_step), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The cells of a task's queries and keys that it computes. */
typedef int32_t velo_sequence_cells;
enum {
  VELO_SEQUENCE_CELLS_ALL = 0,    /* every one */
  VELO_SEQUENCE_CELLS_CAUSAL = 1, /* keys up to the query's row */
  VELO_SEQUENCE_CELLS_MASKED = 2  /* those that the mask does not hide */
};

/* Partial attention that a rank computes. */
typedef struct velo_sequence_task {
  uint32_t struct_size;
  velo_sequence_cells cells; /* which cells of queries and keys */
  int64_t step;              /* of the pass */
  int64_t heads_begin;       /* of queries */
  int64_t heads_end;         /* of queries */
  int64_t queries;           /* rows */
  int64_t keys;              /* rows */
} velo_sequence_task;

#define VELO_SEQUENCE_TASK_INIT \
  { sizeof(velo_sequence_task), VELO_SEQUENCE_CELLS_ALL, 0, 0, 0, 0, 0 }

/* The content of a message. */
typedef int32_t velo_sequence_content;
enum {
  VELO_SEQUENCE_Q = 0,    /* queries */
  VELO_SEQUENCE_K = 1,    /* keys */
  VELO_SEQUENCE_V = 2,    /* values */
  VELO_SEQUENCE_OUT = 3,  /* the result, or in float32 a part of it */
  VELO_SEQUENCE_DOUT = 4, /* the gradient of the result */
  VELO_SEQUENCE_DQ = 5,   /* parts of the gradient of queries */
  VELO_SEQUENCE_DK = 6,   /* parts of the gradient of keys */
  VELO_SEQUENCE_DV = 7    /* parts of the gradient of values */
};

/* Rows that go from a rank to another. */
typedef struct velo_sequence_message {
  uint32_t struct_size;
  velo_sequence_content content; /* of the rows */
  int64_t step;                  /* in which it is sent */
  int64_t needed;                /* the step that needs it; the number of steps = the end */
  int64_t from;                  /* rank */
  int64_t to;                    /* rank */
  int64_t heads_begin;           /* of keys for K, V, DK and DV, else of queries */
  int64_t heads_end;             /* of these */
  int64_t rows;                  /* their number */
  int64_t bytes;                 /* of rows * heads * head_dim elements, and of statistics */
  int32_t kept;                  /* 1 = the receiver keeps it for the gradient */
  int32_t reserved;              /* 0 */
  int64_t statistics;            /* float32 numbers that go with each row and head: with parts of
                                    OUT maximum and sum, with DOUT these and its product with OUT */
} velo_sequence_message;

#define VELO_SEQUENCE_MESSAGE_INIT \
  { sizeof(velo_sequence_message), VELO_SEQUENCE_Q, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A list of rows that a call asks for. */
typedef int32_t velo_sequence_part;
enum {
  VELO_SEQUENCE_TASK_QUERIES = 0, /* of a task */
  VELO_SEQUENCE_TASK_KEYS = 1,    /* of a task */
  VELO_SEQUENCE_SENT = 2,         /* of a message that leaves in the step */
  VELO_SEQUENCE_RECEIVED = 3      /* of a message that the step needs */
};

/* A text that a plan writes. */
typedef int32_t velo_sequence_format;
enum {
  VELO_SEQUENCE_JSON = 0, /* an object of rows, steps, cells and bytes received, lists by rank; the
                             last of bytes and of steps is the end of the pass; rounds and
                             rule_rounds, kv_cache with its layers, where there are any */
  VELO_SEQUENCE_SVG = 1   /* a picture: cells of the sequence, colored by rank */
};

/* Makes a plan. desc: copied, with all that it points at. plan: receives the handle; destroy it
 * with velo_sequence_plan_destroy. Thread class: any. Errors: NULL, STRUCT, ARGUMENT (the field
 * that makes no sense, alone or with others), UNSUPPORTED (a field of newer headers), MEMORY. */
VELO_API velo_status velo_sequence_plan_create(const velo_sequence_desc* desc,
                                               velo_sequence_plan* plan);

/* Ends a plan. NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_sequence_plan_destroy(velo_sequence_plan plan);

/* Ranks, rows and steps. info: receives them, at most info->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_sequence_plan_get_info(velo_sequence_plan plan, velo_sequence_info* info);

/* The rows that a rank holds, in the order of its own tensors. spans: receives begin and end of the
 * first `capacity` runs of rows; may be NULL when that is 0. count: receives how many runs there
 * are; may be NULL. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such rank, capacity),
 * STATE. */
VELO_API velo_status velo_sequence_plan_get_rows(velo_sequence_plan plan, int64_t rank,
                                                 int64_t* spans, int64_t capacity, int64_t* count);

/* The price of a rank's step. step: the number of steps stands for the end, which receives alone.
 * price: receives it, at most price->struct_size bytes. Time is proportional to the messages of the
 * pass. Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such pass, rank or step),
 * STATE, MEMORY. */
VELO_API velo_status velo_sequence_plan_get_step(velo_sequence_plan plan, velo_sequence_pass pass,
                                                 int64_t rank, int64_t step,
                                                 velo_sequence_step* price);

/* A task of a rank's step, by its index. task: receives it, at most task->struct_size bytes.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such pass, rank, step or index),
 * STATE, MEMORY. */
VELO_API velo_status velo_sequence_plan_get_task(velo_sequence_plan plan, velo_sequence_pass pass,
                                                 int64_t rank, int64_t step, int64_t index,
                                                 velo_sequence_task* task);

/* A message of a rank's step, by its index: of those that it sends, or with `part` RECEIVED of
 * those that it needs. message: receives it, at most message->struct_size bytes. Thread class: any.
 * Errors: NULL, HANDLE, STRUCT, ARGUMENT (no such pass, rank, step, part or index), STATE,
 * MEMORY. */
VELO_API velo_status velo_sequence_plan_get_message(velo_sequence_plan plan,
                                                    velo_sequence_pass pass, int64_t rank,
                                                    int64_t step, velo_sequence_part part,
                                                    int64_t index, velo_sequence_message* message);

/* The rows of a task or message. spans, capacity, count: as of velo_sequence_plan_get_rows.
 * Thread class: any. Errors: NULL, HANDLE, ARGUMENT (no such pass, rank, step, part or index;
 * capacity), STATE, MEMORY. */
VELO_API velo_status velo_sequence_plan_get_spans(velo_sequence_plan plan, velo_sequence_pass pass,
                                                  int64_t rank, int64_t step,
                                                  velo_sequence_part part, int64_t index,
                                                  int64_t* spans, int64_t capacity, int64_t* count);

/* Proves that each visible cell is computed once and no other, and that every task and message
 * finds its rows where it takes them from; in memory and time proportional to rows * tasks *
 * heads. Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY, INTERNAL (what is wrong and
 * where). */
VELO_API velo_status velo_sequence_plan_check(velo_sequence_plan plan);

/* The plan as a text. buffer: the caller's, `capacity` bytes, zero-terminated; NULL with capacity 0
 * asks for the size alone. needed: receives the size with its terminator; may be NULL. Thread
 * class: any. Errors: NULL (plan, buffer), HANDLE, ARGUMENT (format), STATE, MEMORY. */
VELO_API velo_status velo_sequence_plan_write(velo_sequence_plan plan, velo_sequence_format format,
                                              char* buffer, uint64_t capacity, uint64_t* needed);

VELO_END_C

#endif
