/* A small network trained in C, from the first allocation to the last free: three spirals
 * separated by two layers with a gated activation between them.
 *
 *   logits = swiglu(points * w1) * w2,  loss = mean cross-entropy,  weights moved by AdamW
 *
 * Tensors live in velo's memory (velo_tensor_create). Every call is checked: the first failure is
 * printed with velo's record, everything is given back, and the program exits with 1. A third
 * coordinate of every point is 1, so that the last row of w1 is a bias. Build it against an
 * installed velo with: cc train_mlp.c $(pkg-config --cflags --libs velo) -lm
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <velo/velo.h>

enum { points = 384, coordinates = 3, hidden = 64, classes = 3, steps = 200 };

/* Tensors of the model, by number, so that they can be made and released in a loop. */
enum {
  x,
  targets,
  w1,
  w2,
  z,
  h,
  logits,
  loss,
  lse,
  one,
  dlogits,
  dh,
  dz,
  dw1,
  dw2,
  m1,
  v1,
  m2,
  v2,
  tensor_count
};

typedef struct model {
  velo_context context;
  velo_stream stream;
  velo_managed_tensor* tensors[tensor_count];
} model;

static const velo_tensor* view(const model* net, int tensor) {
  return &net->tensors[tensor]->tensor;
}

static float* floats(const model* net, int tensor) {
  return (float*)net->tensors[tensor]->tensor.data;
}

static velo_status make_tensors(model* net) {
  static const int64_t shapes[tensor_count][2] = {
      [x] = {points, coordinates},      [targets] = {points, 0},
      [w1] = {coordinates, 2 * hidden}, [w2] = {hidden, classes},
      [z] = {points, 2 * hidden},       [h] = {points, hidden},
      [logits] = {points, classes},     [lse] = {points, 0},
      [dlogits] = {points, classes},    [dh] = {points, hidden},
      [dz] = {points, 2 * hidden},      [dw1] = {coordinates, 2 * hidden},
      [dw2] = {hidden, classes},        [m1] = {coordinates, 2 * hidden},
      [v1] = {coordinates, 2 * hidden}, [m2] = {hidden, classes},
      [v2] = {hidden, classes}};
  const velo_dtype real = {VELO_DTYPE_FLOAT, 32, 1}, number = {VELO_DTYPE_INT, 32, 1};
  for (int i = 0; i < tensor_count; ++i) {
    const int rank = (shapes[i][0] > 0) + (shapes[i][1] > 0);
    const velo_status status = velo_tensor_create(net->context, i == targets ? &number : &real,
                                                  rank, shapes[i], &net->tensors[i]);
    if (status != VELO_OK) return status;
  }
  return VELO_OK;
}

static float uniform(uint32_t* state) { /* in [-1, 1) */
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (float)(1u << 23) - 1.0f;
}

static void fill(model* net) {
  uint32_t state = 1;
  for (int i = 0; i < points; ++i) {
    const int arm = i % classes;
    const float radius = 0.1f + 0.9f * (float)i / points;
    const float angle = 4.0f * radius + 2.0944f * (float)arm + 0.1f * uniform(&state);
    floats(net, x)[i * coordinates] = radius * cosf(angle);
    floats(net, x)[i * coordinates + 1] = radius * sinf(angle);
    floats(net, x)[i * coordinates + 2] = 1.0f;
    ((int32_t*)net->tensors[targets]->tensor.data)[i] = arm;
  }
  for (int i = 0; i < coordinates * 2 * hidden; ++i) floats(net, w1)[i] = uniform(&state);
  for (int i = 0; i < hidden * classes; ++i) floats(net, w2)[i] = 0.2f * uniform(&state);
  for (int i = 0; i < coordinates * 2 * hidden; ++i) floats(net, m1)[i] = floats(net, v1)[i] = 0;
  for (int i = 0; i < hidden * classes; ++i) floats(net, m2)[i] = floats(net, v2)[i] = 0;
  floats(net, one)[0] = 1.0f;
}

static velo_status multiply(const model* net, int a, int b, int c, int transpose_a,
                            int transpose_b) {
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = view(net, a);
  args.b = view(net, b);
  args.c = view(net, c);
  args.transpose_a = transpose_a;
  args.transpose_b = transpose_b;
  return velo_matmul(net->stream, &args);
}

static velo_status forward(const model* net) {
  velo_swiglu_args gate = VELO_SWIGLU_ARGS_INIT;
  gate.x = view(net, z);
  gate.y = view(net, h);
  velo_cross_entropy_args entropy = VELO_CROSS_ENTROPY_ARGS_INIT;
  entropy.logits = view(net, logits);
  entropy.targets = view(net, targets);
  entropy.loss = view(net, loss);
  entropy.lse = view(net, lse);

  velo_status status = multiply(net, x, w1, z, 0, 0);
  if (status == VELO_OK) status = velo_swiglu(net->stream, &gate);
  if (status == VELO_OK) status = multiply(net, h, w2, logits, 0, 0);
  if (status == VELO_OK) status = velo_cross_entropy(net->stream, &entropy);
  return status;
}

static velo_status backward(const model* net) {
  velo_cross_entropy_backward_args entropy = VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
  entropy.dloss = view(net, one);
  entropy.logits = view(net, logits);
  entropy.targets = view(net, targets);
  entropy.lse = view(net, lse);
  entropy.dlogits = view(net, dlogits);
  velo_swiglu_backward_args gate = VELO_SWIGLU_BACKWARD_ARGS_INIT;
  gate.dy = view(net, dh);
  gate.x = view(net, z);
  gate.dx = view(net, dz);

  velo_status status = velo_cross_entropy_backward(net->stream, &entropy);
  if (status == VELO_OK) status = multiply(net, h, dlogits, dw2, 1, 0);
  if (status == VELO_OK) status = multiply(net, dlogits, w2, dh, 0, 1);
  if (status == VELO_OK) status = velo_swiglu_backward(net->stream, &gate);
  if (status == VELO_OK) status = multiply(net, x, dz, dw1, 1, 0);
  return status;
}

static velo_status update(const model* net, int step, int weight, int gradient, int m, int v) {
  velo_apply_fused_adamw_args args = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
  args.grad = view(net, gradient);
  args.param = view(net, weight);
  args.m = view(net, m);
  args.v = view(net, v);
  args.step = step;
  args.lr = 0.02;
  return velo_apply_fused_adamw(net->stream, &args);
}

static velo_status train(model* net) {
  velo_status status = velo_context_create(NULL, &net->context);
  if (status == VELO_OK) status = velo_context_stream(net->context, &net->stream);
  if (status == VELO_OK) status = make_tensors(net);
  if (status != VELO_OK) return status;
  fill(net);
  for (int step = 1; step <= steps && status == VELO_OK; ++step) {
    status = forward(net);
    if (status == VELO_OK && (step == 1 || step % 20 == 0))
      printf("step %3d  loss %.4f\n", step, (double)floats(net, loss)[0]);
    if (status == VELO_OK) status = backward(net);
    if (status == VELO_OK) status = update(net, step, w1, dw1, m1, v1);
    if (status == VELO_OK) status = update(net, step, w2, dw2, m2, v2);
  }
  return status;
}

int main(void) {
  model net = {0};
  const velo_status status = train(&net);
  if (status != VELO_OK) {
    char text[1024];
    velo_error_text(text, sizeof text, NULL);
    fprintf(stderr, "%s\n", text);
  }
  for (int i = 0; i < tensor_count; ++i) velo_tensor_release(net.tensors[i]);
  velo_context_destroy(net.context);
  return status == VELO_OK ? 0 : 1;
}
