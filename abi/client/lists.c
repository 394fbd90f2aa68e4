/* This part: operators over lists of tensors, whose calls do not follow from examples. Known
 * results, and refusals that leave everything as it was. */
#include "client.h"

#define HAS(data, ...)                                                                     \
  do {                                                                                     \
    const double wanted[] = {__VA_ARGS__};                                                 \
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i)                          \
      client_report(fabs((double)(data)[i] - wanted[i]) <= 1e-6, #data, __func__, (int)i); \
  } while (0)
#define LIST(name, first, second)                                                    \
  const velo_tensor name##_tensors[] = {TENSOR(first, VELO_DTYPE_FLOAT, 32, 1, 2),   \
                                        TENSOR(second, VELO_DTYPE_FLOAT, 32, 1, 1)}; \
  const velo_tensors name = {name##_tensors, 2}

static void adamw(velo_stream stream) {
  float g1[2] = {3, 4}, p1[2] = {1, 1}, m1[2] = {0, 0}, v1[2] = {0, 0}, by[1] = {0.5f};
  float g2[1] = {4}, p2[1] = {1}, m2[1] = {0}, v2[1] = {0};
  LIST(grad, g1, g2);
  LIST(param, p1, p2);
  LIST(m, m1, m2);
  LIST(v, v1, v2);
  const velo_tensor scale = client_tensor(by, VELO_DTYPE_FLOAT, 32, 0, NULL);
  const velo_tensors shorter = {grad_tensors, 1};
  const velo_tensors turned = {(const velo_tensor[]){grad_tensors[1], grad_tensors[0]}, 2};
  velo_multi_tensor_adamw_args args = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;
  args.grad = &grad;
  args.scale = &scale;
  args.param = &param;
  args.m = &m;
  args.v = &v;
  args.lr = 0.125;
  args.grad = NULL;
  REFUSES(velo_multi_tensor_adamw(stream, &args), VELO_ERR_NULL);
  args.grad = &shorter;
  REFUSES(velo_multi_tensor_adamw(stream, &args), VELO_ERR_ARGUMENT);
  args.grad = &turned;
  REFUSES(velo_multi_tensor_adamw(stream, &args), VELO_ERR_SHAPE);
  args.grad = &param;
  REFUSES(velo_multi_tensor_adamw(stream, &args), VELO_ERR_OVERLAP);
  args.grad = &grad;
  args.step = 0;
  REFUSES(velo_multi_tensor_adamw(stream, &args), VELO_ERR_ARGUMENT);
  args.step = 1;
  HAS(p1, 1, 1);
  WORKS(velo_multi_tensor_adamw(stream, &args));
  HAS(p1, 0.875, 0.875);
  HAS(m1, 0.15, 0.2);
  HAS(v1, 0.00225, 0.004);
  HAS(p2, 0.875);
  HAS(m2, 0.2);
}

static void ema_adamw(velo_stream stream) {
  float g1[2] = {3, 3}, p1[2] = {1, 1}, m1[2] = {0.5f, 0.5f}, v1[2] = {0.25f, 0.25f};
  float e1[2] = {2, 2}, g2[1] = {3}, p2[1] = {1}, m2[1] = {0.5f}, v2[1] = {0.25f}, e2[1] = {2};
  LIST(grad, g1, g2);
  LIST(param, p1, p2);
  LIST(m, m1, m2);
  LIST(v, v1, v2);
  LIST(ema, e1, e2);
  velo_multi_tensor_ema_adamw_args args = VELO_MULTI_TENSOR_EMA_ADAMW_ARGS_INIT;
  args.grad = &grad;
  args.param = &param;
  args.m = &m;
  args.v = &v;
  args.step = 2;
  args.lr = 0.125;
  args.ema_decay = 0.75;
  args.beta1 = 0.5;
  args.beta2 = 0.75;
  args.epsilon = 0.5;
  args.weight_decay = 0.5;
  REFUSES(velo_multi_tensor_ema_adamw(stream, &args), VELO_ERR_NULL);
  args.ema = &ema;
  args.mode = 2;
  REFUSES(velo_multi_tensor_ema_adamw(stream, &args), VELO_ERR_ARGUMENT);
  args.mode = 1;
  WORKS(velo_multi_tensor_ema_adamw(stream, &args));
  HAS(p1, 0.835532459, 0.835532459);
  HAS(m1, 1.75, 1.75);
  HAS(v2, 2.4375);
  HAS(e2, 1.70888311);
  HAS(p2, 0.835532459);
}

static void global_norm(velo_stream stream) {
  float first[2] = {3, 4}, second[1] = {12}, norm_is[1] = {-1}, clip_is[1] = {-1};
  double squares_are[1] = {-1};
  LIST(x, first, second);
  const velo_tensor squares = client_tensor(squares_are, VELO_DTYPE_FLOAT, 64, 0, NULL);
  const velo_tensor norm = client_tensor(norm_is, VELO_DTYPE_FLOAT, 32, 0, NULL);
  const velo_tensor clip = client_tensor(clip_is, VELO_DTYPE_FLOAT, 32, 0, NULL);
  velo_multi_tensor_global_norm_args args = VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT;
  args.sum_of_squares = &squares;
  args.norm = &norm;
  args.clip = &clip;
  args.max_norm = 6.5;
  REFUSES(velo_multi_tensor_global_norm(stream, &args), VELO_ERR_NULL);
  args.x = &x;
  args.max_norm = -1;
  REFUSES(velo_multi_tensor_global_norm(stream, &args), VELO_ERR_ARGUMENT);
  args.max_norm = 6.5;
  HAS(squares_are, -1);
  WORKS(velo_multi_tensor_global_norm(stream, &args));
  HAS(squares_are, 169);
  HAS(norm_is, 13);
  HAS(clip_is, 0.499999962);
  args.accumulate = 1;
  WORKS(velo_multi_tensor_global_norm(stream, &args));
  HAS(squares_are, 338);
}

static void grouped_products(velo_stream stream) {
  float left[6] = {1, 2, 3, 4, 5, 6}, first[2] = {1, 1}, second[2] = {2, 0}, out[3] = {-1, -1, -1};
  float shift[1] = {10}, other[1] = {20};
  const velo_tensor x_tensor = TENSOR(left, VELO_DTYPE_FLOAT, 32, 2, 3, 2);
  const velo_tensor y_tensor = TENSOR(out, VELO_DTYPE_FLOAT, 32, 2, 3, 1);
  const velo_tensor weights[] = {TENSOR(first, VELO_DTYPE_FLOAT, 32, 2, 2, 1),
                                 TENSOR(second, VELO_DTYPE_FLOAT, 32, 2, 2, 1)};
  const velo_tensor biases[] = {TENSOR(shift, VELO_DTYPE_FLOAT, 32, 1, 1),
                                TENSOR(other, VELO_DTYPE_FLOAT, 32, 1, 1)};
  const velo_tensors x = {&x_tensor, 1}, y = {&y_tensor, 1}, weight = {weights, 2};
  const velo_tensors bias = {biases, 2};
  const int64_t ends[] = {1, 3}, short_of[] = {1, 2};
  const velo_ints list = {ends, 2}, short_list = {short_of, 2};
  velo_grouped_matmul_all_reduce_args args = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
  args.weight = &weight;
  args.bias = &bias;
  args.y = &y;
  args.group_list = &list;
  args.split_item = VELO_GROUPED_SPLIT_ONE;
  REFUSES(velo_grouped_matmul_all_reduce(stream, &args), VELO_ERR_NULL);
  args.x = &x;
  args.group_list = &short_list;
  REFUSES(velo_grouped_matmul_all_reduce(stream, &args), VELO_ERR_ARGUMENT);
  args.group_list = &list;
  args.split_item = VELO_GROUPED_SPLIT_LISTS;
  REFUSES(velo_grouped_matmul_all_reduce(stream, &args), VELO_ERR_ARGUMENT);
  HAS(out, -1, -1, -1);
  args.split_item = VELO_GROUPED_SPLIT_ONE;
  WORKS(velo_grouped_matmul_all_reduce(stream, &args));
  HAS(out, 13, 26, 30);
}

void client_lists(velo_stream stream) {
  grouped_products(stream);
  adamw(stream);
  ema_adamw(stream);
  global_norm(stream);
}
