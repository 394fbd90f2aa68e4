/* The operators of release 1.0, each once, on numbers small enough to check by hand. */
#include "client.h"

static const int64_t scalar[1] = {1};

static void norms(velo_stream stream) {
  const float x[4] = {1, 1, -1, -1}, gamma[4] = {1, 2, 3, 4}, dy[4] = {1, 0, 0, 0};
  float y[4], rstd[1], dx[4], dgamma[4];
  const int64_t matrix[2] = {1, 4}, row[1] = {4}, rows[2] = {1, 1};
  const velo_tensor tx = F32(x, 2, matrix), tg = F32(gamma, 1, row), ty = F32(y, 2, matrix),
                    tr = F32(rstd, 2, rows);
  const velo_tensor tdy = F32(dy, 2, matrix), tdx = F32(dx, 2, matrix), tdg = F32(dgamma, 1, row);
  velo_rms_norm_args forward = VELO_RMS_NORM_ARGS_INIT;
  velo_rms_norm_backward_args backward = VELO_RMS_NORM_BACKWARD_ARGS_INIT;
  forward.x = &tx, forward.gamma = &tg, forward.y = &ty, forward.rstd = &tr, forward.epsilon = 0;
  WORKS(velo_rms_norm(stream, &forward));
  NEAR(y[0], 1), NEAR(y[1], 2), NEAR(y[2], -3), NEAR(rstd[0], 1);
  backward.dy = &tdy, backward.x = &tx, backward.gamma = &tg, backward.rstd = &tr,
  backward.dx = &tdx, backward.dgamma = &tdg;
  WORKS(velo_rms_norm_backward(stream, &backward));
  NEAR(dx[0], 0.75), NEAR(dx[1], -0.25), NEAR(dx[2], 0.25), NEAR(dgamma[0], 1), NEAR(dgamma[3], 0);
  /* a struct of a release to come, asking for something: refused; asking for nothing: as if it were
   * the old struct */
  struct {
    velo_rms_norm_args now;
    uint64_t later[64]; /* further than any release to come is likely to reach */
  } grown = {VELO_RMS_NORM_ARGS_INIT, {0}};
  grown.now = forward;
  grown.now.struct_size = sizeof grown;
  grown.later[63] = 1;
  EXPECT(velo_rms_norm(stream, &grown.now) == VELO_ERR_UNSUPPORTED);
  grown.later[63] = 0;
  WORKS(velo_rms_norm(stream, &grown.now));
}

static void activation(velo_stream stream) {
  const float x[4] = {0, 2, 3, 5}, dy[2] = {1, 1};
  float y[2], dx[4];
  const int64_t wide[2] = {1, 4}, half[2] = {1, 2};
  const velo_tensor tx = F32(x, 2, wide), ty = F32(y, 2, half), tdy = F32(dy, 2, half),
                    tdx = F32(dx, 2, wide);
  velo_swiglu_args forward = VELO_SWIGLU_ARGS_INIT;
  velo_swiglu_backward_args backward = VELO_SWIGLU_BACKWARD_ARGS_INIT;
  forward.x = &tx, forward.y = &ty;
  WORKS(velo_swiglu(stream, &forward));
  NEAR(y[0], 0), NEAR(y[1], 8.8079708); /* 2 * sigmoid(2) * 5 */
  backward.dy = &tdy, backward.x = &tx, backward.dx = &tdx;
  WORKS(velo_swiglu_backward(stream, &backward));
  NEAR(dx[0], 1.5), NEAR(dx[2], 0), NEAR(dx[3], 1.7615942);
}

static void rotation(velo_stream stream) {
  const float x[2] = {1, 2}, cosine[2] = {0, 0}, sine[2] = {1, 1};
  float y[2], dx[2];
  const int64_t shape[4] = {1, 1, 1, 2};
  const velo_tensor tx = F32(x, 4, shape), tc = F32(cosine, 4, shape), ts = F32(sine, 4, shape);
  const velo_tensor ty = F32(y, 4, shape), tdx = F32(dx, 4, shape);
  velo_rotary_position_embedding_args forward = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
  velo_rotary_position_embedding_backward_args backward =
      VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT;
  forward.x = &tx, forward.cos = &tc, forward.sin = &ts, forward.y = &ty;
  WORKS(velo_rotary_position_embedding(stream, &forward)); /* a quarter turn */
  NEAR(y[0], -2), NEAR(y[1], 1);
  backward.dy = &ty, backward.cos = &tc, backward.sin = &ts, backward.dx = &tdx;
  WORKS(velo_rotary_position_embedding_backward(stream, &backward)); /* and back */
  NEAR(dx[0], 1), NEAR(dx[1], 2);
}

static void table(velo_stream stream) {
  const int64_t ids[3] = {2, 0, 2};
  const float rows[6] = {1, 2, 3, 4, 5, 6};
  float y[6], gradient[6];
  const int64_t tokens[1] = {3}, width[2] = {3, 2};
  const velo_tensor ti = client_tensor(ids, VELO_DTYPE_INT, 64, 1, tokens),
                    tt = F32(rows, 2, width);
  const velo_tensor ty = F32(y, 2, width), tg = F32(gradient, 2, width);
  velo_embedding_args forward = VELO_EMBEDDING_ARGS_INIT;
  velo_embedding_backward_args backward = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
  forward.ids = &ti, forward.table = &tt, forward.y = &ty;
  WORKS(velo_embedding(stream, &forward));
  NEAR(y[0], 5), NEAR(y[3], 2);
  backward.ids = &ti, backward.dy = &ty, backward.dtable = &tg, backward.rows = 3;
  WORKS(velo_embedding_backward(stream, &backward));
  NEAR(gradient[0], 1), NEAR(gradient[2], 0), NEAR(gradient[4], 10);
}

static void loss(velo_stream stream) {
  const float logits[4] = {0, 0, 0, 0}, one[1] = {1};
  const int64_t targets[2] = {1, -100};
  float result[1], lse[2], gradient[4];
  const int64_t shape[2] = {2, 2}, tokens[1] = {2};
  const velo_tensor tl = F32(logits, 2, shape),
                    tt = client_tensor(targets, VELO_DTYPE_INT, 64, 1, tokens);
  const velo_tensor tr = F32(result, 0, scalar), te = F32(lse, 1, tokens),
                    tg = F32(gradient, 2, shape), to = F32(one, 0, scalar);
  velo_cross_entropy_args forward = VELO_CROSS_ENTROPY_ARGS_INIT;
  velo_cross_entropy_backward_args backward = VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
  forward.logits = &tl, forward.targets = &tt, forward.loss = &tr, forward.lse = &te;
  WORKS(velo_cross_entropy(stream, &forward));
  NEAR(result[0], 0.69314718), NEAR(lse[0], 0.69314718);
  backward.dloss = &to, backward.logits = &tl, backward.targets = &tt, backward.lse = &te,
  backward.dlogits = &tg;
  WORKS(velo_cross_entropy_backward(stream, &backward));
  NEAR(gradient[0], 0.5), NEAR(gradient[1], -0.5), NEAR(gradient[2], 0);
}

static void update(velo_stream stream) {
  float parameter[2] = {1, 1}, m[2] = {0, 0}, v[2] = {0, 0}, norm[1], clip[1];
  const float gradient[2] = {3, 4};
  double squares[1];
  const int64_t shape[1] = {2};
  const velo_tensor tg = F32(gradient, 1, shape), tp = F32(parameter, 1, shape),
                    tm = F32(m, 1, shape), tv = F32(v, 1, shape);
  const velo_tensor ts = client_tensor(squares, VELO_DTYPE_FLOAT, 64, 0, scalar),
                    tn = F32(norm, 0, scalar);
  const velo_tensor tc = F32(clip, 0, scalar);
  velo_global_norm_args length = VELO_GLOBAL_NORM_ARGS_INIT;
  velo_apply_fused_adamw_args step = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
  length.x = &tg, length.sum_of_squares = &ts, length.norm = &tn, length.clip = &tc,
  length.max_norm = 2.5;
  WORKS(velo_global_norm(stream, &length));
  NEAR(squares[0], 25), NEAR(norm[0], 5), NEAR(clip[0], 0.5);
  step.grad = &tg, step.scale = &tc, step.param = &tp, step.m = &tm, step.v = &tv, step.lr = 0.125;
  WORKS(
      velo_apply_fused_adamw(stream, &step)); /* the first step is lr long, whatever the gradient */
  NEAR(parameter[0], 0.875), NEAR(parameter[1], 0.875), NEAR(m[0], 0.15), NEAR(v[1], 0.004);
}

static void elements(velo_stream stream) {
  const float a[2] = {1, 2}, b[2] = {3, 0.5f};
  float y[2], back[2];
  uint16_t narrow[2];
  const int64_t shape[1] = {2};
  const velo_tensor ta = F32(a, 1, shape), tb = F32(b, 1, shape), ty = F32(y, 1, shape),
                    tback = F32(back, 1, shape);
  const velo_tensor tn = client_tensor(narrow, VELO_DTYPE_BFLOAT, 16, 1, shape);
  velo_add_args add = VELO_ADD_ARGS_INIT;
  velo_cast_args cast = VELO_CAST_ARGS_INIT;
  add.a = &ta, add.b = &tb, add.y = &ty;
  WORKS(velo_add(stream, &add));
  NEAR(y[0], 4), NEAR(y[1], 2.5);
  cast.x = &ty, cast.y = &tn, cast.dtype = VELO_ELEMENT_BFLOAT16;
  WORKS(velo_cast(stream, &cast));
  EXPECT(narrow[0] == 0x4080 && narrow[1] == 0x4020);
  cast.x = &tn, cast.y = &tback, cast.dtype = VELO_ELEMENT_FLOAT32;
  WORKS(velo_cast(stream, &cast));
  NEAR(back[1], 2.5);
}

static void attention(velo_stream stream) {
  /* queries of zero see both keys alike */
  const float query[2] = {0, 0}, key[2] = {1, 3}, value[2] = {2, 4}, dy[2] = {1, 1};
  float out[2], largest[2], sum[2], dquery[2], dkey[2], dvalue[2];
  const int64_t shape[4] = {1, 2, 1, 1}, rows[3] = {1, 1, 2};
  const velo_tensor tq = F32(query, 4, shape), tk = F32(key, 4, shape), tv = F32(value, 4, shape);
  const velo_tensor tout = F32(out, 4, shape), tdy = F32(dy, 4, shape), tdq = F32(dquery, 4, shape);
  const velo_tensor tdk = F32(dkey, 4, shape), tdv = F32(dvalue, 4, shape);
  const velo_tensor tmax = F32(largest, 3, rows), tsum = F32(sum, 3, rows);
  velo_fusion_attention_args forward = VELO_FUSION_ATTENTION_ARGS_INIT;
  velo_fusion_attention_backward_args backward = VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT;
  forward.query = &tq, forward.key = &tk, forward.value = &tv, forward.attention_out = &tout;
  forward.softmax_max = &tmax, forward.softmax_sum = &tsum;
  WORKS(velo_fusion_attention(stream, &forward));
  NEAR(out[0], 3), NEAR(out[1], 3), NEAR(largest[0], 0), NEAR(sum[1], 2);
  backward.query = &tq, backward.key = &tk, backward.value = &tv, backward.dy = &tdy;
  backward.softmax_max = &tmax, backward.softmax_sum = &tsum, backward.attention_out = &tout;
  backward.dquery = &tdq, backward.dkey = &tdk, backward.dvalue = &tdv;
  WORKS(velo_fusion_attention_backward(stream, &backward));
  NEAR(dquery[0], 1), NEAR(dkey[1], 0), NEAR(dvalue[0], 1), NEAR(dvalue[1], 1);
  forward.sparse_mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  WORKS(velo_fusion_attention(stream, &forward));
  NEAR(out[0], 2), NEAR(out[1], 3);
}

void client_matrices(velo_stream stream, velo_context context) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, bias[2] = {10, 20};
  float c[4], gradient[4] = {1, 1, 1, 1};
  const int64_t two_three[2] = {2, 3}, three_two[2] = {3, 2}, two_two[2] = {2, 2}, two[1] = {2};
  const velo_tensor ta = F32(a, 2, two_three), tb = F32(b, 2, three_two), tbias = F32(bias, 1, two),
                    tc = F32(c, 2, two_two);
  const velo_tensor total = F32(a, 2, two_two), tg = F32(gradient, 2, two_two);
  velo_pack pack = NULL;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  velo_matmul_args product = VELO_MATMUL_ARGS_INIT;
  velo_matmul_add_fp32_args accumulate = VELO_MATMUL_ADD_FP32_ARGS_INIT;
  product.a = &ta, product.b = &tb, product.bias = &tbias, product.c = &tc;
  WORKS(velo_matmul(stream, &product));
  NEAR(c[0], 14), NEAR(c[1], 25), NEAR(c[2], 20), NEAR(c[3], 31);
  desc.k = 3, desc.n = 2;
  WORKS(velo_pack_create(context, &desc, &pack));
  WORKS(velo_pack_update(stream, pack, &tb));
  memset(c, 0, sizeof c);
  product.b = NULL, product.packed = pack, product.bias = NULL;
  WORKS(velo_matmul(stream, &product));
  NEAR(c[0], 4), NEAR(c[3], 11);
  velo_pack_destroy(pack);
  EXPECT(velo_matmul(stream, &product) == VELO_ERR_HANDLE);
  accumulate.total_input = &total, accumulate.grad_output = &total, accumulate.grad = &tg;
  WORKS(velo_matmul_add_fp32(stream, &accumulate)); /* I + [[1,2],[3,4]]^T [[1,2],[3,4]] */
  NEAR(gradient[0], 11), NEAR(gradient[1], 15), NEAR(gradient[3], 21);
}

void client_operators(velo_stream stream, velo_context context) {
  (void)context;
  norms(stream);
  activation(stream);
  rotation(stream);
  table(stream);
  attention(stream);
  loss(stream);
  update(stream);
  elements(stream);
}
