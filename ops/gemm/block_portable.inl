// The block product over a vector type: register blocks of Rows x Columns vectors, the depth
// streamed through them.
//
// Included by one thin file per instruction set, which defines `vec` (width, zero, load, store,
// fma, broadcast, and for bf16 pairs even/odd: the two members of each pair widened to f32),
// `most_rows` and `most_columns` (in vectors). Rows of A are broadcast, rows of B are loaded; bf16
// rows of A are first widened into a small scratch, B in registers. Invariant: an element of C is
// one chain of fma in ascending k, starting from C or zero, whatever the block around it. Cost:
// Rows * Columns fma for Rows + Columns loads.

constexpr int depth_chunk = 512;  // widened rows of A held at a time: most_rows * 2 KiB of stack

template <int Rows, int Columns>
inline __attribute__((always_inline)) void load_c(vec (&acc)[Rows][Columns], const float* c,
                                                  std::int64_t ldc, bool accumulate) {
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) {
      acc[i][j] = accumulate ? vec::load(c + i * ldc + j * vec::width) : vec::zero();
    }
  }
}

template <int Rows, int Columns>
inline __attribute__((always_inline)) void store_c(const vec (&acc)[Rows][Columns], float* c,
                                                   std::int64_t ldc) {
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) acc[i][j].store(c + i * ldc + j * vec::width);
  }
}

template <int Rows, int Columns>
inline __attribute__((always_inline)) void step(vec (&acc)[Rows][Columns], const vec (&b)[Columns],
                                                const float* a, std::int64_t lda) {
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const vec x = vec::broadcast(a + i * lda);
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) acc[i][j] = vec::fma(x, b[j], acc[i][j]);
  }
}

struct tile_args {
  const float* a;
  std::int64_t lda;
  const void* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  int k;
  bool accumulate;
};

template <int Rows, int Columns>
void tile_f32(const tile_args& t) {
  vec acc[Rows][Columns];
  load_c(acc, t.c, t.ldc, t.accumulate);
  const float* a = t.a;
  const float* b = static_cast<const float*>(t.b);
  for (int k = 0; k < t.k; ++k, ++a, b += t.ldb) {
    vec row[Columns];
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) row[j] = vec::load(b + j * vec::width);
    step(acc, row, a, t.lda);
  }
  store_c(acc, t.c, t.ldc);
}

template <int Rows, int Columns>
void tile_bf16(const tile_args& t) {
  vec acc[Rows][Columns];
  load_c(acc, t.c, t.ldc, t.accumulate);
  const float* a = t.a;
  const auto* b = static_cast<const std::uint32_t*>(t.b);
  for (int k = 0; k < t.k; k += 2, a += 2, b += t.ldb) {
    vec row[Columns];
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) row[j] = vec::even(b + j * vec::width);
    step(acc, row, a, t.lda);
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) row[j] = vec::odd(b + j * vec::width);
    step(acc, row, a + 1, t.lda);
  }
  store_c(acc, t.c, t.ldc);
}

using tile_fn = void (*)(const tile_args&);

constexpr int least(int a, int b) {
  return a < b ? a : b;
}

// The tile of `rows` x `columns`; sizes above the most are never asked for and cost no code.
template <int Columns>
tile_fn tile_of(bool bf16, int rows) {
  constexpr int c = least(Columns, most_columns);
  static constexpr tile_fn f32_tiles[] = {tile_f32<1, c>,
                                          tile_f32<2, c>,
                                          tile_f32<3, c>,
                                          tile_f32<4, c>,
                                          tile_f32<5, c>,
                                          tile_f32<6, c>,
                                          tile_f32<least(7, most_rows), c>,
                                          tile_f32<least(8, most_rows), c>};
  static constexpr tile_fn bf16_tiles[] = {tile_bf16<1, c>,
                                           tile_bf16<2, c>,
                                           tile_bf16<3, c>,
                                           tile_bf16<4, c>,
                                           tile_bf16<5, c>,
                                           tile_bf16<6, c>,
                                           tile_bf16<least(7, most_rows), c>,
                                           tile_bf16<least(8, most_rows), c>};
  return (bf16 ? bf16_tiles : f32_tiles)[rows - 1];
}

// One group of rows against all columns of the packed B, in tiles of nearly equal width.
inline void sweep_columns(bool bf16, int rows, int n, tile_args t) {
  for (int left = n / vec::width; left > 0;) {
    const int tiles = (left + most_columns - 1) / most_columns;
    const int columns = (left + tiles - 1) / tiles;
    const tile_fn tile = columns == 1   ? tile_of<1>(bf16, rows)
                         : columns == 2 ? tile_of<2>(bf16, rows)
                                        : tile_of<3>(bf16, rows);
    tile(t);
    t.b = static_cast<const char*>(t.b) +
          columns * vec::width * 4;  // a bf16 pair is as wide as an f32
    t.c += columns * vec::width;
    left -= columns;
  }
}

inline void widen_rows(const std::uint16_t* a, std::int64_t lda, int rows, int k, float* out) {
  for (int i = 0; i < rows; ++i) {
    const std::uint16_t* from = a + i * lda;
    float* to = out + i * depth_chunk;
    int j = 0;
    for (; j + vec::width <= k; j += vec::width) vec::widen(from + j).store(to + j);
    for (; j < k; ++j) {
      const std::uint32_t bits = static_cast<std::uint32_t>(from[j]) << 16;
      __builtin_memcpy(to + j, &bits, sizeof bits);
    }
  }
}

inline void block_bf16(const block_shape& s, const std::uint16_t* a, const std::uint32_t* b,
                       float* c, int row, int rows) {
  alignas(64) float wide[most_rows * depth_chunk];
  for (int k = 0; k < s.k; k += depth_chunk) {
    const int depth = s.k - k < depth_chunk ? s.k - k : depth_chunk;
    widen_rows(a + row * s.lda + k, s.lda, rows, depth, wide);
    sweep_columns(true, rows, s.n,
                  {wide, depth_chunk, b + k / 2 * s.ldb, s.ldb, c + row * s.ldc, s.ldc, depth,
                   s.accumulate || k > 0});
  }
}

inline void block_any(const block_shape& s, const void* a, const void* b, float* c) {
  const int groups = (s.m + most_rows - 1) / most_rows;  // of nearly equal height
  int row = 0;
  for (int g = 0; g < groups; ++g) {
    const int rows = s.m / groups + (g < s.m % groups ? 1 : 0);
    if (s.type == block_type::bf16) {
      block_bf16(s, static_cast<const std::uint16_t*>(a), static_cast<const std::uint32_t*>(b), c,
                 row, rows);
    } else {
      sweep_columns(false, rows, s.n,
                    {static_cast<const float*>(a) + row * s.lda, s.lda, b, s.ldb, c + row * s.ldc,
                     s.ldc, s.k, s.accumulate});
    }
    row += rows;
  }
}
