/* What goes by name: introspection, operators and functions called by name, foreign kernels, a
 * plugin, closures. */
#include "client.h"

static velo_named_value number(const char* name, double value) {
  velo_named_value named = {name, {VELO_VALUE_FLOAT, 0, {0}}};
  named.value.as.f = value;
  return named;
}

static velo_named_value tensor(const char* name, const velo_tensor* value) {
  velo_named_value named = {name, {VELO_VALUE_TENSOR, 0, {0}}};
  named.value.as.tensor = value;
  return named;
}

static void introspection(void) {
  const struct velo_api* api = NULL;
  int32_t major = 0, available = -1;
  uint32_t abi = 0;
  int64_t count = 0;
  uint64_t needed = 0;
  const char* name = NULL;
  WORKS(velo_get_api(VELO_TARGET_ABI, sizeof(struct velo_api), &api));
  EXPECT(api != NULL && api->struct_size >= sizeof(struct velo_api));
  EXPECT(velo_get_api(9900, sizeof(struct velo_api), &api) == VELO_ERR_ABI);
  WORKS(velo_version(&major, NULL, NULL, &abi));
  EXPECT(major == 1 && abi >= 100);
  WORKS(velo_capability_query(VELO_CAP_CLOSURES, &available));
  EXPECT(available == 0 || available == 1);
  WORKS(velo_describe(NULL, 0, &needed));
  EXPECT(needed > 1000);
  WORKS(velo_op_count(&count));
  EXPECT(count >= 16);
  WORKS(velo_op_name(0, &name));
  EXPECT(name != NULL && name[0] != 0);
  WORKS(velo_op_describe("npu_rms_norm", NULL, 0, &needed));
  EXPECT(needed > 100);
}

/* y = alpha * x: the kind of C function that becomes an operator without glue. */
static void scale(int64_t n, float alpha, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}

void client_by_name(velo_stream stream, velo_context context, const char* plugin) {
  const float x[2] = {1, 2}, gamma[2] = {1, 1};
  float y[2] = {0, 0};
  const int64_t matrix[2] = {1, 2}, row[1] = {2};
  const velo_tensor tx = F32(x, 2, matrix), tg = F32(gamma, 1, row), ty = F32(y, 2, matrix);
  velo_named_value values[3];
  velo_shape shapes[2];
  int64_t outputs = 0;
  uint64_t needed = 0;
  introspection();

  values[0] = tensor("a", &tx), values[1] = tensor("b", &tx), values[2] = tensor("y", &ty);
  WORKS(velo_op_call(stream, "add", values, 3));
  CLOSE(y[1], 4);
  values[0] = tensor("x", &tx), values[1] = tensor("gamma", &tg);
  memset(shapes, 0, sizeof shapes);
  shapes[0].struct_size = sizeof shapes[0];
  WORKS(velo_op_infer(context, "rms_norm", values, 2, shapes, 2, &outputs));
  EXPECT(outputs == 2 && strcmp(shapes[0].name, "y") == 0 && shapes[0].ndim == 2 &&
         shapes[0].sizes[1] == 2);
  WORKS(velo_op_explain(context, "rms_norm", values, 2, NULL, 0, &needed));
  EXPECT(needed > 2);
  velo_cost cost = VELO_COST_INIT;
  WORKS(velo_op_cost(context, "rms_norm", values, 2, &cost));
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  WORKS(velo_op_get_counts(context, NULL, &counts));
  EXPECT(counts.calls == 0);
  WORKS(velo_op_reset_counts(context));
  EXPECT(cost.flops == 0 && cost.bytes_read > cost.bytes_written && cost.bytes_written > 0);

  velo_value parameters[2] = {{VELO_VALUE_HANDLE, 0, {0}}, {VELO_VALUE_POINTER, 0, {0}}},
             returned = {VELO_VALUE_NONE, 0, {0}};
  velo_stream same = NULL;
  parameters[0].as.p = context, parameters[1].as.p = &same;
  WORKS(velo_invoke("velo_context_stream", parameters, 2, &returned));
  EXPECT(same == stream && returned.kind == VELO_VALUE_INT && returned.as.i == VELO_OK);

  velo_kernel kernel = NULL;
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  void (*function)(int64_t, float, const float*, float*) = scale;
  desc.op = "client_scale", desc.signature = "v(lfpp)",
  desc.binding = "x.numel, attr.alpha, x.data, y.data";
  desc.tensors = "in x f32, out y f32";
  memcpy(&desc.function, &function, sizeof function);
  WORKS(velo_kernel_register(context, &desc, &kernel));
  values[0] = tensor("x", &tx), values[1] = tensor("y", &ty), values[2] = number("alpha", 3);
  WORKS(velo_op_call(stream, "client_scale", values, 3));
  CLOSE(y[1], 6);
  WORKS(velo_kernel_list(context, NULL, 0, &needed));
  EXPECT(needed > 3);
  WORKS(velo_kernel_list(context, NULL, 0, &needed));
  EXPECT(needed > strlen("client_scale"));
  velo_kernel_destroy(kernel);
  EXPECT(velo_op_call(stream, "client_scale", values, 3) == VELO_ERR_NOT_FOUND);

  WORKS(velo_plugin_load(context, plugin));
  WORKS(velo_op_call(stream, "plugin_negate", values, 2));
  CLOSE(y[1], -2);

  void* address = NULL;
  velo_closure closure = NULL;
  WORKS(velo_closure_create(stream, "add", "a, b, y", &address, &closure));
  int32_t (*add)(const velo_tensor*, const velo_tensor*, const velo_tensor*) = NULL;
  memcpy(&add, &address, sizeof address);
  if (add == NULL) return;
  WORKS(add(&tx, &tx, &ty));
  CLOSE(y[0], 2);
  velo_closure_destroy(closure);
}
