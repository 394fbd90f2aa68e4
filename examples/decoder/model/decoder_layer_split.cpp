// Attention of a split's rows: queries attend to the keys of the split and of those before it.
//
// A forward pass writes its rows of the shared keys and values (sequence_keys) and reads all rows
// up to its end. With kv_share a layer reads those of its owner. A backward pass adds to the
// gradients of all rows up to its end. The last split goes back first and writes them all; so when
// a split goes back, the gradients of its own rows are complete. Sums are rounded to the model's
// dtype once a split. Cost: two copies of the rows' projection.
#include <cstring>

#include "examples/decoder/model/decoder_layer.hpp"
#include "examples/decoder/model/documents.hpp"

namespace decoder {
namespace {

// Columns of the rows of a matrix.
struct columns {
  std::byte* data;   // of the first row
  std::int64_t row;  // bytes from a row to the next
};

void copy(std::int64_t rows, std::int64_t bytes, const columns& from, const columns& to) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(to.data + i * to.row, from.data + i * from.row, static_cast<std::size_t>(bytes));
}

// Where documents are packed, a batch is one sequence of all windows.
std::int64_t windows_in(const pass& now) {
  return now.batch.tokens() / now.split->count();
}

// Calls f(columns of `qkv`, columns of `shared`) with a split's keys and values of each window.
template <class F>
void each_window(const pass& now, const part_widths& part, std::int64_t element, const buffer& qkv,
                 const buffer& shared, F&& f) {
  const std::int64_t row = part.qkv() * element, queries = part.attended() * element,
                     keys = row - queries;
  for (std::int64_t i = 0; i < windows_in(now); ++i)
    f(columns{qkv.data() + i * now.split->count() * row + queries, row},
      columns{shared.data() + (i * now.split->sequence() + now.split->begin) * keys, keys});
}

}  // namespace

void decoder_layer::project_split(const pass& now, layer_activations& kept) const {
  now.memory.make(kept.projected, bytes(now, part_.attended()), [&] {
    const std::int64_t element = type_.bits / 8;
    const buffer qkv = workspace(now, bytes(now, part_.qkv()));
    project_rotated(now, kept.attention_input, qkv);
    copy(now.batch.tokens(), part_.attended() * element, {qkv.data(), part_.qkv() * element},
         {kept.projected.data(), part_.attended() * element});
    share_keys(now, kept, qkv);
  });
}

// Recomputed keys and values have the bits of those that are there.
void decoder_layer::share_keys(const pass& now, const layer_activations& kept,
                               const buffer& qkv) const {
  const std::int64_t element = type_.bits / 8, row = part_.keys() * element;
  buffer& keys = kept.of_sequence->keys;
  if (!keys) {
    const std::int64_t windows = now.room.tokens() / now.split->count();
    keys = now.memory.take(windows * now.split->sequence() * row, VELO_PURPOSE_ACTIVATION);
  }
  each_window(now, part_, element, qkv, keys, [&](const columns& from, const columns& to) {
    copy(now.split->count(), row, from, to);
  });
}

// A view of the heads from `first` on: [sequences, rows up to the split's end, kv_heads, head
// width], or with documents [all rows, kv_heads, head width].
velo::tensor_view decoder_layer::keys_so_far(const pass& now, const buffer& of,
                                             std::int64_t first) const {
  const std::int64_t width = part_.head_dim, row = part_.keys();
  std::byte* const data = of.data() + first * width * (type_.bits / 8);
  if (now.documents)
    return {data,
            type_,
            {windows_in(now) * now.split->sequence(), part_.kv_heads, width},
            {row, width, 1}};
  return {data,
          type_,
          {now.batch.sequences, now.split->end, part_.kv_heads, width},
          {now.split->sequence() * row, row, width, 1}};
}

decoder_layer::attention_tensors decoder_layer::attention_of_split(
    const pass& now, const layer_activations& kept) const {
  const buffer& keys = kept.of_sequence->keys;
  return {per_head(now, kept.projected),
          keys_so_far(now, keys, 0),
          keys_so_far(now, keys, part_.kv_heads),
          per_head(now, kept.attended),
          sums(now, kept.softmax_max),
          sums(now, kept.softmax_sum),
          {}};
}

void decoder_layer::attend_split(const pass& now, const layer_activations& kept) const {
  const attention_tensors of = attention_of_split(now, kept);
  const document_ends ends(now);
  velo::fusion_attention(now.stream,
                         ends.fill(filled(velo::fusion_attention_args().sparse_mode(
                                              velo::attention_sparse_mode::right_down_causal),
                                          of)));
}

// Returns the gradient of the rows' projection, before its rotation is undone. A layer that attends
// to another's keys and values adds to their gradients before that layer does.
buffer decoder_layer::attend_split_backward(const pass& now, const layer_activations& kept,
                                            const velo::tensor_view& attended) const {
  buffer projected = workspace(now, bytes(now, projected_));
  sequence_keys& shared = *kept.of_sequence;
  const bool adds = static_cast<bool>(shared.gradients);
  if (!adds) shared.gradients = now.memory.take(shared.keys.bytes(), VELO_PURPOSE_ACTIVATION);
  const velo::tensor_view dquery = attention_heads(now, projected, projected_, 0, part_.heads),
                          dkey = keys_so_far(now, shared.gradients, 0),
                          dvalue = keys_so_far(now, shared.gradients, part_.kv_heads);
  const auto arguments = velo::fusion_attention_backward_args()
                             .sparse_mode(velo::attention_sparse_mode::right_down_causal)
                             .accumulate(adds)
                             .dy(attended)
                             .dquery(dquery)
                             .dkey(dkey)
                             .dvalue(dvalue);
  const attention_tensors of = attention_of_split(now, kept);
  const document_ends ends(now);
  velo::fusion_attention_backward(now.stream, ends.fill(filled(arguments, of)));
  if (!owns_keys_) return projected;
  const std::int64_t element = type_.bits / 8;
  each_window(now, part_, element, projected, shared.gradients,
              [&](const columns& to, const columns& from) {
                copy(now.split->count(), part_.keys() * element, from, to);
              });
  if (now.split->number == 0) shared = {};
  return projected;
}

}  // namespace decoder
