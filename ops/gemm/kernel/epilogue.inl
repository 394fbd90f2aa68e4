// The epilogue over the vectors of one instruction set; included by files that name `v`, the vector
// header's namespace. Where the processor rounds to bf16 itself denormal results are zero, as in
// the dot products that produced them.
//
// `finish_vector` applies the steps before the rounding. A new one (a scale, a gate, a residual)
// stands there, in `finish_square` of tile_kernels.inl, and in `is_stored_whole` of
// micro_kernel.inl, which says that there are no steps. `fetch_ends` there prefetches the lines
// that a step reads. `finish_row` serves results with a residual, with addends or in panels.

// The value that a result has once it is stored.
template <class T>
VELO_INLINE v::vec rounded(v::vec x) {
  if constexpr (sizeof(T) == sizeof(float)) return x;
  alignas(64) T stored[v::width];
  v::store(stored, x);
  return v::load(stored);
}

template <class T>
VELO_INLINE const T* addend_at(const output_block& to, int term, int i, int j) {
  return static_cast<const T*>(to.addends[term]) + to.addend_first + i * to.ld_addends + j;
}

template <class T>
VELO_INLINE T* second_at(const output_block& to, int i, int j) {
  return static_cast<T*>(to.second) + i * to.ld_second + j;
}

// The sum of x and the addends. v::store_exact rounds it as reductions do: denormals stay.
template <class T>
VELO_INLINE v::vec sum_of_terms(const output_block& to, int i, int j, int n, v::vec x) {
  const auto load = [&](int term) {
    const T* from = addend_at<T>(to, term, i, j);
    return n >= v::width ? v::load(from) : v::load(from, n);
  };
  v::vec sum = to.position == 0 ? x : load(0);
  for (int term = 1; term < to.terms; ++term) sum = sum + (term == to.position ? x : load(term));
  return sum;
}

// Finishes one vector of sums: the columns from `j` on of the row at `c`.
template <class T>
VELO_INLINE void finish_vector(const output_block& to, T* c, int j, v::vec x) {
  const int n = to.columns - j;
  if (n <= 0) return;
  const bool whole = n >= v::width;
  if (to.bias != nullptr) x = x + (whole ? v::load(to.bias + j) : v::load(to.bias + j, n));
  if (to.accumulate) x = x + (whole ? v::load(c + j) : v::load(c + j, n));
  if (whole) {
    v::store(c + j, x);
  } else {
    v::store(c + j, x, n);
  }
}

template <class T>
VELO_INLINE v::vec residual_of(const output_block& to, int i, int j, int n) {
  const int64_t row = to.residual_rows != nullptr ? to.residual_rows[i] : i * to.ld_residual;
  const T* from = static_cast<const T*>(to.residual) + row;
  if (to.one_column) {
    alignas(64) float all[v::width];
    v::store(all, v::load(from, 1));
    return v::set(all[0]);
  }
  return n >= v::width ? v::load(from + j) : v::load(from + j, n);
}

// The residual's elements of row `i` from column `j` on.
template <class T>
VELO_INLINE v::vec residual_at(const output_block& to, int i, int j, int n) {
  return to.residual_in_f32 ? residual_of<float>(to, i, j, n) : residual_of<T>(to, i, j, n);
}

// Finishes so many vectors of row `i` of the result, from column `j` on.
template <class T>
void finish_row(const output_block& to, int i, int j, const float* sums, int vectors) {
  for (int end = j + vectors * v::width; j < end && j < to.columns; j += v::width) {
    const int n = to.columns - j < v::width ? to.columns - j : v::width;
    const v::vec x = v::load(sums);
    sums += v::width;
    T* row = static_cast<T*>(to.c) + i * to.ldc;
    T* c = row + j;
    if (to.residual != nullptr) {
      finish_vector(to, row, j, x + residual_at<T>(to, i, j, n));
    } else if (to.nontemporal) {
      v::stream(c, x);
    } else {
      alignas(64) T rounded_sum[v::width];
      const v::vec sum = sum_of_terms<T>(to, i, j, n, rounded<T>(x));
      v::store_exact(rounded_sum, sum);
      const auto bytes = static_cast<unsigned>(n) * sizeof(T);
      __builtin_memcpy(c, rounded_sum, bytes);
      if (to.second == nullptr) continue;
      if (to.second_nontemporal && n == v::width) {
        v::stream_exact(second_at<T>(to, i, j), sum);
      } else {
        __builtin_memcpy(second_at<T>(to, i, j), rounded_sum, bytes);
      }
    }
  }
}
