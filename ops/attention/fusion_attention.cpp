// fusion_attention as an operator: the shapes of its tensors, and its kernels.
//
// Each candidate is the same algorithm with the products and vector code of one instruction set;
// the reference is another algorithm.
#include "ops/attention/fusion_attention.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ops/attention/engine/attention.hpp"
#include "ops/attention/engine/attention_plan.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

template <class Args>
attention_problem describe_tensors(const Args& a) {
  const velo_tensor &query = *a.query, &key = *a.key, &value = *a.value;
  const int rank = rank_of(a.layout);
  require_rank(query, "query", rank, rank);
  require_rank(key, "key", rank, rank);
  require_rank(value, "value", rank, rank);
  require_dtype(key, "key", query.dtype);
  require_dtype(value, "value", query.dtype);
  require_dense_rows(query, "query");
  require_dense_rows(key, "key");
  require_dense_rows(value, "value");

  std::int64_t heads = a.head_num, kv_heads = 0;
  if (heads_in_rows(a.layout)) {
    if (heads == 0) fail(VELO_ERR_ARGUMENT, "args.head_num", "1 or more for sbh and bsh", "0");
    const std::int64_t head = heads_of_row(query, "query", heads);
    kv_heads = heads_of_row(key, "key", head);
    heads_of_row(value, "value", kv_heads);
  }
  const dimensions q = dimensions_of(query, a.layout, heads);
  const dimensions k = dimensions_of(key, a.layout, kv_heads);
  const dimensions v = dimensions_of(value, a.layout, kv_heads);
  if (a.head_num != 0 && a.head_num != q.heads) {
    fail(VELO_ERR_ARGUMENT, "args.head_num", core::concat(q.heads, ", as query has"),
         core::number(a.head_num));
  }
  require_head("query", q.head);
  require_head("value", v.head);
  require_size("key", "a batch of", k.batch, q.batch);
  require_size("key", "heads of", k.head, q.head);
  require_size("value", "a batch of", v.batch, q.batch);
  require_size("value", "a length of", v.length, k.length);
  require_size("value", "heads:", v.heads, k.heads);
  if (k.heads < 1 || q.heads < 1 || q.heads % k.heads != 0) {
    fail(VELO_ERR_SHAPE, "args.key.shape",
         core::concat("heads that divide the ", q.heads, " of query"), core::number(k.heads));
  }

  attention_problem p;
  p.type = type_of(query.dtype);
  p.batch = q.batch;
  p.heads = q.heads;
  p.kv_heads = k.heads;
  p.d = q.head;
  p.dv = v.head;
  p.sq = q.length;
  p.skv = k.length;
  if (std::fabs(a.scale) > static_cast<double>(FLT_MAX)) {
    fail(VELO_ERR_ARGUMENT, "args.scale", "a number that float32 holds", text("%g", a.scale));
  }
  p.scale = static_cast<float>(a.scale);
  p.q = strides_of(query, a.layout, q.head);
  p.k = strides_of(key, a.layout, k.head);
  p.v = strides_of(value, a.layout, v.head);
  p.stats = {q.heads * q.length, 1, q.length};
  if (a.layout != VELO_ATTENTION_LAYOUT_TND) return p;

  require_ends(a.actual_seq_qlen, "actual_seq_qlen", q.length);
  require_ends(a.actual_seq_kvlen, "actual_seq_kvlen", k.length);
  if (a.actual_seq_qlen->count != a.actual_seq_kvlen->count) {
    fail(VELO_ERR_ARGUMENT, "args.actual_seq_kvlen",
         core::concat(a.actual_seq_qlen->count, " values, as actual_seq_qlen"),
         core::number(a.actual_seq_kvlen->count));
  }
  p.batch = a.actual_seq_qlen->count;
  p.sq = longest(*a.actual_seq_qlen);
  p.skv = longest(*a.actual_seq_kvlen);
  p.stats = {0, q.heads, 1};
  return p;
}

template <class Args>
attention_problem describe(const Args& a) {
  attention_problem p = describe_tensors(a);
  check_options(options_of(a), p);
  if (a.statistics == VELO_ATTENTION_STATISTICS_EIGHTFOLD) {
    p.copies = 8;
    for (std::int64_t* stride : {&p.stats.batch, &p.stats.token, &p.stats.head}) *stride *= 8;
  }
  return p;
}

// attention_out: query with the value's head size.
struct out_shape {
  std::int64_t sizes[max_rank];
  out_shape(const velo_tensor& query, std::int64_t layout, const attention_problem& p) {
    for (int i = 0; i < query.ndim; ++i) sizes[i] = query.shape[i];
    sizes[query.ndim - 1] = heads_in_rows(layout) ? p.heads * p.dv : p.dv;
  }
};

// softmax_max and softmax_sum.
struct statistics_shape {
  int rank;
  std::int64_t sizes[4];
  statistics_shape(const velo_tensor& query, std::int64_t layout, const attention_problem& p)
      : rank(layout == VELO_ATTENTION_LAYOUT_TND ? 2 : 3), sizes{p.batch, p.heads, p.sq, 0} {
    if (rank == 2) sizes[0] = query.shape[0];
    if (p.copies > 1) sizes[rank++] = p.copies;
  }
};

void infer(const velo_fusion_attention_args& a, attention_problem& p, output_shapes& outputs) {
  p = describe(a);
  const statistics_shape statistics(*a.query, a.layout, p);
  outputs.set(a.attention_out, a.query->dtype, a.query->ndim,
              out_shape(*a.query, a.layout, p).sizes);
  outputs.set(a.softmax_max, f32, statistics.rank, statistics.sizes);
  outputs.set(a.softmax_sum, f32, statistics.rank, statistics.sizes);
  if (a.attention_out == nullptr) return;
  require_dense_rows(*a.attention_out, "attention_out");
  p.out = strides_of(*a.attention_out, a.layout, p.dv);
}

// The dtype of dkey and dvalue: the key's, or float32 if those that are given are.
velo_dtype key_gradient_dtype(const velo_fusion_attention_backward_args& a) {
  const velo_tensor* const given = a.dkey != nullptr ? a.dkey : a.dvalue;
  return given != nullptr && given->dtype == f32 ? f32 : a.key->dtype;
}

void infer_backward(const velo_fusion_attention_backward_args& a, attention_problem& p,
                    output_shapes& outputs) {
  p = describe(a);
  const statistics_shape statistics(*a.query, a.layout, p);
  const out_shape out(*a.query, a.layout, p);
  require_shape(*a.dy, "dy", a.query->ndim, out.sizes);
  require_dtype(*a.dy, "dy", a.query->dtype);
  require_dense_rows(*a.dy, "dy");
  require_shape(*a.attention_out, "attention_out", a.query->ndim, out.sizes);
  require_dtype(*a.attention_out, "attention_out", a.query->dtype);
  require_dense_rows(*a.attention_out, "attention_out");
  require_shape(*a.softmax_max, "softmax_max", statistics.rank, statistics.sizes);
  require_shape(*a.softmax_sum, "softmax_sum", statistics.rank, statistics.sizes);
  outputs.like(a.dquery, *a.query);
  const velo_dtype of_keys = key_gradient_dtype(a);
  outputs.like(a.dkey, *a.key, of_keys);
  outputs.like(a.dvalue, *a.value, of_keys);
  p.float_keys = of_keys == f32;
  if (has_bias_gradient(options_of(a), p)) outputs.like(a.dpse, *a.pse);
  if (a.dpse != nullptr) p.dpse = check_bias_gradient(options_of(a), p, *a.dpse);
  p.accumulate = a.accumulate != 0;
  if (a.dquery != nullptr) require_dense_rows(*a.dquery, "dquery");
  if (a.dkey != nullptr) require_dense_rows(*a.dkey, "dkey");
  if (a.dvalue != nullptr) require_dense_rows(*a.dvalue, "dvalue");
  p.out = strides_of(*a.attention_out, a.layout, p.dv);
  p.dy = strides_of(*a.dy, a.layout, p.dv);
  if (a.dquery != nullptr) p.dq = strides_of(*a.dquery, a.layout, p.d);
  if (a.dkey != nullptr) p.dk = strides_of(*a.dkey, a.layout, p.d);
  if (a.dvalue != nullptr) p.dv_rows = strides_of(*a.dvalue, a.layout, p.dv);
}

// ---- running ----

// The problem with what belongs to the args; a queued call has a copy of them.
template <class Args>
attention_problem placed(const Args& a, const attention_problem& problem, attention_terms& terms) {
  attention_problem p = problem;
  if (p.sq == 0) p.heads = p.kv_heads;  // without queries their number of heads is free
  place_options(options_of(a), p, terms);
  return p;
}

attention_tensors tensors_of(const velo_fusion_attention_args& a) {
  return {data<const char>(a.query),   data<const char>(a.key),    data<const char>(a.value),
          data<char>(a.attention_out), data<float>(a.softmax_max), data<float>(a.softmax_sum)};
}

attention_gradients tensors_of(const velo_fusion_attention_backward_args& a) {
  return {data<const char>(a.query),
          data<const char>(a.key),
          data<const char>(a.value),
          data<const char>(a.dy),
          data<const char>(a.attention_out),
          data<const float>(a.softmax_max),
          data<const float>(a.softmax_sum),
          data<char>(a.dquery),
          data<char>(a.dkey),
          data<char>(a.dvalue),
          data<char>(a.dpse)};
}

void run(const velo_fusion_attention_args& a, const attention_problem& problem,
         const attention_kernels& kernels, core::execution& on) {
  attention_terms terms;
  const attention_problem p = placed(a, problem, terms);
  if (kernels.plain()) return attention_forward_reference(p, tensors_of(a), on.threads);
  void* scratch = on.scratch.take(attention_forward_bytes(p, kernels.isa, on.threads.threads()));
  attention_forward(p, tensors_of(a), {kernels.isa, on.threads, scratch});
}

void run_backward(const velo_fusion_attention_backward_args& a, const attention_problem& problem,
                  const attention_kernels& kernels, core::execution& on) {
  attention_terms terms;
  const attention_problem p = placed(a, problem, terms);
  if (kernels.plain()) return attention_backward_reference(p, tensors_of(a), on.threads);
  const int threads = on.threads.threads();
  std::size_t bytes = attention_backward_bytes(p, kernels.isa, threads);
  if (a.dpse != nullptr)
    bytes = std::max(bytes, attention_bias_gradient_bytes(p, kernels.isa, threads));
  void* scratch = on.scratch.take(bytes);
  attention_backward(p, tensors_of(a), {kernels.isa, on.threads, scratch});
  if (a.dpse != nullptr)
    attention_bias_gradient(p, tensors_of(a), {kernels.isa, on.threads, scratch});
}

template <class Args>
const char* reject(const Args&, const attention_problem& p, const kernel_entry& kernel) {
  return attention_refusal(p, kernel);
}

// ---- cost ----

// The scores of a head, and those of them that the mask leaves.
struct score_count {
  double all = 0, visible = 0;
};

score_count scores_of(const attention_problem& p, std::int64_t sequence) {
  const attention_sequence s = sequence_of(p, sequence);
  return {static_cast<double>(s.sq) * static_cast<double>(s.skv), s.keys.pairs()};
}

// The scores of all sequences. Without lists these are alike, and a batch may have any size.
score_count scores_of(const attention_problem& p) {
  if (p.q_ends == nullptr && p.prefixes == nullptr) {
    const score_count one = scores_of(p, 0);
    const auto sequences = static_cast<double>(p.batch);
    return {sequences * one.all, sequences * one.visible};
  }
  score_count sum;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const score_count one = scores_of(p, i);
    sum.all += one.all;
    sum.visible += one.visible;
  }
  return sum;
}

// Forward has two products a score, of the sizes of a key and of a value.
template <class Args>
void add_products(const Args& a, const attention_problem& problem, double products, op_cost& cost) {
  attention_terms terms;
  const attention_problem p = placed(a, problem, terms);
  const score_count scores = scores_of(p);
  const double flops = products * static_cast<double>(p.heads) * static_cast<double>(p.d + p.dv);
  cost.multiply(scores.all * flops, scores.visible * flops, a.query->dtype);
}

void cost_of(const velo_fusion_attention_args& a, const attention_problem& p, op_cost& cost) {
  add_products(a, p, 2, cost);
}

// The gradient has four; the scores, which it computes again, are not counted.
void cost_of_backward(const velo_fusion_attention_backward_args& a, const attention_problem& p,
                      op_cost& cost) {
  add_products(a, p, 4, cost);
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.dkey) + bytes_of(a.dvalue);
}

}  // namespace

attention_problem describe_attention(const velo_fusion_attention_args& a) {
  return describe(a);
}

attention_problem placed_attention(const velo_fusion_attention_args& a,
                                   const attention_problem& problem, attention_terms& terms) {
  return placed(a, problem, terms);
}

void add_attention_products(const velo_fusion_attention_args& a, const attention_problem& problem,
                            double products, op_cost& cost) {
  add_products(a, problem, products, cost);
}

const char* attention_refusal(const attention_problem& p, const kernel_entry& kernel) {
  const auto& kernels = *static_cast<const attention_kernels*>(kernel.kernels);
  return kernels.repeats(p.type) ? "serves bfloat16 alone" : nullptr;
}

extern const operator_def fusion_attention_operator = with_cost<cost_of>(
    define<infer, run, reject<velo_fusion_attention_args>>(attention_kernel_list));
extern const operator_def fusion_attention_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, run_backward, reject<velo_fusion_attention_backward_args>>(
        attention_kernel_list));

}  // namespace velo::ops
