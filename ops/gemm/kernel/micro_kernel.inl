// The micro-kernel over the vectors of one instruction set; included by one generated file each.
//
// The file names `v`, the vector header's namespace, which defines how many rows and vectors of
// sums the registers hold. An Operand has load(p) of a vector of words, broadcast(p) of one, and
// multiply_add(sums, b, a).
#include "ops/gemm/kernel/epilogue.inl"

constexpr int most_rows = v::sum_rows, most_vectors = v::sum_vectors;
constexpr int steps_ahead = 64;  // distance at which A is prefetched
constexpr int tail = 64;         // last steps, in which lines of sums and results are prefetched
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

// Copies lines between the steps, evenly spread, since two close together wait for each other. It
// prefetches the lines of the next call, which follow these.
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

// Keeps the address of a row in one register. Otherwise the compiler computes the address of every
// vector before the loop over rows and runs out of registers.
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

// Adds the only addend to a full register block. The order of a sum of two does not matter.
template <bool Second, class T, int Rows, int Vectors>
VELO_INLINE void store_sum(const register_block<Rows, Vectors>& sums, const output_block& to,
                           int row, int column) {
  T* c = static_cast<T*>(to.c) + row * to.ldc + column;
  T* second = Second ? second_at<T>(to, row, column) : nullptr;
  const T* addend = addend_at<T>(to, 1 - to.position, row, column);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i, c += to.ldc, addend += to.ld_addends, second += to.ld_second) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const v::vec sum = rounded<T>(sums[i][j]) + v::load(addend + j * v::width);
      v::store_exact(c + j * v::width, sum);
      if (Second) v::stream_exact(second + j * v::width, sum);
    }
  }
}

// Finishes results with a residual, with addends or in panels. The last two are finished from
// registers where the block is full or has two vectors, as nearly all have, and there is one addend
// at most; the others row by row.
template <class T, int Rows, int Vectors>
VELO_INLINE void finish_sum_or_panel(const register_block<Rows, Vectors>& sums,
                                     const output_block& to, int row, int column) {
  constexpr bool usual = Rows == most_rows && Vectors >= 2;
  if (usual && to.residual == nullptr && to.terms <= 2 && row + Rows <= to.rows &&
      column + Vectors * v::width <= to.columns &&
      (to.second == nullptr || to.second_nontemporal)) {
    if (to.nontemporal) {
      T* c = static_cast<T*>(to.c) + row * to.ldc + column;
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i, c += to.ldc) {
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) v::stream(c + j * v::width, sums[i][j]);
      }
      return;
    }
    return to.second == nullptr ? store_sum<false, T, Rows, Vectors>(sums, to, row, column)
                                : store_sum<true, T, Rows, Vectors>(sums, to, row, column);
  }
  alignas(64) float stored[Rows * Vectors * v::width];
  leave_sums<Rows, Vectors>(sums, stored, Vectors * v::width);
  const int rows = to.rows - row < Rows ? to.rows - row : Rows;
  for (int i = 0; i < rows; ++i)
    finish_row<T>(to, row + i, column, stored + i * Vectors * v::width, Vectors);
}

// Whether a full block is stored as it is: no step of the epilogue but the rounding applies.
template <int Rows, int Vectors>
VELO_INLINE bool is_stored_whole(const output_block& to, int row, int column) {
  return to.addends == nullptr && !to.nontemporal && to.bias == nullptr && !to.accumulate &&
         to.residual == nullptr && row + Rows <= to.rows &&
         column + Vectors * v::width <= to.columns;
}

template <class T, int Rows, int Vectors>
VELO_INLINE void store_block(const register_block<Rows, Vectors>& sums, const output_block& to,
                             int row, int column) {
  T* c = static_cast<T*>(to.c) + row * to.ldc + column;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) v::store(c + i * to.ldc + j * v::width, sums[i][j]);
  }
}

// Finishes the rows from `row` on and the columns from `column` on of the micro-panel's output.
template <class T, bool Stored, int Rows, int Vectors>
VELO_INLINE void finish_block(const register_block<Rows, Vectors>& sums, const output_block& to,
                              int row, int column) {
  if (Stored || is_stored_whole<Rows, Vectors>(to, row, column))
    return store_block<T>(sums, to, row, column);
  if (to.addends != nullptr || to.nontemporal || to.residual != nullptr)
    return finish_sum_or_panel<T>(sums, to, row, column);
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

// Prefetches the lines of row `i` into L1: those that the end of this call writes and adds, and the
// sums that the next call begins with.
template <int Vectors>
VELO_INLINE void fetch_ends(const micro_args& x, int i, int column) {
  const output_block& to = x.output;
  const int64_t element = element_bytes(to.type), bytes = Vectors * v::width * element;
  if (x.last && i < to.rows) {
    if (!to.nontemporal) {
      const char* c = static_cast<const char*>(to.c) + (i * to.ldc + column) * element;
      for (int64_t j = 0; j < bytes; j += line) __builtin_prefetch(c + j, 1);
      __builtin_prefetch(c + bytes - 1, 1);
    }
    if (to.residual != nullptr && to.residual_rows == nullptr && !to.one_column) {
      const int64_t wide = to.residual_bytes();
      const char* residual =
          static_cast<const char*>(to.residual) + (i * to.ld_residual + column) * wide;
      for (int64_t j = 0; j < Vectors * v::width * wide; j += line)
        __builtin_prefetch(residual + j);
    }
    for (int term = 0; term < to.terms; ++term) {
      if (term == to.position) continue;
      const char* addend = static_cast<const char*>(to.addends[term]) +
                           (to.addend_first + i * to.ld_addends + column) * element;
      for (int64_t j = 0; j < bytes; j += line) __builtin_prefetch(addend + j);
    }
  }
  if (x.first) return;
  const float* next = x.next_sums + i * x.ld_sums + column;
  for (int j = 0; j < Vectors * v::width; j += line / 4) __builtin_prefetch(next + j);
}

VELO_INLINE int last_steps_of(const micro_args& x) {
  return x.words < tail ? x.words : tail;
}

// Prefetches those lines a row at a time. All at once they take every line-fill buffer, and the
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
  } else if (x.output.type == element_type::f32) {
    finish_block<float, Copies, Rows, Vectors>(sums, x.output, row, column);
  } else if (x.output.type == element_type::bf16) {
    finish_block<simd::bf16, Copies, Rows, Vectors>(sums, x.output, row, column);
  } else if constexpr (__is_same(Operand, float_operand)) {  // pairs of bf16 do not end in f16
    finish_block<simd::f16, Copies, Rows, Vectors>(sums, x.output, row, column);
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

// A block of a product whose operands are in cache.
template <class Operand, int Rows, int Vectors>
VELO_INLINE void multiply_in_cache_block(const micro_args& x, int row, int column) {
  register_block<Rows, Vectors> sums;
  float* kept = x.sums + row * x.ld_sums + column;
  take_sums<Rows, Vectors>(sums, kept, x.ld_sums, x.first);
  const uint32_t* a = x.a + row * x.a_row;
  cursor at{a, a + 4 * x.a_row, x.b + column, nullptr, 0, 0};
  multiply_steps<Operand, fetching::nothing, Rows, Vectors>(sums, at, x, x.words);
  leave_sums<Rows, Vectors>(sums, kept, x.ld_sums);
}

template <class Operand, int Vectors>
void multiply_in_cache_columns(const micro_args& args, int column) {
  const micro_args x = args;  // a copy, which no store of sums can change
  const int rows = x.output.rows;
  int row = 0;
  for (; rows - row >= most_rows; row += most_rows) {
    multiply_in_cache_block<Operand, most_rows, Vectors>(x, row, column);
  }
  if (most_rows > 4 && rows - row >= 4) {
    multiply_in_cache_block<Operand, 4, Vectors>(x, row, column);
    row += 4;
  }
  for (; rows - row > 1; row += 2) multiply_in_cache_block<Operand, 2, Vectors>(x, row, column);
  if (row < rows) multiply_in_cache_block<Operand, 1, Vectors>(x, row, column);
}

template <class Operand>
void multiply_in_cache(const micro_args& x) {
  int column = 0;
  for (; x.width - column >= most_vectors * v::width; column += most_vectors * v::width) {
    multiply_in_cache_columns<Operand, most_vectors>(x, column);
  }
  if (most_vectors > 2 && x.width - column >= 2 * v::width) {
    multiply_in_cache_columns<Operand, 2>(x, column);
    column += 2 * v::width;
  }
  if (column < x.width) multiply_in_cache_columns<Operand, 1>(x, column);
}

// The first block of a call that copies, which is stored as it is. It is a function of its own, so
// that the compiler treats the other blocks as if there were no copies.
template <class Operand>
__attribute__((noinline)) void multiply_copying_block(const micro_args& x) {
  multiply_block<Operand, true, most_rows, most_vectors>(x, 0, 0);
}

// Copies a call's lines between the steps of its first block if that is stored as it is, otherwise
// at once.
template <class Operand>
VELO_INLINE bool copy_within_block(const micro_args& x, int rows) {
  if (rows >= most_rows && is_stored_whole<most_rows, most_vectors>(x.output, 0, 0)) {
    multiply_copying_block<Operand>(x);
    return true;
  }
  __builtin_memcpy(x.copies.to, x.copies.from, static_cast<uint64_t>(x.copies.lines) * line);
  return false;
}

// A in place ends with its last row. Packed A is padded, and the number of rows may be rounded up
// where two blocks would take as long.
template <class Operand>
void multiply_micro_panel(const micro_args& x) {
  if (x.in_cache) return multiply_in_cache<Operand>(x);
  const int rows = x.output.rows < micro_rows ? x.output.rows : micro_rows;
  const bool exact = x.a_step == 1;
  int row = 0;
  int column =
      x.copies.lines > 0 && copy_within_block<Operand>(x, rows) ? most_vectors * v::width : 0;
  for (; rows - row > (exact ? most_rows - 1 : most_rows * 3 / 4); row += most_rows, column = 0) {
    multiply_rows<Operand, most_rows>(x, row, column);
  }
  for (; rows - row > (exact ? 3 : 2); row += 4) multiply_rows<Operand, 4>(x, row);
  for (; rows - row > 1; row += 2) multiply_rows<Operand, 2>(x, row);
  if (row < rows) multiply_rows<Operand, 1>(x, row);
}
