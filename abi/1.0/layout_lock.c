/* The binary interface as assertions: compiles as C11 and C++17 exactly when headers, spec and
 * compiler agree on every offset, size, constant, signature and slot. Nothing of it is ever linked.
 *
 * With VELO_LOCK_CURRENT, structs that may grow must have exactly the size of the spec; without it,
 * as a frozen copy compiled against later headers, at least that size.
 *
 * Generated from abi/spec: change that and build the target `generate`. */
#ifndef VELO_TARGET_ABI
#define VELO_TARGET_ABI 100
#endif

#include <stddef.h>

#include "velo/velo.h"

#ifdef __cplusplus
#define LOCK(condition) static_assert(condition, #condition)
#else
#define LOCK(condition) _Static_assert(condition, #condition)
#endif
#define FIXED(type, size) LOCK(sizeof(type) == size)
#define FOLLOWS(slot, before) \
  LOCK(offsetof(struct velo_api, slot) == offsetof(struct velo_api, before) + sizeof(void*))
#ifdef VELO_LOCK_CURRENT
#define GROWS(type, size) LOCK(sizeof(type) == size)
#define LAST(slot) \
  LOCK(sizeof(struct velo_api) == offsetof(struct velo_api, slot) + sizeof(void*))
#else
#define GROWS(type, size) LOCK(sizeof(type) >= size)
#define LAST(slot) \
  LOCK(sizeof(struct velo_api) >= offsetof(struct velo_api, slot) + sizeof(void*))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- structs ---- */

LOCK(offsetof(velo_error_info, struct_size) == 0);
LOCK(offsetof(velo_error_info, code) == 4);
LOCK(offsetof(velo_error_info, rank) == 8);
LOCK(offsetof(velo_error_info, source_line) == 12);
LOCK(offsetof(velo_error_info, function) == 16);
LOCK(offsetof(velo_error_info, argument) == 80);
LOCK(offsetof(velo_error_info, expected) == 144);
LOCK(offsetof(velo_error_info, got) == 336);
LOCK(offsetof(velo_error_info, cause) == 528);
GROWS(velo_error_info, 784);
void lock_velo_error_info(velo_error_info* s);
void lock_velo_error_info(velo_error_info* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  velo_status *code = &s->code;
  (void)code;
  int32_t *rank = &s->rank;
  (void)rank;
  int32_t *source_line = &s->source_line;
  (void)source_line;
  char (*function)[64] = &s->function;
  (void)function;
  char (*argument)[64] = &s->argument;
  (void)argument;
  char (*expected)[192] = &s->expected;
  (void)expected;
  char (*got)[192] = &s->got;
  (void)got;
  char (*cause)[256] = &s->cause;
  (void)cause;
}

LOCK(offsetof(velo_dtype, code) == 0);
LOCK(offsetof(velo_dtype, bits) == 1);
LOCK(offsetof(velo_dtype, lanes) == 2);
FIXED(velo_dtype, 4);
void lock_velo_dtype(velo_dtype* s);
void lock_velo_dtype(velo_dtype* s) {
  uint8_t *code = &s->code;
  (void)code;
  uint8_t *bits = &s->bits;
  (void)bits;
  uint16_t *lanes = &s->lanes;
  (void)lanes;
}

LOCK(offsetof(velo_device, type) == 0);
LOCK(offsetof(velo_device, id) == 4);
FIXED(velo_device, 8);
void lock_velo_device(velo_device* s);
void lock_velo_device(velo_device* s) {
  velo_device_type *type = &s->type;
  (void)type;
  int32_t *id = &s->id;
  (void)id;
}

LOCK(offsetof(velo_tensor, data) == 0);
LOCK(offsetof(velo_tensor, device) == 8);
LOCK(offsetof(velo_tensor, ndim) == 16);
LOCK(offsetof(velo_tensor, dtype) == 20);
LOCK(offsetof(velo_tensor, shape) == 24);
LOCK(offsetof(velo_tensor, strides) == 32);
LOCK(offsetof(velo_tensor, byte_offset) == 40);
FIXED(velo_tensor, 48);
void lock_velo_tensor(velo_tensor* s);
void lock_velo_tensor(velo_tensor* s) {
  void* *data = &s->data;
  (void)data;
  velo_device *device = &s->device;
  (void)device;
  int32_t *ndim = &s->ndim;
  (void)ndim;
  velo_dtype *dtype = &s->dtype;
  (void)dtype;
  const int64_t* *shape = &s->shape;
  (void)shape;
  const int64_t* *strides = &s->strides;
  (void)strides;
  uint64_t *byte_offset = &s->byte_offset;
  (void)byte_offset;
}

LOCK(offsetof(velo_dlpack_version, major) == 0);
LOCK(offsetof(velo_dlpack_version, minor) == 4);
FIXED(velo_dlpack_version, 8);
void lock_velo_dlpack_version(velo_dlpack_version* s);
void lock_velo_dlpack_version(velo_dlpack_version* s) {
  uint32_t *major = &s->major;
  (void)major;
  uint32_t *minor = &s->minor;
  (void)minor;
}

LOCK(offsetof(velo_managed_tensor, version) == 0);
LOCK(offsetof(velo_managed_tensor, manager_context) == 8);
LOCK(offsetof(velo_managed_tensor, deleter) == 16);
LOCK(offsetof(velo_managed_tensor, flags) == 24);
LOCK(offsetof(velo_managed_tensor, tensor) == 32);
FIXED(velo_managed_tensor, 80);
void lock_velo_managed_tensor(velo_managed_tensor* s);
void lock_velo_managed_tensor(velo_managed_tensor* s) {
  velo_dlpack_version *version = &s->version;
  (void)version;
  void* *manager_context = &s->manager_context;
  (void)manager_context;
  void (**deleter)(struct velo_managed_tensor* self) = &s->deleter;
  (void)deleter;
  uint64_t *flags = &s->flags;
  (void)flags;
  velo_tensor *tensor = &s->tensor;
  (void)tensor;
}

LOCK(offsetof(velo_allocator, struct_size) == 0);
LOCK(offsetof(velo_allocator, reserved) == 4);
LOCK(offsetof(velo_allocator, user) == 8);
LOCK(offsetof(velo_allocator, allocate) == 16);
LOCK(offsetof(velo_allocator, deallocate) == 24);
GROWS(velo_allocator, 32);
void lock_velo_allocator(velo_allocator* s);
void lock_velo_allocator(velo_allocator* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  void* *user = &s->user;
  (void)user;
  void* (**allocate)(void* user, uint64_t bytes, uint64_t alignment, const velo_device* device, void* stream) = &s->allocate;
  (void)allocate;
  void (**deallocate)(void* user, void* memory, uint64_t bytes, const velo_device* device, void* stream) = &s->deallocate;
  (void)deallocate;
}

LOCK(offsetof(velo_parallel_for, struct_size) == 0);
LOCK(offsetof(velo_parallel_for, threads) == 4);
LOCK(offsetof(velo_parallel_for, user) == 8);
LOCK(offsetof(velo_parallel_for, run) == 16);
GROWS(velo_parallel_for, 24);
void lock_velo_parallel_for(velo_parallel_for* s);
void lock_velo_parallel_for(velo_parallel_for* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  int32_t *threads = &s->threads;
  (void)threads;
  void* *user = &s->user;
  (void)user;
  void (**run)(void* user, int64_t tasks, void (*task)(void* task_user, int64_t index), void* task_user) = &s->run;
  (void)run;
}

LOCK(offsetof(velo_context_desc, struct_size) == 0);
LOCK(offsetof(velo_context_desc, threads) == 4);
LOCK(offsetof(velo_context_desc, device) == 8);
LOCK(offsetof(velo_context_desc, allocator) == 16);
LOCK(offsetof(velo_context_desc, parallel_for) == 24);
LOCK(offsetof(velo_context_desc, log) == 32);
LOCK(offsetof(velo_context_desc, log_user) == 40);
LOCK(offsetof(velo_context_desc, config_json) == 48);
GROWS(velo_context_desc, 56);
void lock_velo_context_desc(velo_context_desc* s);
void lock_velo_context_desc(velo_context_desc* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  int32_t *threads = &s->threads;
  (void)threads;
  velo_device *device = &s->device;
  (void)device;
  const velo_allocator* *allocator = &s->allocator;
  (void)allocator;
  const velo_parallel_for* *parallel_for = &s->parallel_for;
  (void)parallel_for;
  velo_log_fn *log = &s->log;
  (void)log;
  void* *log_user = &s->log_user;
  (void)log_user;
  const char* *config_json = &s->config_json;
  (void)config_json;
}

LOCK(offsetof(velo_context_stats, struct_size) == 0);
LOCK(offsetof(velo_context_stats, threads) == 4);
LOCK(offsetof(velo_context_stats, bytes_allocated) == 8);
LOCK(offsetof(velo_context_stats, bytes_peak) == 16);
LOCK(offsetof(velo_context_stats, allocations) == 24);
LOCK(offsetof(velo_context_stats, operator_calls) == 32);
GROWS(velo_context_stats, 40);
void lock_velo_context_stats(velo_context_stats* s);
void lock_velo_context_stats(velo_context_stats* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  int32_t *threads = &s->threads;
  (void)threads;
  uint64_t *bytes_allocated = &s->bytes_allocated;
  (void)bytes_allocated;
  uint64_t *bytes_peak = &s->bytes_peak;
  (void)bytes_peak;
  uint64_t *allocations = &s->allocations;
  (void)allocations;
  uint64_t *operator_calls = &s->operator_calls;
  (void)operator_calls;
}

LOCK(offsetof(velo_pack_desc, struct_size) == 0);
LOCK(offsetof(velo_pack_desc, transpose) == 4);
LOCK(offsetof(velo_pack_desc, dtype) == 8);
LOCK(offsetof(velo_pack_desc, reserved) == 12);
LOCK(offsetof(velo_pack_desc, k) == 16);
LOCK(offsetof(velo_pack_desc, n) == 24);
GROWS(velo_pack_desc, 32);
void lock_velo_pack_desc(velo_pack_desc* s);
void lock_velo_pack_desc(velo_pack_desc* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  int32_t *transpose = &s->transpose;
  (void)transpose;
  velo_dtype *dtype = &s->dtype;
  (void)dtype;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  int64_t *k = &s->k;
  (void)k;
  int64_t *n = &s->n;
  (void)n;
}

LOCK(offsetof(velo_ints, data) == 0);
LOCK(offsetof(velo_ints, count) == 8);
FIXED(velo_ints, 16);
void lock_velo_ints(velo_ints* s);
void lock_velo_ints(velo_ints* s) {
  const int64_t* *data = &s->data;
  (void)data;
  int64_t *count = &s->count;
  (void)count;
}

LOCK(offsetof(velo_value, kind) == 0);
LOCK(offsetof(velo_value, reserved) == 4);
LOCK(offsetof(velo_value, as) == 8);
FIXED(velo_value, 16);
void lock_velo_value(velo_value* s);
void lock_velo_value(velo_value* s) {
  velo_value_kind *kind = &s->kind;
  (void)kind;
  int32_t *reserved = &s->reserved;
  (void)reserved;
  int64_t *as_i = &s->as.i;
  (void)as_i;
  double *as_f = &s->as.f;
  (void)as_f;
  const char* *as_s = &s->as.s;
  (void)as_s;
  const velo_tensor* *as_tensor = &s->as.tensor;
  (void)as_tensor;
  const velo_ints* *as_ints = &s->as.ints;
  (void)as_ints;
  void* *as_p = &s->as.p;
  (void)as_p;
}

LOCK(offsetof(velo_named_value, name) == 0);
LOCK(offsetof(velo_named_value, value) == 8);
FIXED(velo_named_value, 24);
void lock_velo_named_value(velo_named_value* s);
void lock_velo_named_value(velo_named_value* s) {
  const char* *name = &s->name;
  (void)name;
  velo_value *value = &s->value;
  (void)value;
}

LOCK(offsetof(velo_shape, struct_size) == 0);
LOCK(offsetof(velo_shape, ndim) == 4);
LOCK(offsetof(velo_shape, dtype) == 8);
LOCK(offsetof(velo_shape, reserved) == 12);
LOCK(offsetof(velo_shape, sizes) == 16);
LOCK(offsetof(velo_shape, name) == 80);
GROWS(velo_shape, 112);
void lock_velo_shape(velo_shape* s);
void lock_velo_shape(velo_shape* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  int32_t *ndim = &s->ndim;
  (void)ndim;
  velo_dtype *dtype = &s->dtype;
  (void)dtype;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  int64_t (*sizes)[8] = &s->sizes;
  (void)sizes;
  char (*name)[32] = &s->name;
  (void)name;
}

LOCK(offsetof(velo_kernel_desc, struct_size) == 0);
LOCK(offsetof(velo_kernel_desc, reserved) == 4);
LOCK(offsetof(velo_kernel_desc, op) == 8);
LOCK(offsetof(velo_kernel_desc, library) == 16);
LOCK(offsetof(velo_kernel_desc, symbol) == 24);
LOCK(offsetof(velo_kernel_desc, signature) == 32);
LOCK(offsetof(velo_kernel_desc, binding) == 40);
LOCK(offsetof(velo_kernel_desc, tensors) == 48);
LOCK(offsetof(velo_kernel_desc, function) == 56);
GROWS(velo_kernel_desc, 64);
void lock_velo_kernel_desc(velo_kernel_desc* s);
void lock_velo_kernel_desc(velo_kernel_desc* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const char* *op = &s->op;
  (void)op;
  const char* *library = &s->library;
  (void)library;
  const char* *symbol = &s->symbol;
  (void)symbol;
  const char* *signature = &s->signature;
  (void)signature;
  const char* *binding = &s->binding;
  (void)binding;
  const char* *tensors = &s->tensors;
  (void)tensors;
  void* *function = &s->function;
  (void)function;
}

LOCK(offsetof(velo_plugin_desc, struct_size) == 0);
LOCK(offsetof(velo_plugin_desc, abi) == 4);
LOCK(offsetof(velo_plugin_desc, name) == 8);
LOCK(offsetof(velo_plugin_desc, kernels) == 16);
LOCK(offsetof(velo_plugin_desc, kernel_count) == 24);
GROWS(velo_plugin_desc, 32);
void lock_velo_plugin_desc(velo_plugin_desc* s);
void lock_velo_plugin_desc(velo_plugin_desc* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *abi = &s->abi;
  (void)abi;
  const char* *name = &s->name;
  (void)name;
  const velo_kernel_desc* *kernels = &s->kernels;
  (void)kernels;
  int64_t *kernel_count = &s->kernel_count;
  (void)kernel_count;
}

LOCK(offsetof(velo_rms_norm_args, struct_size) == 0);
LOCK(offsetof(velo_rms_norm_args, reserved) == 4);
LOCK(offsetof(velo_rms_norm_args, x) == 8);
LOCK(offsetof(velo_rms_norm_args, gamma) == 16);
LOCK(offsetof(velo_rms_norm_args, y) == 24);
LOCK(offsetof(velo_rms_norm_args, rstd) == 32);
LOCK(offsetof(velo_rms_norm_args, epsilon) == 40);
GROWS(velo_rms_norm_args, 48);
void lock_velo_rms_norm_args(velo_rms_norm_args* s);
void lock_velo_rms_norm_args(velo_rms_norm_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *gamma = &s->gamma;
  (void)gamma;
  const velo_tensor* *y = &s->y;
  (void)y;
  const velo_tensor* *rstd = &s->rstd;
  (void)rstd;
  double *epsilon = &s->epsilon;
  (void)epsilon;
}

LOCK(offsetof(velo_rms_norm_backward_args, struct_size) == 0);
LOCK(offsetof(velo_rms_norm_backward_args, reserved) == 4);
LOCK(offsetof(velo_rms_norm_backward_args, dy) == 8);
LOCK(offsetof(velo_rms_norm_backward_args, x) == 16);
LOCK(offsetof(velo_rms_norm_backward_args, gamma) == 24);
LOCK(offsetof(velo_rms_norm_backward_args, rstd) == 32);
LOCK(offsetof(velo_rms_norm_backward_args, dx) == 40);
LOCK(offsetof(velo_rms_norm_backward_args, dgamma) == 48);
LOCK(offsetof(velo_rms_norm_backward_args, accumulate) == 56);
GROWS(velo_rms_norm_backward_args, 64);
void lock_velo_rms_norm_backward_args(velo_rms_norm_backward_args* s);
void lock_velo_rms_norm_backward_args(velo_rms_norm_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *dy = &s->dy;
  (void)dy;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *gamma = &s->gamma;
  (void)gamma;
  const velo_tensor* *rstd = &s->rstd;
  (void)rstd;
  const velo_tensor* *dx = &s->dx;
  (void)dx;
  const velo_tensor* *dgamma = &s->dgamma;
  (void)dgamma;
  int64_t *accumulate = &s->accumulate;
  (void)accumulate;
}

LOCK(offsetof(velo_swiglu_args, struct_size) == 0);
LOCK(offsetof(velo_swiglu_args, reserved) == 4);
LOCK(offsetof(velo_swiglu_args, x) == 8);
LOCK(offsetof(velo_swiglu_args, y) == 16);
LOCK(offsetof(velo_swiglu_args, dim) == 24);
GROWS(velo_swiglu_args, 32);
void lock_velo_swiglu_args(velo_swiglu_args* s);
void lock_velo_swiglu_args(velo_swiglu_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *y = &s->y;
  (void)y;
  int64_t *dim = &s->dim;
  (void)dim;
}

LOCK(offsetof(velo_swiglu_backward_args, struct_size) == 0);
LOCK(offsetof(velo_swiglu_backward_args, reserved) == 4);
LOCK(offsetof(velo_swiglu_backward_args, dy) == 8);
LOCK(offsetof(velo_swiglu_backward_args, x) == 16);
LOCK(offsetof(velo_swiglu_backward_args, dx) == 24);
LOCK(offsetof(velo_swiglu_backward_args, dim) == 32);
GROWS(velo_swiglu_backward_args, 40);
void lock_velo_swiglu_backward_args(velo_swiglu_backward_args* s);
void lock_velo_swiglu_backward_args(velo_swiglu_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *dy = &s->dy;
  (void)dy;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *dx = &s->dx;
  (void)dx;
  int64_t *dim = &s->dim;
  (void)dim;
}

LOCK(offsetof(velo_rotary_position_embedding_args, struct_size) == 0);
LOCK(offsetof(velo_rotary_position_embedding_args, reserved) == 4);
LOCK(offsetof(velo_rotary_position_embedding_args, x) == 8);
LOCK(offsetof(velo_rotary_position_embedding_args, cos) == 16);
LOCK(offsetof(velo_rotary_position_embedding_args, sin) == 24);
LOCK(offsetof(velo_rotary_position_embedding_args, y) == 32);
LOCK(offsetof(velo_rotary_position_embedding_args, mode) == 40);
GROWS(velo_rotary_position_embedding_args, 48);
void lock_velo_rotary_position_embedding_args(velo_rotary_position_embedding_args* s);
void lock_velo_rotary_position_embedding_args(velo_rotary_position_embedding_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *cos = &s->cos;
  (void)cos;
  const velo_tensor* *sin = &s->sin;
  (void)sin;
  const velo_tensor* *y = &s->y;
  (void)y;
  int64_t *mode = &s->mode;
  (void)mode;
}

LOCK(offsetof(velo_rotary_position_embedding_backward_args, struct_size) == 0);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, reserved) == 4);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, dy) == 8);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, cos) == 16);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, sin) == 24);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, x) == 32);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, dx) == 40);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, dcos) == 48);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, dsin) == 56);
LOCK(offsetof(velo_rotary_position_embedding_backward_args, mode) == 64);
GROWS(velo_rotary_position_embedding_backward_args, 72);
void lock_velo_rotary_position_embedding_backward_args(velo_rotary_position_embedding_backward_args* s);
void lock_velo_rotary_position_embedding_backward_args(velo_rotary_position_embedding_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *dy = &s->dy;
  (void)dy;
  const velo_tensor* *cos = &s->cos;
  (void)cos;
  const velo_tensor* *sin = &s->sin;
  (void)sin;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *dx = &s->dx;
  (void)dx;
  const velo_tensor* *dcos = &s->dcos;
  (void)dcos;
  const velo_tensor* *dsin = &s->dsin;
  (void)dsin;
  int64_t *mode = &s->mode;
  (void)mode;
}

LOCK(offsetof(velo_matmul_args, struct_size) == 0);
LOCK(offsetof(velo_matmul_args, reserved) == 4);
LOCK(offsetof(velo_matmul_args, a) == 8);
LOCK(offsetof(velo_matmul_args, b) == 16);
LOCK(offsetof(velo_matmul_args, packed) == 24);
LOCK(offsetof(velo_matmul_args, bias) == 32);
LOCK(offsetof(velo_matmul_args, c) == 40);
LOCK(offsetof(velo_matmul_args, transpose_a) == 48);
LOCK(offsetof(velo_matmul_args, transpose_b) == 56);
LOCK(offsetof(velo_matmul_args, accumulate) == 64);
LOCK(offsetof(velo_matmul_args, dtype) == 72);
GROWS(velo_matmul_args, 80);
void lock_velo_matmul_args(velo_matmul_args* s);
void lock_velo_matmul_args(velo_matmul_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *a = &s->a;
  (void)a;
  const velo_tensor* *b = &s->b;
  (void)b;
  velo_pack *packed = &s->packed;
  (void)packed;
  const velo_tensor* *bias = &s->bias;
  (void)bias;
  const velo_tensor* *c = &s->c;
  (void)c;
  int64_t *transpose_a = &s->transpose_a;
  (void)transpose_a;
  int64_t *transpose_b = &s->transpose_b;
  (void)transpose_b;
  int64_t *accumulate = &s->accumulate;
  (void)accumulate;
  int64_t *dtype = &s->dtype;
  (void)dtype;
}

LOCK(offsetof(velo_matmul_add_fp32_args, struct_size) == 0);
LOCK(offsetof(velo_matmul_add_fp32_args, reserved) == 4);
LOCK(offsetof(velo_matmul_add_fp32_args, total_input) == 8);
LOCK(offsetof(velo_matmul_add_fp32_args, grad_output) == 16);
LOCK(offsetof(velo_matmul_add_fp32_args, grad) == 24);
GROWS(velo_matmul_add_fp32_args, 32);
void lock_velo_matmul_add_fp32_args(velo_matmul_add_fp32_args* s);
void lock_velo_matmul_add_fp32_args(velo_matmul_add_fp32_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *total_input = &s->total_input;
  (void)total_input;
  const velo_tensor* *grad_output = &s->grad_output;
  (void)grad_output;
  const velo_tensor* *grad = &s->grad;
  (void)grad;
}

LOCK(offsetof(velo_fusion_attention_args, struct_size) == 0);
LOCK(offsetof(velo_fusion_attention_args, reserved) == 4);
LOCK(offsetof(velo_fusion_attention_args, query) == 8);
LOCK(offsetof(velo_fusion_attention_args, key) == 16);
LOCK(offsetof(velo_fusion_attention_args, value) == 24);
LOCK(offsetof(velo_fusion_attention_args, attention_out) == 32);
LOCK(offsetof(velo_fusion_attention_args, softmax_max) == 40);
LOCK(offsetof(velo_fusion_attention_args, softmax_sum) == 48);
LOCK(offsetof(velo_fusion_attention_args, layout) == 56);
LOCK(offsetof(velo_fusion_attention_args, head_num) == 64);
LOCK(offsetof(velo_fusion_attention_args, scale) == 72);
LOCK(offsetof(velo_fusion_attention_args, sparse_mode) == 80);
LOCK(offsetof(velo_fusion_attention_args, actual_seq_qlen) == 88);
LOCK(offsetof(velo_fusion_attention_args, actual_seq_kvlen) == 96);
GROWS(velo_fusion_attention_args, 104);
void lock_velo_fusion_attention_args(velo_fusion_attention_args* s);
void lock_velo_fusion_attention_args(velo_fusion_attention_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *query = &s->query;
  (void)query;
  const velo_tensor* *key = &s->key;
  (void)key;
  const velo_tensor* *value = &s->value;
  (void)value;
  const velo_tensor* *attention_out = &s->attention_out;
  (void)attention_out;
  const velo_tensor* *softmax_max = &s->softmax_max;
  (void)softmax_max;
  const velo_tensor* *softmax_sum = &s->softmax_sum;
  (void)softmax_sum;
  int64_t *layout = &s->layout;
  (void)layout;
  int64_t *head_num = &s->head_num;
  (void)head_num;
  double *scale = &s->scale;
  (void)scale;
  int64_t *sparse_mode = &s->sparse_mode;
  (void)sparse_mode;
  const velo_ints* *actual_seq_qlen = &s->actual_seq_qlen;
  (void)actual_seq_qlen;
  const velo_ints* *actual_seq_kvlen = &s->actual_seq_kvlen;
  (void)actual_seq_kvlen;
}

LOCK(offsetof(velo_fusion_attention_backward_args, struct_size) == 0);
LOCK(offsetof(velo_fusion_attention_backward_args, reserved) == 4);
LOCK(offsetof(velo_fusion_attention_backward_args, query) == 8);
LOCK(offsetof(velo_fusion_attention_backward_args, key) == 16);
LOCK(offsetof(velo_fusion_attention_backward_args, value) == 24);
LOCK(offsetof(velo_fusion_attention_backward_args, dy) == 32);
LOCK(offsetof(velo_fusion_attention_backward_args, softmax_max) == 40);
LOCK(offsetof(velo_fusion_attention_backward_args, softmax_sum) == 48);
LOCK(offsetof(velo_fusion_attention_backward_args, attention_out) == 56);
LOCK(offsetof(velo_fusion_attention_backward_args, dquery) == 64);
LOCK(offsetof(velo_fusion_attention_backward_args, dkey) == 72);
LOCK(offsetof(velo_fusion_attention_backward_args, dvalue) == 80);
LOCK(offsetof(velo_fusion_attention_backward_args, layout) == 88);
LOCK(offsetof(velo_fusion_attention_backward_args, head_num) == 96);
LOCK(offsetof(velo_fusion_attention_backward_args, scale) == 104);
LOCK(offsetof(velo_fusion_attention_backward_args, sparse_mode) == 112);
LOCK(offsetof(velo_fusion_attention_backward_args, actual_seq_qlen) == 120);
LOCK(offsetof(velo_fusion_attention_backward_args, actual_seq_kvlen) == 128);
GROWS(velo_fusion_attention_backward_args, 136);
void lock_velo_fusion_attention_backward_args(velo_fusion_attention_backward_args* s);
void lock_velo_fusion_attention_backward_args(velo_fusion_attention_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *query = &s->query;
  (void)query;
  const velo_tensor* *key = &s->key;
  (void)key;
  const velo_tensor* *value = &s->value;
  (void)value;
  const velo_tensor* *dy = &s->dy;
  (void)dy;
  const velo_tensor* *softmax_max = &s->softmax_max;
  (void)softmax_max;
  const velo_tensor* *softmax_sum = &s->softmax_sum;
  (void)softmax_sum;
  const velo_tensor* *attention_out = &s->attention_out;
  (void)attention_out;
  const velo_tensor* *dquery = &s->dquery;
  (void)dquery;
  const velo_tensor* *dkey = &s->dkey;
  (void)dkey;
  const velo_tensor* *dvalue = &s->dvalue;
  (void)dvalue;
  int64_t *layout = &s->layout;
  (void)layout;
  int64_t *head_num = &s->head_num;
  (void)head_num;
  double *scale = &s->scale;
  (void)scale;
  int64_t *sparse_mode = &s->sparse_mode;
  (void)sparse_mode;
  const velo_ints* *actual_seq_qlen = &s->actual_seq_qlen;
  (void)actual_seq_qlen;
  const velo_ints* *actual_seq_kvlen = &s->actual_seq_kvlen;
  (void)actual_seq_kvlen;
}

LOCK(offsetof(velo_embedding_args, struct_size) == 0);
LOCK(offsetof(velo_embedding_args, reserved) == 4);
LOCK(offsetof(velo_embedding_args, ids) == 8);
LOCK(offsetof(velo_embedding_args, table) == 16);
LOCK(offsetof(velo_embedding_args, y) == 24);
GROWS(velo_embedding_args, 32);
void lock_velo_embedding_args(velo_embedding_args* s);
void lock_velo_embedding_args(velo_embedding_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *ids = &s->ids;
  (void)ids;
  const velo_tensor* *table = &s->table;
  (void)table;
  const velo_tensor* *y = &s->y;
  (void)y;
}

LOCK(offsetof(velo_embedding_backward_args, struct_size) == 0);
LOCK(offsetof(velo_embedding_backward_args, reserved) == 4);
LOCK(offsetof(velo_embedding_backward_args, ids) == 8);
LOCK(offsetof(velo_embedding_backward_args, dy) == 16);
LOCK(offsetof(velo_embedding_backward_args, dtable) == 24);
LOCK(offsetof(velo_embedding_backward_args, rows) == 32);
LOCK(offsetof(velo_embedding_backward_args, accumulate) == 40);
GROWS(velo_embedding_backward_args, 48);
void lock_velo_embedding_backward_args(velo_embedding_backward_args* s);
void lock_velo_embedding_backward_args(velo_embedding_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *ids = &s->ids;
  (void)ids;
  const velo_tensor* *dy = &s->dy;
  (void)dy;
  const velo_tensor* *dtable = &s->dtable;
  (void)dtable;
  int64_t *rows = &s->rows;
  (void)rows;
  int64_t *accumulate = &s->accumulate;
  (void)accumulate;
}

LOCK(offsetof(velo_cross_entropy_args, struct_size) == 0);
LOCK(offsetof(velo_cross_entropy_args, reserved) == 4);
LOCK(offsetof(velo_cross_entropy_args, logits) == 8);
LOCK(offsetof(velo_cross_entropy_args, targets) == 16);
LOCK(offsetof(velo_cross_entropy_args, loss) == 24);
LOCK(offsetof(velo_cross_entropy_args, lse) == 32);
LOCK(offsetof(velo_cross_entropy_args, ignore_index) == 40);
LOCK(offsetof(velo_cross_entropy_args, reduction) == 48);
GROWS(velo_cross_entropy_args, 56);
void lock_velo_cross_entropy_args(velo_cross_entropy_args* s);
void lock_velo_cross_entropy_args(velo_cross_entropy_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *logits = &s->logits;
  (void)logits;
  const velo_tensor* *targets = &s->targets;
  (void)targets;
  const velo_tensor* *loss = &s->loss;
  (void)loss;
  const velo_tensor* *lse = &s->lse;
  (void)lse;
  int64_t *ignore_index = &s->ignore_index;
  (void)ignore_index;
  int64_t *reduction = &s->reduction;
  (void)reduction;
}

LOCK(offsetof(velo_cross_entropy_backward_args, struct_size) == 0);
LOCK(offsetof(velo_cross_entropy_backward_args, reserved) == 4);
LOCK(offsetof(velo_cross_entropy_backward_args, dloss) == 8);
LOCK(offsetof(velo_cross_entropy_backward_args, logits) == 16);
LOCK(offsetof(velo_cross_entropy_backward_args, targets) == 24);
LOCK(offsetof(velo_cross_entropy_backward_args, lse) == 32);
LOCK(offsetof(velo_cross_entropy_backward_args, dlogits) == 40);
LOCK(offsetof(velo_cross_entropy_backward_args, ignore_index) == 48);
LOCK(offsetof(velo_cross_entropy_backward_args, reduction) == 56);
GROWS(velo_cross_entropy_backward_args, 64);
void lock_velo_cross_entropy_backward_args(velo_cross_entropy_backward_args* s);
void lock_velo_cross_entropy_backward_args(velo_cross_entropy_backward_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *dloss = &s->dloss;
  (void)dloss;
  const velo_tensor* *logits = &s->logits;
  (void)logits;
  const velo_tensor* *targets = &s->targets;
  (void)targets;
  const velo_tensor* *lse = &s->lse;
  (void)lse;
  const velo_tensor* *dlogits = &s->dlogits;
  (void)dlogits;
  int64_t *ignore_index = &s->ignore_index;
  (void)ignore_index;
  int64_t *reduction = &s->reduction;
  (void)reduction;
}

LOCK(offsetof(velo_apply_fused_adamw_args, struct_size) == 0);
LOCK(offsetof(velo_apply_fused_adamw_args, reserved) == 4);
LOCK(offsetof(velo_apply_fused_adamw_args, grad) == 8);
LOCK(offsetof(velo_apply_fused_adamw_args, scale) == 16);
LOCK(offsetof(velo_apply_fused_adamw_args, param) == 24);
LOCK(offsetof(velo_apply_fused_adamw_args, master) == 32);
LOCK(offsetof(velo_apply_fused_adamw_args, m) == 40);
LOCK(offsetof(velo_apply_fused_adamw_args, v) == 48);
LOCK(offsetof(velo_apply_fused_adamw_args, v_max) == 56);
LOCK(offsetof(velo_apply_fused_adamw_args, step) == 64);
LOCK(offsetof(velo_apply_fused_adamw_args, lr) == 72);
LOCK(offsetof(velo_apply_fused_adamw_args, beta1) == 80);
LOCK(offsetof(velo_apply_fused_adamw_args, beta2) == 88);
LOCK(offsetof(velo_apply_fused_adamw_args, epsilon) == 96);
LOCK(offsetof(velo_apply_fused_adamw_args, weight_decay) == 104);
LOCK(offsetof(velo_apply_fused_adamw_args, amsgrad) == 112);
LOCK(offsetof(velo_apply_fused_adamw_args, maximize) == 120);
GROWS(velo_apply_fused_adamw_args, 128);
void lock_velo_apply_fused_adamw_args(velo_apply_fused_adamw_args* s);
void lock_velo_apply_fused_adamw_args(velo_apply_fused_adamw_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *grad = &s->grad;
  (void)grad;
  const velo_tensor* *scale = &s->scale;
  (void)scale;
  const velo_tensor* *param = &s->param;
  (void)param;
  const velo_tensor* *master = &s->master;
  (void)master;
  const velo_tensor* *m = &s->m;
  (void)m;
  const velo_tensor* *v = &s->v;
  (void)v;
  const velo_tensor* *v_max = &s->v_max;
  (void)v_max;
  int64_t *step = &s->step;
  (void)step;
  double *lr = &s->lr;
  (void)lr;
  double *beta1 = &s->beta1;
  (void)beta1;
  double *beta2 = &s->beta2;
  (void)beta2;
  double *epsilon = &s->epsilon;
  (void)epsilon;
  double *weight_decay = &s->weight_decay;
  (void)weight_decay;
  int64_t *amsgrad = &s->amsgrad;
  (void)amsgrad;
  int64_t *maximize = &s->maximize;
  (void)maximize;
}

LOCK(offsetof(velo_global_norm_args, struct_size) == 0);
LOCK(offsetof(velo_global_norm_args, reserved) == 4);
LOCK(offsetof(velo_global_norm_args, x) == 8);
LOCK(offsetof(velo_global_norm_args, sum_of_squares) == 16);
LOCK(offsetof(velo_global_norm_args, norm) == 24);
LOCK(offsetof(velo_global_norm_args, clip) == 32);
LOCK(offsetof(velo_global_norm_args, max_norm) == 40);
LOCK(offsetof(velo_global_norm_args, accumulate) == 48);
GROWS(velo_global_norm_args, 56);
void lock_velo_global_norm_args(velo_global_norm_args* s);
void lock_velo_global_norm_args(velo_global_norm_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *sum_of_squares = &s->sum_of_squares;
  (void)sum_of_squares;
  const velo_tensor* *norm = &s->norm;
  (void)norm;
  const velo_tensor* *clip = &s->clip;
  (void)clip;
  double *max_norm = &s->max_norm;
  (void)max_norm;
  int64_t *accumulate = &s->accumulate;
  (void)accumulate;
}

LOCK(offsetof(velo_add_args, struct_size) == 0);
LOCK(offsetof(velo_add_args, reserved) == 4);
LOCK(offsetof(velo_add_args, a) == 8);
LOCK(offsetof(velo_add_args, b) == 16);
LOCK(offsetof(velo_add_args, y) == 24);
GROWS(velo_add_args, 32);
void lock_velo_add_args(velo_add_args* s);
void lock_velo_add_args(velo_add_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *a = &s->a;
  (void)a;
  const velo_tensor* *b = &s->b;
  (void)b;
  const velo_tensor* *y = &s->y;
  (void)y;
}

LOCK(offsetof(velo_cast_args, struct_size) == 0);
LOCK(offsetof(velo_cast_args, reserved) == 4);
LOCK(offsetof(velo_cast_args, x) == 8);
LOCK(offsetof(velo_cast_args, y) == 16);
LOCK(offsetof(velo_cast_args, dtype) == 24);
GROWS(velo_cast_args, 32);
void lock_velo_cast_args(velo_cast_args* s);
void lock_velo_cast_args(velo_cast_args* s) {
  uint32_t *struct_size = &s->struct_size;
  (void)struct_size;
  uint32_t *reserved = &s->reserved;
  (void)reserved;
  const velo_tensor* *x = &s->x;
  (void)x;
  const velo_tensor* *y = &s->y;
  (void)y;
  int64_t *dtype = &s->dtype;
  (void)dtype;
}

/* ---- constants ---- */

LOCK(VELO_OK == 0);
LOCK(sizeof(velo_status) == 4);
LOCK(VELO_ERR_NULL == 1);
LOCK(VELO_ERR_HANDLE == 2);
LOCK(VELO_ERR_STRUCT == 3);
LOCK(VELO_ERR_ARGUMENT == 4);
LOCK(VELO_ERR_RANK == 5);
LOCK(VELO_ERR_SHAPE == 6);
LOCK(VELO_ERR_DTYPE == 7);
LOCK(VELO_ERR_LAYOUT == 8);
LOCK(VELO_ERR_DEVICE == 9);
LOCK(VELO_ERR_OVERLAP == 10);
LOCK(VELO_ERR_NOT_FOUND == 11);
LOCK(VELO_ERR_PARSE == 12);
LOCK(VELO_ERR_UNSUPPORTED == 13);
LOCK(VELO_ERR_ABI == 14);
LOCK(VELO_ERR_STATE == 15);
LOCK(VELO_ERR_MEMORY == 32);
LOCK(VELO_ERR_IO == 33);
LOCK(VELO_ERR_TIMEOUT == 34);
LOCK(VELO_ERR_PEER == 35);
LOCK(VELO_ERR_FOREIGN == 36);
LOCK(VELO_ERR_INTERNAL == 37);

LOCK(VELO_DTYPE_INT == 0);
LOCK(VELO_DTYPE_UINT == 1);
LOCK(VELO_DTYPE_FLOAT == 2);
LOCK(VELO_DTYPE_BFLOAT == 4);
LOCK(VELO_DTYPE_BOOL == 6);

LOCK(sizeof(velo_device_type) == 4);
LOCK(VELO_DEVICE_CPU == 1);

LOCK(VELO_MANAGED_READ_ONLY == 1);
LOCK(VELO_MANAGED_IS_COPIED == 2);

LOCK(sizeof(velo_log_level) == 4);
LOCK(VELO_LOG_OFF == 0);
LOCK(VELO_LOG_ERROR == 1);
LOCK(VELO_LOG_WARN == 2);
LOCK(VELO_LOG_INFO == 3);
LOCK(VELO_LOG_DEBUG == 4);

LOCK(sizeof(velo_capability) == 4);
LOCK(VELO_CAP_CLOSURES == 1);
LOCK(VELO_CAP_JIT == 2);

LOCK(sizeof(velo_value_kind) == 4);
LOCK(VELO_VALUE_NONE == 0);
LOCK(VELO_VALUE_INT == 1);
LOCK(VELO_VALUE_FLOAT == 2);
LOCK(VELO_VALUE_STRING == 3);
LOCK(VELO_VALUE_TENSOR == 4);
LOCK(VELO_VALUE_INTS == 5);
LOCK(VELO_VALUE_HANDLE == 6);
LOCK(VELO_VALUE_POINTER == 7);

LOCK(VELO_ROTARY_MODE_HALF == 0);
LOCK(VELO_ROTARY_MODE_INTERLEAVED == 1);

LOCK(VELO_PRODUCT_DTYPE_LIKE_A == 0);
LOCK(VELO_PRODUCT_DTYPE_FLOAT32 == 1);

LOCK(VELO_ATTENTION_LAYOUT_BSND == 0);
LOCK(VELO_ATTENTION_LAYOUT_BNSD == 1);
LOCK(VELO_ATTENTION_LAYOUT_SBH == 2);
LOCK(VELO_ATTENTION_LAYOUT_BSH == 3);
LOCK(VELO_ATTENTION_LAYOUT_TND == 4);

LOCK(VELO_ATTENTION_SPARSE_MODE_FULL == 0);
LOCK(VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL == 2);
LOCK(VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL == 3);

LOCK(VELO_REDUCTION_NONE == 0);
LOCK(VELO_REDUCTION_MEAN == 1);
LOCK(VELO_REDUCTION_SUM == 2);

LOCK(VELO_ELEMENT_FLOAT32 == 0);
LOCK(VELO_ELEMENT_BFLOAT16 == 1);

/* ---- signatures ---- */

LOCK(sizeof(velo_context) == 8);
LOCK(sizeof(velo_stream) == 8);
LOCK(sizeof(velo_event) == 8);
LOCK(sizeof(velo_pack) == 8);
LOCK(sizeof(velo_kernel) == 8);
LOCK(sizeof(velo_closure) == 8);
void lock_velo_log_fn(velo_log_fn f, void (**to)(void* user, velo_log_level level, const char* component, const char* line));
void lock_velo_log_fn(velo_log_fn f, void (**to)(void* user, velo_log_level level, const char* component, const char* line)) {
  *to = f;
}
void lock_velo_plugin_query_fn(velo_plugin_query_fn f, velo_status (**to)(uint32_t host_abi, const velo_plugin_desc** desc));
void lock_velo_plugin_query_fn(velo_plugin_query_fn f, velo_status (**to)(uint32_t host_abi, const velo_plugin_desc** desc)) {
  *to = f;
}
velo_status velo_last_error(velo_error_info* info);
velo_status velo_error_text(char* buffer, uint64_t capacity, uint64_t* needed);
velo_status velo_status_describe(velo_status code, const char** name, const char** meaning);
velo_status velo_tensor_create(velo_context context, const velo_dtype* dtype, int32_t ndim,
                               const int64_t* shape, velo_managed_tensor** tensor);
velo_status velo_tensor_import(velo_context context, velo_managed_tensor* managed,
                               velo_tensor* view);
void velo_tensor_release(velo_managed_tensor* managed);
velo_status velo_tensor_extent(const velo_tensor* tensor, uint64_t* bytes);
velo_status velo_context_create(const velo_context_desc* desc, velo_context* context);
void velo_context_destroy(velo_context context);
velo_status velo_context_stream(velo_context context, velo_stream* stream);
velo_status velo_config_set(velo_context context, const char* key, const char* value);
velo_status velo_config_get(velo_context context, const char* key, char* buffer, uint64_t capacity,
                            uint64_t* needed, const char** origin);
velo_status velo_config_list(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed);
velo_status velo_context_get_stats(velo_context context, velo_context_stats* stats);
velo_status velo_stream_create(velo_context context, velo_stream* stream);
void velo_stream_destroy(velo_stream stream);
velo_status velo_stream_synchronize(velo_stream stream);
velo_status velo_stream_query(velo_stream stream, int32_t* done);
velo_status velo_stream_clear(velo_stream stream);
velo_status velo_stream_wait(velo_stream stream, velo_event event);
velo_status velo_event_create(velo_context context, velo_event* event);
void velo_event_destroy(velo_event event);
velo_status velo_event_record(velo_event event, velo_stream stream);
velo_status velo_event_synchronize(velo_event event, int64_t timeout_ns);
velo_status velo_event_query(velo_event event, int32_t* done);
velo_status velo_pack_create(velo_context context, const velo_pack_desc* desc, velo_pack* pack);
void velo_pack_destroy(velo_pack pack);
velo_status velo_pack_update(velo_stream stream, velo_pack pack, const velo_tensor* weight);
velo_status velo_get_api(uint32_t needed, uint64_t table_size, const struct velo_api** api);
velo_status velo_version(int32_t* major, int32_t* minor, int32_t* patch, uint32_t* abi);
velo_status velo_capability_query(velo_capability capability, int32_t* available);
velo_status velo_describe(char* buffer, uint64_t capacity, uint64_t* needed);
velo_status velo_op_count(int64_t* count);
velo_status velo_op_name(int64_t index, const char** name);
velo_status velo_op_describe(const char* op, char* buffer, uint64_t capacity, uint64_t* needed);
velo_status velo_op_call(velo_stream stream, const char* op, const velo_named_value* values,
                         int64_t count);
velo_status velo_op_infer(velo_context context, const char* op, const velo_named_value* values,
                          int64_t count, velo_shape* shapes, int64_t capacity, int64_t* outputs);
velo_status velo_op_explain(velo_context context, const char* op, const velo_named_value* values,
                            int64_t count, char* buffer, uint64_t capacity, uint64_t* needed);
velo_status velo_invoke(const char* function, const velo_value* values, int64_t count,
                        velo_value* result);
velo_status velo_kernel_register(velo_context context, const velo_kernel_desc* desc,
                                 velo_kernel* kernel);
void velo_kernel_destroy(velo_kernel kernel);
velo_status velo_kernel_list(velo_context context, char* buffer, uint64_t capacity,
                             uint64_t* needed);
velo_status velo_plugin_load(velo_context context, const char* path);
velo_status velo_closure_create(velo_stream stream, const char* op, const char* fields,
                                void** function, velo_closure* closure);
void velo_closure_destroy(velo_closure closure);
velo_status velo_rms_norm(velo_stream stream, const velo_rms_norm_args* args);
velo_status velo_rms_norm_backward(velo_stream stream, const velo_rms_norm_backward_args* args);
velo_status velo_swiglu(velo_stream stream, const velo_swiglu_args* args);
velo_status velo_swiglu_backward(velo_stream stream, const velo_swiglu_backward_args* args);
velo_status velo_rotary_position_embedding(velo_stream stream,
                                           const velo_rotary_position_embedding_args* args);
velo_status velo_rotary_position_embedding_backward(
    velo_stream stream, const velo_rotary_position_embedding_backward_args* args);
velo_status velo_matmul(velo_stream stream, const velo_matmul_args* args);
velo_status velo_matmul_add_fp32(velo_stream stream, const velo_matmul_add_fp32_args* args);
velo_status velo_fusion_attention(velo_stream stream, const velo_fusion_attention_args* args);
velo_status velo_fusion_attention_backward(velo_stream stream,
                                           const velo_fusion_attention_backward_args* args);
velo_status velo_embedding(velo_stream stream, const velo_embedding_args* args);
velo_status velo_embedding_backward(velo_stream stream, const velo_embedding_backward_args* args);
velo_status velo_cross_entropy(velo_stream stream, const velo_cross_entropy_args* args);
velo_status velo_cross_entropy_backward(velo_stream stream,
                                        const velo_cross_entropy_backward_args* args);
velo_status velo_apply_fused_adamw(velo_stream stream, const velo_apply_fused_adamw_args* args);
velo_status velo_global_norm(velo_stream stream, const velo_global_norm_args* args);
velo_status velo_add(velo_stream stream, const velo_add_args* args);
velo_status velo_cast(velo_stream stream, const velo_cast_args* args);

/* ---- the function table: each slot follows the one before ---- */

LOCK(offsetof(struct velo_api, struct_size) == 0);
LOCK(offsetof(struct velo_api, abi) == 4);
LOCK(offsetof(struct velo_api, last_error) == 8);
FOLLOWS(error_text, last_error);
FOLLOWS(status_describe, error_text);
FOLLOWS(tensor_create, status_describe);
FOLLOWS(tensor_import, tensor_create);
FOLLOWS(tensor_release, tensor_import);
FOLLOWS(tensor_extent, tensor_release);
FOLLOWS(context_create, tensor_extent);
FOLLOWS(context_destroy, context_create);
FOLLOWS(context_stream, context_destroy);
FOLLOWS(config_set, context_stream);
FOLLOWS(config_get, config_set);
FOLLOWS(config_list, config_get);
FOLLOWS(context_get_stats, config_list);
FOLLOWS(stream_create, context_get_stats);
FOLLOWS(stream_destroy, stream_create);
FOLLOWS(stream_synchronize, stream_destroy);
FOLLOWS(stream_query, stream_synchronize);
FOLLOWS(stream_clear, stream_query);
FOLLOWS(stream_wait, stream_clear);
FOLLOWS(event_create, stream_wait);
FOLLOWS(event_destroy, event_create);
FOLLOWS(event_record, event_destroy);
FOLLOWS(event_synchronize, event_record);
FOLLOWS(event_query, event_synchronize);
FOLLOWS(pack_create, event_query);
FOLLOWS(pack_destroy, pack_create);
FOLLOWS(pack_update, pack_destroy);
FOLLOWS(get_api, pack_update);
FOLLOWS(version, get_api);
FOLLOWS(capability_query, version);
FOLLOWS(describe, capability_query);
FOLLOWS(op_count, describe);
FOLLOWS(op_name, op_count);
FOLLOWS(op_describe, op_name);
FOLLOWS(op_call, op_describe);
FOLLOWS(op_infer, op_call);
FOLLOWS(op_explain, op_infer);
FOLLOWS(invoke, op_explain);
FOLLOWS(kernel_register, invoke);
FOLLOWS(kernel_destroy, kernel_register);
FOLLOWS(kernel_list, kernel_destroy);
FOLLOWS(plugin_load, kernel_list);
FOLLOWS(closure_create, plugin_load);
FOLLOWS(closure_destroy, closure_create);
FOLLOWS(rms_norm, closure_destroy);
FOLLOWS(rms_norm_backward, rms_norm);
FOLLOWS(swiglu, rms_norm_backward);
FOLLOWS(swiglu_backward, swiglu);
FOLLOWS(rotary_position_embedding, swiglu_backward);
FOLLOWS(rotary_position_embedding_backward, rotary_position_embedding);
FOLLOWS(matmul, rotary_position_embedding_backward);
FOLLOWS(matmul_add_fp32, matmul);
FOLLOWS(fusion_attention, matmul_add_fp32);
FOLLOWS(fusion_attention_backward, fusion_attention);
FOLLOWS(embedding, fusion_attention_backward);
FOLLOWS(embedding_backward, embedding);
FOLLOWS(cross_entropy, embedding_backward);
FOLLOWS(cross_entropy_backward, cross_entropy);
FOLLOWS(apply_fused_adamw, cross_entropy_backward);
FOLLOWS(global_norm, apply_fused_adamw);
FOLLOWS(add, global_norm);
FOLLOWS(cast, add);
LAST(cast);

void lock_slots(struct velo_api* api);
void lock_slots(struct velo_api* api) {
  api->last_error = velo_last_error;
  api->error_text = velo_error_text;
  api->status_describe = velo_status_describe;
  api->tensor_create = velo_tensor_create;
  api->tensor_import = velo_tensor_import;
  api->tensor_release = velo_tensor_release;
  api->tensor_extent = velo_tensor_extent;
  api->context_create = velo_context_create;
  api->context_destroy = velo_context_destroy;
  api->context_stream = velo_context_stream;
  api->config_set = velo_config_set;
  api->config_get = velo_config_get;
  api->config_list = velo_config_list;
  api->context_get_stats = velo_context_get_stats;
  api->stream_create = velo_stream_create;
  api->stream_destroy = velo_stream_destroy;
  api->stream_synchronize = velo_stream_synchronize;
  api->stream_query = velo_stream_query;
  api->stream_clear = velo_stream_clear;
  api->stream_wait = velo_stream_wait;
  api->event_create = velo_event_create;
  api->event_destroy = velo_event_destroy;
  api->event_record = velo_event_record;
  api->event_synchronize = velo_event_synchronize;
  api->event_query = velo_event_query;
  api->pack_create = velo_pack_create;
  api->pack_destroy = velo_pack_destroy;
  api->pack_update = velo_pack_update;
  api->get_api = velo_get_api;
  api->version = velo_version;
  api->capability_query = velo_capability_query;
  api->describe = velo_describe;
  api->op_count = velo_op_count;
  api->op_name = velo_op_name;
  api->op_describe = velo_op_describe;
  api->op_call = velo_op_call;
  api->op_infer = velo_op_infer;
  api->op_explain = velo_op_explain;
  api->invoke = velo_invoke;
  api->kernel_register = velo_kernel_register;
  api->kernel_destroy = velo_kernel_destroy;
  api->kernel_list = velo_kernel_list;
  api->plugin_load = velo_plugin_load;
  api->closure_create = velo_closure_create;
  api->closure_destroy = velo_closure_destroy;
  api->rms_norm = velo_rms_norm;
  api->rms_norm_backward = velo_rms_norm_backward;
  api->swiglu = velo_swiglu;
  api->swiglu_backward = velo_swiglu_backward;
  api->rotary_position_embedding = velo_rotary_position_embedding;
  api->rotary_position_embedding_backward = velo_rotary_position_embedding_backward;
  api->matmul = velo_matmul;
  api->matmul_add_fp32 = velo_matmul_add_fp32;
  api->fusion_attention = velo_fusion_attention;
  api->fusion_attention_backward = velo_fusion_attention_backward;
  api->embedding = velo_embedding;
  api->embedding_backward = velo_embedding_backward;
  api->cross_entropy = velo_cross_entropy;
  api->cross_entropy_backward = velo_cross_entropy_backward;
  api->apply_fused_adamw = velo_apply_fused_adamw;
  api->global_norm = velo_global_norm;
  api->add = velo_add;
  api->cast = velo_cast;
}

#ifdef __cplusplus
}
#endif
