/* Managed tensors: how ownership of memory crosses the boundary, by DLPack's
 * DLManagedTensorVersioned and nothing else.
 *
 * A plain velo_tensor (types.h) is a borrowed view and needs nothing from this header. A managed
 * tensor carries a deleter: whoever holds it last calls it once. velo exports views of memory it
 * allocated (velo_tensor_create) and imports what a framework's __dlpack__ capsule holds.
 */
#ifndef VELO_TENSOR_H
#define VELO_TENSOR_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_dlpack_version {
  uint32_t major;
  uint32_t minor;
} velo_dlpack_version;

enum {
  VELO_MANAGED_READ_ONLY = 1, /* the memory must not be written: do not give it as an output */
  VELO_MANAGED_IS_COPIED = 2  /* the producer made a copy; informative */
};

/* Layout-identical to DLPack 1.x's DLManagedTensorVersioned (80 bytes). */
typedef struct velo_managed_tensor {
  velo_dlpack_version version; /* {1, minor}: readers refuse another major */
  void* manager_context;       /* the producer's, not to be touched */
  /* Called exactly once by the last holder; may be NULL. */
  void (*deleter)(struct velo_managed_tensor* self);
  uint64_t flags; /* VELO_MANAGED_* bits */
  velo_tensor tensor;
} velo_managed_tensor;

/* Allocates a compact tensor from the context's allocator (64-byte aligned, contents undefined).
 * shape: ndim sizes >= 0, ndim 0..8; may be NULL when ndim is 0. tensor: receives the managed
 * tensor; release it with its deleter or velo_tensor_release, also after the context.
 * Thread class: any. Errors: NULL, HANDLE, RANK, SHAPE, DTYPE, STATE, MEMORY, FOREIGN (the host's
 * allocator gave unaligned memory). */
VELO_API velo_status velo_tensor_create(velo_context context, const velo_dtype* dtype, int32_t ndim,
                                        const int64_t* shape, velo_managed_tensor** tensor);

/* Checks a foreign managed tensor and fills *view with its tensor. Ownership stays with the caller,
 * who calls velo_tensor_release when the last call that uses the view has finished.
 * Thread class: any. Errors: NULL, HANDLE, ABI (a major version other than 1), RANK, SHAPE, DEVICE,
 * STATE. */
VELO_API velo_status velo_tensor_import(velo_context context, velo_managed_tensor* managed,
                                        velo_tensor* view);

/* Calls the deleter of a managed tensor once; NULL is ignored.
 * Thread class: any. */
VELO_API void velo_tensor_release(velo_managed_tensor* managed);

/* Bytes between the first and one past the last element the view can reach; 0 when a dimension
 * is 0.
 * Thread class: any. Errors: NULL, RANK, SHAPE. */
VELO_API velo_status velo_tensor_extent(const velo_tensor* tensor, uint64_t* bytes);

VELO_END_C

#endif
