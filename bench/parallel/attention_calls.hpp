// Attention of some rows of a sequence with others: the tensors, and the calls that a rank makes
// alone (fusion_attention) or with the other rank (context_parallel_attention).
#pragma once

#include <memory>
#include <type_traits>

#include "bench/comm/two_ranks.hpp"
#include "bench/parallel/row_block.hpp"

namespace velo::bench {

struct attention_shape {
  dtype type;
  std::int64_t sequence, heads, key_heads, width;
};

// softmax_max and softmax_sum.
class softmax_statistics {
 public:
  void resize(std::int64_t heads, std::int64_t rows);
  velo_tensor max() const { return view(max_); }
  velo_tensor sum() const { return view(sum_); }

 private:
  velo_tensor view(const std::vector<float>& of) const;

  std::int64_t shape_[3] = {};
  std::vector<float> max_, sum_;
};

struct attention_tensors {
  // pool: where the tensors lie; null: on the heap.
  attention_tensors(const attention_shape& of, const row_list& queries, const row_list& keys,
                    velo_pool pool = nullptr);
  double scale() const;
  // The largest difference of a result from that of the whole, as row_block has it.
  double difference(const attention_tensors& whole, bool gradient) const;

  const attention_shape shape;
  row_block q, k, v, dout, out, dq, dk, dv;
  softmax_statistics softmax;
};

// The rows from 0 on.
row_list first_rows(std::int64_t count);
// The rows of runs, each a begin and an end.
row_list rows_in(const row_list& spans);

// All queries with all keys, or with those up to the query's own, by fusion_attention.
void attend(velo_stream stream, const attention_tensors& t, bool causal);
void add_gradients(velo_stream stream, const attention_tensors& t, bool causal);

struct destroy_plan {
  void operator()(velo_sequence_plan plan) const { velo_sequence_plan_destroy(plan); }
};
using sequence_plan = std::unique_ptr<std::remove_pointer_t<velo_sequence_plan>, destroy_plan>;

// A causal sequence on two ranks.
sequence_plan plan_of(const attention_shape& of, velo_sequence_kind kind);
row_list rows_of(velo_sequence_plan plan, int rank);

// A rank's share of a sequence by context_parallel_attention, which keeps what its gradient needs.
class shared_attention {
 public:
  // A rank without a plan and a group computes causal attention alone. The tensors lie in the pool
  // of the rank, if it has one.
  shared_attention(const attention_shape& of, const row_list& rows, const rank_of& me,
                   velo_sequence_plan plan, velo_group group);
  void forward() const;
  void gradient() const;
  const attention_tensors& tensors() const { return tensors_; }

 private:
  template <class Args>
  void set_common(Args& args) const;
  void size_saved();
  velo_tensor kept() const;

  attention_tensors tensors_;
  const rank_of& me_;
  const velo_sequence_plan plan_;
  const velo_group group_;
  std::int64_t kept_count_ = 0;
  std::vector<float> kept_;  // room for as many elements of any type
};

}  // namespace velo::bench
