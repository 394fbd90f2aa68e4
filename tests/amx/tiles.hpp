// The tiles of AMX in software, put in place of the compiler's intrinsics: the tile kernels run,
// and are tested, on machines that have none.
//
// A tile is 16 rows of 64 bytes; loads fill what lies beyond its configured rows and columns with
// zeros, stores leave it out, and every use outside a configuration traps. Sums are those of
// TDPBF16PS but for denormals. Only for files that include nothing of AMX before: the guards of the
// compilers' own headers keep those out.
#pragma once

#define _AMXTILEINTRIN_H_INCLUDED
#define _AMXBF16INTRIN_H_INCLUDED
#define _AMXINT8INTRIN_H_INCLUDED
#define __AMXINTRIN_H  // clang's, which reads this file too

#include <cstdint>
#include <cstring>

namespace velo::testing {

struct soft_tile {
  int rows = 0, bytes = 0;
  unsigned char data[16][64] = {};
};

struct soft_tiles {
  soft_tile tile[8];
  bool configured = false;

  soft_tile& at(int i) {
    if (!configured) __builtin_trap();
    return tile[i];
  }
};

inline thread_local soft_tiles tiles;

// Byte 0 is the palette; from byte 16 on come 16-bit row lengths, from byte 48 on numbers of rows.
inline void configure(const void* configuration) {
  const auto* bytes = static_cast<const unsigned char*>(configuration);
  if (bytes[0] != 1) __builtin_trap();
  for (int i = 0; i < 8; ++i) {
    std::uint16_t length;
    std::memcpy(&length, bytes + 16 + 2 * i, 2);
    tiles.tile[i] = soft_tile();
    tiles.tile[i].bytes = length;
    tiles.tile[i].rows = bytes[48 + i];
  }
  tiles.configured = true;
}

inline void load(int i, const void* from, std::int64_t stride) {
  soft_tile& t = tiles.at(i);
  std::memset(t.data, 0, sizeof t.data);
  for (int r = 0; r < t.rows; ++r) {
    std::memcpy(t.data[r], static_cast<const char*>(from) + r * stride,
                static_cast<std::size_t>(t.bytes));
  }
}

inline void store(int i, void* to, std::int64_t stride) {
  const soft_tile& t = tiles.at(i);
  for (int r = 0; r < t.rows; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, t.data[r], static_cast<std::size_t>(t.bytes));
  }
}

inline void clear(int i) {
  std::memset(tiles.at(i).data, 0, sizeof tiles.at(i).data);
}

// One of the two halves of a word, in the order of their addresses.
inline float half_of(std::uint32_t word, int half) {
  const std::uint32_t bits = half == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// c[r][j] += a[r][2k] * b[k][2j] + a[r][2k + 1] * b[k][2j + 1], of sixteen j at once.
inline void multiply(int c, int a, int b) {
  soft_tile &sums = tiles.at(c), &left = tiles.at(a), &right = tiles.at(b);
  for (int r = 0; r < sums.rows; ++r) {
    float row[16];
    std::memcpy(row, sums.data[r], sizeof row);
    for (int k = 0; k < left.bytes / 4; ++k) {
      std::uint32_t pair, words[16];
      std::memcpy(&pair, left.data[r] + 4 * k, sizeof pair);
      std::memcpy(words, right.data[k], sizeof words);
      for (int half = 0; half < 2; ++half) {
        const float x = half_of(pair, half);
        for (int j = 0; j < 16; ++j) row[j] += x * half_of(words[j], half);
      }
    }
    std::memcpy(sums.data[r], row, static_cast<std::size_t>(sums.bytes));
  }
}

// c[r][j] += the sum of a[r][4k + i] * b[k][4j + i] over four i, of signed bytes.
inline void multiply_bytes(int c, int a, int b) {
  soft_tile &sums = tiles.at(c), &left = tiles.at(a), &right = tiles.at(b);
  for (int r = 0; r < sums.rows; ++r) {
    std::int32_t row[16];
    std::memcpy(row, sums.data[r], sizeof row);
    for (int k = 0; k < left.bytes; ++k) {
      const int x = static_cast<std::int8_t>(left.data[r][k]);
      for (int j = 0; j < 16; ++j)
        row[j] += x * static_cast<std::int8_t>(right.data[k / 4][4 * j + k % 4]);
    }
    std::memcpy(sums.data[r], row, static_cast<std::size_t>(sums.bytes));
  }
}

}  // namespace velo::testing

#define _tile_loadconfig(from) velo::testing::configure(from)
#define _tile_release() (velo::testing::tiles.configured = false)
#define _tile_loadd(i, from, stride) velo::testing::load(i, from, stride)
#define _tile_stream_loadd(i, from, stride) velo::testing::load(i, from, stride)
#define _tile_stored(i, to, stride) velo::testing::store(i, to, stride)
#define _tile_zero(i) velo::testing::clear(i)
#define _tile_dpbf16ps(c, a, b) velo::testing::multiply(c, a, b)
#define _tile_dpbssd(c, a, b) velo::testing::multiply_bytes(c, a, b)
