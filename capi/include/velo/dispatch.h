/* Rows to the ranks that they name, and back: tokens to their experts, and what experts made of
 * them to the tokens.
 *
 * Both go by way of two groups, so that little crosses between hosts: `across`, of the ranks with
 * one place on all hosts, and `inside`, of the ranks of a host. Ranks are numbered host by host:
 * the rank in across, times the size of inside, plus the rank inside. A group of one rank
 * (VELO_TRANSPORT_SELF) may stand for either. All ranks enter both groups with a call in the same
 * order of calls.
 *
 * targets: int32, as many rows as the tensor has whose rows name ranks, along the first dimension;
 * each row names the ranks that get that row, or had it, -1 for none; one named twice gets it
 * twice. They are read when the work runs, and one that is no rank ends both groups; a lack of
 * memory for what comes ends the one that it comes by, and the other where the call still needs it.
 * A count that is not that of the rows ends the group inside and, of combine, the one across, but
 * none of one rank. The rank whose count it is gets PEER, or ARGUMENT for its own rows, with the
 * count as the argument and what it should be, in this call or, if its part was done, the next; the
 * others get PEER, with the count and its rank as the cause.
 *
 * A step of experts, of tokens x, with the weights w of their targets:
 *
 *   velo_group_dispatch(stream, inside, across, x, targets, counts, rows)
 *   ..                                               rows of the experts, in the same places
 *   velo_group_combine(stream, inside, across, rows, counts, targets, w, y)
 *
 * Gradients. Each is the other's: of dispatch's in it is the combine of out's gradient, without
 * weights; of combine's in the dispatch of out's gradient, each row times its weight. That of a
 * weight is the sum of the products of the row that it stood for and of out's gradient: a rank that
 * has both puts it at the weight's place in a row as long as those of targets, of zeros else, and
 * the combine of these rows, without weights, is the gradient of w. The dispatch of w and of
 * targets tells a rank the weights of its rows.
 */
#ifndef VELO_DISPATCH_H
#define VELO_DISPATCH_H

#include "velo/group.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

/* Gives each rank the rows of all ranks' `in` that name it. A row crosses to another host once,
 * with its targets, however many ranks there get it. in: rows along the first dimension, named
 * by targets. out_counts: for each rank, how many rows it gives; must be what it does. out: as
 * many rows in all, by rank, then by its row, then by target: what velo_group_all_to_all_v gives
 * of rows laid out by rank. Thread class: any. Errors: NULL, HANDLE, ARGUMENT (across,
 * out_counts that do not fit, targets on an inline stream, a stream of another context), RANK,
 * SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE, FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_dispatch(velo_stream stream, velo_group inside, velo_group across,
                                         const velo_tensor* in, const velo_tensor* targets,
                                         const int64_t* out_counts, const velo_tensor* out);

/* Gives the rows back to the ranks that velo_group_dispatch had them from, and adds those of one
 * row, each times its weight. Of each row, one sum crosses from another host, however many ranks
 * there had it: in float32, and a row alone there as it is. Products are added in float32, of a
 * host in the order of the row's targets, then hosts in order, and rounded once; what names
 * nobody is 0. in: rows as dispatch gave them, by rank, then by its row, then by target;
 * float32, float16 or bfloat16. in_counts: for each rank, how many are its; must be what it
 * named. weights: float32, one for each target; NULL = 1 each; of all ranks, or of none. out: a
 * row for each row of targets, of in's dtype, or float32 for a narrower in. Thread class: any.
 * Errors: NULL, HANDLE, ARGUMENT (across, in_counts that do not fit, targets on an inline
 * stream, a stream of another context), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, STATE,
 * FULL, MEMORY, PEER. */
VELO_API velo_status velo_group_combine(velo_stream stream, velo_group inside, velo_group across,
                                        const velo_tensor* in, const int64_t* in_counts,
                                        const velo_tensor* targets, const velo_tensor* weights,
                                        const velo_tensor* out);

VELO_END_C

#endif
