// Products with quantized weights over the vector type `v` of the including namespace.
#include "ops/quant/finished_rows.inl"

// A loop over many integers takes them two vectors at a time, those of int4 first the even and then
// the odd ones; what they meet is brought into that order.
struct int8_weights {
  static __attribute__((always_inline)) v::vec load(const uint8_t* row, int64_t j) {
    return v::load(reinterpret_cast<const int8_t*>(row) + j);
  }
  static __attribute__((always_inline)) v::vec load(const uint8_t* row, int64_t j, int n) {
    return v::load(reinterpret_cast<const int8_t*>(row) + j, n);
  }
  static __attribute__((always_inline)) v::even_odd load_two(const uint8_t* row, int64_t j) {
    return {load(row, j), load(row, j + v::width)};
  }
  static __attribute__((always_inline)) v::even_odd order(v::vec a, v::vec b) { return {a, b}; }
  static __attribute__((always_inline)) v::vec2 restore(v::even_odd x) { return {x.even, x.odd}; }
  static constexpr int per_byte = 1;
};

struct int4_weights {
  static __attribute__((always_inline)) v::vec load(const uint8_t* row, int64_t j) {
    return v::load_int4(row + j / 2);
  }
  static __attribute__((always_inline)) v::vec load(const uint8_t* row, int64_t j, int n) {
    return v::load_int4(row + j / 2, n);
  }
  static __attribute__((always_inline)) v::even_odd load_two(const uint8_t* row, int64_t j) {
    return v::load_int4_apart(row + j / 2);
  }
  static __attribute__((always_inline)) v::even_odd order(v::vec a, v::vec b) {
    return v::apart(a, b);
  }
  static __attribute__((always_inline)) v::vec2 restore(v::even_odd x) { return v::together(x); }
  static constexpr int per_byte = 2;
};

template <class Weights>
VELO_INLINE void widen_as(const widened_integers& s) {
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) v::store(s.to + i, Weights::load(s.from, i));
  const int left = static_cast<int>(s.n - i);
  if (left > 0) v::store(s.to + i, Weights::load(s.from, i, left), left);
}

void widen(const widened_integers& s) {
  s.int4 ? widen_as<int4_weights>(s) : widen_as<int8_weights>(s);
}

// Elements [i, i + n) of a row of scales or offsets.
VELO_INLINE v::vec load_as(element_type type, const void* p, int64_t i, int n) {
  if (type == element_type::f32) return v::load(static_cast<const float*>(p) + i, n);
  if (type == element_type::bf16) return v::load(static_cast<const simd::bf16*>(p) + i, n);
  return v::load(static_cast<const simd::f16*>(p) + i, n);
}

VELO_INLINE v::vec one_as(element_type type, const void* p, int64_t i) {
  if (type == element_type::f32) return v::set(static_cast<const float*>(p)[i]);
  float first[v::width];
  v::store(first, load_as(type, p, i, 1));
  return v::set(first[0]);
}

VELO_INLINE v::vec scales_at(const weight_scales& s, int64_t i, int n) {
  return load_as(s.type, s.scale, i, n);
}
VELO_INLINE v::vec offsets_at(const weight_scales& s, int64_t i, int n) {
  return s.offset == nullptr ? v::zero() : load_as(s.type, s.offset, i, n);
}

// What a panel is made of: integers of the weight, or what it holds.
template <class Weights>
VELO_INLINE v::vec element_of(const dequantized_panel& s, int i, int j, int n) {
  if constexpr (__is_same(Weights, void)) {
    return v::load(s.panel + i * s.width + j);
  } else {
    const uint8_t* row = s.from + i * s.ld;
    return n == v::width ? Weights::load(row, j) : Weights::load(row, j, n);
  }
}

// The scales of a column are those of several rows, its group.
template <class Weights>
VELO_INLINE void dequantize_along_k(const dequantized_panel& s) {
  for (int begin = 0, end = 0; begin < s.rows; begin = end) {
    const int64_t group = (s.first_row + begin) / s.scales.group;
    const int64_t left = (group + 1) * s.scales.group - s.first_row;
    end = left < s.rows ? static_cast<int>(left) : s.rows;
    const int64_t first = group * s.scales.ld + s.first_column;
    for (int j = 0; j < s.columns; j += v::width) {
      const int n = simd::lanes_left<v::width>(s.columns, j);
      const v::vec scale = scales_at(s.scales, first + j, n),
                   offset = offsets_at(s.scales, first + j, n);
      for (int i = begin; i < end; ++i)
        v::store(s.panel + i * s.width + j, (element_of<Weights>(s, i, j, n) + offset) * scale);
    }
  }
}

// A row has one scale for each group of its columns, which are whole vectors.
template <class Weights>
VELO_INLINE void dequantize_along_n(const dequantized_panel& s) {
  for (int j = 0; j < s.columns; j += v::width) {
    const int n = simd::lanes_left<v::width>(s.columns, j);
    const int64_t first = (s.first_column + j) / s.scales.group * s.scales.ld + s.first_row;
    for (int i = 0; i < s.rows; ++i) {
      const v::vec scale = one_as(s.scales.type, s.scales.scale, first + i);
      const v::vec offset = s.scales.offset == nullptr
                                ? v::zero()
                                : one_as(s.scales.type, s.scales.offset, first + i);
      v::store(s.panel + i * s.width + j, (element_of<Weights>(s, i, j, n) + offset) * scale);
    }
  }
}

template <class Weights>
void dequantize_from(const dequantized_panel& s) {
  s.rows_along_k ? dequantize_along_k<Weights>(s) : dequantize_along_n<Weights>(s);
  for (int j = (s.columns + v::width - 1) / v::width * v::width; j < s.width; j += v::width)
    for (int i = 0; i < s.rows; ++i) v::store(s.panel + i * s.width + j, v::zero());
}

void dequantize(const dequantized_panel& s) {
  s.from == nullptr ? dequantize_from<void>(s)
  : s.int4          ? dequantize_from<int4_weights>(s)
                    : dequantize_from<int8_weights>(s);
}

// ---- a row by columns: sums of a group wait in cache between runs of eight rows ----

// Adds rows [k, k + Rows) of the weight times x to the sums of two pairs of vectors of columns.
template <class Weights, bool Offset, int Rows>
VELO_INLINE void add_rows(const row_by_columns& s, int64_t k, int64_t j, int64_t scales_first,
                          const v::vec (&x)[Rows]) {
  constexpr int pair = 2 * v::width;
  v::even_odd sums[2], offset[2];
#pragma GCC unroll 2
  for (int u = 0; u < 2; ++u) {
    const float* at = s.sums + j + u * pair;
    sums[u] = {v::load(at), v::load(at + v::width)};
    const int64_t first = scales_first + j + u * pair;
    if (Offset)
      offset[u] = Weights::order(offsets_at(s.scales, first, v::width),
                                 offsets_at(s.scales, first + v::width, v::width));
  }
  const uint8_t* row = s.weight + k * s.ld;
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r, row += s.ld) {
    v::prefetch(row + Rows * s.ld + j / Weights::per_byte);  // what the next call adds
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u) {
      v::even_odd w = Weights::load_two(row, j + u * pair);
      if (Offset) w = {w.even + offset[u].even, w.odd + offset[u].odd};
      sums[u].even = v::fma(x[r], w.even, sums[u].even);
      sums[u].odd = v::fma(x[r], w.odd, sums[u].odd);
    }
  }
#pragma GCC unroll 2
  for (int u = 0; u < 2; ++u) {
    float* at = s.sums + j + u * pair;
    v::store(at, sums[u].even);
    v::store(at + v::width, sums[u].odd);
  }
}

template <class Weights, bool Offset, int Rows>
VELO_INLINE void add_tail(const row_by_columns& s, int64_t k, int64_t j, int64_t scales_first,
                          const v::vec (&x)[Rows]) {
  const int n = simd::lanes_left<v::width>(s.columns, j);
  v::vec sum = v::load(s.sums + j, n);
  for (int r = 0; r < Rows; ++r) {
    v::vec w = Weights::load(s.weight + (k + r) * s.ld, j, n);
    if (Offset) w = w + offsets_at(s.scales, scales_first + j, n);
    sum = v::fma(x[r], w, sum);
  }
  v::store(s.sums + j, sum, n);
}

VELO_INLINE int64_t columns_in_pairs(const row_by_columns& s) {
  return s.columns / (4 * v::width) * (4 * v::width);
}

template <class Weights, bool Offset, int Rows>
VELO_INLINE void add_all_columns(const row_by_columns& s, int64_t k, int64_t scales_first) {
  v::vec x[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) x[r] = v::set(s.x[k + r]);
  int64_t j = 0;
  for (; j < columns_in_pairs(s); j += 4 * v::width)
    add_rows<Weights, Offset, Rows>(s, k, j, scales_first, x);
  for (; j < s.columns; j += v::width) add_tail<Weights, Offset, Rows>(s, k, j, scales_first, x);
}

// The sums of a group times its scales.
template <class Weights>
VELO_INLINE void add_scaled(const row_by_columns& s, int64_t first) {
  int64_t j = 0;
  for (; j < columns_in_pairs(s); j += 2 * v::width) {
    const v::vec2 sums = Weights::restore({v::load(s.sums + j), v::load(s.sums + j + v::width)});
    const v::vec scale = scales_at(s.scales, first + j, v::width),
                 next = scales_at(s.scales, first + j + v::width, v::width);
    v::store(s.y + j, v::fma(sums.a, scale, v::load(s.y + j)));
    v::store(s.y + j + v::width, v::fma(sums.b, next, v::load(s.y + j + v::width)));
  }
  for (; j < s.columns; j += v::width) {
    const int n = simd::lanes_left<v::width>(s.columns, j);
    const v::vec scale = scales_at(s.scales, first + j, n);
    v::store(s.y + j, v::fma(v::load(s.sums + j, n), scale, v::load(s.y + j, n)), n);
  }
}

template <class Weights, bool Offset>
void multiply_columns(const row_by_columns& s) {
  for (int64_t j = 0; j < s.columns; ++j) s.y[j] = 0;
  for (int64_t begin = 0; begin < s.k; begin += s.scales.group) {
    const int64_t end = begin + s.scales.group < s.k ? begin + s.scales.group : s.k;
    const int64_t first = begin / s.scales.group * s.scales.ld + s.first;
    for (int64_t j = 0; j < s.columns; ++j) s.sums[j] = 0;
    int64_t k = begin;
    for (; k + 8 <= end; k += 8) add_all_columns<Weights, Offset, 8>(s, k, first);
    for (; k < end; ++k) add_all_columns<Weights, Offset, 1>(s, k, first);
    add_scaled<Weights>(s, first);
  }
}

void by_columns(const row_by_columns& s) {
  if (s.int4)
    s.scales.offset == nullptr ? multiply_columns<int4_weights, false>(s)
                               : multiply_columns<int4_weights, true>(s);
  else
    s.scales.offset == nullptr ? multiply_columns<int8_weights, false>(s)
                               : multiply_columns<int8_weights, true>(s);
}

// ---- a row by rows: dot products, four at once, with two sums each ----

template <class Weights, bool Offset, int Rows>
VELO_INLINE void dot_group(const row_by_rows& s, const uint8_t* weight, int64_t begin, int64_t end,
                           const v::vec (&offset)[Rows], v::vec (&sums)[Rows]) {
  v::vec even[Rows], odd[Rows];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) even[r] = odd[r] = v::zero();
  int64_t i = begin;
  for (; i + 2 * v::width <= end; i += 2 * v::width) {
    const v::vec x0 = v::load(s.x + i), x1 = v::load(s.x + i + v::width);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const uint8_t* row = weight + r * s.ld;
      v::prefetch(row + Rows * s.ld + i / Weights::per_byte);  // what the next call reads
      v::even_odd w = Weights::load_two(row, i);
      if (Offset) w = {w.even + offset[r], w.odd + offset[r]};
      even[r] = v::fma(x0, w.even, even[r]);
      odd[r] = v::fma(x1, w.odd, odd[r]);
    }
  }
  for (; i < end; i += v::width) {
    const int n = simd::lanes_left<v::width>(end, i);
    const v::vec x = v::load(s.x + i, n);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      v::vec w = Weights::load(weight + r * s.ld, i, n);
      if (Offset) w = w + offset[r];
      even[r] = v::fma(x, w, even[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) sums[r] = even[r] + odd[r];
}

template <class Weights, bool Offset, int Rows>
VELO_INLINE void dot_rows(const row_by_rows& s, int64_t j) {
  const uint8_t* weight = s.weight + j * s.ld;
  v::vec total[Rows];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) total[r] = v::zero();
  for (int64_t begin = 0; begin < s.k; begin += s.scales.group) {
    const int64_t end = begin + s.scales.group < s.k ? begin + s.scales.group : s.k;
    const int64_t first = begin / s.scales.group * s.scales.ld + s.first + j;
    float scale[v::width];
    v::store(scale, scales_at(s.scales, first, Rows));
    v::vec offset[Rows], sums[Rows];
    if (Offset) {
      float all[v::width];
      v::store(all, offsets_at(s.scales, first, Rows));
      for (int r = 0; r < Rows; ++r) offset[r] = v::set(all[r]);
    }
    dot_group<Weights, Offset, Rows>(s, weight, begin, end, offset, sums);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) total[r] = v::fma(sums[r], v::set(scale[r]), total[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) s.y[j + r] = v::sum(total[r]);
}

// A row of x in the order that int4 are read in.
void order_row(float* x, int64_t n) {
  for (int64_t i = 0; i + 2 * v::width <= n; i += 2 * v::width) {
    const v::even_odd parts = v::apart(v::load(x + i), v::load(x + i + v::width));
    v::store(x + i, parts.even);
    v::store(x + i + v::width, parts.odd);
  }
}

template <class Weights, bool Offset>
void multiply_rows(const row_by_rows& s) {
  int64_t j = 0;
  for (; j + 4 <= s.rows; j += 4) dot_rows<Weights, Offset, 4>(s, j);
  for (; j < s.rows; ++j) dot_rows<Weights, Offset, 1>(s, j);
}

void by_rows(const row_by_rows& s) {
  if (s.int4)
    s.scales.offset == nullptr ? multiply_rows<int4_weights, false>(s)
                               : multiply_rows<int4_weights, true>(s);
  else
    s.scales.offset == nullptr ? multiply_rows<int8_weights, false>(s)
                               : multiply_rows<int8_weights, true>(s);
}

constexpr weight_quant_kernels kernels = {this_isa,   widen,   dequantize,    order_row,
                                          by_columns, by_rows, finish_kernels};
