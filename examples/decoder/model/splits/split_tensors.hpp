// The tensors of attention in a split, and how rows get into them and back: from this rank's rows
// of all heads to the rows and heads that it has in attention.
//
//   queries, outputs  a rank that is alone, or gathers keys, has its own rows of all heads; one
//                     that exchanges rows for heads has the rows of all ranks, one rank's after
//                     another's
//   keys, values      [sequences, rows, 2 kv_heads * head_dim] of whole sequences (sequence_keys):
//                     own rows are copied there, the rows of other ranks gathered or exchanged
//
// A gradient takes the way back: what was gathered is summed over the ranks, each of which gets its
// rows of the sum. Gradients of keys are float32 until then, and are rounded to the model's dtype
// once.
// Cost: a collective each, and a copy of the rows before and behind it.
#pragma once

#include <vector>

#include "examples/decoder/model/activations.hpp"

namespace decoder {

class split_tensors {
 public:
  split_tensors(const pass& now, const part_widths& part, const velo_dtype& type);

  bool exchanges_heads() const { return !context_.heads().are_whole(); }

  // Sequences of a micro-batch; with documents all windows count, which are one.
  std::int64_t windows() const { return now_.batch.tokens() / split_.count(); }
  std::int64_t room_of_windows() const { return now_.room.tokens() / split_.count(); }
  // The rows of queries in attention, and the heads of this rank.
  std::int64_t queries() const { return exchanges_heads() ? split_.all_rows() : split_.count(); }
  std::int64_t heads() const { return heads_; }
  std::int64_t kv_heads() const { return kv_heads_; }
  // Elements of a row of keys and values.
  std::int64_t keys() const { return 2 * kv_heads_ * part_.head_dim; }
  // Whether the rows of a run of queries lie together, those of one window after another's; else
  // those of a window do.
  bool is_run_by_run() const { return exchanges_heads() || now_.documents != nullptr; }

  // Rows of all heads, [tokens, heads * head_dim], to those of attention, and back.
  void to_attention(std::byte* rows, std::byte* attention) const;
  void from_attention(std::byte* attention, std::byte* rows) const;

  // Keys and values of this rank's rows, columns of the projection `qkv`, to their place in the
  // keys of whole sequences.
  void spread_keys(const buffer& qkv, const buffer& whole) const;
  // The sum over all ranks of the float32 gradients of keys and values, of this rank's rows,
  // rounded to their columns in the gradient of the projection.
  void collect_keys(const buffer& whole, const buffer& qkv) const;

 private:
  std::int64_t element() const { return type_.bits / 8; }
  buffer workspace(std::int64_t elements) const;
  buffer float_workspace(std::int64_t elements) const;
  velo::tensor_view flat(const buffer& of, std::int64_t elements) const;
  void round(const float* from, std::int64_t elements, std::byte* to) const;
  // The rows that each rank has of a micro-batch, times `width`.
  std::vector<std::int64_t> counts(std::int64_t width) const;
  struct exchanged {
    std::byte *x, *y;
    velo_dtype type;
  };
  void exchange(const exchanged& of, bool to_heads, const std::vector<std::int64_t>& heads,
                std::int64_t width) const;
  template <class F>
  void each_run(const held_rows& part, F&& f) const;
  template <class F>
  void each_row_of_all(F&& f) const;

  void gather_keys(const buffer& own, const buffer& whole) const;
  void exchange_keys(const buffer& own, const buffer& whole) const;
  void sum_keys(const buffer& whole, const buffer& own) const;
  void return_keys(const buffer& whole, const buffer& own) const;

  const pass& now_;
  const context_parallel& context_;
  const sequence_split& split_;
  const part_widths& part_;
  const velo_dtype& type_;
  std::int64_t heads_, kv_heads_;
};

}  // namespace decoder
