/* Recompute: what the forward pass made is let go and made again when the backward pass needs it.
 *
 * - Regions (velo_recompute) hold outputs of the forward pass, release them, and restore them by a
 *   function of the host's.
 * - Rules (velo_recompute_layers) say which layer of a pipeline stage is recomputed in which way.
 * - Measured modules (velo_recompute_choose): the choice that takes least time within a budget of
 *   bytes, and the bisection that finds the budget a device really has.
 *
 * Words. A stage is one rank of a pipeline; it has `chunks` runs of consecutive layers (virtual
 * stages). A micro-batch is in flight in a layer from its forward pass to its backward pass; what
 * the layer keeps is there once for each.
 */
#ifndef VELO_RECOMPUTE_H
#define VELO_RECOMPUTE_H

#include "velo/context.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The method that a host asks for all layers. */
typedef int32_t velo_recompute_method;
enum {
  VELO_RECOMPUTE_METHOD_NONE = 0,
  VELO_RECOMPUTE_METHOD_FULL = 1,      /* every layer, each by itself */
  VELO_RECOMPUTE_METHOD_BLOCK = 2,     /* the first `count` layers of a chunk (or of the stage) */
  VELO_RECOMPUTE_METHOD_UNIFORM = 3,   /* every layer, `count` consecutive ones as one */
  VELO_RECOMPUTE_METHOD_SELECTIVE = 4, /* core attention alone, of every layer */
  VELO_RECOMPUTE_METHOD_ADAPTIVE = 5   /* what velo_recompute_choose finds */
};

/* The recomputed parts of a layer: bits; norms may stand beside the activation or the feed-forward
 * block. */
typedef int32_t velo_recompute_kind;
enum {
  VELO_RECOMPUTE_NONE = 0,
  VELO_RECOMPUTE_FULL = 1,      /* the whole layer, from its input */
  VELO_RECOMPUTE_SELECTIVE = 2, /* core attention: scores, softmax, their product with the values */
  VELO_RECOMPUTE_ACTIVATION = 4,   /* the output of the feed-forward block's activation function */
  VELO_RECOMPUTE_NORM = 8,         /* the outputs of the layer's norms */
  VELO_RECOMPUTE_FEED_FORWARD = 16 /* the feed-forward block, from its input */
};

/* Other features of the host that not every method allows: bits. AMPIPE and BALANCE
 * are the host's own: velo does neither, and refuses the rules that they exclude. */
typedef int32_t velo_recompute_beside;
enum {
  VELO_RECOMPUTE_BESIDE_BUBBLE = 1,         /* recomputes in the bubbles of the pipeline */
  VELO_RECOMPUTE_BESIDE_ADVANCE = 2,        /* recomputes before the gradient arrives */
  VELO_RECOMPUTE_BESIDE_SWAP_ATTENTION = 4, /* moves attention's activations to the host */
  VELO_RECOMPUTE_BESIDE_LIFETIMES = 8,      /* a pool for each lifetime */
  VELO_RECOMPUTE_BESIDE_AMPIPE = 16,        /* attention and experts in overlapping parts */
  VELO_RECOMPUTE_BESIDE_BALANCE = 32        /* recomputes experts that receive too much */
};

/* A model in a pipeline, seen from one stage, and what to recompute of it. */
typedef struct velo_recompute_rule {
  uint32_t struct_size;
  velo_recompute_method method;
  int32_t layers;            /* of the model: a multiple of pipeline_size * chunks */
  int32_t pipeline_size;     /* stages */
  int32_t pipeline_rank;     /* this stage */
  int32_t chunks;            /* of a stage; more than 1 needs more than one stage */
  int32_t micro_batches;     /* of a step; 0 = more than are ever in flight */
  int32_t count;             /* of block and uniform; -1 = all (block alone) */
  int32_t per_stage;         /* 1 = numbers of layers count for the stage; 0 = for each chunk */
  int32_t activation;        /* 1 = recompute activation functions in layers not recomputed whole */
  int32_t activation_layers; /* in so many of them; -1 = in all */
  int32_t norm;              /* 1 = the same for norms */
  int32_t norm_layers;       /* in so many of them; -1 = in all */
  velo_recompute_beside beside;
  int32_t feed_forward_layers; /* beside SWAP_ATTENTION: of the layers that swap, recompute the
                                  feed-forward block in the first so many; -1 = in all */
} velo_recompute_rule;

#define VELO_RECOMPUTE_RULE_INIT                                                                   \
  {                                                                                                \
    sizeof(velo_recompute_rule), VELO_RECOMPUTE_METHOD_NONE, 1, 1, 0, 1, 0, 1, 0, 0, -1, 0, -1, 0, \
        0                                                                                          \
  }

/* The result of a rule for a layer. */
typedef struct velo_recompute_layer {
  int32_t layer;             /* of the model, from 0 */
  int32_t chunk;             /* of the stage, from 0 */
  velo_recompute_kind kinds; /* of uniform: FULL */
  int32_t first;     /* index, among the stage's layers, of the first that is recomputed with it */
  int32_t in_flight; /* most micro-batches of it in flight: of stage r of P in one chunk P - r; in
                        V chunks 2 (P - 1 - r) + (V - 1) P + 1 forward passes, the chunks taking
                        turns, P at a time */
  int32_t swap;      /* 1 = its attention's activations are moved: beside SWAP_ATTENTION */
} velo_recompute_layer;

/* The layers of a stage, chunk by chunk, and the kinds a rule gives them. Where numbers count for
 * the stage, the first layers of all chunks come before the second ones. Beside SWAP_ATTENTION
 * the attention of every layer is swapped; of block that of the first `count` layers, none of which
 * is then recomputed whole; of full and uniform none, since nothing of it is kept.
 * Refused are:
 *   ACTIVATION and norm beside a method other than none and block;
 *   BUBBLE with one chunk, beside a method other than none, ADVANCE or BALANCE;
 *   ADVANCE with one chunk or several layers in a chunk, beside a method other than block or
 *   AMPIPE; BALANCE beside full, block and uniform; layers of the feed-forward block without
 *   SWAP_ATTENTION; adaptive beside BUBBLE, ADVANCE, SWAP_ATTENTION, LIFETIMES or AMPIPE.
 * layers: receives `capacity` of them at most; NULL with capacity 0 asks for their number alone.
 * count: receives their number; may be NULL.
 * Thread class: any. Errors: NULL (rule; layers with a capacity), STRUCT, ARGUMENT (the field, or
 * what it excludes), UNSUPPORTED (a field of newer headers), MEMORY. */
VELO_API velo_status velo_recompute_layers(const velo_recompute_rule* rule,
                                           velo_recompute_layer* layers, int64_t capacity,
                                           int64_t* count);

/* A part of a layer, as measured: the whole layer, a module of it, a module of that. */
typedef struct velo_recompute_module {
  int32_t layer;        /* index among the stage's layers */
  int32_t parent;       /* index of the module it is a part of, before this one; -1 = none */
  uint64_t bytes;       /* it keeps for the backward pass of one micro-batch, parts included */
  uint64_t bytes_input; /* kept in their place when it is recomputed; 0 if others keep its input */
  double seconds;       /* of recomputing it once, parts included; 0 to 1e18 */
} velo_recompute_module;

/* Bytes for what the stage's layers keep, and what trials have shown so far. */
typedef struct velo_recompute_budget {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  uint64_t bytes;    /* the largest budget to try, and the first */
  uint64_t fits;     /* the largest that was tried and fit; 0 = none */
  uint64_t fails;    /* the smallest that was tried and did not; 0 = none */
  uint64_t step;     /* budgets closer to each other than this count as equal */
} velo_recompute_budget;

#define VELO_RECOMPUTE_BUDGET_INIT \
  { sizeof(velo_recompute_budget), 0, 0, 0, 0, 1048576 }

typedef struct velo_recompute_choice {
  uint32_t struct_size;
  int32_t settled;      /* 1 = the budget is known to fit and no trial would find a better one */
  uint64_t budget;      /* the choice was made for: to be given back in `fits` or `fails` */
  uint64_t bytes;       /* the modules keep, over all micro-batches in flight */
  uint64_t bytes_least; /* with everything recomputed that saves any: no smaller budget works */
  uint64_t bytes_most;  /* with nothing recomputed */
  double seconds;       /* of recomputing, for one micro-batch */
  double seconds_bound; /* no choice within the budget takes less; equal but in the hardest cases */
} velo_recompute_choice;

#define VELO_RECOMPUTE_CHOICE_INIT \
  { sizeof(velo_recompute_choice), 0, 0, 0, 0, 0, 0, 0 }

/* Chooses the modules to recompute so that what all keep stays within a budget and recomputing
 * takes least time, exactly. Of a module and its parts at most one is chosen: what is recomputed is
 * so as a whole. What a module takes while it is restored is not counted; trials are for that:
 *
 *   velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
 *   budget.bytes = what the device has;
 *   do {
 *     velo_recompute_choose(&rule, &budget, modules, count, chosen, &choice);
 *     if (a step with it runs out of memory) budget.fails = choice.budget;
 *     else budget.fits = choice.budget;
 *   } while (!choice.settled);
 *
 * tries no choice twice and ends with one that fits, in about log2(bytes / step) trials. Stages
 * choose by themselves; ranks that share a stage take the choice of one of them.
 * rule: its method is VELO_RECOMPUTE_METHOD_ADAPTIVE. modules: `count` of them; may be NULL when
 * count is 0. chosen: receives `count` numbers, 1 = recompute the module.
 * Thread class: any. Errors: NULL, STRUCT, ARGUMENT (the module or field; a budget below the least
 * that works, which is named), UNSUPPORTED (a field of newer headers), MEMORY. */
VELO_API velo_status velo_recompute_choose(const velo_recompute_rule* rule,
                                           const velo_recompute_budget* budget,
                                           const velo_recompute_module* modules, int64_t count,
                                           int32_t* chosen, velo_recompute_choice* choice);

/* Regions: outputs that are let go of after the forward pass and made again before the backward
 * pass.
 *
 * The host declares a region in its forward pass (velo_recompute_add): what it takes, which outputs
 * it has, and a function that fills them again. velo allocates the outputs; the forward pass fills
 * them. velo_recompute_release gives their memory back to the allocator, velo_recompute_restore
 * allocates it anew and calls the function once, however often it is asked for until the next
 * release. velo_recompute_end is the end of a region's backward pass; regions may end in any order.
 *
 * What a region takes is memory of the host's, which must stay until the region and all that take
 * from it have ended, or an output of another region. Where that is released, it is restored first,
 * and stays: its own backward pass comes next. Where its region has ended, it is released again.
 *
 * A region declared inside another (`parent`) is released with it and ends with it. Restoring the
 * outer one restores its own outputs alone; those inside come back when asked for.
 *
 * Random numbers. Seed and offset of the host's generator at the region's beginning travel with it
 * and are given to the function, so that dropout comes out the same.
 *
 * Streams. Memory is taken and given back in the order of the stream given, as far as the allocator
 * knows streams (velo_pool_allocator does); the function is called on the calling thread and queues
 * its work there. It may call back in - declare, restore, release other regions - but what the
 * restore in progress needs may not be released or ended, nor the velo_recompute destroyed:
 * VELO_ERR_STATE. */
typedef struct velo_recompute_s* velo_recompute;

typedef struct velo_recompute_desc {
  uint32_t struct_size;
  uint32_t reserved;               /* 0 */
  const velo_allocator* allocator; /* copied; what is below it must outlive the regions */
} velo_recompute_desc;

#define VELO_RECOMPUTE_DESC_INIT \
  { sizeof(velo_recompute_desc), 0, 0 }

/* The arguments of a region's function; everything lives until it returns. */
typedef struct velo_recompute_call {
  uint32_t struct_size;
  uint32_t reserved;
  velo_recompute recompute;
  int64_t region;     /* its index */
  velo_stream stream; /* on which to work, as given to velo_recompute_restore */
  const char* name;   /* of the region */
  uint64_t seed;      /* of the host's generator when the region began */
  uint64_t offset;
  const void** inputs; /* in the order of the declaration */
  void** outputs;      /* to be filled, whatever was in them */
} velo_recompute_call;

#define VELO_RECOMPUTE_CALL_INIT \
  { sizeof(velo_recompute_call), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills the outputs of a region as its forward pass did. Anything but VELO_OK fails the call that
 * needed it with VELO_ERR_FOREIGN, which names the region; it stays released then. In use meanwhile
 * (types.h): the velo_recompute. From inside its allocator's functions every call of it is
 * VELO_ERR_STATE. */
typedef velo_status (*velo_recompute_fn)(void* user, const velo_recompute_call* call);

typedef struct velo_recompute_input {
  const void* memory; /* the host's, when region is -1, and not NULL then */
  int64_t region;     /* whose output it is; -1 = the host's memory */
  int64_t output;     /* which one */
} velo_recompute_input;

typedef struct velo_recompute_region {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const char* name;  /* copied; for messages */
  velo_recompute_fn restore;
  void* user;                         /* passed to restore */
  int64_t parent;                     /* index of the region it is inside of; -1 = none */
  const velo_recompute_input* inputs; /* copied; may be NULL when input_count is 0 */
  int64_t input_count;
  const uint64_t* output_bytes; /* size of each output, 1 or more; copied */
  int64_t output_count;
  uint64_t seed; /* of the host's generator at the beginning */
  uint64_t offset;
} velo_recompute_region;

#define VELO_RECOMPUTE_REGION_INIT \
  { sizeof(velo_recompute_region), 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0 }

typedef struct velo_recompute_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t regions;    /* that have not ended */
  uint64_t bytes;      /* of outputs that are there */
  uint64_t bytes_peak; /* highest value of bytes */
  uint64_t releases;   /* of regions whose outputs were there, so far */
  uint64_t restores;   /* calls of restoring functions that succeeded, so far */
} velo_recompute_stats;

#define VELO_RECOMPUTE_STATS_INIT \
  { sizeof(velo_recompute_stats), 0, 0, 0, 0, 0, 0 }

/* No regions so far. recompute: receives the handle; destroy it with velo_recompute_destroy.
 * Thread class: any. Errors: NULL (recompute, desc, the allocator or a function of it), STRUCT,
 * ARGUMENT, UNSUPPORTED (a field of newer headers), MEMORY. */
VELO_API velo_status velo_recompute_create(const velo_recompute_desc* desc,
                                           velo_recompute* recompute);

/* Ends all regions; their memory goes back. NULL is ignored, and so is (with a log line) a call
 * from a region's function.
 * Thread class: per-handle. */
VELO_API void velo_recompute_destroy(velo_recompute recompute);

/* Declares a region. stream: in whose order the outputs are allocated; NULL = that of the host's
 * calls. index: receives the region's index, counted from 0 and never used again.
 * Thread class: per-handle, but for a region's function. Errors: NULL, HANDLE, STRUCT, ARGUMENT,
 * UNSUPPORTED (a field of newer headers), STATE, MEMORY (of an output), FOREIGN (the allocator). */
VELO_API velo_status velo_recompute_add(velo_recompute recompute,
                                        const velo_recompute_region* region, velo_stream stream,
                                        int64_t* index);

/* An output that is there. memory: receives its first byte; it lies at a multiple of 64 bytes, and
 * elsewhere after each restore.
 * Thread class: per-handle, but for a region's function. Errors: NULL, HANDLE, ARGUMENT (no such
 * region or output), STATE (released). */
VELO_API velo_status velo_recompute_get_output(velo_recompute recompute, int64_t region,
                                               int64_t output, void** memory);

/* Gives the memory of a region's outputs back, and of those inside it; where they are released
 * already nothing happens. stream: whose queued work may still use them; NULL = nobody's.
 * Thread class: per-handle, but for a region's function. Errors: NULL, HANDLE, ARGUMENT (no such
 * region), STATE (a restore in progress needs it). */
VELO_API velo_status velo_recompute_release(velo_recompute recompute, int64_t region,
                                            velo_stream stream);

/* Makes a region's outputs anew where they are released, and before them what they are made from.
 * Thread class: per-handle, but for a region's function. Errors: NULL, HANDLE, ARGUMENT (no such
 * region), STATE (it is being restored), MEMORY, FOREIGN (a region's function, which is named). */
VELO_API velo_status velo_recompute_restore(velo_recompute recompute, int64_t region,
                                            velo_stream stream);

/* Ends a region and those inside it. stream: whose queued work may still use the outputs.
 * Thread class: per-handle, but for a region's function. Errors: NULL, HANDLE, ARGUMENT (no such
 * region), STATE (a restore in progress needs it). */
VELO_API velo_status velo_recompute_end(velo_recompute recompute, int64_t region,
                                        velo_stream stream);

/* Counters of regions.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_recompute_get_stats(velo_recompute recompute,
                                              velo_recompute_stats* stats);

VELO_END_C

#endif
