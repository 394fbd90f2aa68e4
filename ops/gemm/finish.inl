// Finishing over the vectors of one instruction set; included by files that name `v`, the vector
// header's namespace. Where the processor rounds to bf16 itself denormal results are zero, as in
// the dot products that made them.

// What a result has of a vector once it is stored.
template <class T>
VELO_INLINE v::vec rounded(v::vec x) {
  if constexpr (sizeof(T) == sizeof(float)) return x;
  alignas(64) T stored[v::width];
  v::store(stored, x);
  return v::load(stored);
}

template <class T>
VELO_INLINE const T* product_of(const result_part& to, int rank, int i, int j) {
  return static_cast<const T*>(to.products[rank]) + to.place + i * to.ld_products + j;
}

template <class T>
VELO_INLINE T* twin_of(const result_part& to, int i, int j) {
  return static_cast<T*>(to.twin) + i * to.ld_twin + j;
}

// Its sum with those of other ranks, which v::store_exact rounds as reductions do: denormals stay.
template <class T>
VELO_INLINE v::vec sum_of_ranks(const result_part& to, int i, int j, int n, v::vec x) {
  const auto load = [&](int rank) {
    const T* from = product_of<T>(to, rank, i, j);
    return n >= v::width ? v::load(from) : v::load(from, n);
  };
  v::vec sum = to.own == 0 ? x : load(0);
  for (int rank = 1; rank < to.ranks; ++rank) sum = sum + (rank == to.own ? x : load(rank));
  return sum;
}

// Of row `i` of the result, the columns from `j`: as many vectors of sums.
template <class T>
void finish_row(const result_part& to, int i, int j, const float* sums, int vectors) {
  for (int end = j + vectors * v::width; j < end && j < to.columns; j += v::width) {
    const int n = to.columns - j < v::width ? to.columns - j : v::width;
    const v::vec x = v::load(sums);
    sums += v::width;
    T* c = static_cast<T*>(to.c) + i * to.ldc + j;
    if (to.bypass) {
      v::stream(c, x);
    } else {
      alignas(64) T rounded_sum[v::width];
      const v::vec sum = sum_of_ranks<T>(to, i, j, n, rounded<T>(x));
      v::store_exact(rounded_sum, sum);
      const auto bytes = static_cast<unsigned>(n) * sizeof(T);
      __builtin_memcpy(c, rounded_sum, bytes);
      if (to.twin == nullptr) continue;
      if (to.twin_bypass && n == v::width) {
        v::stream_exact(twin_of<T>(to, i, j), sum);
      } else {
        __builtin_memcpy(twin_of<T>(to, i, j), rounded_sum, bytes);
      }
    }
  }
}

// A vector of sums that belongs to the columns from `j` of the row at `c`.
template <class T>
VELO_INLINE void finish_vector(const result_part& to, T* c, int j, v::vec x) {
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
