// The loops of the norms over the vector type `v` of the including namespace. Centered: the mean of
// a row is subtracted first (layer_norm).
//
// Each row is read for its sums (from memory) and again to scale it (from L1 or L2). A row-wise
// kernel would alternate between reading and writing phases; prefetching a later row while this
// one is written overlaps them. Four accumulators cover the latency of a fused multiply-add (4
// cycles at two a cycle needs 8; the loads allow 4). Rows whose squares exceed the range of float32
// are left to the reference.

// Long rows are summed in blocks, and the blocks in double, so that the error does not grow with
// the row.
constexpr int64_t sum_block = 4096;

// The sum over blocks of body(first, count), each a float.
template <class Body>
VELO_INLINE double sum_blocks(int64_t n, const Body& body) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += sum_block)
    sum += static_cast<double>(body(i, n - i < sum_block ? n - i : sum_block));
  return sum;
}

// The sum of a block's elements.
template <class X>
VELO_INLINE float sum_of_block(const X* x, int64_t n) {
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= n; i += 4 * v::width) {
    const v::vec2 a = v::load_any_order(x + i), b = v::load_any_order(x + i + 2 * v::width);
    s0 = s0 + a.a;
    s1 = s1 + a.b;
    s2 = s2 + b.a;
    s3 = s3 + b.b;
  }
  for (; i < n; i += v::width) s0 = s0 + v::load(x + i, simd::lanes_left<v::width>(n, i));  // tail
  return v::sum((s0 + s1) + (s2 + s3));
}

// The sum of the squares of x - mean, and of x - mean itself in `rest`.
template <bool Centered, class X>
VELO_INLINE float squares_of_block(const X* x, float mean, int64_t n, float& rest) {
  const v::vec m = v::set(mean);
  v::vec s0 = v::zero(), s1 = s0, s2 = s0, s3 = s0, r0 = s0, r1 = s0;
  int64_t i = 0;
  for (; i + 4 * v::width <= n; i += 4 * v::width) {
    v::vec2 a = v::load_any_order(x + i), b = v::load_any_order(x + i + 2 * v::width);
    if (Centered) {
      a = {a.a - m, a.b - m}, b = {b.a - m, b.b - m};
      r0 = r0 + (a.a + a.b);
      r1 = r1 + (b.a + b.b);
    }
    s0 = v::fma(a.a, a.a, s0);
    s1 = v::fma(a.b, a.b, s1);
    s2 = v::fma(b.a, b.a, s2);
    s3 = v::fma(b.b, b.b, s3);
  }
  for (; i < n; i += v::width) {  // tail
    const int left = simd::lanes_left<v::width>(n, i);
    v::vec a = left < v::width ? v::load(x + i, left) : v::load(x + i);
    if (Centered) {
      a = v::keep_first(left, a - m, v::zero());
      r0 = r0 + a;
    }
    s0 = v::fma(a, a, s0);
  }
  if (Centered) rest = v::sum(r0 + r1);
  return v::sum((s0 + s1) + (s2 + s3));
}

// A row's mean is mean + rest, since the rounding of a mean far from 0 would show in every element
// of the row; square is the mean of the squares around it.
struct row_moments {
  float mean, rest, square;
};

template <bool Centered, class X>
VELO_INLINE row_moments moments_of(const X* x, int64_t n) {
  const auto count = static_cast<double>(n);
  float mean = 0;
  if (Centered) {
    mean = static_cast<float>(
        sum_blocks(n, [&](int64_t i, int64_t m) { return sum_of_block(x + i, m); }) / count);
  }
  double rest = 0;
  const double squares = sum_blocks(n, [&](int64_t i, int64_t m) {
    float r = 0;
    const float s = squares_of_block<Centered>(x + i, mean, m, r);
    rest += static_cast<double>(r);
    return s;
  });
  rest /= count;
  return {mean, static_cast<float>(rest),
          static_cast<float>(squares / count - (Centered ? rest * rest : 0))};
}

// A mean square below this may have lost squares to underflow; a gradient needs rstd^2 as well.
constexpr float least_square = 0x1p-120f, least_rstd = 0x1p-40f, most_rstd = 0x1p40f;

// Whether squares of mean `square` left the range of float32. A mean that overflows makes the
// square NaN.
template <bool Centered>
VELO_INLINE bool exceeds_float(float square) {
  return Centered ? !(square >= least_square && square <= __FLT_MAX__)
                  : square < least_square || square > __FLT_MAX__;
}

VELO_INLINE bool fits(float rstd) {
  return !(rstd < least_rstd || rstd > most_rstd);
}

// The moments of a row whose mean is known.
VELO_INLINE row_moments split_mean(double mean) {
  const auto rounded = static_cast<float>(mean);
  return {rounded, static_cast<float>(mean - static_cast<double>(rounded)), 0};
}

template <bool Centered, const norm_kernels& Reference, class T>
void sums(const norm_sums<T>& s) {
  constexpr int count = Centered ? 2 : 1;
  const auto n = static_cast<double>(s.n);
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.n;
    double* to = s.sums + r * count;
    const row_moments row = s.n == 0 ? row_moments{0, 0, 0} : moments_of<Centered>(x, s.n);
    if (__builtin_expect(exceeds_float<Centered>(row.square + s.epsilon), false)) {
      Reference.sums(norm_sums<T>{x, to, 1, s.n, s.epsilon});
      continue;
    }
    to[0] = n * static_cast<double>(row.square);
    if (Centered) to[1] = n * (static_cast<double>(row.mean) + static_cast<double>(row.rest));
  }
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

// in_double(r) treats a row whose squares exceed float32.
template <bool Centered, bool Bypass, bool Far, class X, class T, class InDouble>
VELO_INLINE void forward_slice(const norm_rows<X, T>& s, int64_t ahead, const InDouble& in_double) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const X* x = s.x + r * s.n;
    T* y = s.y + r * s.n;
    row_moments row;
    float rstd, mean_of_row;
    bool exceeds;
    if (s.known != nullptr) {
      row = split_mean(s.known[r].mean);
      rstd = static_cast<float>(s.known[r].rstd);
      mean_of_row = row.mean;
      exceeds = !fits(rstd);
    } else {
      row = moments_of<Centered>(x, s.n);
      const float square = row.square + s.epsilon;
      exceeds = exceeds_float<Centered>(square);
      rstd = 1.0f / __builtin_sqrtf(square);
      mean_of_row = row.mean + row.rest;
    }
    if (__builtin_expect(exceeds, false)) {
      in_double(r);
      continue;
    }
    if (Centered && s.mean != nullptr) s.mean[r] = mean_of_row;
    if (s.rstd != nullptr) s.rstd[r] = rstd;
    const v::vec scale = v::set(rstd), mean = v::set(row.mean), rest = v::set(row.rest);
    const auto value = [&](v::vec a, v::vec gamma, v::vec beta) __attribute__((always_inline)) {
      return Centered ? v::fma(((a - mean) - rest) * scale, gamma, beta) : a * scale * gamma;
    };
    int64_t i = 0;
    for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
      const int64_t j = i + v::width;
      fetch<Far>(x + ahead + i);
      if (sizeof(X) == 4) fetch<Far>(x + ahead + j);
      v::put2<Bypass>(
          y + i,
          value(v::load(x + i), v::load(s.gamma + i), Centered ? v::load(s.beta + i) : v::zero()),
          value(v::load(x + j), v::load(s.gamma + j), Centered ? v::load(s.beta + j) : v::zero()));
    }
    for (; i < s.n; i += v::width) {  // tail
      const int m = simd::lanes_left<v::width>(s.n, i);
      v::store(y + i,
               value(v::load(x + i, m), v::load(s.gamma + i, m),
                     Centered ? v::load(s.beta + i, m) : v::zero()),
               m);
    }
  }
}

template <bool Centered, bool Bypass, class X, class T, class InDouble>
VELO_INLINE void forward_rows(const norm_rows<X, T>& s, const InDouble& in_double) {
  constexpr int64_t element = static_cast<int64_t>(sizeof(X)), long_row = 8192;
  const int64_t bytes = s.n * element;
  if (bytes < long_row) return forward_slice<Centered, Bypass, false>(s, s.n, in_double);
  // A row as large as L1 leaves no room for prefetched lines.
  const bool fetches = Bypass || bytes == long_row;
  const int64_t ahead = 2 * long_row / element;
  forward_slice<Centered, Bypass, true>(s, !fetches ? 0 : s.n > ahead ? s.n : ahead, in_double);
}

// The sum of g = dy * gamma times x - mean, and of g itself in `sum`.
template <bool Centered, class T, class X>
VELO_INLINE float dot_of_block(const T* dy, const X* x, const float* gamma, float mean, int64_t n,
                               float& sum) {
  const v::vec m = v::set(mean);
  v::vec s0 = v::zero(), s1 = s0, g0 = s0, g1 = s0;
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::look_ahead(dy + i);
    v::look_ahead(x + i);
    const v::vec g = v::load(dy + i) * v::load(gamma + i);
    const v::vec h = v::load(dy + j) * v::load(gamma + j);
    s0 = v::fma(g, Centered ? v::load(x + i) - m : v::load(x + i), s0);
    s1 = v::fma(h, Centered ? v::load(x + j) - m : v::load(x + j), s1);
    if (Centered) g0 = g0 + g, g1 = g1 + h;
  }
  for (; i < n; i += v::width) {  // tail
    const int left = simd::lanes_left<v::width>(n, i);
    const v::vec g = v::load(dy + i, left) * v::load(gamma + i, left);
    const v::vec a = v::load(x + i, left);
    s0 = v::fma(g, Centered ? v::keep_first(left, a - m, v::zero()) : a, s0);
    if (Centered) g0 = g0 + g;
  }
  if (Centered) sum = v::sum(g0 + g1);
  return v::sum(s0 + s1);
}

// Sums, not means.
template <bool Centered, class T, class X>
VELO_INLINE row_gradient_terms gradient_sums_of(const T* dy, const X* x, const float* gamma,
                                                float mean, int64_t n) {
  double sum = 0;
  const double dot = sum_blocks(n, [&](int64_t i, int64_t m) {
    float g = 0;
    const float d = dot_of_block<Centered>(dy + i, x + i, gamma + i, mean, m, g);
    sum += static_cast<double>(g);
    return d;
  });
  return {dot, sum};
}

template <bool Centered, const norm_kernels& Reference, class T>
void gradient_sums(const norm_gradient_sums<T>& s) {
  constexpr int count = Centered ? 2 : 1;
  for (int64_t r = 0; r < s.rows; ++r) {
    const T *dy = s.dy + r * s.n, *x = s.x + r * s.n;
    double* to = s.sums + r * count;
    if (__builtin_expect(!fits(s.rstd[r]), false)) {
      Reference.gradient_sums(norm_gradient_sums<T>{dy, x, s.gamma, Centered ? s.mean + r : nullptr,
                                                    s.rstd + r, to, 1, s.n});
      continue;
    }
    const row_gradient_terms all =
        gradient_sums_of<Centered>(dy, x, s.gamma, Centered ? s.mean[r] : 0.0f, s.n);
    to[0] = all.dot;
    if (Centered) to[1] = all.sum;
  }
}

struct row_slope {
  v::vec scale, slope, shift, mean;
};

// The slope of row r.
template <bool Centered, class T, class X, class D>
VELO_INLINE row_slope slope_of(const norm_gradient_rows<T, X, D>& s, int64_t r) {
  const float mean = Centered ? s.mean[r] : 0.0f, rstd = s.rstd[r];
  row_gradient_terms of;
  if (s.known != nullptr) {
    of = s.known[r];
  } else {
    of = gradient_sums_of<Centered>(s.dy + r * s.n, s.x + r * s.n, s.gamma, mean, s.n);
    const auto count = static_cast<double>(s.n);
    of = {of.dot / count, of.sum / count};
  }
  return {v::set(rstd), v::set(-rstd * static_cast<float>(of.dot) * rstd * rstd),
          v::set(static_cast<float>(of.sum)), v::set(mean)};
}

// Computes `Rows` rows of the gradient at once, so that gamma and the partial sums of dgamma are
// loaded, and the sums stored, once for all of them: row by row that is half of the loads and 2 of
// 3 stores. More than two rows of 4096 leave L1 before they are read again.
template <bool Centered, bool Bypass, bool Gain, int Rows, class T, class X, class D>
VELO_INLINE void backward_rows_at(const norm_gradient_rows<T, X, D>& s, int64_t r) {
  const X* x = s.x + r * s.n;
  const T* dy = s.dy + r * s.n;
  D* dx = s.dx + r * s.n;
  const int64_t n = s.n;
  row_slope by[Rows];
#pragma GCC unroll 4
  for (int k = 0; k < Rows; ++k) by[k] = slope_of<Centered>(s, r + k);
  const auto centered = [&](v::vec a, int k) __attribute__((always_inline)) {
    return Centered ? a - by[k].mean : a;
  };
  // g: dy times rstd
  const auto value = [&](v::vec a, v::vec g, v::vec d, v::vec gamma, int k)
      __attribute__((always_inline)) {
    const v::vec direct = Centered ? (d * gamma - by[k].shift) * by[k].scale : g * gamma;
    return v::fma(by[k].slope, a, direct);
  };
  int64_t i = 0;
  for (; i + 2 * v::width <= n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    const v::vec gamma_i = v::load(s.gamma + i), gamma_j = v::load(s.gamma + j);
    v::vec sum_i = Gain ? v::load(s.dgamma + i) : v::zero();
    v::vec sum_j = Gain ? v::load(s.dgamma + j) : v::zero();
    v::vec bias_i = Gain && Centered ? v::load(s.dbeta + i) : v::zero();
    v::vec bias_j = Gain && Centered ? v::load(s.dbeta + j) : v::zero();
#pragma GCC unroll 4
    for (int k = 0; k < Rows; ++k) {
      const int64_t at = k * n + i, next = at + Rows * n;
      if (Bypass) {
        fetch<true>(x + next);
        fetch<true>(dy + next);
        if (sizeof(X) == 4) fetch<true>(x + next + v::width);
        if (sizeof(T) == 4) fetch<true>(dy + next + v::width);
      }
      const v::vec a = centered(v::load(x + at), k), b = centered(v::load(x + at + v::width), k);
      const v::vec d = v::load(dy + at), e = v::load(dy + at + v::width);
      const v::vec g = d * by[k].scale, h = e * by[k].scale;
      sum_i = v::fma(g, a, sum_i);
      sum_j = v::fma(h, b, sum_j);
      if (Gain && Centered) bias_i = bias_i + d, bias_j = bias_j + e;
      v::put2<Bypass>(dx + at, value(a, g, d, gamma_i, k), value(b, h, e, gamma_j, k));
    }
    if (Gain) v::store(s.dgamma + i, sum_i);
    if (Gain) v::store(s.dgamma + j, sum_j);
    if (Gain && Centered) v::store(s.dbeta + i, bias_i);
    if (Gain && Centered) v::store(s.dbeta + j, bias_j);
  }
  for (; i < n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(n, i);
    const v::vec gamma = v::load(s.gamma + i, m);
    v::vec sum = Gain ? v::load(s.dgamma + i, m) : v::zero();
    v::vec bias = Gain && Centered ? v::load(s.dbeta + i, m) : v::zero();
    for (int k = 0; k < Rows; ++k) {
      const int64_t at = k * n + i;
      const v::vec a = centered(v::load(x + at, m), k), d = v::load(dy + at, m);
      const v::vec g = d * by[k].scale;
      sum = v::fma(g, a, sum);
      bias = bias + d;
      v::store(dx + at, value(a, g, d, gamma, k), m);
    }
    if (Gain) v::store(s.dgamma + i, sum, m);
    if (Gain && Centered) v::store(s.dbeta + i, bias, m);
  }
}

template <bool Centered, bool Bypass, bool Gain, class T, class X, class D, class InDouble>
VELO_INLINE void backward_slice(const norm_gradient_rows<T, X, D>& s, const InDouble& in_double) {
  for (int64_t r = 0; r < s.rows;) {
    if (__builtin_expect(!fits(s.rstd[r]), false)) {
      in_double(r++);
    } else if (r + 1 < s.rows && fits(s.rstd[r + 1])) {
      backward_rows_at<Centered, Bypass, Gain, 2>(s, r);
      r += 2;
    } else {
      backward_rows_at<Centered, Bypass, Gain, 1>(s, r++);
    }
  }
}

// Adds the partial rows in order, a vector of columns at a time. In scalar code this sum was a
// third of the gradient's time in cache.
void columns(const norm_columns& s) {
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::vec sum = s.accumulate ? v::load(s.sum + i, m) : v::zero();
    for (int64_t r = 0; r < s.rows; ++r) sum = sum + v::load(s.partial + r * s.stride + i, m);
    v::store(s.sum + i, sum, m);
  }
}

template <bool Centered, const norm_kernels& Reference, class T>
void forward(const norm_slice<T>& s) {
  const auto in_double = [&](int64_t r) __attribute__((noinline)) {
    norm_slice<T> row = s;
    row.x = s.x + r * s.n;
    row.y = s.y + r * s.n;
    row.mean = s.mean == nullptr ? nullptr : s.mean + r;
    row.rstd = s.rstd == nullptr ? nullptr : s.rstd + r;
    row.known = s.known == nullptr ? nullptr : s.known + r;
    row.rows = 1;
    Reference.forward(row);
  };
  s.bypass ? forward_rows<Centered, true>(s, in_double)
           : forward_rows<Centered, false>(s, in_double);
  if (s.bypass) v::fence();
}

template <bool Centered, const norm_kernels& Reference, class T>
void backward(const norm_backward_slice<T>& s) {
  const auto in_double = [&](int64_t r) __attribute__((noinline)) {
    norm_backward_slice<T> row = s;
    row.dy = s.dy + r * s.n;
    row.x = s.x + r * s.n;
    row.mean = s.mean == nullptr ? nullptr : s.mean + r;
    row.rstd = s.rstd + r;
    row.dx = s.dx + r * s.n;
    row.known = s.known == nullptr ? nullptr : s.known + r;
    row.rows = 1;
    Reference.backward(row);
  };
  if (s.dgamma != nullptr) {
    s.bypass ? backward_slice<Centered, true, true>(s, in_double)
             : backward_slice<Centered, false, true>(s, in_double);
  } else {
    s.bypass ? backward_slice<Centered, true, false>(s, in_double)
             : backward_slice<Centered, false, false>(s, in_double);
  }
  if (s.bypass) v::fence();
}

template <bool Centered, const norm_kernels& Reference>
constexpr norm_kernels kernels_of = {
    {forward<Centered, Reference, float>, forward<Centered, Reference, simd::bf16>,
     forward<Centered, Reference, simd::f16>},
    {backward<Centered, Reference, float>, backward<Centered, Reference, simd::bf16>,
     backward<Centered, Reference, simd::f16>},
    columns,
    {sums<Centered, Reference, float>, sums<Centered, Reference, simd::bf16>,
     sums<Centered, Reference, simd::f16>},
    {gradient_sums<Centered, Reference, float>, gradient_sums<Centered, Reference, simd::bf16>,
     gradient_sums<Centered, Reference, simd::f16>}};
