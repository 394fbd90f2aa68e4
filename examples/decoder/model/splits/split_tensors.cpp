// Copies, collectives and exchanges of a split's rows.
#include "examples/decoder/model/splits/split_tensors.hpp"

#include <cstring>

namespace decoder {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& cuts, int rank) {
  const auto at = 2 * static_cast<std::size_t>(rank);
  return cuts[at + 1] - cuts[at];
}

constexpr velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
constexpr std::int64_t float_bytes = 4;

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// Rows of heads, [rows, a, b].
struct head_matrix {
  std::int64_t rows, a, b;
};

// Copies them to [rows, b, a].
void turn(const head_matrix& of, std::int64_t bytes, const std::byte* from, std::byte* to) {
  for (std::int64_t row = 0; row < of.rows; ++row)
    for (std::int64_t i = 0; i < of.a; ++i)
      for (std::int64_t j = 0; j < of.b; ++j)
        copy_bytes(to + ((row * of.b + j) * of.a + i) * bytes,
                   from + ((row * of.a + i) * of.b + j) * bytes, bytes);
}

}  // namespace

split_tensors::split_tensors(const pass& now, const part_widths& part, const velo_dtype& type)
    : now_(now),
      context_(now.parallel.context),
      split_(*now.split),
      part_(part),
      type_(type),
      heads_(part.heads),
      kv_heads_(part.kv_heads) {
  if (!exchanges_heads()) return;
  heads_ = count_of(context_.heads().queries, context_.rank());
  kv_heads_ = count_of(context_.heads().keys, context_.rank());
}

buffer split_tensors::workspace(std::int64_t elements) const {
  return now_.memory.take(elements * element(), VELO_PURPOSE_WORKSPACE);
}

buffer split_tensors::float_workspace(std::int64_t elements) const {
  return now_.memory.take(elements * float_bytes, VELO_PURPOSE_WORKSPACE);
}

// Rounds to the model's dtype.
void split_tensors::round(const float* from, std::int64_t elements, std::byte* to) const {
  if (type_.bits == 32)
    return copy_bytes(to, reinterpret_cast<const std::byte*>(from), elements * float_bytes);
  velo::cast(now_.stream, velo::cast_args()
                              .x(velo::tensor_view(const_cast<float*>(from), {elements}))
                              .y(velo::tensor_view(to, type_, {elements}))
                              .dtype(type_.code == VELO_DTYPE_BFLOAT ? velo::element::bfloat16
                                                                     : velo::element::float16));
}

velo::tensor_view split_tensors::flat(const buffer& of, std::int64_t elements) const {
  return {of.data(), type_, {elements}};
}

std::vector<std::int64_t> split_tensors::counts(std::int64_t width) const {
  std::vector<std::int64_t> all;
  for (const held_rows& each : split_.parts) all.push_back(windows() * each.count() * width);
  return all;
}

// Rows of heads of `width` elements.
void split_tensors::exchange(const exchanged& of, bool to_heads,
                             const std::vector<std::int64_t>& heads, std::int64_t width) const {
  const std::vector<std::int64_t> rows = counts(1);
  const std::int64_t some = count_of(heads, context_.rank()), own = now_.batch.tokens(),
                     all = windows() * split_.all_rows();
  const velo::sizes by_rows = {own, heads.back(), width}, by_heads = {all, some, width};
  const velo::tensor_view from(of.x, of.type, to_heads ? by_rows : by_heads),
      to(of.y, of.type, to_heads ? by_heads : by_rows);
  const auto ints = [](const std::vector<std::int64_t>& of) {
    return velo_ints{of.data(), static_cast<std::int64_t>(of.size())};
  };
  const velo_ints row_list = ints(rows), head_list = ints(heads);
  velo::sequence_all_to_all(now_.stream,
                            velo::sequence_all_to_all_args()
                                .group(context_.group())
                                .x(from)
                                .y(to)
                                .to(to_heads ? velo::sequence_cut::heads : velo::sequence_cut::rows)
                                .rows(row_list)
                                .heads(head_list));
}

void split_tensors::to_attention(std::byte* rows, std::byte* attention) const {
  exchange({rows, attention, type_}, true, context_.heads().queries, part_.head_dim);
}
void split_tensors::from_attention(std::byte* attention, std::byte* rows) const {
  exchange({attention, rows, type_}, false, context_.heads().queries, part_.head_dim);
}

// Calls f(row, place, count) for consecutive rows of a rank: from `row` of its rows in a
// micro-batch, `place` of those of whole sequences.
template <class F>
void split_tensors::each_run(const held_rows& part, F&& f) const {
  std::vector<row_run> runs;
  add_runs(part, runs);
  for (const row_run& run : runs)
    for (std::int64_t i = 0; i < windows(); ++i) {
      const std::int64_t row =
          is_run_by_run() ? windows() * run.first + i * run.count() : i * part.count() + run.first;
      f(row, i * split_.sequence() + run.begin, run.count());
    }
}

// The same of all ranks' rows, one rank's after another's.
template <class F>
void split_tensors::each_row_of_all(F&& f) const {
  std::int64_t before = 0;
  for (const held_rows& part : split_.parts) {
    each_run(part, [&](std::int64_t row, std::int64_t place, std::int64_t count) {
      f(before + row, place, count);
    });
    before += windows() * part.count();
  }
}

void split_tensors::spread_keys(const buffer& qkv, const buffer& whole) const {
  const std::int64_t row = part_.qkv() * element(), keys = part_.keys() * element();
  const std::byte* const from = qkv.data() + part_.attended() * element();
  if (context_.is_alone()) {
    each_run(split_.rows, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        copy_bytes(whole.data() + (place + i) * keys, from + (first + i) * row, keys);
    });
    return;
  }
  const buffer own = workspace(now_.room.tokens() * part_.keys());
  for (std::int64_t i = 0; i < now_.batch.tokens(); ++i)
    copy_bytes(own.data() + i * keys, from + i * row, keys);
  exchanges_heads() ? exchange_keys(own, whole) : gather_keys(own, whole);
}

void split_tensors::collect_keys(const buffer& whole, const buffer& qkv) const {
  const std::int64_t width = part_.keys(), row = part_.qkv() * element(), keys = width * element();
  const buffer own = workspace(now_.room.tokens() * width);
  if (context_.is_alone()) {
    each_run(split_.rows, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
      round(whole.floats() + place * width, count * width, own.data() + first * keys);
    });
  } else {
    const buffer sums = float_workspace(now_.room.tokens() * width);
    exchanges_heads() ? return_keys(whole, sums) : sum_keys(whole, sums);
    round(sums.floats(), now_.batch.tokens() * width, own.data());
  }
  std::byte* const to = qkv.data() + part_.attended() * element();
  for (std::int64_t i = 0; i < now_.batch.tokens(); ++i)
    copy_bytes(to + i * row, own.data() + i * keys, keys);
}

void split_tensors::gather_keys(const buffer& own, const buffer& whole) const {
  const std::int64_t width = part_.keys(), row = width * element(),
                     rows = windows() * split_.all_rows();
  const buffer all = workspace(room_of_windows() * split_.all_rows() * width);
  context_.group().all_gather(now_.stream, flat(own, now_.batch.tokens() * width),
                              counts(width).data(), nullptr, flat(all, rows * width));
  each_row_of_all([&](std::int64_t first, std::int64_t place, std::int64_t count) {
    copy_bytes(whole.data() + place * row, all.data() + first * row, count * row);
  });
}

void split_tensors::sum_keys(const buffer& whole, const buffer& own) const {
  const std::int64_t width = part_.keys(), row = width * float_bytes,
                     rows = windows() * split_.all_rows();
  const buffer all = float_workspace(room_of_windows() * split_.all_rows() * width);
  each_row_of_all([&](std::int64_t first, std::int64_t place, std::int64_t count) {
    copy_bytes(all.data() + first * row, whole.data() + place * row, count * row);
  });
  const velo::tensor_view sums(own.floats(), {now_.batch.tokens() * width});
  context_.group().reduce_scatter(now_.stream, velo::tensor_view(all.floats(), {rows * width}),
                                  counts(width).data(), sums);
}

// A head of keys and its values travel together, as a head of twice the width.
void split_tensors::exchange_keys(const buffer& own, const buffer& whole) const {
  const buffer paired = workspace(now_.room.tokens() * part_.keys()),
               all = workspace(room_of_windows() * split_.all_rows() * keys());
  const std::int64_t head = part_.head_dim * element(), row = 2 * kv_heads_ * head;
  turn({now_.batch.tokens(), 2, part_.kv_heads}, head, own.data(), paired.data());
  exchange({paired.data(), all.data(), type_}, true, context_.heads().keys, 2 * part_.head_dim);
  each_row_of_all([&](std::int64_t first, std::int64_t place, std::int64_t count) {
    turn({count, kv_heads_, 2}, head, all.data() + first * row, whole.data() + place * row);
  });
}

void split_tensors::return_keys(const buffer& whole, const buffer& own) const {
  const buffer paired = float_workspace(now_.room.tokens() * part_.keys()),
               all = float_workspace(room_of_windows() * split_.all_rows() * keys());
  const std::int64_t head = part_.head_dim * float_bytes, row = 2 * kv_heads_ * head;
  each_row_of_all([&](std::int64_t first, std::int64_t place, std::int64_t count) {
    turn({count, 2, kv_heads_}, head, whole.data() + place * row, all.data() + first * row);
  });
  exchange({all.data(), paired.data(), f32}, false, context_.heads().keys, 2 * part_.head_dim);
  turn({now_.batch.tokens(), part_.kv_heads, 2}, head, paired.data(), own.data());
}

}  // namespace decoder
