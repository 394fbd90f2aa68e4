/* Foreign code in velo, and velo's operators as foreign code.
 *
 * A foreign kernel is a plain C function in somebody's library. Named by library + symbol +
 * signature + binding it becomes an operator of one context, callable by velo_op_call, with no glue
 * code. A plugin library describes several at once through one exported function. In the other
 * direction a closure hands an operator out as a C function pointer, for hosts that take no more.
 *
 * Signature: one letter per parameter after the result, as in "v(ppl)": v void, p pointer, i int32,
 * l int64, f float, d double, s velo_status (result only). Structs by value, variadic functions,
 * long double and vectors are refused.
 *
 * Binding: one expression per parameter, comma-separated, from a closed list:
 * - x.data, x.numel, x.rank, x.shape[i], x.stride[i], x.bytes: of tensor argument x
 * - attr.name: an attribute the caller must give; an integer when some i or l takes it, else a real
 * - 42, 1.5: a constant
 * - stream: the velo_stream the call runs on; a function that takes it may call velo on it, and
 *   does not take turns with the context's other work
 *
 * Tensors must be compact unless the binding names a stride of theirs, and have the dimensions the
 * binding names. A wrong signature cannot be detected (C keeps no types at run time): velo calls
 * what the binding states.
 */
#ifndef VELO_PLUGIN_H
#define VELO_PLUGIN_H

#include "velo/introspect.h"
#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

typedef struct velo_kernel_desc {
  uint32_t struct_size;
  uint32_t reserved;
  const char* op;        /* name the operator gets: "blas_saxpy"; must be new in this context */
  const char* library;   /* path or soname given to dlopen; NULL = the process itself */
  const char* symbol;    /* exported C function; ignored when function is set */
  const char* signature; /* "v(lfplpl)" */
  const char* binding;   /* "x.numel, attr.alpha, x.data, 1, y.data, 1" */
  /* Tensor arguments with direction and dtype (f32 f64 bf16 f16 i32 i64 u8), as in
   * "in x f32, inout y f32". */
  const char* tensors;
  void* function; /* the function itself, when the caller already has it; else NULL */
} velo_kernel_desc;

#define VELO_KERNEL_DESC_INIT \
  { sizeof(velo_kernel_desc), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Registers a foreign kernel in a context. The library stays open until the kernel is destroyed;
 * desc and its texts are copied.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT (name taken, arity), PARSE (signature,
 * binding, tensors: with column), NOT_FOUND (symbol), UNSUPPORTED (a field of newer headers),
 * STATE, MEMORY, IO (library; the loader's message is the cause). */
VELO_API velo_status velo_kernel_register(velo_context context, const velo_kernel_desc* desc,
                                          velo_kernel* kernel);

/* Unregisters a foreign kernel after its running calls, queued ones included, have finished;
 * afterwards no code of its library runs for velo. NULL is ignored, and so is (with a log line) a
 * call from inside the kernel, or from work that its calls may wait for (types.h).
 * Thread class: per-handle. */
VELO_API void velo_kernel_destroy(velo_kernel kernel);

/* The contents of a plugin library: kernels whose functions it holds. Plugins export
 *   velo_status velo_plugin_query(uint32_t host_abi, const velo_plugin_desc** desc);
 * and return the newest description that both sides know; `desc` must stay valid while the plugin
 * is loaded. */
typedef struct velo_plugin_desc {
  uint32_t struct_size;
  uint32_t abi;                    /* ABI the plugin was built against, major * 100 + minor */
  const char* name;                /* "my_kernels 2.1", for messages and introspection */
  const velo_kernel_desc* kernels; /* each with function set */
  int64_t kernel_count;
} velo_plugin_desc;

#define VELO_PLUGIN_DESC_INIT \
  { sizeof(velo_plugin_desc), VELO_TARGET_ABI, 0, 0, 0 }

/* The function that a plugin library exports as velo_plugin_query. In use meanwhile (types.h): the
 * context. */
typedef velo_status (*velo_plugin_query_fn)(uint32_t host_abi, const velo_plugin_desc** desc);

/* Opens a plugin library and registers all its kernels in the context, or none. They live until the
 * context is destroyed.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, ARGUMENT, PARSE, NOT_FOUND (no
 * velo_plugin_query, or a symbol), UNSUPPORTED (a field of newer headers), ABI, STATE, MEMORY, IO
 * (library), FOREIGN (velo_plugin_query failed). */
VELO_API velo_status velo_plugin_load(velo_context context, const char* path);

/* The context's foreign kernels as one JSON array of {"op", "library", "symbol", "signature",
 * "binding", "tensors", "plugin"}; library is the file the function lies in. Same buffer rule
 * as velo_describe.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_kernel_list(velo_context context, char* buffer, uint64_t capacity,
                                      uint64_t* needed);

/* An operator as a C function pointer: calling function(values..) runs `op` on `stream` and returns
 * a velo_status (int32_t). fields: the operator's fields the function takes as parameters, in
 * order: "x, gamma, y, epsilon". A tensor is passed as const velo_tensor*, an integer as int64_t, a
 * real as double, a handle as pointer. All other fields keep their defaults. function: receives the
 * pointer, valid until velo_closure_destroy, which must not be called while it runs. Where the
 * process may not make code at run time, velo falls back on 64 precompiled functions
 * of up to 8 pointer or integer parameters.
 * Thread class: any; calling the pointer: as the stream. Errors: NULL, HANDLE, NOT_FOUND (operator,
 * field), ARGUMENT (a field twice, too many), UNSUPPORTED (neither closures nor a free
 * precompiled function; the record says which), STATE, MEMORY. */
VELO_API velo_status velo_closure_create(velo_stream stream, const char* op, const char* fields,
                                         void** function, velo_closure* closure);

/* Frees the function pointer, which must not be running on another thread. NULL is ignored, and
 * so is (with a log line) a call from inside it (types.h). Thread class: per-handle. */
VELO_API void velo_closure_destroy(velo_closure closure);

VELO_END_C

#endif
