/* Opens a plugin and calls what it brought by name; what is not there is an error like any other.
 *
 *     use_plugin PATH_OF_PLUGIN
 */
#include <stdio.h>
#include <velo/velo.h>

static int complain(void) {
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

int main(int count, char** words) {
  float x[4] = {-2, -1, 0, 3}, y[4];
  const int64_t four[1] = {4};
  const velo_tensor in = {x, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_FLOAT, 32, 1}, four, NULL, 0};
  velo_tensor out = in;
  out.data = y;
  if (count != 2) return fprintf(stderr, "usage: use_plugin LIBRARY\n"), 1;

  velo_context context;
  velo_stream stream;
  if (velo_context_create(NULL, &context) != VELO_OK) return complain();
  if (velo_context_stream(context, &stream) != VELO_OK) return complain();
  if (velo_plugin_load(context, words[1]) != VELO_OK) return complain();

  velo_named_value values[3] = {{"x", {VELO_VALUE_TENSOR, 0, {0}}},
                                {"y", {VELO_VALUE_TENSOR, 0, {0}}},
                                {"slope", {VELO_VALUE_FLOAT, 0, {0}}}};
  values[0].value.as.tensor = &in;
  values[1].value.as.tensor = &out;
  values[2].value.as.f = 0.1;
  if (velo_op_call(stream, "leaky", values, 3) != VELO_OK) return complain();
  printf("%.1f %.1f %.1f %.1f\n", y[0], y[1], y[2], y[3]);

  values[2].name = "bound"; /* of the other kernel: refused, and y is untouched */
  if (velo_op_call(stream, "leaky", values, 3) != VELO_OK) complain();

  if (velo_op_call(stream, "bounded", values, 3) != VELO_OK) return complain();
  printf("%.1f %.1f %.1f %.1f\n", y[0], y[1], y[2], y[3]);
  velo_context_destroy(context); /* unregisters the kernels and closes the plugin */
  return 0;
}
