// rms_norm over the vector type `v` of the including namespace.
//
// Each row is read twice: once for its sum (from memory), once to scale it (from L1 or L2). A
// row-wise kernel would alternate between reading and writing phases; prefetching the next row
// while this one is written lets both overlap. Four accumulators cover the latency of a fused
// multiply-add (4 cycles at two a cycle needs 8; the loads allow 4).

template <class T>
VELO_INLINE float squares_of_block(const T* x, int64_t n) {
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= n; i += 4 * v::width) {
    const v::vec a = v::load(x + i), b = v::load(x + i + v::width);
    const v::vec c = v::load(x + i + 2 * v::width), d = v::load(x + i + 3 * v::width);
    s0 = v::fma(a, a, s0);
    s1 = v::fma(b, b, s1);
    s2 = v::fma(c, c, s2);
    s3 = v::fma(d, d, s3);
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
    s0 = v::fma(v::load(dy + i) * v::load(gamma + i), v::load(x + i), s0);
    s1 = v::fma(v::load(dy + j) * v::load(gamma + j), v::load(x + j), s1);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = n - i < v::width ? static_cast<int>(n - i) : v::width;
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

template <bool Bypass, class T>
VELO_INLINE void forward_rows(const rms_norm_slice<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.n;
    T* y = s.y + r * s.n;
    const float rstd = 1.0f / __builtin_sqrtf(mean_of_squares(x, s.n) + s.epsilon);
    if (s.rstd != nullptr) s.rstd[r] = rstd;
    const v::vec scale = v::set(rstd);
    int64_t i = 0;
    for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
      const int64_t j = i + v::width;
      v::prefetch(x + s.n + i);
      if (sizeof(T) == 4) v::prefetch(x + s.n + j);
      v::put<Bypass>(y + i, v::load(x + i) * scale * v::load(s.gamma + i));
      v::put<Bypass>(y + j, v::load(x + j) * scale * v::load(s.gamma + j));
    }
    for (; i < s.n; i += v::width) {  // tail
      const int m = s.n - i < v::width ? static_cast<int>(s.n - i) : v::width;
      v::store(y + i, v::load(x + i, m) * scale * v::load(s.gamma + i, m), m);
    }
  }
  if (Bypass) v::fence();
}

// One row of the gradient; dgamma, when wanted, is a row of partial sums that stays in L1.
template <bool Bypass, bool Gain, class T>
VELO_INLINE void backward_row(const rms_norm_backward_slice<T>& s, int64_t r) {
  const T* x = s.x + r * s.n;
  const T* dy = s.dy + r * s.n;
  T* dx = s.dx + r * s.n;
  const float rstd = s.rstd[r];
  const float mean = mean_of_products(dy, x, s.gamma, s.n);
  const v::vec scale = v::set(rstd);
  const v::vec slope = v::set(-rstd * rstd * rstd * mean);
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) {
    v::prefetch(x + s.n + i);
    v::prefetch(dy + s.n + i);
    const v::vec a = v::load(x + i);
    const v::vec g = v::load(dy + i) * scale;
    if (Gain) v::store(s.dgamma + i, v::fma(g, a, v::load(s.dgamma + i)));
    v::put<Bypass>(dx + i, v::fma(slope, a, g * v::load(s.gamma + i)));
  }
  if (i < s.n) {  // tail
    const int m = static_cast<int>(s.n - i);
    const v::vec a = v::load(x + i, m);
    const v::vec g = v::load(dy + i, m) * scale;
    if (Gain) v::store(s.dgamma + i, v::fma(g, a, v::load(s.dgamma + i, m)), m);
    v::store(dx + i, v::fma(slope, a, g * v::load(s.gamma + i, m)), m);
  }
}

template <bool Bypass, class T>
VELO_INLINE void backward_rows(const rms_norm_backward_slice<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (s.dgamma != nullptr) {
      backward_row<Bypass, true>(s, r);
    } else {
      backward_row<Bypass, false>(s, r);
    }
  }
  if (Bypass) v::fence();
}

void rms_norm(const rms_norm_slice<float>& s) {
  s.bypass ? forward_rows<true>(s) : forward_rows<false>(s);
}
void rms_norm(const rms_norm_slice<simd::bf16>& s) {
  s.bypass ? forward_rows<true>(s) : forward_rows<false>(s);
}
void rms_norm_backward(const rms_norm_backward_slice<float>& s) {
  s.bypass ? backward_rows<true>(s) : backward_rows<false>(s);
}
void rms_norm_backward(const rms_norm_backward_slice<simd::bf16>& s) {
  s.bypass ? backward_rows<true>(s) : backward_rows<false>(s);
}
