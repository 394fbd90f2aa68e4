// The calls, argument by argument.
#include "bench/parallel/attention_calls.hpp"

#include <numeric>

#include "bench/harness/require.hpp"

namespace velo::bench {
namespace {

// The views that arguments point at.
struct tensor_views {
  explicit tensor_views(const attention_tensors& t)
      : q(t.q.view()),
        k(t.k.view()),
        v(t.v.view()),
        dout(t.dout.view()),
        out(t.out.view()),
        dq(t.dq.view()),
        dk(t.dk.view()),
        dv(t.dv.view()),
        max(t.softmax.max()),
        sum(t.softmax.sum()) {}

  template <class Args>
  void set_common(Args& args) const {
    args.query = &q, args.key = &k, args.value = &v, args.attention_out = &out;
    args.softmax_max = &max, args.softmax_sum = &sum;
  }
  template <class Args>
  void set_gradients(Args& args) const {
    set_common(args);
    args.dy = &dout, args.dquery = &dq, args.dkey = &dk, args.dvalue = &dv;
  }

  const velo_tensor q, k, v, dout, out, dq, dk, dv, max, sum;
};

std::int64_t mode_of(bool causal) {
  return causal ? VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL : VELO_ATTENTION_SPARSE_MODE_FULL;
}

}  // namespace

// ---- tensors ----

void softmax_statistics::resize(std::int64_t heads, std::int64_t rows) {
  shape_[0] = 1, shape_[1] = heads, shape_[2] = rows;
  max_.resize(static_cast<std::size_t>(heads * rows), 0);
  sum_.resize(max_.size(), 1);
}

velo_tensor softmax_statistics::view(const std::vector<float>& of) const {
  return {const_cast<float*>(of.data()),
          {VELO_DEVICE_CPU, 0},
          3,
          {VELO_DTYPE_FLOAT, 32, 1},
          shape_,
          nullptr,
          0};
}

attention_tensors::attention_tensors(const attention_shape& of, const row_list& queries,
                                     const row_list& keys, velo_pool pool)
    : shape(of),
      q(of.type, queries, of.heads, of.width, 1, 0, pool),
      k(of.type, keys, of.key_heads, of.width, 2, 0, pool),
      v(of.type, keys, of.key_heads, of.width, 3, 0, pool),
      dout(of.type, queries, of.heads, of.width, 4, 0, pool),
      out(of.type, queries, of.heads, of.width, 5, 0, pool),
      dq(of.type, queries, of.heads, of.width, 5, 0, pool),
      dk(of.type, keys, of.key_heads, of.width, 5, 0, pool),
      dv(of.type, keys, of.key_heads, of.width, 5, 0, pool) {
  softmax.resize(of.heads, static_cast<std::int64_t>(queries.size()));
}

double attention_tensors::scale() const {
  return 1 / std::sqrt(static_cast<double>(shape.width));
}

double attention_tensors::difference(const attention_tensors& whole, bool gradient) const {
  if (!gradient) return out.difference(whole.out);
  return std::max({dq.difference(whole.dq), dk.difference(whole.dk), dv.difference(whole.dv)},
                  [](double a, double b) { return !(b <= a); });  // NaN is the largest
}

row_list first_rows(std::int64_t count) {
  row_list all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

row_list rows_in(const row_list& spans) {
  row_list all;
  for (std::size_t i = 0; i < spans.size(); i += 2)
    for (std::int64_t row = spans[i]; row < spans[i + 1]; ++row) all.push_back(row);
  return all;
}

// ---- a rank alone ----

void attend(velo_stream stream, const attention_tensors& t, bool causal) {
  const tensor_views x(t);
  velo_fusion_attention_args args = VELO_FUSION_ATTENTION_ARGS_INIT;
  x.set_common(args);
  args.scale = t.scale(), args.sparse_mode = mode_of(causal);
  require(velo_fusion_attention(stream, &args));
}

void add_gradients(velo_stream stream, const attention_tensors& t, bool causal) {
  const tensor_views x(t);
  velo_fusion_attention_backward_args args = VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT;
  x.set_gradients(args);
  args.scale = t.scale(), args.sparse_mode = mode_of(causal);
  require(velo_fusion_attention_backward(stream, &args));
}

// ---- both ranks ----

sequence_plan plan_of(const attention_shape& of, velo_sequence_kind kind) {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = kind, desc.cp = ranks, desc.sequence = of.sequence;
  desc.heads = of.heads, desc.kv_heads = of.key_heads, desc.head_dim = of.width;
  desc.element_bytes = bytes_of(of.type);
  velo_sequence_plan made = nullptr;
  require(velo_sequence_plan_create(&desc, &made));
  return sequence_plan(made);
}

row_list rows_of(velo_sequence_plan plan, int rank) {
  std::int64_t count = 0;
  require(velo_sequence_plan_get_rows(plan, rank, nullptr, 0, &count));
  row_list spans(static_cast<std::size_t>(2 * count));
  require(velo_sequence_plan_get_rows(plan, rank, spans.data(), count, &count));
  return rows_in(spans);
}

shared_attention::shared_attention(const attention_shape& of, const row_list& rows,
                                   const rank_of& me, velo_sequence_plan plan, velo_group group)
    : tensors_(of, rows, rows, me.pool), me_(me), plan_(plan), group_(group) {
  size_saved();
}

template <class Args>
void shared_attention::set_common(Args& args) const {
  args.group = group_, args.plan = plan_;
  args.scale = tensors_.scale();
}

void shared_attention::forward() const {
  const tensor_views x(tensors_);
  const velo_tensor kept_rows = kept();
  velo_context_parallel_attention_args args = VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT;
  x.set_common(args);
  set_common(args);
  args.kept = &kept_rows;
  require(velo_context_parallel_attention(me_.stream, &args));
}

void shared_attention::gradient() const {
  const tensor_views x(tensors_);
  const velo_tensor kept_rows = kept();
  velo_context_parallel_attention_backward_args args =
      VELO_CONTEXT_PARALLEL_ATTENTION_BACKWARD_ARGS_INIT;
  x.set_gradients(args);
  set_common(args);
  if (kept_count_ > 0) args.kept = &kept_rows;
  require(velo_context_parallel_attention_backward(me_.stream, &args));
}

// Asks the operator for the sizes of what it saves.
void shared_attention::size_saved() {
  const tensor_views x(tensors_);
  const char* const names[] = {"query", "key", "value", "group", "plan"};
  velo_named_value values[5] = {};
  for (int i = 0; i < 5; ++i) values[i].name = names[i];
  const velo_tensor* const tensors[] = {&x.q, &x.k, &x.v};
  for (int i = 0; i < 3; ++i) {
    values[i].value.kind = VELO_VALUE_TENSOR;
    values[i].value.as.tensor = tensors[i];
  }
  void* const handles[] = {group_, plan_};
  for (int i = 0; i < 2; ++i) {
    values[3 + i].value.kind = handles[i] == nullptr ? VELO_VALUE_NONE : VELO_VALUE_HANDLE;
    values[3 + i].value.as.p = handles[i];
  }
  velo_shape shapes[4] = {VELO_SHAPE_INIT, VELO_SHAPE_INIT, VELO_SHAPE_INIT, VELO_SHAPE_INIT};
  std::int64_t count = 0;
  require(velo_op_infer(me_.context, "context_parallel_attention", values, 5, shapes, 4, &count));
  tensors_.softmax.resize(shapes[1].sizes[1], shapes[1].sizes[2]);
  kept_count_ = shapes[3].sizes[0];
  kept_.resize(static_cast<std::size_t>(kept_count_));
}

velo_tensor shared_attention::kept() const {
  return {const_cast<float*>(kept_.data()),
          {VELO_DEVICE_CPU, 0},
          1,
          tensors_.q.view().dtype,
          &kept_count_,
          nullptr,
          0};
}

}  // namespace velo::bench
