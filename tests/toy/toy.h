/* A module that exists in tests alone: what a new one needs beside its spec. */
#ifndef VELO_TOY_H
#define VELO_TOY_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_toy_s* velo_toy; /* a factor of two */

/* Makes a toy in a context. toy: receives the handle; destroy it with velo_toy_destroy.
 * Thread class: any. Errors: NULL, HANDLE, MEMORY, STATE. */
VELO_API velo_status velo_toy_create(velo_context context, velo_toy* toy);

/* Ends a toy; NULL is ignored.
 * Thread class: per-handle. */
VELO_API void velo_toy_destroy(velo_toy toy);

VELO_END_C

#endif
