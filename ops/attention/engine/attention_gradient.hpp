// Gradients of one chunk of keys, on transposed scores, so that nothing is transposed inside:
//
//   S^T = scale K Q^T   dP^T = V dY^T   P^T = exp(S^T - max) / sum   dS^T = P^T (dP^T - delta)
//   dV += P^T dY    dK += dS^T Q      dQ^T += K^T dS^T
//
// A chunk is copied once and meets blocks of 128 queries, block of up to 512 keys by block, strip
// of 32 keys by strip. Which chunk meets which queries, and in which order, is the caller's.
#pragma once

#include "ops/attention/engine/attention_tile.hpp"

namespace velo::ops {

constexpr int gradient_strip = 32;  // keys between two products
constexpr int gradient_query_block = 128;
constexpr int largest_key_block = 512;

// Memory of one chunk of one key head during the loop over the query heads of its group.
struct chunk_state {
  char *k_rows, *v_rows, *k_columns;
  float *dk, *dv;

  chunk_state(attention_arena& arena, const attention_shape& shape, std::int64_t keys)
      : k_rows(arena.take<char>(keys * shape.d * shape.form.bytes())),
        v_rows(arena.take<char>(keys * shape.dv * shape.form.bytes())),
        k_columns(arena.take<char>(keys * shape.d * shape.form.bytes())),
        dk(arena.take<float>(keys * shape.d)),
        dv(arena.take<float>(keys * shape.dv)) {}
};

// One packed query head: a right side for each block of queries.
struct head_state {
  std::uint32_t *q_columns, *dy_columns, *q_depth, *dy_depth;
  float *max, *minus_log_sum, *delta, *scores, *products;
  float *rows_tile, *tile;   // of score terms, a row a query; the same turned over
  std::uint32_t* gradients;  // dS^T of a block of keys, a right side

  head_state(attention_arena& arena, const attention_shape& shape, std::int64_t queries)
      : q_columns(arena.take<std::uint32_t>(shape.words(queries * shape.d))),
        dy_columns(arena.take<std::uint32_t>(shape.words(queries * shape.dv))),
        q_depth(arena.take<std::uint32_t>(shape.words(queries * shape.d))),
        dy_depth(arena.take<std::uint32_t>(shape.words(queries * shape.dv))),
        max(arena.take<float>(queries)),
        minus_log_sum(arena.take<float>(queries)),
        delta(arena.take<float>(queries)),
        scores(arena.take<float>(gradient_strip * gradient_query_block)),
        products(arena.take<float>(gradient_strip * gradient_query_block)),
        rows_tile(arena.take<float>(gradient_strip * gradient_query_block)),
        tile(arena.take<float>(gradient_strip * gradient_query_block)),
        gradients(
            arena.take<std::uint32_t>(shape.words(largest_key_block * gradient_query_block))) {}
};

// One chunk of one key head, in the loop over query heads.
struct chunk {
  std::int64_t b, kv_head, first, keys;  // keys: of this sequence in this chunk, may be 0
  attention_sequence s;
  std::int64_t first_packed = 0;  // the query that is the first in head_state

  // The keys of the chunk, from its first, that `rows` queries from q0 on see: from begin to end.
  struct key_span {
    std::int64_t begin, end;
  };
  key_span seen_by(std::int64_t q0, std::int64_t rows) const {
    return {std::clamp<std::int64_t>(s.first_key(q0) - first, 0, keys),
            std::clamp<std::int64_t>(s.last_key(q0, rows) - first, 0, keys)};
  }
};

// Columns of a strip that were worked on: [first, last), from the first query of the block.
struct strip_columns {
  int first, last;
};

class chunk_gradients {
 public:
  chunk_gradients(const attention_problem& problem, const attention_gradients& tensors,
                  core::isa isa);

  // Copies the chunk's keys and values; writes its dK and dV.
  void begin(const chunk& c, const chunk_state& state) const;
  void end(const chunk& c, const chunk_state& state) const;
  // Packs a block of queries of head h, and finds the terms of its rows.
  void pack_queries(const chunk& c, std::int64_t h, std::int64_t q0, const head_state& head) const;
  // Adds the gradients of a block of queries and the block of keys at k0 of the chunk.
  void one_block(const chunk& c, std::int64_t h, std::int64_t q0, std::int64_t k0,
                 const chunk_state& state, const head_state& head, float* dq) const;
  // Makes P^T and dS^T of the strip at r of that block.
  strip_columns score_gradients(const chunk& c, std::int64_t h, std::int64_t q0, std::int64_t k0,
                                std::int64_t r, const chunk_state& state,
                                const head_state& head) const;
  // dS^T of that strip, in rows of the form's words.
  const float* gradient_rows_of(const head_state& head, std::int64_t r) const;

  static std::int64_t queries_at(const attention_sequence& s, std::int64_t q0) {
    return std::min<std::int64_t>(gradient_query_block, s.sq - q0);
  }

  const attention_shape shape;
  // Keys whose operands and sums stay in L2 during a loop over the queries.
  const int key_block;

 private:
  // The terms of a strip of keys, whose columns are the queries of a block of scores.
  struct term_turn {
    score_block block;
    int first, last;  // columns that are worked on, multiples of 32
  };

  row_block rows_of(const void* data, const attention_strides& strides, std::int64_t start,
                    std::int64_t first, std::int64_t rows, std::int64_t columns) const;
  char* rows_at(char* first, std::int64_t row, std::int64_t columns) const;
  void pack_sides(const row_block& rows, std::int64_t d, int wide, const right_side& columns,
                  const right_side& depth) const;
  right_side columns_of(std::uint32_t* first, std::int64_t q0, std::int64_t d) const;
  right_side depth_of(std::uint32_t* first, std::int64_t q0, std::int64_t d) const;
  right_side gradients_of(std::uint32_t* first) const;
  void add_to_keys(const strip_columns& columns, std::int64_t at, std::int64_t k0, std::int64_t r,
                   const chunk_state& state, const head_state& head) const;
  term_block turned(const term_turn& terms, float* at, const head_state& head) const;
  void turn(const term_turn& terms, const head_state& head) const;
  void add_terms(const term_turn& terms, const head_state& head) const;
  void drop(const term_turn& terms, const head_state& head) const;
  void drop_probabilities(const term_turn& terms, const head_state& head) const;

  const attention_problem& p_;
  const attention_gradients& t_;
  const attention_tiles tiles_;
  column_group groups_[gradient_query_block / 16];  // of the gradients
};

}  // namespace velo::ops
