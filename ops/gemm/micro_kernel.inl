// The micro-kernel over the vectors of one instruction set; included by one generated file each.
//
// That file names `v`, the vector header's namespace, which says how many rows and vectors of
// sums the registers hold. An Operand has load(p) of a vector of words, broadcast(p) of one, and
// multiply_add(sums, b, a).
#include "ops/gemm/finish.inl"

constexpr int most_rows = v::sum_rows, most_vectors = v::sum_vectors;
constexpr int steps_ahead = 64;  // at which A is fetched
constexpr int tail = 64;         // steps left when sums and results are fetched
constexpr int line = 64;         // bytes

struct float_operand {
  v::vec lanes;

  static float_operand load(const uint32_t* p) {
    return {v::load(reinterpret_cast<const float*>(p))};
  }
  static float_operand broadcast(const uint32_t* p) {
    return {v::set(*reinterpret_cast<const float*>(p))};
  }
  static v::vec multiply_add(v::vec sums, float_operand b, float_operand a) {
    return v::fma(a.lanes, b.lanes, sums);
  }
};

template <int Rows, int Vectors>
using register_block = v::vec[Rows][Vectors];

struct cursor {
  const uint32_t *a, *a4, *b;  // rows 0 and 4 of A
  const char* fetch;
  int64_t fetch_step, fetch_beside;
};

enum class fetching { nothing, a, all };

template <class Operand, fetching Fetch, int Rows, int Vectors>
VELO_INLINE void multiply_steps(register_block<Rows, Vectors>& sums, cursor& at,
                                const micro_args& x, int steps) {
  const int64_t a_row = x.a_row, a_step = x.a_step, b_step = x.b_step;
  for (; steps > 0; --steps) {
    Operand row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = Operand::load(at.b + j * v::width);
    if (Fetch != fetching::nothing) __builtin_prefetch(at.a + steps_ahead * micro_rows);
    if (Fetch == fetching::all) {
      __builtin_prefetch(at.fetch, 0, 2);
      __builtin_prefetch(at.fetch + at.fetch_beside, 0, 2);
      __builtin_prefetch(at.fetch + 2 * at.fetch_beside, 0, 2);
      at.fetch += at.fetch_step;
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Operand a = Operand::broadcast((i < 4 ? at.a : at.a4) + i % 4 * a_row);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sums[i][j] = Operand::multiply_add(sums[i][j], row[j], a);
    }
    at.a += a_step;
    at.a4 += a_step;
    at.b += b_step;
  }
}

// With lines copied on the way, evenly spread: two close to each other wait for each other. Those
// of the next call are fetched, which go on where these end.
template <class Operand, int Rows, int Vectors>
VELO_INLINE void multiply_and_copy(register_block<Rows, Vectors>& sums, cursor& at,
                                   const micro_args& x, int steps) {
  const int lines = x.copies.lines, between = steps / lines;
  const char* from = x.copies.from;
  char* to = x.copies.to;
  for (int i = 0; i < lines; ++i, from += line, to += line) {
    multiply_steps<Operand, fetching::a, Rows, Vectors>(sums, at, x, between);
    __builtin_memcpy(to, from, line);
    __builtin_prefetch(from + lines * line);
  }
  multiply_steps<Operand, fetching::a, Rows, Vectors>(sums, at, x, steps - between * lines);
}

// The next row of sums, in one register: left to itself the compiler works out the address of every
// vector before the loop over rows and finds no registers for them.
template <class Float>
VELO_INLINE void advance_row(Float*& row, int64_t ld) {
  row += ld;
  __asm__("" : "+r"(row));
}

template <int Rows, int Vectors>
VELO_INLINE void take_sums(register_block<Rows, Vectors>& sums, const float* from, int64_t ld,
                           bool first) {
  if (first) {
#pragma GCC unroll 8
    for (auto& row : sums) {
#pragma GCC unroll 4
      for (v::vec& x : row) x = v::zero();
    }
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) sums[i][j] = v::load(from + j * v::width);
    advance_row(from, ld);
  }
}

template <int Rows, int Vectors>
VELO_INLINE void leave_sums(const register_block<Rows, Vectors>& sums, float* to, int64_t ld) {
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) v::store(to + j * v::width, sums[i][j]);
    advance_row(to, ld);
  }
}

// The sum with the block of one other rank, of a whole block of registers; a sum of two has no
// order.
template <bool Twin, class T, int Rows, int Vectors>
VELO_INLINE void finish_sums(const register_block<Rows, Vectors>& sums, const result_part& to,
                             int row, int column) {
  T* c = static_cast<T*>(to.c) + row * to.ldc + column;
  T* twin = Twin ? twin_of<T>(to, row, column) : nullptr;
  const T* other = product_of<T>(to, 1 - to.own, row, column);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i, c += to.ldc, other += to.ld_products, twin += to.ld_twin) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const v::vec sum = rounded<T>(sums[i][j]) + v::load(other + j * v::width);
      v::store_exact(c + j * v::width, sum);
      if (Twin) v::stream_exact(twin + j * v::width, sum);
    }
  }
}

// Of ranks that sum their products: from registers where the block is a whole one or of two
// vectors, which nearly all are, and of one other rank at most.
template <class T, int Rows, int Vectors>
VELO_INLINE void finish_for_ranks(const register_block<Rows, Vectors>& sums, const result_part& to,
                                  int row, int column) {
  constexpr bool usual = Rows == most_rows && Vectors >= 2;
  if (usual && to.ranks <= 2 && row + Rows <= to.rows &&
      column + Vectors * v::width <= to.columns && (to.twin == nullptr || to.twin_bypass)) {
    if (to.bypass) {
      T* c = static_cast<T*>(to.c) + row * to.ldc + column;
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i, c += to.ldc) {
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) v::stream(c + j * v::width, sums[i][j]);
      }
      return;
    }
    return to.twin == nullptr ? finish_sums<false, T, Rows, Vectors>(sums, to, row, column)
                              : finish_sums<true, T, Rows, Vectors>(sums, to, row, column);
  }
  alignas(64) float stored[Rows * Vectors * v::width];
  leave_sums<Rows, Vectors>(sums, stored, Vectors * v::width);
  const int rows = to.rows - row < Rows ? to.rows - row : Rows;
  for (int i = 0; i < rows; ++i)
    finish_row<T>(to, row + i, column, stored + i * Vectors * v::width, Vectors);
}

// Whether a block is stored as it is: all of it, with nothing added.
template <int Rows, int Vectors>
VELO_INLINE bool is_only_stored(const result_part& to, int row, int column) {
  return to.products == nullptr && !to.bypass && to.bias == nullptr && !to.accumulate &&
         row + Rows <= to.rows && column + Vectors * v::width <= to.columns;
}

template <class T, int Rows, int Vectors>
VELO_INLINE void store_block(const register_block<Rows, Vectors>& sums, const result_part& to,
                             int row, int column) {
  T* c = static_cast<T*>(to.c) + row * to.ldc + column;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) v::store(c + i * to.ldc + j * v::width, sums[i][j]);
  }
}

// Rows `row`.. and columns `column`.. of the micro-panel's result.
template <class T, bool Stored, int Rows, int Vectors>
VELO_INLINE void finish_block(const register_block<Rows, Vectors>& sums, const result_part& to,
                              int row, int column) {
  if (Stored || is_only_stored<Rows, Vectors>(to, row, column))
    return store_block<T>(sums, to, row, column);
  if (to.products != nullptr || to.bypass) return finish_for_ranks<T>(sums, to, row, column);
  T* c = static_cast<T*>(to.c) + row * to.ldc;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    if (row + i >= to.rows) break;
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      finish_vector(to, c + i * to.ldc, column + j * v::width, sums[i][j]);
    }
  }
}

// Into the first cache, of row `i`: what the end of this call writes and adds, and the sums the
// next one begins with.
template <int Vectors>
VELO_INLINE void fetch_ends(const micro_args& x, int i, int column) {
  const result_part& to = x.result;
  const int64_t element = to.bf16 ? 2 : 4, bytes = Vectors * v::width * element;
  if (x.last && i < to.rows) {
    if (!to.bypass) {
      const char* c = static_cast<const char*>(to.c) + (i * to.ldc + column) * element;
      for (int64_t j = 0; j < bytes; j += line) __builtin_prefetch(c + j, 1);
      __builtin_prefetch(c + bytes - 1, 1);
    }
    for (int rank = 0; rank < to.ranks; ++rank) {
      if (rank == to.own) continue;
      const char* theirs = static_cast<const char*>(to.products[rank]) +
                           (to.place + i * to.ld_products + column) * element;
      for (int64_t j = 0; j < bytes; j += line) __builtin_prefetch(theirs + j);
    }
  }
  if (x.first) return;
  const float* next = x.next_sums + i * x.ld_sums + column;
  for (int j = 0; j < Vectors * v::width; j += line / 4) __builtin_prefetch(next + j);
}

VELO_INLINE int last_steps_of(const micro_args& x) {
  return x.words < tail ? x.words : tail;
}

// With the ends fetched a row at a time: all at once they take every line-fill buffer, and the
// loads of operands wait for one.
template <class Operand, fetching Fetch, int Rows, int Vectors>
VELO_INLINE void multiply_last_steps(register_block<Rows, Vectors>& sums, cursor& at,
                                     const micro_args& x, int row, int column) {
  const int steps = last_steps_of(x);
  for (int i = 0; i < Rows; ++i) {
    fetch_ends<Vectors>(x, row + i, column);
    multiply_steps<Operand, Fetch, Rows, Vectors>(sums, at, x,
                                                  steps * (i + 1) / Rows - steps * i / Rows);
  }
}

template <class Operand, bool Copies, int Rows, int Vectors>
VELO_INLINE void multiply_block(const micro_args& x, int row, int column) {
  register_block<Rows, Vectors> sums;
  float* kept = x.sums + row * x.ld_sums + column;
  take_sums<Rows, Vectors>(sums, kept, x.ld_sums, x.first);
  const uint32_t* a = x.a + row * x.a_row;
  cursor at{a,
            a + 4 * x.a_row,
            x.b + column,
            static_cast<const char*>(x.fetch.first),
            x.fetch.step,
            x.fetch.beside};
  const int steps = x.words - last_steps_of(x);
  const int fetch_steps = row == 0 && column == 0 ? x.fetch.steps : 0;
  const int with_fetch = fetch_steps < steps ? fetch_steps : steps;
  multiply_steps<Operand, fetching::all, Rows, Vectors>(sums, at, x, with_fetch);
  if (Copies) {
    multiply_and_copy<Operand, Rows, Vectors>(sums, at, x, steps - with_fetch);
  } else {
    multiply_steps<Operand, fetching::a, Rows, Vectors>(sums, at, x, steps - with_fetch);
  }
  if (fetch_steps > steps) {
    multiply_last_steps<Operand, fetching::all, Rows, Vectors>(sums, at, x, row, column);
  } else {
    multiply_last_steps<Operand, fetching::a, Rows, Vectors>(sums, at, x, row, column);
  }
  if (!x.last) {
    leave_sums<Rows, Vectors>(sums, kept, x.ld_sums);
  } else if (x.result.bf16) {
    finish_block<simd::bf16, Copies, Rows, Vectors>(sums, x.result, row, column);
  } else {
    finish_block<float, Copies, Rows, Vectors>(sums, x.result, row, column);
  }
}

template <class Operand, int Rows>
VELO_INLINE void multiply_rows(const micro_args& x, int row, int column = 0) {
  for (; x.width - column >= most_vectors * v::width; column += most_vectors * v::width) {
    multiply_block<Operand, false, Rows, most_vectors>(x, row, column);
  }
  if (most_vectors > 2 && x.width - column >= 2 * v::width) {
    multiply_block<Operand, false, Rows, 2>(x, row, column);
    column += 2 * v::width;
  }
  if (column < x.width) multiply_block<Operand, false, Rows, 1>(x, row, column);
}

// Rows and columns of a product whose operands are near.
template <class Operand, int Rows, int Vectors>
VELO_INLINE void multiply_near_block(const micro_args& x, int row, int column) {
  register_block<Rows, Vectors> sums;
  float* kept = x.sums + row * x.ld_sums + column;
  take_sums<Rows, Vectors>(sums, kept, x.ld_sums, x.first);
  const uint32_t* a = x.a + row * x.a_row;
  cursor at{a, a + 4 * x.a_row, x.b + column, nullptr, 0, 0};
  multiply_steps<Operand, fetching::nothing, Rows, Vectors>(sums, at, x, x.words);
  leave_sums<Rows, Vectors>(sums, kept, x.ld_sums);
}

template <class Operand, int Vectors>
void multiply_near_columns(const micro_args& args, int column) {
  const micro_args x = args;  // a copy, which no store of sums can change
  const int rows = x.result.rows;
  int row = 0;
  for (; rows - row >= most_rows; row += most_rows) {
    multiply_near_block<Operand, most_rows, Vectors>(x, row, column);
  }
  if (most_rows > 4 && rows - row >= 4) {
    multiply_near_block<Operand, 4, Vectors>(x, row, column);
    row += 4;
  }
  for (; rows - row > 1; row += 2) multiply_near_block<Operand, 2, Vectors>(x, row, column);
  if (row < rows) multiply_near_block<Operand, 1, Vectors>(x, row, column);
}

template <class Operand>
void multiply_near(const micro_args& x) {
  int column = 0;
  for (; x.width - column >= most_vectors * v::width; column += most_vectors * v::width) {
    multiply_near_columns<Operand, most_vectors>(x, column);
  }
  if (most_vectors > 2 && x.width - column >= 2 * v::width) {
    multiply_near_columns<Operand, 2>(x, column);
    column += 2 * v::width;
  }
  if (column < x.width) multiply_near_columns<Operand, 1>(x, column);
}

// The first block of registers of a call that copies, which is only stored; a function of its own,
// so that the others are compiled as if there were none.
template <class Operand>
__attribute__((noinline)) void multiply_copying_block(const micro_args& x) {
  multiply_block<Operand, true, most_rows, most_vectors>(x, 0, 0);
}

// Copies lines between the steps of a call's first block, if that is one of those; else at once.
template <class Operand>
VELO_INLINE bool copy_within_block(const micro_args& x, int rows) {
  if (rows >= most_rows && is_only_stored<most_rows, most_vectors>(x.result, 0, 0)) {
    multiply_copying_block<Operand>(x);
    return true;
  }
  __builtin_memcpy(x.copies.to, x.copies.from, static_cast<uint64_t>(x.copies.lines) * line);
  return false;
}

// A in place ends with its last row; packed it is filled up, and rows may be rounded up.
template <class Operand>
void multiply_micro_panel(const micro_args& x) {
  if (x.near) return multiply_near<Operand>(x);
  const int rows = x.result.rows < micro_rows ? x.result.rows : micro_rows;
  const bool exact = x.a_step == 1;
  int row = 0;
  int column =
      x.copies.lines > 0 && copy_within_block<Operand>(x, rows) ? most_vectors * v::width : 0;
  for (; rows - row > (exact ? most_rows - 1 : most_rows / 2); row += most_rows, column = 0) {
    multiply_rows<Operand, most_rows>(x, row, column);
  }
  for (; rows - row > (exact ? 3 : 2); row += 4) multiply_rows<Operand, 4>(x, row);
  for (; rows - row > 1; row += 2) multiply_rows<Operand, 2>(x, row);
  if (row < rows) multiply_rows<Operand, 1>(x, row);
}
