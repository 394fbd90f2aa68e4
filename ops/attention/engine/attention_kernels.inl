// Online softmax and score gradients over the vector type that `v` names; included once per
// instruction set. E is the type of the tensors' elements, T the type that products read.
//
// exp runs in base two. 2^fraction is a polynomial on [0, 1) with value 1 at 0: degree 3 (relative
// error 9e-5, a twentieth of bf16's half ulp) for bf16, degree 5 (9e-8) for f32 and f16.

using simd::bf16, simd::f16;

constexpr int W = v::width;
constexpr float log2_e = 1.44269504f;

template <class T>
constexpr int per_word = sizeof(float) / sizeof(T);

template <class T>
VELO_INLINE v::vec exp2(v::vec t) {
  const v::vec f = v::fraction(t);
  v::vec p;
  if constexpr (!__is_same(T, bf16)) {
    p = v::set(1.86713005e-3f);
    p = v::fma(p, f, v::set(9.01703071e-3f));
    p = v::fma(p, f, v::set(5.57999127e-2f));
    p = v::fma(p, f, v::set(2.40164444e-1f));
    p = v::fma(p, f, v::set(6.93151295e-1f));
  } else {
    p = v::set(7.70670399e-2f);
    p = v::fma(p, f, v::set(2.27644995e-1f));
    p = v::fma(p, f, v::set(6.95116758e-1f));
  }
  p = v::fma(p, f, v::set(1.0f));
  return v::scale2_floor(p, t);
}

// exp of the difference of two scores. Scores are products times the scale, rounded to float once,
// in the same way in both passes and in the maximum, so that a difference of large ones is exact.
template <class T>
VELO_INLINE v::vec exp_of(v::vec difference) {
  return exp2<T>(difference * v::set(log2_e));
}

template <class T>
VELO_INLINE const T* row_of(const row_block& b, int row) {
  return static_cast<const T*>(b.data) + row * b.stride;
}

VELO_INLINE int clamped(int64_t x, int most) {
  return x < 0 ? 0 : x > most ? most : static_cast<int>(x);
}

// ---- copying ----

template <class E, class T>
void copy_rows(const row_block& from, void* to, int rows, int64_t ld, bool negate) {
  const v::vec sign = v::set(negate ? -1.0f : 1.0f);
  for (int i = 0; i < rows; ++i) {
    T* row = static_cast<T*>(to) + i * ld;
    const int columns = i < from.rows ? from.columns : 0;
    const E* source = columns > 0 ? row_of<E>(from, i) : nullptr;
    int j = 0;
    for (; j + W <= columns; j += W) v::store(row + j, v::load(source + j) * sign);
    for (; j < ld; j += W) {
      v::store(row + j, j < columns ? v::load(source + j, columns - j) * sign : v::zero());
    }
  }
}

// ---- forward ----

// The largest of s[from] to s[n - 1] in each lane.
VELO_INLINE v::vec lane_max(const float* s, int from, int n) {
  const v::vec none = v::set(-__builtin_inff());
  v::vec a = none, b = none, c = none, d = none;
  int j = from / W * W;
  if (j < from && j < n) {
    a = v::keep_first(n - j, v::keep_first(from - j, none, v::load(s + j)), none);
    j += W;
  }
  for (; j + 4 * W <= n; j += 4 * W) {
    a = v::max(a, v::load(s + j));
    b = v::max(b, v::load(s + j + W));
    c = v::max(c, v::load(s + j + 2 * W));
    d = v::max(d, v::load(s + j + 3 * W));
  }
  for (; j + W <= n; j += W) a = v::max(a, v::load(s + j));
  if (j < n) b = v::max(b, v::keep_first(n - j, v::load(s + j), none));
  return v::max(v::max(a, b), v::max(c, d));
}

// Softmax of a strip in three passes, so that no row waits for its own maximum: the maxima of all
// rows, then references and rescaling, a vector of rows at a time, then exp row by row.
struct softmax_state {
  alignas(64) float top[32] = {};  // products of these keys
  alignas(64) float shrink[32];    // factor of earlier sums under the new reference
};

VELO_INLINE void softmax_tops(const softmax_rows& x, softmax_state& state) {
  for (int i = 0; i < x.rows; i += 4) {
    v::vec top[4];
    for (int r = 0; r < 4; ++r) {
      const int row = i + r < x.rows ? i + r : x.rows - 1;
      top[r] = lane_max(x.scores + row * x.ld, x.first[row], x.last[row]);
    }
    v::largest4(top[0], top[1], top[2], top[3], state.top + i);
  }
}

// Returns whether any reference moved.
template <class E>
VELO_INLINE bool softmax_raise(const softmax_rows& x, softmax_state& state) {
  const v::vec scale = v::set(x.scale), none = v::set(-__builtin_inff()), one = v::set(1.0f);
  const v::vec leeway = v::set(8.0f / log2_e);
  bool moved = false;
  for (int i = 0; i < x.rows; i += W) {
    const v::vec before = v::load(x.reference + i);
    const v::vec top = v::load(state.top + i);  // may be NaN; -Inf stays -Inf at scale 0
    const v::vec max = v::max(v::if_equal(top, none, none, top * scale), v::load(x.max + i));
    const v::vec far = v::if_greater(max - before, leeway, max, before);
    const v::vec after = v::if_equal(before, none, max, far);
    const v::vec shrink = exp_of<E>(before - after);
    v::store(x.max + i, max);
    v::store(x.reference + i, after);
    // Equal infinities have no difference, and nothing has been summed under -Inf.
    v::store(state.shrink + i,
             v::if_equal(before, after, one, v::if_equal(before, none, v::zero(), shrink)));
    moved = moved || !v::all_equal(before, after);
  }
  return moved;
}

// One row's partial sums, in two halves so that additions do not wait for each other.
struct row_sum {
  v::vec even, odd;
};
VELO_INLINE row_sum load_sum(const float* sum, float shrink) {
  const v::vec by = v::set(shrink);
  return {v::load(sum) * by, W < 16 ? v::load(sum + 16 - W) * by : v::zero()};
}
VELO_INLINE void store_sum(float* to, const row_sum& sum) {
  v::store(to, W < 16 ? sum.even : sum.even + sum.odd);
  if (W < 16) v::store(to + 16 - W, sum.odd);
}

// The reference of a row, or 0 where all its scores so far are -Inf, whose exp is 0.
VELO_INLINE v::vec reference_of(const softmax_rows& x, int row) {
  const float reference = x.reference[row];
  return v::set(reference == -__builtin_inff() ? 0.0f : reference);
}

// All rows see all columns.
template <class E, class T>
VELO_INLINE void softmax_full(const softmax_rows& x, const softmax_state& state) {
  const v::vec scale = v::set(x.scale);
  for (int i = 0; i < x.rows; ++i) {
    const float* s = x.scores + i * x.ld;
    T* p = static_cast<T*>(x.probabilities) + i * x.p_ld;
    const v::vec reference = reference_of(x, i);
    row_sum sum = load_sum(x.sum + i * 16, state.shrink[i]);
    for (int j = 0; j < x.width; j += 2 * W) {
      const v::vec a = exp_of<E>(v::load(s + j) * scale - reference);
      const v::vec b = exp_of<E>(v::load(s + j + W) * scale - reference);
      sum.even = sum.even + a;
      sum.odd = sum.odd + b;
      v::store2(p + j, a, b);
    }
    store_sum(x.sum + i * 16, sum);
  }
}

// Each row sees a range of columns, perhaps none.
template <class E, class T>
void softmax_partial(const softmax_rows& x, const softmax_state& state) {
  const v::vec scale = v::set(x.scale), none = v::zero();
  for (int i = 0; i < x.rows; ++i) {
    const float* s = x.scores + i * x.ld;
    T* p = static_cast<T*>(x.probabilities) + i * x.p_ld;
    const int from = x.first[i], n = x.last[i];
    const v::vec reference = reference_of(x, i);
    row_sum sum = load_sum(x.sum + i * 16, state.shrink[i]);
    int j = 0;
    for (; j + 2 * W <= from && j < x.width; j += 2 * W) v::store2(p + j, none, none);
    for (; j < n; j += 2 * W) {
      const v::vec a = exp_of<E>(v::load(s + j) * scale - reference);
      const v::vec b = exp_of<E>(v::load(s + j + W) * scale - reference);
      v::vec visible_a = v::keep_first(n - j, a, none);
      v::vec visible_b = v::keep_first(n - j - W, b, none);
      if (j < from) {
        visible_a = v::keep_first(from - j, none, visible_a);
        visible_b = v::keep_first(from - j - W, none, visible_b);
      }
      sum.even = sum.even + visible_a;
      sum.odd = sum.odd + visible_b;
      v::store2(p + j, visible_a, visible_b);
    }
    for (; j < x.width; j += 2 * W) v::store2(p + j, none, none);
    store_sum(x.sum + i * 16, sum);
  }
}

VELO_INLINE void softmax_shrink(const softmax_rows& x, const softmax_state& state) {
  for (int i = 0; i < x.rows; ++i) {
    if (state.shrink[i] == 1.0f) continue;
    const v::vec shrink = v::set(state.shrink[i]);
    float* out = x.out + i * x.out_ld;
    for (int j = 0; j < x.out_columns; j += W) v::store(out + j, v::load(out + j) * shrink);
  }
}

template <class E, class T>
void softmax(const softmax_rows& x) {
  softmax_state state;
  softmax_tops(x, state);
  if (softmax_raise<E>(x, state)) softmax_shrink(x, state);
  // No end of a range decreases from row to row.
  const bool full = x.first[x.rows - 1] == 0 && x.last[0] == x.width;
  full ? softmax_full<E, T>(x, state) : softmax_partial<E, T>(x, state);
}

template <class T>
void finish(const finish_rows& x) {
  for (int i = 0; i < x.rows; ++i) {
    v::vec lanes = v::load(x.sum + i * 16);
    if (W < 16) lanes = lanes + v::load(x.sum + i * 16 + 16 - W);
    const float sum = v::sum(lanes);
    const bool attends = !(sum == 0.0f);  // to some key: then the sum is >= 1, or NaN
    const v::vec share = v::set(attends ? 1.0f / sum : 0.0f);
    const float* from = x.accumulated + i * x.ld;
    T* to = static_cast<T*>(x.out) + i * x.out_stride;
    int j = 0;
    for (; j + W <= x.columns; j += W) v::store(to + j, v::load(from + j) * share);
    if (j < x.columns) v::store(to + j, v::load(from + j) * share, x.columns - j);
    if (x.max_out != nullptr) x.max_out[i * x.stats_stride] = attends ? x.max[i] : -__FLT_MAX__;
    if (x.sum_out == nullptr) continue;
    // The sum is relative to the reference, the caller's to the maximum.
    const v::vec shift = v::set(attends ? x.reference[i] - x.max[i] : 0.0f);
    v::store(x.sum_out + i * x.stats_stride, v::set(sum) * exp_of<T>(shift), 1);
  }
}

// ---- backward ----

template <class T>
void row_terms(const row_block& dy, const row_block& out, const float* max, const float* sum,
               int64_t stats_stride, int padded, float* row_max, float* minus_log_sum,
               float* delta) {
  for (int i = 0; i < padded; ++i) {
    row_max[i] = 0.0f;
    minus_log_sum[i] = -__builtin_inff();  // a row without keys: every exp becomes 0
    delta[i] = 0.0f;
    if (i >= dy.rows || sum[i * stats_stride] == 0.0f) continue;
    row_max[i] = max[i * stats_stride];
    minus_log_sum[i] = -__builtin_log2f(sum[i * stats_stride]);
    const T* a = row_of<T>(dy, i);
    const T* b = row_of<T>(out, i);
    v::vec even = v::zero(), odd = v::zero();
    int j = 0;
    for (; j + 2 * W <= dy.columns; j += 2 * W) {
      even = v::fma(v::load(a + j), v::load(b + j), even);
      odd = v::fma(v::load(a + j + W), v::load(b + j + W), odd);
    }
    for (; j < dy.columns; j += W) {
      const int n = clamped(dy.columns - j, W);
      even = v::fma(v::load(a + j, n), v::load(b + j, n), even);
    }
    delta[i] = v::sum(even + odd);
  }
}

// The columns that see a row.
struct seen_by {
  int first, last;
};

// One row of probabilities and score gradients for 2 W queries.
struct gradient_pair {
  v::vec p[2], ds[2];
};

template <class E>
VELO_INLINE gradient_pair gradient_of(const gradient_rows& x, int row, int j, v::vec scale,
                                      seen_by by) {
  gradient_pair g;
  for (int h = 0; h < 2; ++h) {
    const int column = j + h * W;
    const int64_t index = row * x.ld + column;
    const v::vec below = v::load(x.scores + index) * scale - v::load(x.max + column);
    const v::vec t = v::fma(below, v::set(log2_e), v::load(x.minus_log_sum + column));
    g.p[h] = exp2<E>(t);
    g.ds[h] = g.p[h] * (v::load(x.products + index) - v::load(x.delta + column));
    if (by.first > column) {
      g.p[h] = v::keep_first(by.first - column, v::zero(), g.p[h]);
      g.ds[h] = v::keep_first(by.first - column, v::zero(), g.ds[h]);
    }
    if (by.last < column + W) {
      g.p[h] = v::keep_first(by.last - column, g.p[h], v::zero());
      g.ds[h] = v::keep_first(by.last - column, g.ds[h], v::zero());
    }
  }
  return g;
}

// The address of word `row` of these rows for the columns from `column` on.
VELO_INLINE uint32_t* word_at(const gradient_rows& x, int row, int column) {
  const column_group& group = x.groups[column / 16];
  return x.words + group.offset + (x.first_word + row) * group.step + column % 16;
}

template <class E, class T>
VELO_INLINE void gradient_two_rows(const gradient_rows& x, int row, seen_by first, seen_by second) {
  const v::vec scale = v::set(x.scale);
  const int64_t start = row * x.ld, next = x.ld * per_word<T>;
  for (int j = x.first; j < x.last; j += 2 * W) {
    const gradient_pair a = gradient_of<E>(x, row, j, scale, first);
    const gradient_pair b = gradient_of<E>(x, row + 1, j, scale, second);
    T* p = reinterpret_cast<T*>(x.scores + start) + j;
    v::store2(p, a.p[0], a.p[1]);
    v::store2(p + next, b.p[0], b.p[1]);
    if constexpr (per_word<T> == 2) {
      T* ds = reinterpret_cast<T*>(x.products + start) + j;
      v::store_rows_and_pairs(ds, ds + next, word_at(x, row / 2, j), word_at(x, row / 2, j + W),
                              a.ds, b.ds);
    } else {
      for (int h = 0; h < 2; ++h) {
        v::store(reinterpret_cast<float*>(word_at(x, row, j + h * W)), a.ds[h]);
        v::store(reinterpret_cast<float*>(word_at(x, row + 1, j + h * W)), b.ds[h]);
      }
    }
  }
}

// Zeros in the words of two rows for the columns [from, to).
template <class T>
VELO_INLINE void clear_words(const gradient_rows& x, int row, int from, int to) {
  for (int j = from; j < to; j += 16) {
    for (int r = 0; r < 2 / per_word<T>; ++r) {
      __builtin_memset(word_at(x, row / per_word<T> + r, j), 0, 64);
    }
  }
}

template <class E, class T>
void gradient(const gradient_rows& x) {
  for (int i = 0; i < x.rows; i += 2) {
    clear_words<T>(x, i, 0, x.first);
    clear_words<T>(x, i, x.last, x.columns);
    const seen_by a = {x.first_seen[i], x.last_seen[i]};
    const seen_by b = {x.first_seen[i + 1], x.last_seen[i + 1]};
    if (a.first <= x.first && a.last >= x.last && b.first <= x.first && b.last >= x.last) {
      gradient_two_rows<E, T>(x, i, {0, x.last}, {0, x.last});
    } else {
      gradient_two_rows<E, T>(x, i, a, b);
    }
  }
}

template <class T>
void write_rows(const float* from, int64_t ld, int rows, int columns, float scale, void* out,
                int64_t out_stride, bool add) {
  const v::vec factor = v::set(scale);
  for (int i = 0; i < rows; ++i) {
    T* to = static_cast<T*>(out) + i * out_stride;
    const float* row = from + i * ld;
    int j = 0;
    for (; j + W <= columns; j += W) {
      const v::vec before = add ? v::load(to + j) : v::zero();
      v::store(to + j, v::fma(v::load(row + j), factor, before));
    }
    const int n = columns - j;
    if (n <= 0) continue;
    const v::vec before = add ? v::load(to + j, n) : v::zero();
    v::store(to + j, v::fma(v::load(row + j), factor, before), n);
  }
}

VELO_INLINE void transpose_square(const float* from, float* to) {
  v::words square[W];
  for (int i = 0; i < W; ++i) {
    square[i] = v::words::load(reinterpret_cast<const uint32_t*>(from) + i * W, W);
  }
  v::words::turn(square);
  for (int i = 0; i < W; ++i) square[i].store(reinterpret_cast<uint32_t*>(to) + i * W);
}

template <class T>
void write_transposed(const float* from, int64_t ld, int parts, int64_t part_stride, int rows,
                      int columns, float scale, void* out, int64_t out_stride, bool add) {
  const v::vec factor = v::set(scale);
  float square[W * W], transposed[W * W];
  for (int j = 0; j < columns; j += W) {
    const int wide = clamped(columns - j, W);
    for (int i = 0; i < rows; i += W) {
      __builtin_memset(square, 0, sizeof square);
      for (int c = 0; c < wide; ++c) {
        const float* first = from + (j + c) * ld + i;
        v::vec all = parts > 0 ? v::load(first) : v::zero();
        for (int part = 1; part < parts; ++part) all = all + v::load(first + part * part_stride);
        v::store(square + c * W, all * factor);
      }
      transpose_square(square, transposed);
      const int high = clamped(rows - i, W);
      for (int r = 0; r < high; ++r) {
        T* to = static_cast<T*>(out) + (i + r) * out_stride + j;
        const v::vec row = v::load(transposed + r * W);
        if (wide == W) {
          v::store(to, add ? v::load(to) + row : row);
        } else {
          v::store(to, add ? v::load(to, wide) + row : row, wide);
        }
      }
    }
  }
}

template <class E, class T>
constexpr attention_steps steps_of() {
  return {copy_rows<E, T>, softmax<E, T>, finish<E>,          row_terms<E>,
          gradient<E, T>,  write_rows<E>, write_transposed<E>};
}

constexpr attention_kernels all_kernels() {
  attention_kernels all{
      this_isa, steps_of<float, float>(), steps_of<bf16, float>(), steps_of<f16, float>(), {}};
  if constexpr (!__is_same(v::dot_operand, void)) all.pairs = steps_of<bf16, bf16>();
  return all;
}

constexpr attention_kernels kernels = all_kernels();
