// The bf16 block product on AMX tiles: a register block of 2 x 2 tiles (32 x 32 of C), 32 of the
// depth per step.
//
// A tile of A is 16 rows of 32 bf16 straight from the row-major matrix, a tile of B 16 rows of 16
// pairs straight from the packed one, so nothing is copied. What is left of rows and depth after
// whole tiles is done by the same code under another tile configuration (fewer rows, fewer bytes),
// in passes of their own: a configuration clears all tiles, so it cannot change while sums are in
// them. Invariant: an element of C is summed in steps of 32 in ascending k, whatever tile it lies
// in. Cost: a step of 2 x 2 is four products of 16 cycles for four loads of 8, so operands must be
// in L1 or half in L2.
#include <immintrin.h>

#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

// tiles 0-3 sums, 4-5 A, 6-7 B
struct alignas(64) configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {};
  std::uint8_t rows[16] = {};
};

void configure(int rows, int depth) {
  configuration c;
  for (int t = 0; t < 8; ++t) {
    c.rows[t] = static_cast<std::uint8_t>(t < 6 ? rows : depth / 2);
    c.bytes[t] = 64;
  }
  c.bytes[4] = c.bytes[5] = static_cast<std::uint16_t>(depth * 2);
  __asm__ volatile(""
                   :
                   : "r"(&c)
                   : "memory");  // the intrinsic tells the compiler of its first bytes only
  _tile_loadconfig(&c);
}

struct pass {
  const char* a;  // first row, first k
  const char* b;
  float* c;
  long lda, ldb, ldc;  // bytes
  int steps;           // of the configured depth
  bool accumulate;
};

inline __attribute__((always_inline)) float* at(const pass& p, int row, int column) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(p.c) + row * p.ldc) + column;
}

void tiles_2x2(const pass& p, int row, int column) {
  float* c0 = at(p, row, column);
  float* c1 = at(p, row + 16, column);
  if (p.accumulate) {
    _tile_loadd(0, c0, p.ldc);
    _tile_loadd(1, c0 + 16, p.ldc);
    _tile_loadd(2, c1, p.ldc);
    _tile_loadd(3, c1 + 16, p.ldc);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char* a0 = p.a + row * p.lda;
  const char* a1 = a0 + 16 * p.lda;
  const char* b = p.b + column * 4;
  for (int s = 0; s < p.steps; ++s) {
    _tile_loadd(6, b, p.ldb);
    _tile_loadd(4, a0, p.lda);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 64, p.ldb);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, p.lda);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a0 += 64;
    a1 += 64;
    b += 16 * p.ldb;
  }
  _tile_stored(0, c0, p.ldc);
  _tile_stored(1, c0 + 16, p.ldc);
  _tile_stored(2, c1, p.ldc);
  _tile_stored(3, c1 + 16, p.ldc);
}

void tiles_2x1(const pass& p, int row, int column) {
  float* c0 = at(p, row, column);
  float* c1 = at(p, row + 16, column);
  if (p.accumulate) {
    _tile_loadd(0, c0, p.ldc);
    _tile_loadd(1, c1, p.ldc);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  const char* a0 = p.a + row * p.lda;
  const char* a1 = a0 + 16 * p.lda;
  const char* b = p.b + column * 4;
  for (int s = 0; s < p.steps; ++s) {
    _tile_loadd(6, b, p.ldb);
    _tile_loadd(4, a0, p.lda);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a1, p.lda);
    _tile_dpbf16ps(1, 5, 6);
    a0 += 64;
    a1 += 64;
    b += 16 * p.ldb;
  }
  _tile_stored(0, c0, p.ldc);
  _tile_stored(1, c1, p.ldc);
}

// One row of tiles: four sums side by side hide the product's latency (52 cycles) that two would
// show.
void tiles_1x4(const pass& p, int row, int column) {
  float* c = at(p, row, column);
  if (p.accumulate) {
    _tile_loadd(0, c, p.ldc);
    _tile_loadd(1, c + 16, p.ldc);
    _tile_loadd(2, c + 32, p.ldc);
    _tile_loadd(3, c + 48, p.ldc);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char* a = p.a + row * p.lda;
  const char* b = p.b + column * 4;
  for (int s = 0; s < p.steps; ++s) {
    _tile_loadd(4, a, p.lda);
    _tile_loadd(6, b, p.ldb);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 64, p.ldb);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(6, b + 128, p.ldb);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(7, b + 192, p.ldb);
    _tile_dpbf16ps(3, 4, 7);
    a += 64;
    b += 16 * p.ldb;
  }
  _tile_stored(0, c, p.ldc);
  _tile_stored(1, c + 16, p.ldc);
  _tile_stored(2, c + 32, p.ldc);
  _tile_stored(3, c + 48, p.ldc);
}

void tiles_1x1(const pass& p, int row, int column) {
  float* c = at(p, row, column);
  if (p.accumulate) {
    _tile_loadd(0, c, p.ldc);
  } else {
    _tile_zero(0);
  }
  const char* a = p.a + row * p.lda;
  const char* b = p.b + column * 4;
  for (int s = 0; s < p.steps; ++s) {
    _tile_loadd(4, a, p.lda);
    _tile_loadd(6, b, p.ldb);
    _tile_dpbf16ps(0, 4, 6);
    a += 64;
    b += 16 * p.ldb;
  }
  _tile_stored(0, c, p.ldc);
}

// `row_tiles` rows of tiles under the present configuration.
void run(const pass& p, int row_tiles, int n) {
  int row = 0;
  for (; row_tiles >= 2; row_tiles -= 2, row += 32) {
    int column = 0;
    for (; column + 32 <= n; column += 32) tiles_2x2(p, row, column);
    if (column < n) tiles_2x1(p, row, column);
  }
  if (row_tiles == 0) return;
  int column = 0;
  for (; column + 64 <= n; column += 64) tiles_1x4(p, row, column);
  for (; column < n; column += 16) tiles_1x1(p, row, column);
}

// From the whole steps of the depth to the one that is left.
void to_last_step(pass& p, bool accumulate) {
  p.a += p.steps * 64;
  p.b += p.steps * 16 * p.ldb;
  p.accumulate = accumulate || p.steps > 0;
  p.steps = 1;
}

}  // namespace

void amx_load_configuration() {
  configure(16, 32);
}

void amx_release_configuration() {
  _tile_release();
}

void amx_block(const block_shape& s, const void* a, const void* b, float* c) {
  const int whole_rows = s.m / 16, rows_left = s.m % 16;
  const int whole_steps = s.k / 32, depth_left = s.k % 32;
  pass p{static_cast<const char*>(a),
         static_cast<const char*>(b),
         c,
         s.lda * 2,
         s.ldb * 4,
         s.ldc * 4,
         whole_steps,
         s.accumulate};
  pass below = p;
  below.a += whole_rows * 16 * p.lda;
  below.c += whole_rows * 16 * s.ldc;

  if (whole_steps > 0) {
    run(p, whole_rows, s.n);
    if (rows_left > 0) {
      configure(rows_left, 32);
      run(below, 1, s.n);
    }
  }
  if (depth_left > 0) {
    to_last_step(p, s.accumulate);
    to_last_step(below, s.accumulate);
    if (whole_rows > 0) {
      configure(16, depth_left);
      run(p, whole_rows, s.n);
    }
    if (rows_left > 0) {
      configure(rows_left, depth_left);
      run(below, 1, s.n);
    }
  }
  if (rows_left > 0 || depth_left > 0) amx_load_configuration();
}

}  // namespace velo::ops
