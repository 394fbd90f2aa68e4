/* A host's own collectives: how groups work over ranks that the host has connected itself, by a
 * process group of a framework, say.
 *
 * The host fills a table with the functions that it has, and names it in the description of a group
 * with VELO_TRANSPORT_HOST. It must have one of all_gather, all_to_all, broadcast, or send and
 * receive; all collectives are made of what is there, on all ranks the same. Elements are combined
 * by velo, in the order of the ranks, as if all were on one machine, unless all_reduce is there:
 * what that does, and no other rounding, is then the result of an all_reduce or a reduce that is a
 * sum, an average, least or largest elements, of one dtype without a scale.
 *
 * Calls. The functions are called one at a time, on a thread of the group's own, with memory of the
 * group's own. They are collective: all ranks make the same calls in the same order, but for send
 * and receive. Each returns the bytes that it sent (send), or put into `data` or `out`; anything
 * else is a failure: fewer bytes, a negative number of the host's, an exception. It says in
 * call->why what happened, if it can. In use meanwhile (types.h), though the thread is another one:
 * what the call of velo that waits for the function uses.
 *
 * Faults. A function is to return within call->timeout_ns. When it fails, or a tenth of a second
 * later has not returned, the group has ended with VELO_ERR_PEER, and the record's cause names the
 * function and its call->why. A function that fails because ranks have not come sets call->late of
 * these ranks: the record then names them as the late ones; else it names the rank whose function
 * failed. Other ranks learn of that in their next call, or, where one is under way, by what their
 * host does. A function that returns later may still write; that is why memory is the group's, and
 * why `user` must live until `release` is called.
 */
#ifndef VELO_HOST_H
#define VELO_HOST_H

#include "velo/group.h"
#include "velo/types.h"

VELO_BEGIN_C

/* The call that every function gets; alive until it returns. */
typedef struct velo_host_call {
  uint32_t struct_size;
  uint32_t capacity;  /* bytes of why */
  char* why;          /* empty; the host's word for a failure, zero-terminated */
  int64_t timeout_ns; /* how long it may take */
  uint8_t*
      late; /* a byte for each rank of the group, 0; 1: a failed function waited for it in vain */
} velo_host_call;

#define VELO_HOST_CALL_INIT \
  { sizeof(velo_host_call), 0, 0, 0, 0 }

/* Results of a function that are no number of bytes. */
enum {
  VELO_HOST_DECLINED = -1000000 /* all_reduce, on all ranks: the host does not do that reduction */
};

/* Puts `bytes` of each rank side by side, in the order of the ranks, into every rank's out. */
typedef int64_t (*velo_host_all_gather_fn)(void* user, const velo_host_call* call, const void* in,
                                           void* out, int64_t bytes);

/* Gives each rank its part of every rank's in. in_bytes, out_bytes: of each rank; the parts lie one
 * behind the other, in the order of the ranks. */
typedef int64_t (*velo_host_all_to_all_fn)(void* user, const velo_host_call* call, const void* in,
                                           const int64_t* in_bytes, void* out,
                                           const int64_t* out_bytes);

/* Copies the root's bytes to all. */
typedef int64_t (*velo_host_broadcast_fn)(void* user, const velo_host_call* call, int32_t root,
                                          void* data, int64_t bytes);

/* Combines `count` elements of all ranks' in into every rank's out. */
typedef int64_t (*velo_host_all_reduce_fn)(void* user, const velo_host_call* call,
                                           velo_reduce_op op, const velo_dtype* dtype,
                                           const void* in, void* out, int64_t count);

/* Sends bytes to a rank, and receives what a rank sends next, which is as much. */
typedef int64_t (*velo_host_send_fn)(void* user, const velo_host_call* call, int32_t to,
                                     const void* data, int64_t bytes);
typedef int64_t (*velo_host_receive_fn)(void* user, const velo_host_call* call, int32_t from,
                                        void* data, int64_t bytes);

struct velo_host_collectives;

/* Makes the functions of a part: of the ranks that are listed, all of which call it; a rank's
 * place in the list is its rank in the part. part: to be filled in. Returns 0, or a negative
 * number. */
typedef int64_t (*velo_host_part_fn)(void* user, const velo_host_call* call, const int32_t* ranks,
                                     int32_t count, struct velo_host_collectives* part);

/* Makes calls under way return, on all ranks if it can; called from any thread, at most once. */
typedef void (*velo_host_abort_fn)(void* user, const char* why);

/* Nothing of the table is called any more. Called once, when the group is destroyed, or was not
 * made though functions had been called, and the last of them has returned; from any thread. Of
 * a part: also when velo could not use it, because it came late, lacks functions, or its ranks
 * did not meet. */
typedef void (*velo_host_release_fn)(void* user);

/* The functions of one rank; those that are NULL the host does not have. */
typedef struct velo_host_collectives {
  uint32_t struct_size;
  uint32_t reserved;
  void* user; /* passed to the functions */
  velo_host_all_gather_fn all_gather;
  velo_host_all_to_all_fn all_to_all;
  velo_host_broadcast_fn broadcast;
  velo_host_all_reduce_fn all_reduce; /* NULL: velo combines, in the order of the ranks */
  velo_host_send_fn send;             /* without send and receive: no messages */
  velo_host_receive_fn receive;
  velo_host_part_fn part;       /* NULL: no parts */
  velo_host_abort_fn abort;     /* NULL: calls under way end by their deadlines */
  velo_host_release_fn release; /* NULL: the host knows */
} velo_host_collectives;

#define VELO_HOST_COLLECTIVES_INIT \
  { sizeof(velo_host_collectives), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

VELO_END_C

#endif
