/* Status codes and the error record: what went wrong, in a form that a program and a person can
 * both act on.
 *
 * Every call that can fail returns a velo_status; destroy calls return nothing, accept NULL, and
 * ignore (and log) what is not theirs. When a call fails, the calling thread's error record says
 * which function and which argument failed, what was expected and what came. A success never clears
 * the record.
 *
 * After a validation error (codes below VELO_ERR_MEMORY) outputs are untouched. After a failure
 * during the work (a dead peer, a full disk) they are undefined.
 *
 * The comment of a function ends with its thread class (any: from any thread; per-handle: one call
 * at a time on a handle) and with the codes it can give, without VELO_ERR_. Beside these any call
 * may give MEMORY or INTERNAL, FOREIGN when a callback of the host's throws, one that queues work
 * FULL, and one on a stream that has failed that failure (stream.h).
 *
 * No call is a cancellation point (pthread_cancel): a request takes effect after it. A thread whose
 * cancellation is asynchronous may not call velo.
 */
#ifndef VELO_STATUS_H
#define VELO_STATUS_H

#include <stdint.h>

#include "velo/export.h"

VELO_BEGIN_C

typedef int32_t velo_status;

enum {
  VELO_OK = 0,

  /* Validation: nothing was done, outputs are untouched. */
  VELO_ERR_NULL = 1,         /* a required pointer or handle is NULL */
  VELO_ERR_HANDLE = 2,       /* a handle of another kind, or one that was destroyed */
  VELO_ERR_STRUCT = 3,       /* struct_size below the minimum, above 4096 or of no version */
  VELO_ERR_ARGUMENT = 4,     /* a number, string or enumerator out of its range */
  VELO_ERR_RANK = 5,         /* a tensor with the wrong number of dimensions */
  VELO_ERR_SHAPE = 6,        /* a tensor whose sizes do not agree with the others */
  VELO_ERR_DTYPE = 7,        /* an element type the call does not take */
  VELO_ERR_LAYOUT = 8,       /* strides or alignment the call does not take */
  VELO_ERR_DEVICE = 9,       /* a tensor on another device than the stream's */
  VELO_ERR_OVERLAP = 10,     /* an output shares memory with an argument it may not share with */
  VELO_ERR_NOT_FOUND = 11,   /* no operator, key, symbol or file of that name */
  VELO_ERR_PARSE = 12,       /* malformed text; `got` holds line and column */
  VELO_ERR_UNSUPPORTED = 13, /* valid, but not offered by this library, processor or build */
  VELO_ERR_ABI = 14,         /* the caller needs another ABI version than this library has */
  VELO_ERR_STATE = 15,       /* not now: made before fork, event never recorded, inside the work */
  VELO_ERR_FULL = 16,        /* the stream holds as much queued work as the key `queue` allows */

  /* Failure during the work: outputs are undefined. */
  VELO_ERR_MEMORY = 32,  /* an allocation failed */
  VELO_ERR_IO = 33,      /* the operating system refused a file or a library */
  VELO_ERR_TIMEOUT = 34, /* a deadline passed */
  VELO_ERR_PEER = 35,    /* another rank failed or disagrees; `rank` says which */
  VELO_ERR_FOREIGN = 36, /* a host callback, plugin or foreign kernel failed */
  VELO_ERR_INTERNAL = 37 /* a fault of velo itself: please report it */
};

/* The error record. All strings end with a zero byte, UTF-8, and may be cut at their capacity. */
typedef struct velo_error_info {
  uint32_t struct_size; /* in: sizeof(velo_error_info) */
  velo_status code;     /* VELO_OK when no call of this thread has failed yet */
  int32_t rank;         /* the rank at fault, -1 when ranks play no part */
  char function[64];    /* the failing function: "velo_rms_norm" */
  char argument[64];    /* the argument at fault: "args.gamma", empty when none is */
  char expected[192];   /* what was expected: "shape [4096]" */
  char got[192];        /* what came: "shape [4095]" */
  char cause[256];      /* what lies underneath: "No space left on device" */
} velo_error_info;

#define VELO_ERROR_INFO_INIT \
  { sizeof(velo_error_info), 0, 0, "", "", "", "", "" }

/* Copies the calling thread's error record, at most info->struct_size bytes of it. A failure of
 * this call does not change the record.
 * Thread class: any. Errors: NULL, STRUCT. */
VELO_API velo_status velo_last_error(velo_error_info* info);

/* Writes the record as one sentence:
 *   velo_rms_norm: args.gamma: expected shape [4096], got shape [4095]
 * buffer: caller's, capacity bytes, always zero-terminated; may be NULL with capacity 0 to ask for
 * the size. needed: receives the size with its zero byte; may be NULL. A failure of this call does
 * not change the record.
 * Thread class: any. Errors: NULL (buffer with a capacity). */
VELO_API velo_status velo_error_text(char* buffer, uint64_t capacity, uint64_t* needed);

/* The name and the one-line meaning of a code, as static strings: "VELO_ERR_SHAPE". Either pointer
 * may be NULL.
 * Thread class: any. Errors: ARGUMENT (unknown code). */
VELO_API velo_status velo_status_describe(velo_status code, const char** name,
                                          const char** meaning);

VELO_END_C

#endif
