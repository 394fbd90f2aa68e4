// Products of int8 over the words of the including namespace: v::ints, or tile registers.
#include "ops/quant/finished_rows.inl"

using words = v::ints::words;

#ifdef VELO_TILES
constexpr uint8_t zero_byte = 0;
#else
constexpr uint8_t zero_byte = v::ints::zero_byte;
#endif

void take_left(const integer_left& s) {
  constexpr int bytes = 4 / words::elements;  // of an element
  for (int r = 0; r < s.rows; ++r) {
    const int8_t* from = s.from + r * s.depth;
    char* to = s.to + r * s.ld;
    if constexpr (bytes == 1) {
      for (int64_t i = 0; i < s.depth; ++i) to[i] = static_cast<char>(from[i] ^ zero_byte);
      for (int64_t i = s.depth; i < s.ld; ++i) to[i] = static_cast<char>(zero_byte);
    } else {
      auto* wide = reinterpret_cast<int16_t*>(to);
      for (int64_t i = 0; i < s.depth; ++i) wide[i] = from[i];
      for (int64_t i = s.depth; i < s.ld / bytes; ++i) wide[i] = 0;
    }
  }
}

// Rows of k: four of them are a word of quads or two of pairs.
VELO_INLINE void take_rows(const integer_panel& s) {
  for (int64_t k = 0; k < s.padded; k += 4) {
    const int64_t left = s.depth - k;
    const int rows = left < 0 ? 0 : left < 4 ? static_cast<int>(left) : 4;
    uint32_t* to = s.to + k / words::elements * integer_columns;
    for (int j = 0; j < integer_columns; j += 16) {
      const int columns = s.columns - j;
      const int n = columns < 0 ? 0 : columns < 16 ? columns : 16;
      words::take(simd::byte_rows::load(s.from + k * s.ld + j, s.ld, rows, n), to + j,
                  integer_columns);
    }
  }
}

// Rows of n: four neighbors are such words of one column.
VELO_INLINE void take_columns(const integer_panel& s) {
  for (int j = 0; j < integer_columns; ++j) {
    const int8_t* from = s.from + j * s.ld;
    for (int64_t k = 0; k < s.padded; k += 4) {
      const int64_t left = j < s.columns ? s.depth - k : 0;
      uint32_t four = 0;
      if (left >= 4) {
        __builtin_memcpy(&four, from + k, 4);
      } else {
        for (int64_t i = 0; i < left; ++i)
          four |= static_cast<uint32_t>(static_cast<uint8_t>(from[k + i])) << (8 * i);
      }
      words::take(four, s.to + k / words::elements * integer_columns + j, integer_columns);
    }
  }
}

void take_panel(const integer_panel& s) {
  s.transposed ? take_columns(s) : take_rows(s);
  for (int j = 0; j < integer_columns; j += v::width) {
    v::ints sum = v::ints::zero();
    if (zero_byte != 0) {
      const uint32_t all = zero_byte * 0x01010101u;
      const v::ints one = v::ints::broadcast(&all);
      for (int64_t w = 0; w < s.padded / words::elements; ++w)
        sum = v::ints::dot(sum, one, v::ints::load(s.to + w * integer_columns + j));
    }
    sum.negative().store(s.start + j);
  }
}

#ifdef VELO_TILES

// Tiles 0 to 3 are sums, 4 and 5 of the left side, 6 and 7 of the panel: all of 16 rows of 64
// bytes.
struct alignas(64) configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void load_tiles() {
  const configuration c;
  // The intrinsic declares only the first bytes as read.
  __asm__ volatile("" : : "r"(&c) : "memory");
  _tile_loadconfig(&c);
}
void release_tiles() {
  _tile_release();
}

void multiply(const integer_block& s) {
  constexpr int64_t row = integer_columns * 4, step = 16 * row;
  for (int r = 0; r < s.rows; r += integer_rows) {
    const char* a = s.left + r * s.ld;
    const char* b = reinterpret_cast<const char*>(s.panel);
    int32_t* sums = s.sums + r * integer_columns;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t k = 0; k < s.padded; k += 64, b += step) {
      _tile_loadd(4, a + k, s.ld);
      _tile_loadd(6, b, row);
      _tile_dpbssd(0, 4, 6);
      _tile_loadd(7, b + 64, row);
      _tile_dpbssd(1, 4, 7);
      _tile_loadd(5, a + 16 * s.ld + k, s.ld);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    }
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + 16, row);
    _tile_stored(2, sums + 16 * integer_columns, row);
    _tile_stored(3, sums + 16 * integer_columns + 16, row);
  }
}

constexpr int depth_unit = 64;

#else

constexpr void (*load_tiles)() = nullptr;
constexpr void (*release_tiles)() = nullptr;
constexpr int depth_unit = 4;
constexpr int block_rows = 2 * v::width > 16 ? 8 : 4;  // sums that fit in the registers

VELO_INLINE void multiply_block(const integer_block& s, int row, int column) {
  v::ints sums[block_rows][2];
  const v::ints start[2] = {v::ints::load(s.start + column),
                            v::ints::load(s.start + column + v::width)};
#pragma GCC unroll 8
  for (auto& pair : sums) pair[0] = start[0], pair[1] = start[1];
  const char *a = s.left + row * s.ld, *a4 = a + block_rows / 2 * s.ld;
  const uint32_t* b = s.panel + column;
  for (int64_t w = s.padded / words::elements; w > 0; --w, a += 4, a4 += 4, b += integer_columns) {
    const v::ints b0 = v::ints::load(b), b1 = v::ints::load(b + v::width);
#pragma GCC unroll 8
    for (int i = 0; i < block_rows; ++i) {
      const v::ints x =
          v::ints::broadcast((i < block_rows / 2 ? a : a4) + i % (block_rows / 2) * s.ld);
      sums[i][0] = v::ints::dot(sums[i][0], x, b0);
      sums[i][1] = v::ints::dot(sums[i][1], x, b1);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < block_rows; ++i) {
    int32_t* to = s.sums + (row + i) * integer_columns + column;
    sums[i][0].store(to);
    sums[i][1].store(to + v::width);
  }
}

void multiply(const integer_block& s) {
  for (int row = 0; row < s.rows; row += block_rows)
    for (int column = 0; column < integer_columns; column += 2 * v::width)
      multiply_block(s, row, column);
}

#endif

void scale(const scaled_sums& s) {
  for (int i = 0; i < s.rows; ++i) {
    for (int j = 0; j < integer_columns; j += v::width) {
      v::ints sum = v::ints::load(s.sums + i * integer_columns + j);
      if (s.bias != nullptr) sum = sum.plus(v::ints::load(s.bias + j));
      v::vec x = sum.to_floats() * v::load(s.scale + j);
      if (s.row_scale != nullptr) x = x * v::set(s.row_scale[i]);
      v::store(s.to + i * integer_columns + j, x);
    }
  }
}

void round(const rounded_rows& s) {
  const v::vec most = v::set(127.0f), least = v::set(-128.0f);
  for (int i = 0; i < s.rows; ++i) {
    for (int j = 0; j < s.columns; j += v::width) {
      const v::vec x = v::load(s.from + i * integer_columns + j);
      const v::vec kept = v::if_nan(x, v::zero(), v::max(least, v::min(most, x)));
      v::store(s.y + i * s.ldy + j, kept, simd::lanes_left<v::width>(s.columns, j));
    }
  }
}

constexpr integer_product_kernels kernels = {
    this_isa, depth_unit, 4 / words::elements, take_left,  take_panel,   multiply,
    scale,    round,      finish_kernels,      load_tiles, release_tiles};
