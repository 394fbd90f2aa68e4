// flash_attention: AscendSpeed's older interface to attention, over the same engine.
//
// Its arguments become those of fusion_attention: atten_mask a dense mask, alibi_mask a pse that is
// added after the scale. One statistic a row is kept, lse = max + log(sum), under which the
// gradient has sum 1. pre_tokens and next_tokens are hints: the mask alone decides.
#include <cfloat>
#include <cmath>

#include "ops/attention/fusion_attention.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

template <class Args>
velo_fusion_attention_args fusion_of(const Args& a) {
  velo_fusion_attention_args f = VELO_FUSION_ATTENTION_ARGS_INIT;
  f.query = a.query, f.key = a.key, f.value = a.value;
  f.layout = a.io_layout;
  f.head_num = a.head_num;
  f.scale = a.scale_value;
  f.sparse_mode = VELO_ATTENTION_SPARSE_MODE_ALL_MASK;
  f.atten_mask = a.atten_mask;
  f.pse = a.alibi_mask;
  f.pse_type = VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE;
  f.keep_prob = a.keep_prob, f.seed = a.seed, f.offset = a.offset;
  return f;
}

template <class Args>
void check_numbers(const Args& a) {
  const bool known = a.io_layout == VELO_ATTENTION_LAYOUT_BSH ||
                     a.io_layout == VELO_ATTENTION_LAYOUT_SBH ||
                     a.io_layout == VELO_ATTENTION_LAYOUT_BNSD;
  if (!known) {
    fail(VELO_ERR_ARGUMENT, "args.io_layout", "bnsd, bsh or sbh", core::number(a.io_layout));
  }
  if (a.q_scale != 1) {
    fail(VELO_ERR_UNSUPPORTED, "args.q_scale", "1, the only scale of queries there is",
         text("%g", a.q_scale));
  }
  if (a.precise_mode != 0) {
    fail(VELO_ERR_UNSUPPORTED, "args.precise_mode", "0, the only mode there is",
         core::number(a.precise_mode));
  }
  if (std::fabs(a.scale_value) > static_cast<double>(FLT_MAX)) {
    fail(VELO_ERR_ARGUMENT, "args.scale_value", "a number that float32 holds",
         text("%g", a.scale_value));
  }
}

bool is_one_or(std::int64_t size, std::int64_t all) {
  return size == 1 || size == all;
}

template <class Args>
void check_masks(const Args& a, const dimensions& q) {
  if (a.atten_mask != nullptr) {
    const std::int64_t square[] = {q.length, q.length};
    require_shape(*a.atten_mask, "atten_mask", 2, square);
    require_dense_rows(*a.atten_mask, "atten_mask");
  }
  if (a.alibi_mask == nullptr) return;
  const velo_tensor& alibi = *a.alibi_mask;
  require_dtype(alibi, "alibi_mask", a.query->dtype);
  require_rank(alibi, "alibi_mask", 4, 4);
  require_dense_rows(alibi, "alibi_mask");
  const std::int64_t* s = alibi.shape;
  const bool fits = is_one_or(s[0], q.batch) && is_one_or(s[1], q.heads) &&
                    is_one_or(s[2], q.length) && s[3] == q.length;
  if (!fits) {
    fail(VELO_ERR_SHAPE, "args.alibi_mask.shape", "[B or 1, N or 1, S or 1, S]",
         shape_name(alibi.ndim, s));
  }
}

// Describes the inputs of both passes.
template <class Args>
attention_problem describe(const Args& a) {
  check_numbers(a);
  require_like(*a.key, "key", *a.query, "query");
  require_like(*a.value, "value", *a.query, "query");
  require_rank(*a.query, "query", rank_of(a.io_layout), rank_of(a.io_layout));
  if (heads_in_rows(a.io_layout)) {
    if (a.head_num == 0) fail(VELO_ERR_ARGUMENT, "args.head_num", "1 or more for bsh and sbh", "0");
    heads_of_row(*a.query, "query", a.head_num);
  }
  check_masks(a, dimensions_of(*a.query, a.io_layout, a.head_num));
  return describe_attention(fusion_of(a));
}

void infer(const velo_flash_attention_args& a, attention_problem& p, output_shapes& outputs) {
  p = describe(a);
  const std::int64_t rows[] = {p.batch, p.heads, p.sq};
  outputs.like(a.attention_out, *a.query);
  outputs.set(a.softmax_log_max_sum, f32, 3, rows);
  if (a.attention_out == nullptr) return;
  require_dense_rows(*a.attention_out, "attention_out");
  p.out = strides_of(*a.attention_out, a.io_layout, p.dv);
}

void infer_backward(const velo_flash_attention_backward_args& a, attention_problem& p,
                    output_shapes& outputs) {
  p = describe(a);
  const std::int64_t rows[] = {p.batch, p.heads, p.sq};
  require_like(*a.dy, "dy", *a.query, "query");
  require_dense_rows(*a.dy, "dy");
  require_like(*a.attention_out, "attention_out", *a.query, "query");
  require_dense_rows(*a.attention_out, "attention_out");
  require_shape(*a.softmax_log_max_sum, "softmax_log_max_sum", 3, rows);
  outputs.like(a.dquery, *a.query);
  outputs.like(a.dkey, *a.query);
  outputs.like(a.dvalue, *a.query);
  p.out = strides_of(*a.attention_out, a.io_layout, p.dv);
  p.dy = strides_of(*a.dy, a.io_layout, p.dv);
  struct gradient {
    const velo_tensor* tensor;
    const char* field;
    attention_strides* strides;
  };
  for (const gradient& g : {gradient{a.dquery, "dquery", &p.dq}, gradient{a.dkey, "dkey", &p.dk},
                            gradient{a.dvalue, "dvalue", &p.dv_rows}}) {
    if (g.tensor == nullptr) continue;
    require_dense_rows(*g.tensor, g.field);
    *g.strides = strides_of(*g.tensor, a.io_layout, p.d);
  }
}

// Sums of rows, and behind them the scratch of a pass.
struct scratch_of {
  std::int64_t rows;
  float* sums;
  void* pass;

  scratch_of(const attention_problem& p, std::size_t pass_bytes, core::execution& on)
      : rows(p.batch * p.heads * p.sq) {
    const auto bytes = static_cast<std::size_t>(core::round_up(rows * 4, 64));
    char* all = static_cast<char*>(on.scratch.take(bytes + pass_bytes));
    sums = reinterpret_cast<float*>(all);
    pass = all + bytes;
  }
};

void run(const velo_flash_attention_args& a, const attention_problem& problem,
         const attention_kernels& kernels, core::execution& on) {
  attention_terms terms;
  const attention_problem p = placed_attention(fusion_of(a), problem, terms);
  const bool plain = kernels.plain();
  const scratch_of scratch(
      p, plain ? 0 : attention_forward_bytes(p, kernels.isa, on.threads.threads()), on);
  auto* lse = data<float>(a.softmax_log_max_sum);
  const attention_tensors t{data<const char>(a.query),
                            data<const char>(a.key),
                            data<const char>(a.value),
                            data<char>(a.attention_out),
                            lse,
                            lse == nullptr ? nullptr : scratch.sums};
  if (plain) {
    attention_forward_reference(p, t, on.threads);
  } else {
    attention_forward(p, t, {kernels.isa, on.threads, scratch.pass});
  }
  if (lse == nullptr) return;
  for (std::int64_t i = 0; i < scratch.rows; ++i) {
    if (scratch.sums[i] != 0) lse[i] += std::log(scratch.sums[i]);
  }
}

void run_backward(const velo_flash_attention_backward_args& a, const attention_problem& problem,
                  const attention_kernels& kernels, core::execution& on) {
  attention_terms terms;
  const attention_problem p = placed_attention(fusion_of(a), problem, terms);
  const bool plain = kernels.plain();
  const scratch_of scratch(
      p, plain ? 0 : attention_backward_bytes(p, kernels.isa, on.threads.threads()), on);
  const auto* lse = data<const float>(a.softmax_log_max_sum);
  // Under max = lse a row's sum is 1; a row without keys has the lowest lse and no sum.
  for (std::int64_t i = 0; i < scratch.rows; ++i)
    scratch.sums[i] = lse[i] == -FLT_MAX ? 0.0f : 1.0f;
  const attention_gradients t{data<const char>(a.query),
                              data<const char>(a.key),
                              data<const char>(a.value),
                              data<const char>(a.dy),
                              data<const char>(a.attention_out),
                              lse,
                              scratch.sums,
                              data<char>(a.dquery),
                              data<char>(a.dkey),
                              data<char>(a.dvalue)};
  if (plain) return attention_backward_reference(p, t, on.threads);
  attention_backward(p, t, {kernels.isa, on.threads, scratch.pass});
}

template <class Args>
const char* reject(const Args&, const attention_problem& p, const kernel_entry& kernel) {
  return attention_refusal(p, kernel);
}

void cost_of(const velo_flash_attention_args& a, const attention_problem& p, op_cost& cost) {
  add_attention_products(fusion_of(a), p, 2, cost);
}

void cost_of_backward(const velo_flash_attention_backward_args& a, const attention_problem& p,
                      op_cost& cost) {
  add_attention_products(fusion_of(a), p, 4, cost);
}

}  // namespace

extern const operator_def flash_attention_operator = with_cost<cost_of>(
    define<infer, run, reject<velo_flash_attention_args>>(attention_kernel_list));
extern const operator_def flash_attention_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, run_backward, reject<velo_flash_attention_backward_args>>(
        attention_kernel_list));

}  // namespace velo::ops
