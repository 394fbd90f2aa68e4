// ring_attention_update as an operator: rows of outputs and their statistics in each layout.
#include "ops/attention/ring_attention_update.hpp"

#include "ops/attention/attention_layout.hpp"
#include "ops/attention/engine/attention_plan.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"

namespace velo::ops {
namespace {

using core::fail;

// The heads in the statistics' shape, [B, N, S], [B, N, S, 8], [T, N] or [T, N, 8].
std::int64_t heads_of(const velo_ring_attention_update_args& a) {
  const int rank = a.layout == VELO_ATTENTION_LAYOUT_TND ? 2 : 3;
  require_rank(*a.prev_max, "prev_max", rank, rank + 1);
  return a.prev_max->shape[1];
}

void infer(const velo_ring_attention_update_args& a, attention_problem& p, output_shapes& outputs) {
  const velo_tensor& prev = *a.prev_out;
  require_rank(prev, "prev_out", rank_of(a.layout), rank_of(a.layout));
  require_like(*a.cur_out, "cur_out", prev, "prev_out");
  p.heads = p.kv_heads = heads_of(a);
  if (p.heads < 1) fail(VELO_ERR_SHAPE, "args.prev_max.shape", "1 head or more", "0");
  if (heads_in_rows(a.layout)) heads_of_row(prev, "prev_out", p.heads);
  const dimensions q = dimensions_of(prev, a.layout, p.heads);
  require_size("prev_out", "heads:", q.heads, p.heads);
  require_head("prev_out", q.head);
  p.type = type_of(prev.dtype);
  p.batch = q.batch;
  p.sq = q.length;
  p.d = p.dv = q.head;
  p.out = strides_of(prev, a.layout, q.head);
  p.stats = {q.heads * q.length, 1, q.length};
  std::int64_t sizes[4] = {q.batch, q.heads, q.length, 0};
  int rank = 3;
  if (a.layout == VELO_ATTENTION_LAYOUT_TND) {
    p.stats = {0, q.heads, 1};
    sizes[0] = q.length, rank = 2;
  }
  if (a.prev_max->ndim > rank) {
    p.copies = 8;
    sizes[rank++] = 8;
    for (std::int64_t* stride : {&p.stats.batch, &p.stats.token, &p.stats.head}) *stride *= 8;
  }
  require_shape(*a.prev_max, "prev_max", rank, sizes);
  require_shape(*a.prev_sum, "prev_sum", rank, sizes);
  require_shape(*a.cur_max, "cur_max", rank, sizes);
  require_shape(*a.cur_sum, "cur_sum", rank, sizes);
  if (a.layout == VELO_ATTENTION_LAYOUT_TND && p.copies > 1) {
    require_ends(a.actual_seq_qlen, "actual_seq_qlen", q.length);
    p.batch = a.actual_seq_qlen->count;
  }
  outputs.like(a.out, prev);
  outputs.set(a.max, f32, rank, sizes);
  outputs.set(a.sum, f32, rank, sizes);
}

// Rows that lie side by side: the heads of tokens, or in layout bnsd the tokens of a head.
template <class T>
class ring_rows {
 public:
  ring_rows(const velo_ring_attention_update_args& a, const attention_problem& p,
            const ring_attention_update_kernels& kernels, core::execution& on)
      : a_(a),
        p_(p),
        kernels_(kernels),
        bypass_(bypass_cache(data<T>(a.out), numel(*a.out) / p.d,
                             p.d * static_cast<std::int64_t>(sizeof(T)), on)) {}

  // Some tokens of some heads of a sequence.
  void operator()(const attention_sequence& s, std::int64_t batch, std::int64_t token,
                  std::int64_t tokens, std::int64_t head, std::int64_t heads) const {
    const statistics_place at = statistics_of(p_, s, batch, head, token);
    const std::int64_t first = offset_of(p_, p_.out, batch, s.q_first, head) + token * p_.out.token;
    kernels_.merge(ring_slice<T>{
        data<const T>(a_.prev_out) + first,
        data<const T>(a_.cur_out) + first,
        data<T>(a_.out) + first,
        {data<const float>(a_.prev_max) + at.first, data<const float>(a_.prev_sum) + at.first,
         data<const float>(a_.cur_max) + at.first, data<const float>(a_.cur_sum) + at.first,
         data<float>(a_.max) + at.first, data<float>(a_.sum) + at.first, at.step, head_step(s),
         p_.copies},
        tokens,
        heads,
        p_.d,
        p_.out.token,
        bypass_});
  }

  bool by_token() const { return a_.layout != VELO_ATTENTION_LAYOUT_BNSD; }

 private:
  std::int64_t head_step(const attention_sequence& s) const {
    return p_.copies > 1 && p_.q_ends != nullptr ? s.sq * p_.copies : p_.stats.head;
  }

  const velo_ring_attention_update_args& a_;
  const attention_problem& p_;
  const ring_attention_update_kernels& kernels_;
  bool bypass_;
};

// Tokens whose statistics share a line of the cache go into one slice.
row_slices slice_whole_lines(std::int64_t tokens, std::int64_t token_bytes) {
  row_slices slices = slice_rows(tokens, token_bytes);
  slices.per_task = core::round_up(slices.per_task, std::int64_t{16});
  return slices;
}

template <class T>
void run(const velo_ring_attention_update_args& a, const attention_problem& problem,
         const ring_attention_update_kernels& kernels, core::execution& on) {
  attention_problem p = problem;
  if (p.copies > 1 && a.layout == VELO_ATTENTION_LAYOUT_TND)
    p.q_ends = p.kv_ends = a.actual_seq_qlen->data;
  const ring_rows<T> rows(a, p, kernels, on);
  const std::int64_t row_bytes = p.d * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const attention_sequence s = sequence_of(p, b);
    const row_slices slices = rows.by_token() ? slice_whole_lines(s.sq, p.heads * row_bytes)
                                              : slice_rows(p.heads, s.sq * row_bytes);
    on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
      const std::int64_t first = slices.begin(task), count = slices.count(task);
      if (rows.by_token()) return rows(s, b, first, count, 0, p.heads);
      for (std::int64_t head = first; head < first + count; ++head) rows(s, b, 0, s.sq, head, 1);
    });
  }
}

}  // namespace

extern const operator_def ring_attention_update_operator =
    define<infer, by_dtype<&velo_ring_attention_update_args::prev_out, run<float>, run<simd::bf16>,
                           run<simd::f16>>>(ring_attention_update_kernel_list);

}  // namespace velo::ops
