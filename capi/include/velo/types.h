/* The concepts of velo, from large to small. Read this header first.
 *
 * - context: everything a host configures once: device, threads, memory, options, log. Nothing in
 *   velo is process-wide; two hosts in one process have two contexts and do not see each other.
 * - stream: an ordered queue of work in a context. Every call that works takes one. The context's
 *   inline stream finishes each call before it returns; other streams run beside the caller. Events
 *   order streams.
 * - tensor: a view of somebody's memory: pointer, device, dtype, shape, strides. Laid out like
 *   DLPack's DLTensor. velo never owns a tensor's memory unless a managed tensor was handed over.
 * - operator: one function of one shape, velo_<name>(stream, args): tensors in, tensors out,
 *   attributes as plain numbers.
 * - kernel: one implementation of an operator, for one instruction set. velo_op_explain says which
 *   runs, and why.
 * - pack: a weight matrix laid out once in the order the matrix kernels read it.
 *
 * Thread classes, named in the comment of every function: any: from any thread at any time;
 * per-handle: no other call may use the same handle at the same time; per-stream: from any thread,
 * and the work of calls on one stream runs in the order in which they were made, one after the
 * other (calls made at the same time from several threads in either order).
 *
 * Handles are typed pointers to structs that are never defined, positive 63-bit numbers to those
 * who need numbers, and not to be followed. A handle that was destroyed, or belongs to another
 * kind, is refused with VELO_ERR_HANDLE, for as long as the process lives; with any other pointer
 * value behavior is undefined. Destroy calls, which return nothing, ignore what they refuse, and
 * warn the log sink of the context it belongs or belonged to while that lives.
 *
 * Inside. A function of the host (an allocator, a log function, a reduction, an executor's function
 * ..) runs inside the call of velo that needs it, which goes on when the function returns. Until
 * then these objects are in use: those that the call was given, the stream or swap whose queued
 * work it is, an executor's mailbox or group, a pool or adaptor that asks, and the contexts of all
 * of these. From inside, destroy calls refuse objects in use, with VELO_ERR_STATE in the record;
 * anything else may be destroyed. From inside work of a context that computes or is queued, and
 * inside a collective, they also refuse its streams, swaps, groups, and kernels that have calls:
 * these end behind queued work, which may wait for the call. A call that returns a status, and
 * would wait for queued work of that context, or call the same function again, returns
 * VELO_ERR_STATE. Queued work of another context is waited for: it must not wait for the call. */
#ifndef VELO_TYPES_H
#define VELO_TYPES_H

#include <stdint.h>

#include "velo/export.h"

VELO_BEGIN_C

typedef struct velo_context_s* velo_context;
typedef struct velo_stream_s* velo_stream;
typedef struct velo_event_s* velo_event;
typedef struct velo_pack_s* velo_pack;
typedef struct velo_kernel_s* velo_kernel;     /* a registered foreign kernel */
typedef struct velo_closure_s* velo_closure;   /* an operator as a C function pointer */
typedef struct velo_profiler_s* velo_profiler; /* when the work of a context began and ended */

/* Dtype codes and device types carry DLPack's values.
 *
 * int4, {VELO_DTYPE_INT, 4, 1}, is packed two elements a byte as DLPack packs it, in memory that
 * frameworks hold as uint8: of each pair the first element in the low four bits, the second in the
 * high four, both in two's complement. Sizes and strides count elements, so a byte tensor
 * [.., n / 2] is the int4 tensor [.., n]. Such a tensor is compact and its last size even: every
 * row begins at a byte, and n elements are n / 2 bytes. Of all other dtypes an element is bits /
 * 8 bytes. */
enum {
  VELO_DTYPE_INT = 0,
  VELO_DTYPE_UINT = 1,
  VELO_DTYPE_FLOAT = 2,
  VELO_DTYPE_BFLOAT = 4,
  VELO_DTYPE_BOOL = 6
};

typedef struct velo_dtype {
  uint8_t code;   /* VELO_DTYPE_* */
  uint8_t bits;   /* bits of one element: 32 for float32, 16 for bfloat16, 4 for int4 */
  uint16_t lanes; /* always 1 in velo's operators */
} velo_dtype;

typedef int32_t velo_device_type;
enum { VELO_DEVICE_CPU = 1 };

typedef struct velo_device {
  velo_device_type type; /* DLPack's DLDeviceType; this release computes on VELO_DEVICE_CPU */
  int32_t id;
} velo_device;

/* A view of a tensor; the 48 bytes of a DLTensor. The view itself, shape and strides are the
 * caller's and may go when the call returns (queued calls copy them); the data must live until the
 * work is done. The first element lies at a multiple of its own size, otherwise the call is refused
 * with VELO_ERR_LAYOUT; at multiples of 64 bytes operators are fastest. Operators and collectives
 * take fewer than 2^57 elements; beside a size of 0, the others may multiply to 2^62. */
typedef struct velo_tensor {
  void* data; /* first byte of the allocation's view; may be NULL when a dimension is 0 */
  velo_device device;
  int32_t ndim; /* 0..8 in velo's operators */
  velo_dtype dtype;
  const int64_t* shape;   /* ndim sizes, each >= 0 */
  const int64_t* strides; /* ndim strides in elements; NULL means compact row-major */
  uint64_t byte_offset;   /* added to data */
} velo_tensor;

/* A list of tensors as an argument, 16 bytes: the parameters of a model, for instance. The views
 * stand one behind the other, and are the caller's like a single one. */
typedef struct velo_tensors {
  const velo_tensor* data; /* count views; may be NULL when count is 0 */
  int64_t count;           /* >= 0 */
} velo_tensors;

VELO_END_C

#endif
