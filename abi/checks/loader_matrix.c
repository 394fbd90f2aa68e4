/* Every way a process may load and leave libvelo.so, each in a process of its own so that it starts
 * empty.
 *
 *   loader_matrix MODE LIBRARY
 *
 * local, global: opened with that scope, a context computes. twice: two opens are one library.
 * two_files: a copy under another name is another library with its own state, both work at once,
 * and each refuses the other's handles. closed: dlclose while workers run; the code stays mapped
 * and the work completes. reopened: opened, used, closed, opened again. The operators are called by
 * name, through dlsym alone. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "velo/velo.h"

typedef struct library {
  void* handle;
  velo_status (*context_create)(const velo_context_desc*, velo_context*);
  void (*context_destroy)(velo_context);
  velo_status (*stream_create)(velo_context, velo_stream*);
  velo_status (*stream_synchronize)(velo_stream);
  velo_status (*op_call)(velo_stream, const char*, const velo_named_value*, int64_t);
  velo_status (*error_text)(char*, uint64_t, uint64_t*);
} library;

/* dlsym gives an object pointer; C wants it copied to become a function's. */
static int find(void* handle, const char* name, void* function) {
  void* address = dlsym(handle, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

static int open_library(library* lib, const char* path, int flags) {
  lib->handle = dlopen(path, RTLD_NOW | flags);
  if (lib->handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  return find(lib->handle, "velo_context_create", &lib->context_create) &&
         find(lib->handle, "velo_context_destroy", &lib->context_destroy) &&
         find(lib->handle, "velo_stream_create", &lib->stream_create) &&
         find(lib->handle, "velo_stream_synchronize", &lib->stream_synchronize) &&
         find(lib->handle, "velo_op_call", &lib->op_call) &&
         find(lib->handle, "velo_error_text", &lib->error_text);
}

enum { SIZE = 1 << 20, ROUNDS = 50 };
static float a[SIZE], b[SIZE], y[SIZE];

static velo_named_value operand(const char* name, velo_tensor* tensor, float* data,
                                const int64_t* shape) {
  velo_named_value value = {name, {VELO_VALUE_TENSOR, 0, {0}}};
  memset(tensor, 0, sizeof *tensor);
  tensor->data = data;
  tensor->device.type = VELO_DEVICE_CPU;
  tensor->ndim = 1;
  tensor->dtype.code = VELO_DTYPE_FLOAT;
  tensor->dtype.bits = 32;
  tensor->dtype.lanes = 1;
  tensor->shape = shape;
  value.value.as.tensor = tensor;
  return value;
}

/* Queues ROUNDS additions on a stream with a worker. */
static int start(const library* lib, velo_context* context, velo_stream* stream) {
  static const int64_t shape[1] = {SIZE};
  velo_tensor ta, tb, ty;
  velo_named_value values[3];
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 2;
  for (int i = 0; i < SIZE; ++i) a[i] = 1, b[i] = 2, y[i] = 0;
  values[0] = operand("a", &ta, a, shape), values[1] = operand("b", &tb, b, shape),
  values[2] = operand("y", &ty, y, shape);
  if (lib->context_create(&desc, context) != VELO_OK ||
      lib->stream_create(*context, stream) != VELO_OK)
    return 0;
  for (int i = 0; i < ROUNDS; ++i)
    if (lib->op_call(*stream, "add", values, 3) != VELO_OK) return 0;
  return 1;
}

static int finish(const library* lib, velo_context context, velo_stream stream) {
  const int right = lib->stream_synchronize(stream) == VELO_OK && y[0] == 3 && y[SIZE - 1] == 3;
  lib->context_destroy(context);
  return right;
}

/* Handles of another library's: refused, with a sentence that says why, and left alone. */
static int refuses(const library* lib, velo_context context, velo_stream stream) {
  velo_stream made = NULL;
  char text[1024] = "";
  if (lib->stream_create(context, &made) != VELO_ERR_HANDLE || made != NULL) return 0;
  if (lib->error_text(text, sizeof text, NULL) != VELO_OK || strstr(text, "another copy") == NULL)
    return 0;
  lib->context_destroy(context);
  return lib->stream_synchronize(stream) == VELO_ERR_HANDLE;
}

static int compute(const library* lib) {
  velo_context context = NULL;
  velo_stream stream = NULL;
  return start(lib, &context, &stream) && finish(lib, context, stream);
}

int main(int count, char** words) {
  library first, second;
  velo_context context = NULL;
  velo_stream stream = NULL;
  if (count < 3) return 2;
  const char *mode = words[1], *path = words[2];
  const int scope = strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  if (!open_library(&first, path, scope)) return 3;
  if (strcmp(mode, "local") == 0)
    return compute(&first) && dlsym(RTLD_DEFAULT, "velo_version") == NULL ? 0 : 1;
  if (strcmp(mode, "global") == 0)
    return compute(&first) && dlsym(RTLD_DEFAULT, "velo_version") != NULL ? 0 : 1;
  if (strcmp(mode, "twice") == 0) {
    if (!open_library(&second, path, RTLD_GLOBAL) || second.context_create != first.context_create)
      return 1;
    if (!start(&first, &context, &stream)) return 1;
    dlclose(second.handle);
    return finish(&second, context, stream) ? 0 : 1;
  }
  if (strcmp(mode, "two_files") == 0) {
    if (count < 4 || !open_library(&second, words[3], RTLD_GLOBAL) ||
        second.context_create == first.context_create)
      return 1;
    if (!compute(&second) || !start(&first, &context, &stream)) return 1;
    if (!refuses(&second, context, stream)) return 1;
    return finish(&first, context, stream) && compute(&second) ? 0 : 1;
  }
  if (strcmp(mode, "closed") == 0) {
    if (!start(&first, &context, &stream)) return 1;
    dlclose(first.handle);
    return finish(&first, context, stream) ? 0 : 1;
  }
  if (strcmp(mode, "reopened") == 0) {
    if (!compute(&first)) return 1;
    dlclose(first.handle);
    return open_library(&second, path, RTLD_LOCAL) && compute(&second) ? 0 : 1;
  }
  return 2;
}
