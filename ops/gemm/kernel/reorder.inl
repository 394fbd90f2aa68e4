// The reorders over a vector of words; included by one generated file per instruction set.
//
// The file names `v`, the vector header's namespace. Its `words` has a width, and load(p, n)
// of n words, load_halves(p, n) of n bf16 as words, widen(p, n) of n bf16 or f16 to f32 words,
// pair(p, q, n) of n words (p[i], q[i]), zero, store(p), and turn(words[width]), the transposition.
// Missing lanes are zero; loads with n = width (2 * width halves) are whole. store_eights(p,
// stride): eight words to p and eight to p + stride, as far as a vector has them.
// store_eight(words[8], p): word j of row i to p[8 * j + i].

using words = v::words;

// One target row from `count` source words, zero to `padded`.
template <class Load>
VELO_INLINE void fill_row(uint32_t* to, int count, int padded, Load load) {
  int j = 0;
  for (; j + words::width <= count; j += words::width) load(j, words::width).store(to + j);
  for (; j < padded; j += words::width) {
    (j < count ? load(j, count - j) : words::zero()).store(to + j);
  }
}

// Rows of a panel are too short for the hardware to prefetch the next ones, so each row prefetches
// the one that comes `rows_ahead` later: into L2, since rows of a power of two fall on few sets of
// L1.
constexpr int rows_ahead = 16;

VELO_INLINE void fetch_ahead(const void* from, int64_t row_bytes) {
  __builtin_prefetch(static_cast<const char*>(from) + rows_ahead * row_bytes, 0, 2);
}

void rows32(const reorder& m) {
  for (int i = 0; i < m.rows; ++i) {
    const uint32_t* from = static_cast<const uint32_t*>(m.from) + i * m.ld_from;
    fill_row(m.to + i * m.ld_to, m.columns, m.padded, [from, &m](int j, int n) {
      fetch_ahead(from + j, m.ld_from * 4);
      return words::load(from + j, n);
    });
  }
}

void strips16(const reorder& m) {
  constexpr int group = 16, strip = 32;
  constexpr int ahead = 6;  // rows to prefetch: too short for the hardware to do it
  for (int i = 0; i < m.rows; ++i) {
    const uint16_t* from = static_cast<const uint16_t*>(m.from) + i * m.ld_from;
    uint32_t* to = m.to + i / strip * m.ld_to + i % strip * group;
    for (int j = 0; j < m.padded; j += group, to += strip * group) {
      __builtin_prefetch(from + ahead * m.ld_from + 2 * j);
      const int left = m.columns - 2 * j;
      for (int k = 0; k < group; k += words::width) {
        const int n = left - 2 * k < 2 * words::width ? left - 2 * k : 2 * words::width;
        (n > 0 ? words::load_halves(from + 2 * (j + k), n) : words::zero()).store(to + k);
      }
    }
  }
}

template <class T>
void rows_wide(const reorder& m) {
  for (int i = 0; i < m.rows; ++i) {
    const T* from = static_cast<const T*>(m.from) + i * m.ld_from;
    fill_row(m.to + i * m.ld_to, m.columns, m.padded, [from, &m](int j, int n) {
      fetch_ahead(from + j, m.ld_from * 2);
      return words::widen(from + j, n);
    });
  }
}

void pairs(const reorder& m) {
  for (int i = 0; i < m.rows; i += 2) {
    const uint16_t* even = static_cast<const uint16_t*>(m.from) + i * m.ld_from;
    const uint16_t* odd = i + 1 < m.rows ? even + m.ld_from : nullptr;
    fill_row(m.to + i / 2 * m.ld_to, m.columns, m.padded, [even, odd, &m](int j, int n) {
      fetch_ahead(even + j, m.ld_from * 2);
      fetch_ahead(even + m.ld_from + j, m.ld_from * 2);
      return words::pair(even + j, odd == nullptr ? nullptr : odd + j, n);
    });
  }
}

// Source words by row and column: plain, widened, two neighbors of a row, two rows.
VELO_INLINE auto words_of(const reorder& m) {
  const auto* from = static_cast<const uint32_t*>(m.from);
  return [from, &m](int i, int j, int n) { return words::load(from + i * m.ld_from + j, n); };
}
template <class T>
VELO_INLINE auto wide_words_of(const reorder& m) {
  const auto* from = static_cast<const T*>(m.from);
  return [from, &m](int i, int j, int n) { return words::widen(from + i * m.ld_from + j, n); };
}
VELO_INLINE auto neighbors_of(const reorder& m) {
  const auto* from = static_cast<const uint16_t*>(m.from);
  return [from, &m](int i, int j, int n) {
    const int halves = 2 * j + 2 * n > m.columns ? m.columns - 2 * j : 2 * n;
    return words::load_halves(from + i * m.ld_from + 2 * j, halves);
  };
}
VELO_INLINE auto row_pairs_of(const reorder& m) {
  const auto* from = static_cast<const uint16_t*>(m.from);
  return [from, &m](int i, int j, int n) {
    const uint16_t* even = from + 2 * i * m.ld_from + j;
    return words::pair(even, 2 * i + 1 < m.rows ? even + m.ld_from : nullptr, n);
  };
}

// Transposes a matrix of rows x columns words, a square of vectors at a time; along the source's
// rows first, so that it is read in long streams.
template <class Load>
VELO_INLINE void transpose_all(const reorder& m, int rows, int columns, Load load) {
  constexpr int side = words::width;
  for (int i = 0; i < m.padded; i += side) {
    const int valid = rows - i < side ? rows - i : side;
    for (int j = 0; j < columns; j += side) {
      const int n = columns - j < side ? columns - j : side;
      words square[side];
      if (valid == side && n == side) {
#pragma GCC unroll 16
        for (int r = 0; r < side; ++r) square[r] = load(i + r, j, side);
        words::turn(square);
#pragma GCC unroll 16
        for (int r = 0; r < side; ++r) square[r].store(m.to + (j + r) * m.ld_to + i);
        continue;
      }
      for (int r = 0; r < side; ++r) square[r] = r < valid ? load(i + r, j, n) : words::zero();
      words::turn(square);
      for (int r = 0; r < n; ++r) square[r].store(m.to + (j + r) * m.ld_to + i);
    }
  }
}

void transpose32(const reorder& m) {
  transpose_all(m, m.rows, m.columns, words_of(m));
}
void transpose16(const reorder& m) {
  transpose_all(m, (m.rows + 1) / 2, m.columns, row_pairs_of(m));
}
template <class T>
void transpose_wide(const reorder& m) {
  transpose_all(m, m.rows, m.columns, wide_words_of<T>(m));
}
void transpose_pairs(const reorder& m) {
  transpose_all(m, m.rows, (m.columns + 1) / 2, neighbors_of(m));
}

// Reads eight rows side by side: too many streams for the hardware to prefetch far ahead.
template <class Element, int PerWord, class Load>
VELO_INLINE void interleave_all(const reorder& m, Load load) {
  constexpr int width = words::width, ahead = 1024 / sizeof(Element);
  const int columns = (m.columns + PerWord - 1) / PerWord;
  for (int i = 0; i < m.rows; i += 8) {
    const auto* from = static_cast<const Element*>(m.from) + i * m.ld_from;
    uint32_t* to = m.to + i / 8 * m.ld_to;
    words rows[8];
    int j = 0;
    for (; i + 8 <= m.rows && j + width <= columns; j += width, to += 8 * width) {
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        rows[r] = load(i + r, j, width);
        __builtin_prefetch(from + r * m.ld_from + j * PerWord + ahead, 0, 2);
      }
      words::store_eight(rows, to);
    }
    for (; j < columns; j += width, to += 8 * width) {
      const int n = columns - j < width ? columns - j : width;
      for (int r = 0; r < 8; ++r) rows[r] = i + r < m.rows ? load(i + r, j, n) : words::zero();
      uint32_t whole[8 * width];
      words::store_eight(rows, whole);
      for (int k = 0; k < 8 * n; ++k) to[k] = whole[k];
    }
  }
}

void micro_rows32(const reorder& m) {
  interleave_all<uint32_t, 1>(m, words_of(m));
}
void micro_rows16(const reorder& m) {
  interleave_all<uint16_t, 2>(m, neighbors_of(m));
}
template <class T>
void micro_rows_wide(const reorder& m) {
  interleave_all<T, 1>(m, wide_words_of<T>(m));
}

// Scatters the rows of a source that is stored transposed, `Rows` of them for a step, over
// micro-panels: a vector of columns at a time, and so many steps that both sides stay in L1. Each
// column of a strip prefetches the one below it.
template <int Rows, class Element, class Load>
VELO_INLINE void scatter_all(const reorder& m, Load load) {
  constexpr int width = words::width, strip = 16;
  const int steps = (m.rows + Rows - 1) / Rows;
  const auto fetch_below = [&m](int i, int j) {
    const auto* from = static_cast<const Element*>(m.from) + (i + strip) * Rows * m.ld_from + j;
    for (int r = 0; r < Rows; ++r) __builtin_prefetch(from + r * m.ld_from, 0, 2);
  };
  for (int first = 0; first < steps; first += strip) {
    const int end = steps - first < strip ? steps : first + strip;
    for (int j = 0; j < m.padded; j += width) {
      uint32_t* to = m.to + j / 8 * m.ld_to + j % 8;
      const int n = m.columns - j < width ? m.columns - j : width;
      if (n == width) {
        for (int i = first; i < end; ++i) {
          load(i, j, width).store_eights(to + 8 * i, m.ld_to);
          fetch_below(i, j);
        }
      } else {
        const int written = m.padded - j < width ? m.padded - j : width;
        for (int i = first; i < end; ++i) {
          uint32_t whole[width];
          (n > 0 ? load(i, j, n) : words::zero()).store(whole);
          for (int r = 0; r < written; ++r) to[r / 8 * m.ld_to + 8 * i + r % 8] = whole[r];
        }
      }
    }
  }
}

void micro_transpose32(const reorder& m) {
  scatter_all<1, uint32_t>(m, words_of(m));
}
void micro_transpose_pairs(const reorder& m) {
  scatter_all<2, uint16_t>(m, row_pairs_of(m));
}
template <class T>
void micro_transpose_wide(const reorder& m) {
  scatter_all<1, T>(m, wide_words_of<T>(m));
}

constexpr reorder_kernels f32_reorders{rows32, transpose32, micro_rows32, micro_transpose32,
                                       transpose32};
template <class T>
constexpr reorder_kernels wide_reorders{rows_wide<T>, transpose_wide<T>, micro_rows_wide<T>,
                                        micro_transpose_wide<T>, transpose_wide<T>};
constexpr reorder_kernels pair_reorders{pairs, transpose_pairs, micro_rows16, micro_transpose_pairs,
                                        transpose16};
