/* Dispatchers: tokens to the experts that they chose, on whatever rank, and back, with gradients.
 *
 * A dispatcher belongs to a layer: `experts` experts lie on the ranks of a group in equal parts, in
 * the order of the ranks. A routing belongs to a micro-batch: it takes the choices of this rank's
 * tokens, exchanges the counts, and is kept until the backward pass has used it. Many routings of
 * one dispatcher may be in use at a time.
 *
 *   velo_routing_set(routing, stream, choices, scores, places)  all ranks; from topk_router, or
 *                                                          recorded
 *   velo_routing_get_rows(routing, counts, n, &rows)       waits: the rows of each own expert
 *   velo_dispatcher_dispatch(dispatcher, stream, routing, tokens, rows)
 *   ..                                                     the experts: velo_grouped_matmul, counts
 *   velo_dispatcher_combine(dispatcher, stream, routing, rows, weights, tokens)
 *
 * and for the gradients, from the last to the first:
 *
 *   velo_dispatcher_combine_backward(.., dtokens, rows, weights, drows, dweights)
 *   velo_dispatcher_dispatch_backward(.., drows, dtokens)  the routing is free again
 *
 * Rows lie by expert; those of an expert by rank, then token, then choice. The order depends on the
 * choices alone: if tokens are dealt to ranks in order, rows, outputs and gradients of tokens have
 * the same bits for any number of ranks. A rank without tokens, or whose experts get none, makes
 * the same calls. Rank r has the experts [r E / ranks, (r + 1) E / ranks).
 *
 * Capacity. With a capacity rule an expert takes no more rows than its capacity; choices beyond it
 * are dropped: they have no row, add nothing to sums, and the gradients of their weights are 0. The
 * capacity is that of the whole micro-batch on all ranks of batch_group, and the choices that are
 * kept do not depend on the layout of ranks if places are given, or if tokens are dealt to ranks in
 * order. With capacity_by_rank each rank has a capacity for its own tokens, as in Megatron-LM and
 * DeepSpeed. With pad an expert gets exactly as many rows as its capacity: rows of zeros lie behind
 * the others, or, with capacity_by_rank, behind those of each rank. Dispatch and combine_backward
 * write these zeros; combine and dispatch_backward do not read them.
 *
 * Ranks that are threads of a process read the tensors of the others where they lie; processes with
 * shared memory move rows through shared slots. Other ranks send them as the kind says. All kinds
 * have the same bits.
 */
#ifndef VELO_DISPATCHER_H
#define VELO_DISPATCHER_H

#include "velo/group.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_dispatcher_s* velo_dispatcher;
typedef struct velo_routing_s* velo_routing;

/* How the capacity of an expert is given. */
typedef int32_t velo_capacity_rule;
enum {
  VELO_CAPACITY_NONE = 0,  /* every choice has a row */
  VELO_CAPACITY_ROWS = 1,  /* `capacity` rows */
  VELO_CAPACITY_FACTOR = 2 /* ceil(tokens * top_k / experts * capacity_factor), at least `capacity`
                            * and at most `tokens`, of the tokens that have a choice */
};

/* How rows go to ranks that do not share memory. They come back one for each choice. */
typedef int32_t velo_dispatch_kind;
enum {
  VELO_DISPATCH_ALL_TO_ALL = 0,          /* one for each choice */
  VELO_DISPATCH_ALL_GATHER = 1,          /* every token to every rank */
  VELO_DISPATCH_ALL_TO_ALL_SEQUENCE = 2, /* moves rows as ALL_TO_ALL; for a group of tp x ep ranks
                                          * whose tokens are cut by sequence parallelism */
  VELO_DISPATCH_HIERARCHICAL = 3         /* every token once to each host that has an expert of it,
                                          * and from there to the ranks of these */
};

/* The properties of a layer; all ranks give the same. */
typedef struct velo_dispatcher_desc {
  uint32_t struct_size;
  int32_t top_k;                    /* choices of a token, 1 to experts */
  int64_t experts;                  /* of all ranks; a multiple of the ranks, at most 2^20 */
  velo_capacity_rule capacity_rule; /* VELO_CAPACITY_*; NONE: the fields below are 0 */
  int32_t drop_policy;              /* VELO_DROP_POLICY_*: which choices an expert keeps */
  int64_t capacity;                 /* rows of an expert, at most 2^31 - 1 */
  double capacity_factor;           /* above 0, with VELO_CAPACITY_FACTOR; computed in double */
  int32_t capacity_by_rank;         /* 1: each rank has a capacity for its own tokens */
  int32_t pad;                      /* 1: each expert gets exactly the rows of its capacity */
  velo_group batch_group;           /* the ranks that have tokens of a micro-batch, those of the
                                     * dispatcher's group among them; NULL: these alone */
  velo_dispatch_kind kind;          /* VELO_DISPATCH_* */
  uint32_t reserved;
} velo_dispatcher_desc;

#define VELO_DISPATCHER_DESC_INIT \
  { sizeof(velo_dispatcher_desc), 0, 0, VELO_CAPACITY_NONE, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Makes a dispatcher. group and desc.batch_group: must outlive its calls. desc: copied. dispatcher:
 * receives the handle; destroy it with velo_dispatcher_destroy. Makes no other rank wait. Thread
 * class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (desc), UNSUPPORTED (a field of newer
 * headers), STATE, MEMORY. */
VELO_API velo_status velo_dispatcher_create(velo_group group, const velo_dispatcher_desc* desc,
                                            velo_dispatcher* dispatcher);

/* Destroys a dispatcher; its routings can then only be destroyed. NULL is ignored. Thread class:
 * per-handle. */
VELO_API void velo_dispatcher_destroy(velo_dispatcher dispatcher);

typedef struct velo_dispatcher_info {
  uint32_t struct_size;
  int32_t top_k;
  int64_t ranks;
  int64_t experts;
  int64_t first_expert; /* of this rank */
  int64_t expert_count; /* of this rank */
} velo_dispatcher_info;

#define VELO_DISPATCHER_INFO_INIT \
  { sizeof(velo_dispatcher_info), 0, 0, 0, 0, 0 }

/* Fills the caller's struct, at most info->struct_size bytes of it.
 * Thread class: per-handle. Errors: NULL, HANDLE, STRUCT, STATE. */
VELO_API velo_status velo_dispatcher_get_info(velo_dispatcher dispatcher,
                                              velo_dispatcher_info* info);

/* Makes a routing without choices. routing: receives the handle; destroy it with
 * velo_routing_destroy. Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_routing_create(velo_dispatcher dispatcher, velo_routing* routing);

/* Destroys a routing; calls that are queued go on. NULL is ignored. Thread class: per-handle. */
VELO_API void velo_routing_destroy(velo_routing routing);

/* Takes the choices of a micro-batch, drops those beyond capacity, and exchanges the counts with
 * the other ranks; all ranks call it. choices: int32, compact, [tokens, top_k], each an expert, or
 * negative for a choice that takes no row: a token of padding, or a dropped choice (topk_router
 * gives -1 - expert). scores: float32, [tokens, top_k], where the largest scores are kept
 * (VELO_DROP_POLICY_PROBABILITY; of equal scores the first token; NaN counts as the lowest); NULL
 * otherwise. places: int64, [tokens], the places of this rank's tokens in the micro-batch, which
 * give the order of tokens for a capacity of the micro-batch; NULL, on all ranks alike: tokens lie
 * in the order of ranks. The tensors are read when the work runs; a choice beyond the experts then
 * ends the group, and its rank gets ARGUMENT, the others PEER. Thread class: per-handle. Errors:
 * NULL, HANDLE, ARGUMENT (choices, scores or places that the dispatcher does not use, a stream of
 * another context; on all ranks desc.batch_group, if it lacks ranks and an expert gets more rows
 * than its capacity), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, STATE (a routing whose backward pass is
 * still to come), FULL (nothing was queued), MEMORY, PEER. */
VELO_API velo_status velo_routing_set(velo_routing routing, velo_stream stream,
                                      const velo_tensor* choices, const velo_tensor* scores,
                                      const velo_tensor* places);

/* Waits until counts are known. counts: receives the rows of each of this rank's experts, rows of
 * padding among them, those of the first `capacity`; velo_grouped_matmul takes them as
 * group_list_tensor; may be NULL. rows: receives their sum; may be NULL. Thread class: per-handle.
 * Errors: NULL, HANDLE, ARGUMENT (capacity), STATE (a routing that was not set, or whose
 * velo_routing_set failed; a call from work that others wait for). */
VELO_API velo_status velo_routing_get_rows(velo_routing routing, int64_t* counts, int64_t capacity,
                                           int64_t* rows);

/* Forgets the choices of a routing that needs no backward pass, so that it can be set again. Calls
 * that are queued go on. Thread class: per-handle. Errors: NULL, HANDLE, STATE. */
VELO_API velo_status velo_routing_reset(velo_routing routing);

/* The four calls below work after velo_routing_get_rows, on all ranks in the same order. Tensors
 * are compact, of one dtype: float32, bfloat16 or float16; those of tokens are [tokens, n], those
 * of rows [rows, n]. Sums are those of a token in the order of its choices, in float32, rounded
 * once. */

/* Gives the experts their rows: rows[..] = tokens[t] for each choice of t. Thread class:
 * per-handle. Errors: NULL, HANDLE, ARGUMENT (a routing of another dispatcher, a stream of another
 * context), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_dispatcher_dispatch(velo_dispatcher dispatcher, velo_stream stream,
                                              velo_routing routing, const velo_tensor* tokens,
                                              const velo_tensor* rows);

/* Gives the tokens what the experts made of their rows: tokens[t] = sum over the choices j of t of
 * weights[t, j] times its row. weights: float32, [tokens, top_k]; NULL: 1 each, on all ranks alike.
 * Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT (as for velo_dispatcher_dispatch), RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_dispatcher_combine(velo_dispatcher dispatcher, velo_stream stream,
                                             velo_routing routing, const velo_tensor* rows,
                                             const velo_tensor* weights, const velo_tensor* tokens);

/* The gradient of velo_dispatcher_combine: drows[..] = weights[t, j] dtokens[t], and dweights[t, j]
 * = the product of its row and dtokens[t]: blocks of it are summed in float32, their sums in
 * double; 0 for a choice without a row. rows and weights: of the forward call. dweights: float32,
 * [tokens, top_k]; NULL with weights, on all ranks alike. Thread class: per-handle. Errors: NULL,
 * HANDLE, ARGUMENT (as for velo_dispatcher_dispatch), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP,
 * STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_dispatcher_combine_backward(
    velo_dispatcher dispatcher, velo_stream stream, velo_routing routing,
    const velo_tensor* dtokens, const velo_tensor* rows, const velo_tensor* weights,
    const velo_tensor* drows, const velo_tensor* dweights);

/* The gradient of velo_dispatcher_dispatch: dtokens[t] = the sum of the drows of its choices. The
 * routing is then free to be set again. Thread class: per-handle. Errors: NULL, HANDLE, ARGUMENT
 * (as for velo_dispatcher_dispatch), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL,
 * MEMORY, PEER. */
VELO_API velo_status velo_dispatcher_dispatch_backward(velo_dispatcher dispatcher,
                                                       velo_stream stream, velo_routing routing,
                                                       const velo_tensor* drows,
                                                       const velo_tensor* dtokens);

VELO_END_C

#endif
