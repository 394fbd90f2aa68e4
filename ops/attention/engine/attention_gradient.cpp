// Gradients of a chunk of keys, block by block.
#include "ops/attention/engine/attention_gradient.hpp"

#include <cstring>

namespace velo::ops {
namespace {

constexpr int strip = gradient_strip, query_block = gradient_query_block;

// The columns, from q0, that see each of a strip's keys; none see its padding.
struct seen_rows {
  int first[strip] = {}, last[strip] = {};

  seen_rows(const chunk& c, std::int64_t q0, std::int64_t wide, std::int64_t k, std::int64_t keys) {
    const auto column = [&](std::int64_t row) {
      return static_cast<int>(std::clamp<std::int64_t>(row - q0, 0, wide));
    };
    for (std::int64_t i = 0; i < keys; ++i) {
      first[i] = column(c.s.keys.first_row(c.first + k + i));
      last[i] = column(c.s.keys.last_row(c.first + k + i));
    }
  }
};

}  // namespace

chunk_gradients::chunk_gradients(const attention_problem& problem,
                                 const attention_gradients& tensors, core::isa isa)
    : shape(problem, isa),
      key_block(shape.form.compute == element_type::bf16 ? largest_key_block : 256),
      p_(problem),
      t_(tensors),
      tiles_(problem, isa) {
  for (int j = 0; j < query_block; j += 16) {
    const right_side side = gradients_of(nullptr);
    const int q = j / shape.form.panel;
    groups_[j / 16] = {q * side.panel_words + j % shape.form.panel, side.step(shape.form, q)};
  }
}

row_block chunk_gradients::rows_of(const void* data, const attention_strides& strides,
                                   std::int64_t start, std::int64_t first, std::int64_t rows,
                                   std::int64_t columns) const {
  return {static_cast<const char*>(data) + (start + first * strides.token) * shape.element,
          strides.token, static_cast<int>(rows), static_cast<int>(columns)};
}

// The address of row `row` of rows of `columns` elements.
char* chunk_gradients::rows_at(char* first, std::int64_t row, std::int64_t columns) const {
  return first + row * columns * shape.form.bytes();
}

void chunk_gradients::begin(const chunk& c, const chunk_state& state) const {
  const std::int64_t k_start = offset_of(p_, p_.k, c.b, c.s.kv_first, c.kv_head);
  const std::int64_t v_start = offset_of(p_, p_.v, c.b, c.s.kv_first, c.kv_head);
  const reorder_kernels& reorders =
      shape.form.kernels.reorders(shape.form.type, shape.form.compute);
  for (std::int64_t k0 = 0; k0 < c.keys; k0 += key_block) {
    const std::int64_t rows = std::min<std::int64_t>(key_block, c.keys - k0);
    const auto padded = static_cast<int>(round_up(rows, strip));
    const row_block k = rows_of(t_.k, p_.k, k_start, c.first + k0, rows, p_.d);
    const row_block v = rows_of(t_.v, p_.v, v_start, c.first + k0, rows, p_.dv);
    shape.steps.copy_rows(k, rows_at(state.k_rows, k0, shape.d), padded, shape.d, false);
    shape.steps.copy_rows(v, rows_at(state.v_rows, k0, shape.dv), padded, shape.dv, false);
    // K^T in plain rows; tile registers load their padding, too.
    auto* columns = reinterpret_cast<std::uint32_t*>(rows_at(state.k_columns, k0, shape.d));
    const std::int64_t ld = shape.words(key_block);
    reorders.transpose_rows({k.data, k.stride, k.rows, k.columns, columns, ld,
                             static_cast<int>(round_up(shape.words(padded), 16))});
    std::memset(columns + p_.d * ld, 0, static_cast<std::size_t>((shape.d - p_.d) * ld) * 4);
  }
  const std::int64_t padded = round_up(c.keys, strip);
  std::memset(state.dk, 0, sizeof(float) * static_cast<std::size_t>(padded * shape.d));
  std::memset(state.dv, 0, sizeof(float) * static_cast<std::size_t>(padded * shape.dv));
}

void chunk_gradients::end(const chunk& c, const chunk_state& state) const {
  const auto write = [&](const float* from, std::int64_t ld, std::int64_t columns, float scale,
                         void* to, const attention_strides& strides) {
    const std::int64_t start =
        offset_of(p_, strides, c.b, c.s.kv_first, c.kv_head) + c.first * strides.token;
    shape.key_results.write_rows(from, ld, static_cast<int>(c.keys), static_cast<int>(columns),
                                 scale, static_cast<char*>(to) + start * shape.key_result,
                                 strides.token, p_.accumulate);
  };
  write(state.dk, shape.d, p_.d, p_.scale, t_.dk, p_.dk);
  write(state.dv, shape.dv, p_.dv, 1.0f, t_.dv, p_.dv_rows);
}

void chunk_gradients::pack_queries(const chunk& c, std::int64_t h, std::int64_t q0,
                                   const head_state& head) const {
  const std::int64_t rows = queries_at(c.s, q0), at = q0 - c.first_packed;
  const auto wide = static_cast<int>(round_up(rows, strip));
  const auto rows_from = [&](const void* data, const attention_strides& strides,
                             std::int64_t columns) {
    return rows_of(data, strides, offset_of(p_, strides, c.b, c.s.q_first, h), q0, rows, columns);
  };
  const row_block dy = rows_from(t_.dy, p_.dy, p_.dv),
                  out = t_.dots != nullptr ? dy : rows_from(t_.out, p_.out, p_.dv);
  pack_sides(rows_from(t_.q, p_.q, p_.d), shape.d, wide, columns_of(head.q_columns, at, shape.d),
             depth_of(head.q_depth, at, shape.d));
  pack_sides(dy, shape.dv, wide, columns_of(head.dy_columns, at, shape.dv),
             depth_of(head.dy_depth, at, shape.dv));
  const statistics_place stats = statistics_of(p_, c.s, c.b, h, q0);
  shape.steps.row_terms(dy, out, t_.max + stats.first, t_.sum + stats.first, stats.step, wide,
                        head.max + at, head.minus_log_sum + at, head.delta + at);
  for (std::int64_t i = 0; t_.dots != nullptr && i < rows; ++i)
    head.delta[at + i] = t_.dots[stats.first + i * stats.step];
}

// Packs rows of queries, padded to `wide`, as the columns and as the depth of right sides.
void chunk_gradients::pack_sides(const row_block& rows, std::int64_t d, int wide,
                                 const right_side& columns, const right_side& depth) const {
  pack_right(shape.form, {rows.data, rows.stride, true}, rows.columns, rows.rows,
             static_cast<int>(shape.words(d)), columns);
  pack_right(shape.form, {rows.data, rows.stride, false}, rows.rows, rows.columns,
             static_cast<int>(shape.words(wide)), depth);
}

// A block of queries as right sides: queries as columns, or as the depth.
right_side chunk_gradients::columns_of(std::uint32_t* first, std::int64_t q0,
                                       std::int64_t d) const {
  return shape.side(first + shape.words(q0 * d), query_block, d);
}
right_side chunk_gradients::depth_of(std::uint32_t* first, std::int64_t q0, std::int64_t d) const {
  return shape.side(first + shape.words(q0 * d), d, query_block);
}
// dS^T as a right side. Floats stay in plain rows, which serve as a left side, too.
right_side chunk_gradients::gradients_of(std::uint32_t* first) const {
  if (shape.form.per_word() == 1) return {first, shape.form.panel, query_block, query_block};
  return shape.side(first, query_block, largest_key_block);
}

// Adds the gradients of a block of queries and a block of keys.
void chunk_gradients::one_block(const chunk& c, std::int64_t h, std::int64_t q0, std::int64_t k0,
                                const chunk_state& state, const head_state& head, float* dq) const {
  const std::int64_t rows = queries_at(c.s, q0);
  const chunk::key_span seen = c.seen_by(q0, rows);
  const std::int64_t begin = std::max<std::int64_t>(seen.begin - k0, 0) / strip * strip;
  const std::int64_t end = std::min<std::int64_t>(key_block, seen.end - k0);
  if (begin >= end || seen.begin >= seen.end) return;
  const std::int64_t wide = round_up(rows, strip);
  for (std::int64_t r = begin; r < end; r += strip) {
    const strip_columns columns = score_gradients(c, h, q0, k0, r, state, head);
    add_to_keys(columns, q0 - c.first_packed, k0, r, state, head);
  }
  const auto first_word = static_cast<int>(shape.words(begin));
  panel_product queries{};
  queries.a = rows_at(state.k_columns, k0, shape.d) + first_word * 4;
  queries.a_row = shape.words(key_block);
  queries.b = gradients_of(head.gradients);
  queries.c = dq + q0 * shape.d;
  queries.ldc = query_block;
  queries.rows = static_cast<int>(shape.d);
  queries.add = k0 > seen.begin;
  queries.first_word = first_word;
  // Gradients are zero past the last key that a panel's queries see.
  const int panel = shape.form.panel;
  for (int j = 0; j < wide; j += panel) {
    const std::int64_t last = c.seen_by(q0, std::min<std::int64_t>(j + panel, rows)).end - k0;
    const std::int64_t depth = std::clamp<std::int64_t>(last, begin + 1, end) - begin;
    queries.first_column = j;
    queries.columns = static_cast<int>(std::min<std::int64_t>(panel, wide - j));
    queries.words = static_cast<int>(shape.words(round_up(depth, strip)));
    multiply(shape.form, queries);
  }
}

term_block chunk_gradients::turned(const term_turn& terms, float* at,
                                   const head_state& head) const {
  return {at, query_block, head.tile, query_block, strip, terms.first, terms.last, p_.scale};
}

void chunk_gradients::turn(const term_turn& terms, const head_state& head) const {
  const int used = terms.block.rows * strip, all = (terms.last - terms.first) * strip;
  std::fill(head.rows_tile + used, head.rows_tile + all, 0.0f);
  tiles_.kernels().turn(head.rows_tile, strip, terms.last - terms.first, strip,
                        head.tile + terms.first, query_block);
}

void chunk_gradients::add_terms(const term_turn& terms, const head_state& head) const {
  tiles_.addends(terms.block, head.rows_tile, strip);
  turn(terms, head);
  tiles_.kernels().add(turned(terms, head.scores, head));
}

void chunk_gradients::drop(const term_turn& terms, const head_state& head) const {
  tiles_.multipliers(terms.block, head.rows_tile, strip);
  turn(terms, head);
  tiles_.kernels().multiply_f32(turned(terms, head.products, head));
}

// Drops the same probabilities, which have replaced the scores, as the product with dY reads.
void chunk_gradients::drop_probabilities(const term_turn& terms, const head_state& head) const {
  term_block x = turned(terms, head.scores, head);
  x.ld *= shape.form.per_word();
  shape.form.per_word() == 1 ? tiles_.kernels().multiply_f32(x) : tiles_.kernels().multiply_bf16(x);
}

// The scores and the gradients of a strip of keys with a block of queries.
strip_columns chunk_gradients::score_gradients(const chunk& c, std::int64_t h, std::int64_t q0,
                                               std::int64_t k0, std::int64_t r,
                                               const chunk_state& state,
                                               const head_state& head) const {
  const std::int64_t wide = round_up(queries_at(c.s, q0), strip), at = q0 - c.first_packed;
  const std::int64_t k = k0 + r, keys = std::min<std::int64_t>(strip, c.keys - k);
  const seen_rows seen(c, q0, wide, k, keys);
  // Groups of columns that see none of the strip's keys are skipped.
  const std::int64_t first = std::min<std::int64_t>(seen.first[0], wide - strip) / strip * strip;
  const std::int64_t last =
      std::max<std::int64_t>(round_up(seen.last[keys - 1], strip), first + strip);
  const auto across_queries = [&](const char* a, std::int64_t d, const right_side& b, float* to) {
    panel_product x{};
    x.a = rows_at(const_cast<char*>(a), k, d);
    x.a_row = shape.words(d);
    x.b = b;
    x.first_column = static_cast<int>(first);
    x.columns = static_cast<int>(last - first);
    x.words = static_cast<int>(shape.words(d));
    x.c = to;
    x.ldc = query_block;
    x.rows = strip;
    multiply(shape.form, x);
  };
  across_queries(state.k_rows, shape.d, columns_of(head.q_columns, at, shape.d), head.scores);
  across_queries(state.v_rows, shape.dv, columns_of(head.dy_columns, at, shape.dv), head.products);
  const term_turn terms{{c.b, h, c.s, q0 + first, c.first + k,
                         static_cast<int>(std::min(last, queries_at(c.s, q0)) - first),
                         static_cast<int>(keys), strip},
                        static_cast<int>(first),
                        static_cast<int>(last)};
  if (p_.terms->adds()) add_terms(terms, head);
  if (p_.terms->drops) drop(terms, head);
  gradient_rows x{};
  x.scores = head.scores;
  x.products = head.products;
  x.groups = groups_;
  x.words = head.gradients;
  x.first_word = static_cast<int>(shape.words(r));
  x.ld = query_block;
  x.rows = strip;
  x.first = static_cast<int>(first);
  x.last = static_cast<int>(last);
  x.columns = static_cast<int>(wide);
  x.first_seen = seen.first;
  x.last_seen = seen.last;
  x.scale = p_.terms->adds() ? 1.0f : p_.scale;
  x.max = head.max + at;
  x.minus_log_sum = head.minus_log_sum + at;
  x.delta = head.delta + at;
  shape.steps.gradient(x);
  if (p_.terms->drops) drop_probabilities(terms, head);
  return {static_cast<int>(first), static_cast<int>(last)};
}

const float* chunk_gradients::gradient_rows_of(const head_state& head, std::int64_t r) const {
  return shape.form.per_word() == 1
             ? reinterpret_cast<const float*>(head.gradients) + r * query_block
             : head.products;
}

// Adds a strip to dV and dK; probabilities and gradients have replaced scores and products.
void chunk_gradients::add_to_keys(const strip_columns& columns, std::int64_t at, std::int64_t k0,
                                  std::int64_t r, const chunk_state& state,
                                  const head_state& head) const {
  const int first = columns.first;
  const auto over_queries = [&](const float* a, std::int64_t d, const right_side& b, float* to) {
    panel_product x{};
    x.a = a + shape.words(first);
    x.a_row = query_block;
    x.b = b;
    x.columns = static_cast<int>(d);
    x.first_word = static_cast<int>(shape.words(first));
    x.words = static_cast<int>(shape.words(columns.last - first));
    x.c = to + (k0 + r) * d;
    x.ldc = d;
    x.rows = strip;
    x.add = true;
    multiply(shape.form, x);
  };
  over_queries(head.scores, shape.dv, depth_of(head.dy_depth, at, shape.dv), state.dv);
  over_queries(gradient_rows_of(head, r), shape.d, depth_of(head.q_depth, at, shape.d), state.dk);
}

}  // namespace velo::ops
