// Attention of a split's rows: queries attend to the keys of the split and of those before it.
//
// A forward pass writes the split's rows of the shared keys and values (sequence_keys) and reads
// all rows up to its end. With kv_share a layer reads those of its owner. A backward pass adds to
// the gradients of all rows up to its end. The last split goes back first; so when a split goes
// back, the gradients of its own rows are complete. They are float32 until then, and are rounded to
// the model's dtype once. Where ranks share sequences, split_tensors.hpp has what they exchange.
//
// An operator is called for each run of consecutive queries and each range of heads: one of either,
// unless ranks share the split. Cost: two copies of the rows' projection.
#include <cstring>

#include "examples/decoder/model/decoder_layer.hpp"
#include "examples/decoder/model/documents.hpp"
#include "examples/decoder/model/splits/split_tensors.hpp"

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

// The tensors of one call: a run of queries, and a range of heads that read as many heads of keys.
class attention_call {
 public:
  attention_call(const pass& now, const split_tensors& at, std::int64_t head_dim,
                 const velo_dtype& type, const row_run& run, const head_range& range)
      : now_(now), at_(at), width_(head_dim), type_(type), run_(run), range_(range) {}

  // Rows of heads, `row` elements from one to the next: [sequences, rows, heads, head width], or
  // with documents [all rows, heads, head width].
  velo::tensor_view queries(std::byte* of, std::int64_t row) const {
    const std::int64_t windows = at_.windows(), count = run_.count();
    const std::int64_t first = at_.is_run_by_run() ? windows * run_.first : run_.first,
                       step = at_.is_run_by_run() ? count : at_.queries();
    std::byte* const data = of + (first * row + range_.query * width_) * (type_.bits / 8);
    if (now_.documents)
      return {data, type_, {windows * count, range_.queries, width_}, {row, width_, 1}};
    return {data, type_, {windows, count, range_.queries, width_}, {step * row, row, width_, 1}};
  }

  // The keys up to the run's end, or the values, which are behind them in a row; with documents
  // those of all rows.
  velo::tensor_view keys(const buffer& of, bool values) const { return keys(of, type_, values); }
  // The same of their gradients, which are float32.
  velo::tensor_view key_gradients(const buffer& of, bool values) const {
    return keys(of, {VELO_DTYPE_FLOAT, 32, 1}, values);
  }

  // Statistics, which each call has for itself.
  velo::tensor_view sums(const buffer& of) const {
    const std::int64_t windows = at_.windows(), count = run_.count();
    float* const data = of.floats() + windows * (run_.first * at_.heads() + count * range_.query);
    if (now_.documents) return {data, {windows * count, range_.queries}};
    return {data, {windows, range_.queries, count}};
  }

 private:
  velo::tensor_view keys(const buffer& of, const velo_dtype& type, bool values) const {
    const std::int64_t row = at_.keys(), sequence = now_.split->sequence(),
                       first = range_.key + (values ? at_.kv_heads() : 0);
    std::byte* const data = of.data() + first * width_ * (type.bits / 8);
    if (now_.documents)
      return {data, type, {at_.windows() * sequence, range_.keys, width_}, {row, width_, 1}};
    return {data,
            type,
            {at_.windows(), run_.end, range_.keys, width_},
            {sequence * row, row, width_, 1}};
  }

  const pass& now_;
  const split_tensors& at_;
  const std::int64_t width_;
  const velo_dtype& type_;
  const row_run& run_;
  const head_range& range_;
};

}  // namespace

// Calls f(call, number of the run) for each, later runs first.
template <class F>
void decoder_layer::each_call(const pass& now, const split_tensors& at, F&& f) const {
  const context_parallel& context = now.parallel.context;
  const std::vector<head_range> ranges =
      ranges_of(context.heads(), context.rank(), part_.heads, part_.kv_heads);
  const std::vector<row_run>& runs = now.split->runs;
  for (std::size_t i = runs.size(); i-- > 0;)
    for (const head_range& range : ranges)
      f(attention_call(now, at, part_.head_dim, type_, runs[i], range), i);
}

void decoder_layer::project_split(const pass& now, layer_activations& kept) const {
  const split_tensors at(now, part_, type_);
  const std::int64_t element = type_.bits / 8, own = part_.attended() * element;
  const std::int64_t rows = at.room_of_windows() * at.queries();
  now.memory.make(kept.projected, rows * at.heads() * part_.head_dim * element, [&] {
    const buffer qkv = workspace(now, bytes(now, projected_));
    project_rotated(now, kept.attention_input, qkv);
    if (owns_keys_) share_keys(now, kept, qkv);
    const buffer queries =
        at.exchanges_heads() ? workspace(now, bytes(now, part_.attended())) : buffer();
    std::byte* const to = queries ? queries.data() : kept.projected.data();
    copy(now.batch.tokens(), own, {qkv.data(), projected_ * element}, {to, own});
    if (queries) at.to_attention(to, kept.projected.data());
  });
}

// Recomputed keys and values have the bits of those that are there.
void decoder_layer::share_keys(const pass& now, const layer_activations& kept,
                               const buffer& qkv) const {
  const split_tensors at(now, part_, type_);
  sequence_keys& shared = *kept.of_sequence;
  if (!shared.keys)
    shared.keys =
        now.memory.take(at.room_of_windows() * now.split->sequence() * at.keys() * (type_.bits / 8),
                        VELO_PURPOSE_ACTIVATION);
  if (shared.rows >= now.split->end) return;
  at.spread_keys(qkv, shared.keys);
  shared.rows = now.split->end;
}

std::int64_t decoder_layer::sums_of_split(const pass& now) const {
  const split_tensors at(now, part_, type_);
  return at.room_of_windows() * at.queries() * at.heads();
}

void decoder_layer::attend_split(const pass& now, const layer_activations& kept) const {
  const split_tensors at(now, part_, type_);
  const std::int64_t row = at.heads() * part_.head_dim;
  const buffer exchanged =
      at.exchanges_heads()
          ? workspace(now, at.room_of_windows() * at.queries() * row * (type_.bits / 8))
          : buffer();
  std::byte* const out = exchanged ? exchanged.data() : kept.attended.data();
  const buffer& keys = kept.of_sequence->keys;
  each_call(now, at, [&](const auto& call, std::size_t run) {
    const attention_tensors of = {call.queries(kept.projected.data(), row),
                                  call.keys(keys, false),
                                  call.keys(keys, true),
                                  call.queries(out, row),
                                  call.sums(kept.softmax_max),
                                  call.sums(kept.softmax_sum),
                                  {}};
    const document_ends ends(now, run);
    velo::fusion_attention(now.stream,
                           ends.fill(filled(velo::fusion_attention_args().sparse_mode(
                                                velo::attention_sparse_mode::right_down_causal),
                                            of)));
  });
  if (exchanged) at.from_attention(out, kept.attended.data());
}

// Returns the gradient of the rows' projection, before its rotation is undone. A layer that attends
// to another's keys and values adds to their gradients before that layer does.
buffer decoder_layer::attend_split_backward(const pass& now, const layer_activations& kept,
                                            const velo::tensor_view& attended) const {
  const split_tensors at(now, part_, type_);
  buffer projected = workspace(now, bytes(now, projected_));
  auto* const dy = static_cast<std::byte*>(attended.get()->data);
  if (at.exchanges_heads())
    exchange_backward(now, at, kept, dy, projected);
  else
    add_split_gradients(now, at, kept, {kept.attended.data(), dy, projected.data(), projected_});
  if (!owns_keys_) return projected;
  at.collect_keys(kept.of_sequence->gradients, projected);
  if (now.split->number == 0) *kept.of_sequence = {};
  return projected;
}

// The same where ranks exchange rows for heads: outputs and their gradients go to attention, and
// the gradients of queries come back.
void decoder_layer::exchange_backward(const pass& now, const split_tensors& at,
                                      const layer_activations& kept, std::byte* dy,
                                      const buffer& projected) const {
  const std::int64_t row = at.heads() * part_.head_dim, element = type_.bits / 8,
                     own = part_.attended() * element;
  const std::int64_t all = at.room_of_windows() * at.queries() * row * element;
  const buffer dquery = workspace(now, all);
  {
    const buffer out = workspace(now, all), gradient = workspace(now, all);
    at.to_attention(kept.attended.data(), out.data());
    at.to_attention(dy, gradient.data());
    add_split_gradients(now, at, kept, {out.data(), gradient.data(), dquery.data(), row});
  }
  const buffer rows = workspace(now, bytes(now, part_.attended()));
  at.from_attention(dquery.data(), rows.data());
  copy(now.batch.tokens(), own, {rows.data(), own}, {projected.data(), projected_ * element});
}

// Writes the gradients of queries, and adds those of keys and values.
void decoder_layer::add_split_gradients(const pass& now, const split_tensors& at,
                                        const layer_activations& kept, const split_rows& of) const {
  const std::int64_t row = at.heads() * part_.head_dim;
  sequence_keys& shared = *kept.of_sequence;
  const bool is_first = !shared.gradients;
  if (is_first)
    shared.gradients =
        now.memory.take(shared.keys.bytes() / (type_.bits / 8) * std::int64_t{sizeof(float)},
                        VELO_PURPOSE_ACTIVATION);
  // A rank that is alone has one run in the last split, which writes all rows. Otherwise each run
  // adds to some.
  const bool adds = !is_first || !now.parallel.context.is_alone();
  if (is_first && adds && !now.memory.is_dry_run())
    std::memset(shared.gradients.data(), 0, static_cast<std::size_t>(shared.gradients.bytes()));
  each_call(now, at, [&](const auto& call, std::size_t run) {
    const attention_tensors with = {call.queries(kept.projected.data(), row),
                                    call.keys(shared.keys, false),
                                    call.keys(shared.keys, true),
                                    call.queries(of.out, row),
                                    call.sums(kept.softmax_max),
                                    call.sums(kept.softmax_sum),
                                    {}};
    const velo::tensor_view dy = call.queries(of.dy, row), dquery = call.queries(of.dquery, of.row),
                            dkey = call.key_gradients(shared.gradients, false),
                            dvalue = call.key_gradients(shared.gradients, true);
    const auto arguments = velo::fusion_attention_backward_args()
                               .sparse_mode(velo::attention_sparse_mode::right_down_causal)
                               .accumulate(adds)
                               .dy(dy)
                               .dquery(dquery)
                               .dkey(dkey)
                               .dvalue(dvalue);
    const document_ends ends(now, run);
    velo::fusion_attention_backward(now.stream, ends.fill(filled(arguments, with)));
  });
}

}  // namespace decoder
