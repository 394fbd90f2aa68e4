// rms_norm over the vector type `v` of the including namespace.
//
// Each row is read twice: once for its sum (from memory), once to scale it (from L1 or L2). A
// row-wise kernel would alternate between reading and writing phases; prefetching a later row while
// this one is written overlaps them. Four accumulators cover the latency of a fused
// multiply-add (4 cycles at two a cycle needs 8; the loads allow 4). Rows whose squares exceed the
// range of float32 are left to the reference.

template <class T>
VELO_INLINE float squares_of_block(const T* x, int64_t n) {
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= n; i += 4 * v::width) {
    const v::vec2 a = v::load_any_order(x + i), b = v::load_any_order(x + i + 2 * v::width);
    s0 = v::fma(a.a, a.a, s0);
    s1 = v::fma(a.b, a.b, s1);
    s2 = v::fma(b.a, b.a, s2);
    s3 = v::fma(b.b, b.b, s3);
  }
  for (; i < n; i += v::width) {  // tail
    const v::vec a = n - i < v::width ? v::load(x + i, static_cast<int>(n - i)) : v::load(x + i);
    s0 = v::fma(a, a, s0);
  }
  return v::sum((s0 + s1) + (s2 + s3));
}

// Long rows are summed in blocks, and the blocks in double, so that the error does not grow with
// the row.
constexpr int64_t sum_block = 4096;

template <class T>
VELO_INLINE float mean_of_squares(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += sum_block) {
    sum += static_cast<double>(squares_of_block(x + i, n - i < sum_block ? n - i : sum_block));
  }
  return static_cast<float>(sum / static_cast<double>(n));
}

template <class T>
VELO_INLINE float dot_of_block(const T* dy, const T* x, const float* gamma, int64_t n) {
  v::vec s0 = v::zero(), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::look_ahead(dy + i);
    v::look_ahead(x + i);
    s0 = v::fma(v::load(dy + i) * v::load(gamma + i), v::load(x + i), s0);
    s1 = v::fma(v::load(dy + j) * v::load(gamma + j), v::load(x + j), s1);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    s0 = v::fma(v::load(dy + i, m) * v::load(gamma + i, m), v::load(x + i, m), s0);
  }
  return v::sum(s0 + s1);
}

template <class T>
VELO_INLINE float mean_of_products(const T* dy, const T* x, const float* gamma, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += sum_block) {
    sum += static_cast<double>(
        dot_of_block(dy + i, x + i, gamma + i, n - i < sum_block ? n - i : sum_block));
  }
  return static_cast<float>(sum / static_cast<double>(n));
}

// A mean square below this may have lost squares to underflow; a gradient needs rstd^2 as well.
constexpr float least_square = 0x1p-120f, least_rstd = 0x1p-40f, most_rstd = 0x1p40f;

template <class T>
__attribute__((noinline)) void forward_in_double(const rms_norm_slice<T>& s, int64_t r) {
  rms_norm_slice<T> row = s;
  row.x = s.x + r * s.n;
  row.y = s.y + r * s.n;
  row.rstd = s.rstd == nullptr ? nullptr : s.rstd + r;
  row.rows = 1;
  reference::rms_norm.forward(row);
}

template <class T>
__attribute__((noinline)) void backward_in_double(const rms_norm_backward_slice<T>& s, int64_t r) {
  rms_norm_backward_slice<T> row = s;
  row.dy = s.dy + r * s.n;
  row.x = s.x + r * s.n;
  row.rstd = s.rstd + r;
  row.dx = s.dx + r * s.n;
  row.rows = 1;
  reference::rms_norm.backward(row);
}

// Far: 16 KiB ahead and into L2, as long rows need. Short rows prefetch the next one into L1.
template <bool Far>
VELO_INLINE void fetch(const void* p) {
  if (Far) {
    __builtin_prefetch(p, 0, 2);
  } else {
    v::prefetch(p);
  }
}

template <bool Bypass, bool Far, class T>
VELO_INLINE void forward_slice(const rms_norm_slice<T>& s, int64_t ahead) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.n;
    T* y = s.y + r * s.n;
    const float square = mean_of_squares(x, s.n) + s.epsilon;
    if (__builtin_expect(square < least_square || square > __FLT_MAX__, false)) {
      forward_in_double(s, r);
      continue;
    }
    const float rstd = 1.0f / __builtin_sqrtf(square);
    if (s.rstd != nullptr) s.rstd[r] = rstd;
    const v::vec scale = v::set(rstd);
    int64_t i = 0;
    for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
      const int64_t j = i + v::width;
      fetch<Far>(x + ahead + i);
      if (sizeof(T) == 4) fetch<Far>(x + ahead + j);
      v::put2<Bypass>(y + i, v::load(x + i) * scale * v::load(s.gamma + i),
                      v::load(x + j) * scale * v::load(s.gamma + j));
    }
    for (; i < s.n; i += v::width) {  // tail
      const int m = simd::lanes_left<v::width>(s.n, i);
      v::store(y + i, v::load(x + i, m) * scale * v::load(s.gamma + i, m), m);
    }
  }
  if (Bypass) v::fence();
}

template <bool Bypass, class T>
VELO_INLINE void forward_rows(const rms_norm_slice<T>& s) {
  constexpr int64_t element = static_cast<int64_t>(sizeof(T)), long_row = 8192;
  const int64_t bytes = s.n * element;
  if (bytes < long_row) return forward_slice<Bypass, false>(s, s.n);
  // A row as large as L1 leaves no room for prefetched lines.
  const bool fetches = Bypass || bytes == long_row;
  const int64_t ahead = 2 * long_row / element;
  forward_slice<Bypass, true>(s, !fetches ? 0 : s.n > ahead ? s.n : ahead);
}

// Computes `Rows` rows of the gradient at once, so that gamma and the partial sums of dgamma are
// loaded, and the sums stored, once for all of them: row by row that is half of the loads and 2 of
// 3 stores. More than two rows of 4096 leave L1 before they are read again.
template <bool Bypass, bool Gain, int Rows, class T>
VELO_INLINE void backward_rows_at(const rms_norm_backward_slice<T>& s, int64_t r) {
  const T* x = s.x + r * s.n;
  const T* dy = s.dy + r * s.n;
  T* dx = s.dx + r * s.n;
  const int64_t n = s.n;
  v::vec scale[Rows], slope[Rows];
#pragma GCC unroll 4
  for (int k = 0; k < Rows; ++k) {
    const float rstd = s.rstd[r + k];
    const float mean = mean_of_products(dy + k * n, x + k * n, s.gamma, n);
    scale[k] = v::set(rstd);
    slope[k] = v::set(-rstd * mean * rstd * rstd);
  }
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    const v::vec gamma_i = v::load(s.gamma + i), gamma_j = v::load(s.gamma + j);
    v::vec sum_i = Gain ? v::load(s.dgamma + i) : v::zero();
    v::vec sum_j = Gain ? v::load(s.dgamma + j) : v::zero();
#pragma GCC unroll 4
    for (int k = 0; k < Rows; ++k) {
      const int64_t at = k * n + i, next = at + Rows * n;
      if (Bypass) {
        fetch<true>(x + next);
        fetch<true>(dy + next);
        if (sizeof(T) == 4) fetch<true>(x + next + v::width);
        if (sizeof(T) == 4) fetch<true>(dy + next + v::width);
      }
      const v::vec a = v::load(x + at), b = v::load(x + at + v::width);
      const v::vec g = v::load(dy + at) * scale[k], h = v::load(dy + at + v::width) * scale[k];
      sum_i = v::fma(g, a, sum_i);
      sum_j = v::fma(h, b, sum_j);
      v::put2<Bypass>(dx + at, v::fma(slope[k], a, g * gamma_i), v::fma(slope[k], b, h * gamma_j));
    }
    if (Gain) v::store(s.dgamma + i, sum_i);
    if (Gain) v::store(s.dgamma + j, sum_j);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    const v::vec gamma = v::load(s.gamma + i, m);
    v::vec sum = Gain ? v::load(s.dgamma + i, m) : v::zero();
    for (int k = 0; k < Rows; ++k) {
      const int64_t at = k * n + i;
      const v::vec a = v::load(x + at, m), g = v::load(dy + at, m) * scale[k];
      sum = v::fma(g, a, sum);
      v::store(dx + at, v::fma(slope[k], a, g * gamma), m);
    }
    if (Gain) v::store(s.dgamma + i, sum, m);
  }
}

template <bool Bypass, bool Gain, class T>
VELO_INLINE void backward_slice(const rms_norm_backward_slice<T>& s) {
  const auto fits = [&](int64_t r) { return !(s.rstd[r] < least_rstd || s.rstd[r] > most_rstd); };
  for (int64_t r = 0; r < s.rows;) {
    if (__builtin_expect(!fits(r), false)) {
      backward_in_double(s, r++);
    } else if (r + 1 < s.rows && fits(r + 1)) {
      backward_rows_at<Bypass, Gain, 2>(s, r);
      r += 2;
    } else {
      backward_rows_at<Bypass, Gain, 1>(s, r++);
    }
  }
  if (Bypass) v::fence();
}

template <bool Bypass, class T>
VELO_INLINE void backward_rows(const rms_norm_backward_slice<T>& s) {
  s.dgamma != nullptr ? backward_slice<Bypass, true>(s) : backward_slice<Bypass, false>(s);
}

// Adds the partial rows in order, a vector of columns at a time. In scalar code this sum was a
// third of the gradient's time in cache.
void gain(const rms_norm_gain_columns& s) {
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::vec sum = s.accumulate ? v::load(s.dgamma + i, m) : v::zero();
    for (int64_t r = 0; r < s.rows; ++r) sum = sum + v::load(s.partial + r * s.stride + i, m);
    v::store(s.dgamma + i, sum, m);
  }
}

template <class T>
void forward(const rms_norm_slice<T>& s) {
  s.bypass ? forward_rows<true>(s) : forward_rows<false>(s);
}
template <class T>
void backward(const rms_norm_backward_slice<T>& s) {
  s.bypass ? backward_rows<true>(s) : backward_rows<false>(s);
}

constexpr rms_norm_kernels kernels = {{forward<float>, forward<simd::bf16>, forward<simd::f16>},
                                      {backward<float>, backward<simd::bf16>, backward<simd::f16>},
                                      gain};
