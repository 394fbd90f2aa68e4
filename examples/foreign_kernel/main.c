/* A plain C function of another library becomes an operator, without a line of glue: the library,
 * the symbol, its signature, and where each parameter comes from.
 *
 *     foreign_kernel PATH_OF_LIBSOFTCLIP
 */
#include <stdio.h>
#include <velo/velo.h>

static int complain(void) {
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

static velo_named_value tensor(const char* name, const velo_tensor* value) {
  velo_named_value named = {name, {VELO_VALUE_TENSOR, 0, {0}}};
  named.value.as.tensor = value;
  return named;
}

static velo_named_value number(const char* name, double value) {
  velo_named_value named = {name, {VELO_VALUE_FLOAT, 0, {0}}};
  named.value.as.f = value;
  return named;
}

int main(int count, char** words) {
  float x[4] = {-4, -1, 0, 1}, y[4];
  const int64_t four[1] = {4};
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  const velo_tensor in = {x, cpu, 1, f32, four, NULL, 0}, out = {y, cpu, 1, f32, four, NULL, 0};
  velo_named_value values[3];
  velo_context context;
  velo_stream stream;
  velo_kernel kernel;
  char list[2048];
  if (count != 2) return fprintf(stderr, "usage: foreign_kernel LIBRARY\n"), 1;
  if (velo_context_create(NULL, &context) != VELO_OK) return complain();
  if (velo_context_stream(context, &stream) != VELO_OK) return complain();

  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = "softclip";
  desc.library = words[1];
  desc.symbol = "softclip";
  desc.signature = "v(lfpp)"; /* void (int64_t, float, pointer, pointer) */
  desc.binding = "x.numel, attr.limit, x.data, y.data";
  desc.tensors = "in x f32, out y f32";
  if (velo_kernel_register(context, &desc, &kernel) != VELO_OK) return complain();

  values[0] = tensor("x", &in);
  values[1] = tensor("y", &out);
  values[2] = number("limit", 2);
  if (velo_op_call(stream, "softclip", values, 3) != VELO_OK) return complain();
  printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);

  if (velo_kernel_list(context, list, sizeof list, NULL) != VELO_OK) return complain();
  printf("%s\n", list);
  fflush(stdout);

  desc.op = "softclip_again"; /* a mistake is reported with its column */
  desc.binding = "z.numel, attr.limit, x.data, y.data";
  if (velo_kernel_register(context, &desc, &kernel) != VELO_OK) complain();
  velo_context_destroy(context);
  return 0;
}
