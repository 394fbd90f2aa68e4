/* The other direction: an operator as a C function pointer, for a host that takes nothing else.
 *
 * The host below takes functions of three tensors that return a number, whoever wrote them; here it
 * gets rms_norm, all other fields of which keep their defaults.
 */
#include <stdint.h>
#include <stdio.h>
#include <velo/velo.h>

typedef int32_t (*transform)(const velo_tensor* x, const velo_tensor* gain, const velo_tensor* y);

/* "A host": applies whatever it was given and reports a number. */
static int32_t apply(transform function, float* x, float* gain, float* y) {
  const int64_t rows[2] = {2, 2}, row[1] = {2};
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_tensor in = {x, cpu, 2, f32, rows, NULL, 0}, by = {gain, cpu, 1, f32, row, NULL, 0},
                    out = {y, cpu, 2, f32, rows, NULL, 0};
  return function(&in, &by, &out);
}

static int complain(void) {
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

int main(void) {
  float x[4] = {3, 4, 1, -1}, gain[2] = {1, 2}, y[4];
  velo_context context;
  velo_stream stream;
  velo_closure closure;
  void* function;
  if (velo_context_create(NULL, &context) != VELO_OK) return complain();
  if (velo_context_stream(context, &stream) != VELO_OK) return complain();
  if (velo_closure_create(stream, "rms_norm", "x, gamma, y", &function, &closure) != VELO_OK)
    return complain();

  const transform made = (transform)(uintptr_t)function;
  if (apply(made, x, gain, y) != VELO_OK) return complain();
  printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);
  if (made(NULL, NULL, NULL) != VELO_OK) complain(); /* a status, and the record names args.x */

  velo_closure_destroy(closure); /* the pointer ends here */
  velo_context_destroy(context);
  return 0;
}
