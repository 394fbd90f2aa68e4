// Products with rows of a cache over the vector type `v` of the including namespace.
//
// A score is a sum along a row, in as many lanes as a vector has, each a chain of multiply-adds,
// added up at the end in a tree of fixed shape; an element of an output is one chain over the keys.
// Neither knows how many other rows and keys its block has. Blocks of 4 keys and 4 rows of queries,
// and of 4 rows and 4 vectors of columns (2 rows where there are 16 registers), load little more
// than they multiply.

#include "core/simd/math.inl"

using simd::bf16, simd::f16;

constexpr int W = v::width;
constexpr int block_rows = W == 16 ? 4 : 2;
constexpr int block_keys = 4;
constexpr int block_vectors = 4;

// Elements E of the cache, multiplied as floats.
template <class E>
struct floats {
  using element = E;
  using query = float;
  using weight = float;
  using vec = v::vec;
  static constexpr int step = W;   // elements of a vector
  static constexpr int depth = 1;  // keys that a product with values takes at once

  VELO_INLINE vec load(const E* p) { return v::load(p); }
  VELO_INLINE vec load(const E* p, int n) { return v::load(p, n); }
  VELO_INLINE vec load_query(const float* p) { return v::load(p); }
  VELO_INLINE vec load_values(const void* const* rows, int column) {
    return v::load(static_cast<const E*>(*rows) + column);
  }
  VELO_INLINE vec load_values(const void* const* rows, int column, int n) {
    return v::load(static_cast<const E*>(*rows) + column, n);
  }
  VELO_INLINE vec load_weight(const float* p) { return v::set(*p); }
  VELO_INLINE v::vec multiply_add(v::vec sum, vec a, vec b) { return v::fma(a, b, sum); }
};

// bf16 two at a time.
template <class Operand>
struct pairs_of {
  using element = bf16;
  using query = bf16;
  using weight = bf16;
  using vec = Operand;
  static constexpr int step = 2 * W;
  static constexpr int depth = 2;

  VELO_INLINE const uint16_t* halves(const void* p) { return static_cast<const uint16_t*>(p); }
  VELO_INLINE vec load(const bf16* p) { return load(p, step); }
  VELO_INLINE vec load(const bf16* p, int n) { return {v::words::load_halves(halves(p), n).v}; }
  VELO_INLINE vec load_query(const bf16* p) { return load(p, step); }
  VELO_INLINE vec load_values(const void* const* rows, int column, int n = W) {
    return {v::words::pair(halves(rows[0]) + column, halves(rows[1]) + column, n).v};
  }
  VELO_INLINE vec load_weight(const bf16* p) {
    return vec::broadcast(reinterpret_cast<const uint32_t*>(p));
  }
  VELO_INLINE v::vec multiply_add(v::vec sum, vec a, vec b) { return vec::multiply_add(sum, a, b); }
};

template <class P>
VELO_INLINE void prefetch_row(const void* row, int columns) {
  const char* p = static_cast<const char*>(row);
  const int bytes = columns * static_cast<int>(sizeof(typename P::element));
  for (int i = 0; i < bytes; i += 64) v::prefetch_far(p + i);
}

// ---- scores ----

template <class P, int Rows>
VELO_INLINE void score_block(const cache_scores& x, int row, const void* const* keys, float* to) {
  using E = typename P::element;
  using Q = typename P::query;
  const E* k[block_keys];
#pragma GCC unroll 8
  for (int j = 0; j < block_keys; ++j) k[j] = static_cast<const E*>(keys[j]);
  const char* q = static_cast<const char*>(x.q) + row * x.q_row;
  v::vec sums[Rows][block_keys];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < block_keys; ++j) sums[i][j] = v::zero();
  int d = 0;
  if (Rows == 1 && sizeof(E) > 1) {  // a key after the other, as they lie; bytes take longer
#pragma GCC unroll 8
    for (int j = 0; j < block_keys; ++j)
      for (d = 0; d + P::step <= x.keys.columns; d += P::step) {
        const auto by = P::load_query(reinterpret_cast<const Q*>(q) + d);
        sums[0][j] = P::multiply_add(sums[0][j], P::load(k[j] + d), by);
      }
  } else {
    for (; d + P::step <= x.keys.columns; d += P::step) {
      typename P::vec of[block_keys];
#pragma GCC unroll 8
      for (int j = 0; j < block_keys; ++j) of[j] = P::load(k[j] + d);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const auto by = P::load_query(reinterpret_cast<const Q*>(q + i * x.q_row) + d);
#pragma GCC unroll 8
        for (int j = 0; j < block_keys; ++j) sums[i][j] = P::multiply_add(sums[i][j], of[j], by);
      }
    }
  }
  if (d < x.keys.columns) {
    const int n = x.keys.columns - d;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const auto by = P::load_query(reinterpret_cast<const Q*>(q + i * x.q_row) + d);
#pragma GCC unroll 8
      for (int j = 0; j < block_keys; ++j)
        sums[i][j] = P::multiply_add(sums[i][j], P::load(k[j] + d, n), by);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
    v::sum4(sums[i][0], sums[i][1], sums[i][2], sums[i][3], to + i * x.ld);
}

template <class P>
void scores(const cache_scores& x) {
  for (int j = 0; j < x.keys.count; j += block_keys) {
    const void* keys[block_keys];
#pragma GCC unroll 8
    for (int c = 0; c < block_keys; ++c) {
      const int key = j + c;
      keys[c] = x.keys.rows[key < x.keys.count ? key : x.keys.count - 1];
      if (x.keys.ahead > 0) prefetch_row<P>(x.keys.rows[key + x.keys.ahead], x.keys.columns);
    }
    float* to = x.scores + j;
    int i = 0;
    for (; i + block_rows <= x.rows; i += block_rows)
      score_block<P, block_rows>(x, i, keys, to + i * x.ld);
    for (; i < x.rows; ++i) score_block<P, 1>(x, i, keys, to + i * x.ld);
  }
}

// ---- values ----

// Vectors of some columns, the last of `last` lanes.
template <class P, int Rows, int Vectors>
VELO_INLINE void value_block(const cache_values& x, int row, int column, int last, bool ahead) {
  using T = typename P::weight;
  const char* p = static_cast<const char*>(x.p) + row * x.p_row;
  float* out = x.out + row * x.ld + column;
  v::vec sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int c = 0; c < Vectors; ++c) sums[i][c] = v::load(out + i * x.ld + c * W);
  for (int j = 0; j < x.values.count; j += P::depth) {
    typename P::vec of[Vectors];
#pragma GCC unroll 8
    for (int c = 0; c < Vectors - 1; ++c) of[c] = P::load_values(x.values.rows + j, column + c * W);
    of[Vectors - 1] = last == W
                          ? P::load_values(x.values.rows + j, column + (Vectors - 1) * W)
                          : P::load_values(x.values.rows + j, column + (Vectors - 1) * W, last);
    if (ahead) {
#pragma GCC unroll 8
      for (int c = 0; c < P::depth; ++c)
        prefetch_row<P>(x.values.rows[j + c + x.values.ahead], x.values.columns);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const auto by = P::load_weight(reinterpret_cast<const T*>(p + i * x.p_row) + j);
#pragma GCC unroll 8
      for (int c = 0; c < Vectors; ++c) sums[i][c] = P::multiply_add(sums[i][c], of[c], by);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int c = 0; c < Vectors; ++c) v::store(out + i * x.ld + c * W, sums[i][c]);
}

template <class P, int Vectors>
VELO_INLINE void value_columns(const cache_values& x, int column, int last) {
  const bool ahead = x.values.ahead > 0 && column == 0;
  int i = 0;
  for (; Vectors <= block_vectors && i + block_rows <= x.rows; i += block_rows)
    value_block<P, block_rows, Vectors>(x, i, column, last, ahead && i == 0);
  for (; i < x.rows; ++i) value_block<P, 1, Vectors>(x, i, column, last, ahead && i == 0);
}

// Few rows take twice as many columns, so that they read memory in longer runs.
template <class P>
void values(const cache_values& x) {
  int column = 0;
  if (x.rows < block_rows) {
    for (; column + 2 * block_vectors * W <= x.values.columns; column += 2 * block_vectors * W)
      value_columns<P, 2 * block_vectors>(x, column, W);
  }
  for (; column + block_vectors * W <= x.values.columns; column += block_vectors * W)
    value_columns<P, block_vectors>(x, column, W);
  for (; column + W <= x.values.columns; column += W) value_columns<P, 1>(x, column, W);
  if (column < x.values.columns) value_columns<P, 1>(x, column, x.values.columns - column);
}

// ---- between and after them ----

void scale_columns(float* rows, int64_t ld, int count, int columns, const float* factors) {
  for (int i = 0; i < count; ++i) {
    float* row = rows + i * ld;
    for (int j = 0; j < columns; j += W) v::store(row + j, v::load(row + j) * v::load(factors + j));
  }
}

// e^(x - m), 1 where they are equal: infinities have no difference.
VELO_INLINE v::vec share_of(float x, float m) {
  return x == m ? v::set(1.0f) : exp<float>(v::set(x) - v::set(m));
}

VELO_INLINE void merge_row(float* to, const float* from, int n, v::vec before, v::vec now) {
  for (int j = 0; j < n; j += W)
    v::store(to + j, v::fma(v::load(to + j), before, v::load(from + j) * now));
}

void merge(const cache_merge& x) {
  for (int i = 0; i < x.rows; ++i) {
    const float before = x.to.reference[i], now = x.from.reference[i];
    const float most = before > now ? before : now;
    const v::vec by = share_of(before, most), with = share_of(now, most);
    merge_row(x.to.out + i * x.ld, x.from.out + i * x.ld, x.columns, by, with);
    merge_row(x.to.sum + i * 16, x.from.sum + i * 16, 16, by, with);
    x.to.reference[i] = most;
  }
}

template <class P>
constexpr cache_steps steps_of() {
  return {scores<P>, values<P>};
}

template <class Operand>
constexpr cached_attention_kernels all_kernels() {
  cached_attention_kernels all{this_isa,
                               steps_of<floats<float>>(),
                               steps_of<floats<bf16>>(),
                               steps_of<floats<f16>>(),
                               steps_of<floats<int8_t>>(),
                               {},
                               scale_columns,
                               merge};
  if constexpr (!__is_same(Operand, void)) all.pairs = steps_of<pairs_of<Operand>>();
  return all;
}

constexpr cached_attention_kernels kernels = all_kernels<v::dot_operand>();
