// The moves over a vector of words; included by one thin file per instruction set.
//
// That file names `simd` (the vector header's namespace) and defines `words`: width, and load(p, n)
// of n words, load_halves(p, n) of n bf16 as words, widen(p, n) of n bf16 to f32 words, pair(p, q,
// n) of n words (p[i], q[i]), zero, store(p), and turn(words[width]), the transposition. Missing
// lanes are zero; loads with n = width (2 * width halves) are whole.

// One target row from `count` source words, zero to `padded`.
template <class Load>
VELO_INLINE void fill_row(uint32_t* to, int count, int padded, Load load) {
  int j = 0;
  for (; j + words::width <= count; j += words::width) load(j, words::width).store(to + j);
  for (; j < padded; j += words::width) {
    (j < count ? load(j, count - j) : words::zero()).store(to + j);
  }
}

// Rows of a panel are too short for the hardware to notice where they lead, so each asks for the
// one that comes `rows_ahead` later; into the second cache, since rows of a power of two fall on
// few sets of the first.
constexpr int rows_ahead = 16;

VELO_INLINE void fetch_ahead(const void* from, int64_t row_bytes) {
  __builtin_prefetch(static_cast<const char*>(from) + rows_ahead * row_bytes, 0, 2);
}

void rows32(const move& m) {
  for (int i = 0; i < m.rows; ++i) {
    const uint32_t* from = static_cast<const uint32_t*>(m.from) + i * m.ld_from;
    fill_row(m.to + i * m.ld_to, m.columns, m.padded, [from, &m](int j, int n) {
      fetch_ahead(from + j, m.ld_from * 4);
      return words::load(from + j, n);
    });
  }
}

void rows16(const move& m) {
  for (int i = 0; i < m.rows; ++i) {
    const uint16_t* from = static_cast<const uint16_t*>(m.from) + i * m.ld_from;
    const int columns = m.columns;
    fill_row(m.to + i * m.ld_to, (columns + 1) / 2, m.padded, [from, columns](int j, int n) {
      return words::load_halves(from + 2 * j, 2 * j + 2 * n > columns ? columns - 2 * j : 2 * n);
    });
  }
}

void strips16(const move& m) {
  constexpr int group = 16, strip = 32,
                ahead = 6;  // rows to fetch ahead: short rows give the hardware no time to notice
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

void rows16_wide(const move& m) {
  for (int i = 0; i < m.rows; ++i) {
    const uint16_t* from = static_cast<const uint16_t*>(m.from) + i * m.ld_from;
    fill_row(m.to + i * m.ld_to, m.columns, m.padded, [from, &m](int j, int n) {
      fetch_ahead(from + j, m.ld_from * 2);
      return words::widen(from + j, n);
    });
  }
}

void pairs(const move& m) {
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

// Turns a matrix of rows x columns words, a square of vectors at a time; along the source's rows
// first, so that it is read in long streams. load(i, j, n): n words of source row i from column j.
template <class Load>
VELO_INLINE void turn_all(int rows, int columns, uint32_t* to, int64_t ld_to, int padded,
                          Load load) {
  constexpr int side = words::width;
  for (int i = 0; i < padded; i += side) {
    const int valid = rows - i < side ? rows - i : side;
    for (int j = 0; j < columns; j += side) {
      const int n = columns - j < side ? columns - j : side;
      words square[side];
      if (valid == side && n == side) {
#pragma GCC unroll 16
        for (int r = 0; r < side; ++r) square[r] = load(i + r, j, side);
        words::turn(square);
#pragma GCC unroll 16
        for (int r = 0; r < side; ++r) square[r].store(to + (j + r) * ld_to + i);
        continue;
      }
      for (int r = 0; r < side; ++r) square[r] = r < valid ? load(i + r, j, n) : words::zero();
      words::turn(square);
      for (int r = 0; r < n; ++r) square[r].store(to + (j + r) * ld_to + i);
    }
  }
}

void turn32(const move& m) {
  const auto* from = static_cast<const uint32_t*>(m.from);
  turn_all(m.rows, m.columns, m.to, m.ld_to, m.padded,
           [from, &m](int i, int j, int n) { return words::load(from + i * m.ld_from + j, n); });
}

void turn16(const move& m) {
  const auto* from = static_cast<const uint16_t*>(m.from);
  turn_all((m.rows + 1) / 2, m.columns, m.to, m.ld_to, m.padded, [from, &m](int i, int j, int n) {
    const uint16_t* even = from + 2 * i * m.ld_from + j;
    return words::pair(even, 2 * i + 1 < m.rows ? even + m.ld_from : nullptr, n);
  });
}

void turn16_wide(const move& m) {
  const auto* from = static_cast<const uint16_t*>(m.from);
  turn_all(m.rows, m.columns, m.to, m.ld_to, m.padded,
           [from, &m](int i, int j, int n) { return words::widen(from + i * m.ld_from + j, n); });
}

void turn_pairs(const move& m) {
  const auto* from = static_cast<const uint16_t*>(m.from);
  turn_all(m.rows, (m.columns + 1) / 2, m.to, m.ld_to, m.padded, [from, &m](int i, int j, int n) {
    const int halves = 2 * j + 2 * n > m.columns ? m.columns - 2 * j : 2 * n;
    return words::load_halves(from + i * m.ld_from + 2 * j, halves);
  });
}

template <class T>
VELO_INLINE void finish_rows(const finish_args& f, T* c) {
  for (int i = 0; i < f.rows; ++i) {
    const float* sums = f.sums + i * f.ld_sums;
    T* out = c + i * f.ldc;
    for (int j = 0; j < f.columns; j += simd::width) {
      const int n = f.columns - j;
      const bool whole = n >= simd::width;
      simd::vec x = whole ? simd::load(sums + j) : simd::load(sums + j, n);
      if (f.bias != nullptr) x = x + (whole ? simd::load(f.bias + j) : simd::load(f.bias + j, n));
      if (f.accumulate) x = x + (whole ? simd::load(out + j) : simd::load(out + j, n));
      if (whole) {
        simd::store(out + j, x);
      } else {
        simd::store(out + j, x, n);
      }
    }
  }
}

void finish(const finish_args& f) {
  if (f.bf16) {
    finish_rows(f, static_cast<velo::simd::bf16*>(f.c));
  } else {
    finish_rows(f, static_cast<float*>(f.c));
  }
}
