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

template <class Weights, class Widened>
VELO_INLINE void widen_as(const Widened& s) {
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) v::store(s.to + i, Weights::load(s.from, i));
  const int left = static_cast<int>(s.n - i);
  if (left > 0) v::store(s.to + i, Weights::load(s.from, i, left), left);
}

void widen(const widened_integers& s) {
  s.int4 ? widen_as<int4_weights>(s) : widen_as<int8_weights>(s);
}

void widen_to_bf16(const integers_as_bf16& s) {
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
    v::prefetch(row + 8 * s.ld + j / Weights::per_byte);
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
      const v::vec scale =
                       s.scales.scale == nullptr ? v::set(1) : scales_at(s.scales, first + j, n),
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

// 0 * y is 0 if y is finite, else NaN.
bool add_group(const group_sums& s) {
  v::vec zeros = v::zero();
  for (int64_t j = 0; j < s.columns; j += v::width) {
    const int n = simd::lanes_left<v::width>(s.columns, j);
    const v::vec scale = scales_at(s.scales, s.first + j, n);
    for (int64_t i = 0; i < s.rows; ++i) {
      float* y = s.y + i * s.ld + j;
      const v::vec before = s.add ? v::load(y, n) : v::zero();
      const v::vec result = v::fma(v::load(s.sums + i * s.ld + j, n), scale, before);
      zeros = v::fma(result, v::zero(), zeros);
      v::store(y, result, n);
    }
  }
  return v::sum(zeros) == 0;
}

// ---- a few rows by columns: sums of a group wait in cache between runs over the depth ----

// Adds x times `Steps` rows of the weight from row k to the sums of a pair of vectors of columns.
template <class Weights, bool Offset, int Steps>
VELO_INLINE void add_steps(const few_by_columns& s, int64_t k, int64_t j, int64_t scales_first) {
  v::even_odd w[Steps], offset;
  if (Offset)
    offset = Weights::order(offsets_at(s.scales, scales_first + j, v::width),
                            offsets_at(s.scales, scales_first + j + v::width, v::width));
  const uint8_t* row = s.weight + k * s.ld;
#pragma GCC unroll 8
  for (int i = 0; i < Steps; ++i, row += s.ld) {
    v::prefetch(row + Steps * s.ld + j / Weights::per_byte);  // the next call adds it
    w[i] = Weights::load_two(row, j);
    if (Offset) w[i] = {w[i].even + offset.even, w[i].odd + offset.odd};
  }
  const float* x = s.x + k;
  float* at = s.sums + j;
  for (int r = 0; r < s.rows; ++r, x += s.ldx, at += s.ldy) {
    v::vec even = v::load(at), odd = v::load(at + v::width);
#pragma GCC unroll 8
    for (int i = 0; i < Steps; ++i) {
      even = v::fma(v::set(x[i]), w[i].even, even);
      odd = v::fma(v::set(x[i]), w[i].odd, odd);
    }
    v::store(at, even);
    v::store(at + v::width, odd);
  }
}

// The same of the columns that are no pair of vectors, n of a vector.
template <class Weights, bool Offset, int Steps>
VELO_INLINE void add_tail(const few_by_columns& s, int64_t k, int64_t j, int64_t scales_first) {
  const int n = simd::lanes_left<v::width>(s.columns, j);
  for (int r = 0; r < s.rows; ++r) {
    v::vec sum = v::load(s.sums + r * s.ldy + j, n);
    for (int i = 0; i < Steps; ++i) {
      v::vec w = Weights::load(s.weight + (k + i) * s.ld, j, n);
      if (Offset) w = w + offsets_at(s.scales, scales_first + j, n);
      sum = v::fma(v::set(s.x[r * s.ldx + k + i]), w, sum);
    }
    v::store(s.sums + r * s.ldy + j, sum, n);
  }
}

VELO_INLINE int64_t columns_in_pairs(const few_by_columns& s) {
  return s.columns / (2 * v::width) * (2 * v::width);
}

template <class Weights, bool Offset, int Steps>
VELO_INLINE void add_all_columns(const few_by_columns& s, int64_t k, int64_t scales_first) {
  int64_t j = 0;
  for (; j < columns_in_pairs(s); j += 2 * v::width)
    add_steps<Weights, Offset, Steps>(s, k, j, scales_first);
  for (; j < s.columns; j += v::width) add_tail<Weights, Offset, Steps>(s, k, j, scales_first);
}

// The sums of a group and a row times the group's scales.
template <class Weights>
VELO_INLINE void add_scaled(const few_by_columns& s, int64_t row, int64_t scales_first) {
  const float* sums_of = s.sums + row * s.ldy;
  float* y = s.y + row * s.ldy;
  int64_t j = 0;
  for (; j < columns_in_pairs(s); j += 2 * v::width) {
    const v::vec2 sums = Weights::restore({v::load(sums_of + j), v::load(sums_of + j + v::width)});
    const v::vec scale = scales_at(s.scales, scales_first + j, v::width),
                 next = scales_at(s.scales, scales_first + j + v::width, v::width);
    v::store(y + j, v::fma(sums.a, scale, v::load(y + j)));
    v::store(y + j + v::width, v::fma(sums.b, next, v::load(y + j + v::width)));
  }
  for (; j < s.columns; j += v::width) {
    const int n = simd::lanes_left<v::width>(s.columns, j);
    const v::vec scale = scales_at(s.scales, scales_first + j, n);
    v::store(y + j, v::fma(v::load(sums_of + j, n), scale, v::load(y + j, n)), n);
  }
}

VELO_INLINE void clear(float* y, const few_by_columns& s) {
  for (int r = 0; r < s.rows; ++r)
    for (int64_t j = 0; j < s.columns; ++j) y[r * s.ldy + j] = 0;
}

template <class Weights, bool Offset>
void multiply_columns(const few_by_columns& s) {
  constexpr int steps = v::width / 2;  // their weights fill half of the registers
  clear(s.y, s);
  for (int64_t begin = 0; begin < s.k; begin += s.scales.group) {
    const int64_t end = begin + s.scales.group < s.k ? begin + s.scales.group : s.k;
    const int64_t first = begin / s.scales.group * s.scales.ld + s.first;
    clear(s.sums, s);
    int64_t k = begin;
    for (; k + steps <= end; k += steps) add_all_columns<Weights, Offset, steps>(s, k, first);
    for (; k < end; ++k) add_all_columns<Weights, Offset, 1>(s, k, first);
    for (int r = 0; r < s.rows; ++r) add_scaled<Weights>(s, r, first);
  }
}

void by_columns(const few_by_columns& s) {
  if (s.int4)
    s.scales.offset == nullptr ? multiply_columns<int4_weights, false>(s)
                               : multiply_columns<int4_weights, true>(s);
  else
    s.scales.offset == nullptr ? multiply_columns<int8_weights, false>(s)
                               : multiply_columns<int8_weights, true>(s);
}

// ---- a few rows by rows: dot products of spans of the depth, with two sums each ----

constexpr int64_t span = 1024;       // of the depth: few_rows of x stay in cache
constexpr int64_t stored_rows = 32;  // of the weight, whose sums wait between spans

// Rows of the weight by rows of x that have their sums in registers.
template <int Stored, int Rows>
struct dot_sums {
  v::vec of[Stored][Rows];
};

template <int Stored, int Rows>
VELO_INLINE void clear(dot_sums<Stored, Rows>& sums) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < Stored; ++j) sums.of[j][r] = v::zero();
}

// Dot products of elements [begin, end) of the depth, within a group.
template <class Weights, int Stored, int Rows>
VELO_INLINE void dot_group(const few_by_rows& s, const float* x,
                           const uint8_t* const (&row)[Stored], int64_t begin, int64_t end,
                           const v::vec* offset, dot_sums<Stored, Rows>& sums) {
  dot_sums<Stored, Rows> odd;
  clear(sums), clear(odd);
  int64_t i = begin;
  for (; i + 2 * v::width <= end; i += 2 * v::width) {
    v::even_odd w[Stored];
#pragma GCC unroll 8
    for (int j = 0; j < Stored; ++j) {
      v::prefetch(row[j] + Stored * s.ld + i / Weights::per_byte);  // the next call reads it
      w[j] = Weights::load_two(row[j], i);
      if (offset != nullptr) w[j] = {w[j].even + offset[j], w[j].odd + offset[j]};
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const v::vec x0 = v::load(x + r * s.ldx + i), x1 = v::load(x + r * s.ldx + i + v::width);
#pragma GCC unroll 8
      for (int j = 0; j < Stored; ++j) {
        sums.of[j][r] = v::fma(x0, w[j].even, sums.of[j][r]);
        odd.of[j][r] = v::fma(x1, w[j].odd, odd.of[j][r]);
      }
    }
  }
  for (; i < end; i += v::width) {
    const int n = simd::lanes_left<v::width>(end, i);
#pragma GCC unroll 8
    for (int j = 0; j < Stored; ++j) {
      v::vec w = Weights::load(row[j], i, n);
      if (offset != nullptr) w = w + offset[j];
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r)
        sums.of[j][r] = v::fma(v::load(x + r * s.ldx + i, n), w, sums.of[j][r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < Stored; ++j) sums.of[j][r] = sums.of[j][r] + odd.of[j][r];
}

// Adds the scaled dot products of elements [begin, end), of several groups, to what `total` holds
// of rows j.. of the weight.
template <class Weights, bool Offset, int Stored, int Rows>
VELO_INLINE void add_span(const few_by_rows& s, const float* x, int64_t j, int64_t begin,
                          int64_t end, dot_sums<Stored, Rows>& total) {
  const uint8_t* row[Stored];
  int64_t column[Stored];
#pragma GCC unroll 8
  for (int u = 0; u < Stored; ++u) {
    column[u] = j + u < s.columns ? j + u : s.columns - 1;  // the last ones may be unused
    row[u] = s.weight + column[u] * s.ld;
  }
  for (int64_t at = begin, next = 0; at < end; at = next) {
    const int64_t group = at / s.scales.group;
    next = (group + 1) * s.scales.group < end ? (group + 1) * s.scales.group : end;
    const int64_t first = group * s.scales.ld + s.first;
    v::vec offset[Stored];
    if (Offset)
#pragma GCC unroll 8
      for (int u = 0; u < Stored; ++u)
        offset[u] = one_as(s.scales.type, s.scales.offset, first + column[u]);
    dot_sums<Stored, Rows> sums;
    dot_group<Weights>(s, x, row, at, next, Offset ? offset : nullptr, sums);
#pragma GCC unroll 8
    for (int u = 0; u < Stored; ++u) {
      const v::vec scale = one_as(s.scales.type, s.scales.scale, first + column[u]);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) total.of[u][r] = v::fma(sums.of[u][r], scale, total.of[u][r]);
    }
  }
}

// Rows [first_x, first_x + Rows) of x by up to stored_rows rows of the weight, from row j on.
template <class Weights, bool Offset, int Stored, int Rows>
void multiply_block(const few_by_rows& s, int first_x, int64_t j) {
  constexpr int parts = stored_rows / Stored;
  const int64_t n = s.columns - j < stored_rows ? s.columns - j : stored_rows;
  dot_sums<Stored, Rows> totals[parts];
  for (auto& part : totals) clear(part);
  for (int64_t begin = 0; begin < s.k; begin += span) {
    const int64_t end = begin + span < s.k ? begin + span : s.k;
    for (int64_t i = 0; i < n; i += Stored) {
      dot_sums<Stored, Rows> total = totals[i / Stored];
      add_span<Weights, Offset>(s, s.x + first_x * s.ldx, j + i, begin, end, total);
      totals[i / Stored] = total;
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int r = 0; r < Rows && first_x + r < s.rows; ++r)
      s.y[(first_x + r) * s.ldy + j + i] = v::sum(totals[i / Stored].of[i % Stored][r]);
}

template <class Weights, bool Offset>
void multiply_rows(const few_by_rows& s) {
  constexpr int most = v::width / 2;  // rows of x whose sums fit the registers
  for (int64_t j = 0; j < s.columns; j += stored_rows) {
    if (s.rows == 1)
      multiply_block<Weights, Offset, 4, 1>(s, 0, j);
    else if (s.rows <= 4)
      multiply_block<Weights, Offset, most / 4, 4>(s, 0, j);
    else
      for (int r = 0; r < s.rows; r += most) multiply_block<Weights, Offset, 1, most>(s, r, j);
  }
}

// A row of x in the order that int4 are read in.
void order_row(float* x, int64_t n) {
  for (int64_t i = 0; i + 2 * v::width <= n; i += 2 * v::width) {
    const v::even_odd parts = v::apart(v::load(x + i), v::load(x + i + v::width));
    v::store(x + i, parts.even);
    v::store(x + i + v::width, parts.odd);
  }
}

void by_rows(const few_by_rows& s) {
  if (s.int4)
    s.scales.offset == nullptr ? multiply_rows<int4_weights, false>(s)
                               : multiply_rows<int4_weights, true>(s);
  else
    s.scales.offset == nullptr ? multiply_rows<int8_weights, false>(s)
                               : multiply_rows<int8_weights, true>(s);
}

constexpr weight_quant_kernels kernels = {this_isa,   widen,      widen_to_bf16,
                                          add_group,  dequantize, order_row,
                                          by_columns, by_rows,    finish_kernels};
