/* The first program in C: one context, one operator, and what a mistake looks like.
 *
 * A velo_tensor describes memory the program owns; the call computes on the context's inline stream
 * and is finished when it returns. Build it against an installed velo with: cc hello.c $(pkg-config
 * --cflags --libs velo)
 */
#include <stdio.h>
#include <velo/velo.h>

static velo_tensor matrix(const float* data, const int64_t* shape, int32_t ndim) {
  velo_tensor tensor = {0};
  tensor.data = (void*)data;
  tensor.device.type = VELO_DEVICE_CPU;
  tensor.ndim = ndim;
  tensor.dtype.code = VELO_DTYPE_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static int complain(void) {
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

int main(void) {
  const float x[2][4] = {{1, 2, 3, 4}, {2, 0, -2, 0}};
  const float gain[4] = {1, 1, 1, 1};
  float y[2][4];
  const int64_t rows[2] = {2, 4}, row[1] = {4};
  const velo_tensor tx = matrix(x[0], rows, 2), tg = matrix(gain, row, 1),
                    ty = matrix(y[0], rows, 2);

  velo_context context;
  velo_stream stream;
  if (velo_context_create(NULL, &context) != VELO_OK) return complain();
  if (velo_context_stream(context, &stream) != VELO_OK) return complain();

  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &tx;
  args.gamma = &tg;
  args.y = &ty;
  if (velo_rms_norm(stream, &args) != VELO_OK) return complain();
  printf("%.4f %.4f %.4f %.4f\n", y[0][0], y[0][1], y[0][2], y[0][3]);

  const int64_t too_short[1] = {3};
  const velo_tensor cut = matrix(gain, too_short, 1);
  args.gamma = &cut; /* refused, and y is untouched */
  if (velo_rms_norm(stream, &args) != VELO_OK) complain();

  velo_context_destroy(context);
  return 0;
}
