// The fused norms over the vector type `v` of the including namespace: a row of floats between the
// sum and the norm, whose loops are those of norm.inl.
#include "ops/norm/norm.inl"

template <class P>
VELO_INLINE v::vec lanes(const P* p, int n) {
  return n == v::width ? v::load(p) : v::load(p, n);
}
template <class P>
VELO_INLINE void put_lanes(P* p, v::vec a, int n) {
  n == v::width ? v::store(p, a) : v::store(p, a, n);
}

VELO_INLINE uint64_t index_of_row(const add_norm_terms& by, int64_t r) {
  return by.first + static_cast<uint64_t>(r) * by.pitch;
}

// body(i, multipliers, count) for each vector of row r.
template <class Body>
VELO_INLINE void for_each_vector(const add_norm_terms& by, int64_t r, const Body& body) {
  const bool drops = by.rule != nullptr;
  const simd::dropout_rule none = {};
  simd::dropout_run<v::longs> run(drops ? *by.rule : none, drops ? index_of_row(by, r) : 0);
  v::vec m[2] = {v::set(1), v::set(1)};
  int64_t i = 0;
  for (; i + 2 * v::width <= by.n; i += 2 * v::width) {
    if (drops) run.next(m);
    body(i, m[0], v::width);
    body(i + v::width, m[1], v::width);
  }
  if (i < by.n && drops) run.next(m);
  for (int k = 0; i < by.n; ++k, i += v::width)  // tail
    body(i, m[k], simd::lanes_left<v::width>(by.n, i));
}

// Row r of z, in floats at `to`.
template <class T, class Z>
VELO_INLINE void sum_row(const dropout_add_norm_slice<T, Z>& s, int64_t r, float* to) {
  const int64_t start = r * s.by.n;
  const v::vec row = v::set(s.by.rowscale == nullptr ? 1 : s.by.rowscale[r]);
  for_each_vector(
      s.by, r, [&](int64_t i, v::vec m, int n) __attribute__((always_inline)) {
        v::look_ahead(s.x + start + i);
        v::vec z = lanes(s.x + start + i, n) * row;
        if (s.by.layerscale != nullptr) z = z * lanes(s.by.layerscale + i, n);
        z = z * m;
        if (s.residual != nullptr) {
          v::look_ahead(s.residual + start + i);
          z = z + lanes(s.residual + start + i, n);
        }
        put_lanes(to + i, z, n);
        if (s.z != nullptr) put_lanes(s.z + start + i, z, n);
        if (s.mask != nullptr) v::store_nonzero(s.mask + start + i, m, n);
      });
}

template <bool Centered, bool Bypass, class T, class Z>
VELO_INLINE void add_forward_slice(const dropout_add_norm_slice<T, Z>& s) {
  for (int64_t r = 0; r < s.by.rows; ++r) {
    sum_row(s, r, s.by.scratch);
    const norm_rows<float, T> row = {s.by.scratch,
                                     s.by.gamma,
                                     s.beta,
                                     s.y + r * s.by.n,
                                     s.mean == nullptr ? nullptr : s.mean + r,
                                     s.rstd == nullptr ? nullptr : s.rstd + r,
                                     1,
                                     s.by.n,
                                     s.epsilon,
                                     Bypass};
    forward_slice<Centered, Bypass, false>(
        row, 0, [&](int64_t) { reference::normalize_floats(Centered, row); });
  }
  if (Bypass) v::fence();
}

template <bool Centered, class T, class Z>
void add_forward(const dropout_add_norm_slice<T, Z>& s) {
  s.bypass ? add_forward_slice<Centered, true>(s) : add_forward_slice<Centered, false>(s);
}

template <bool Centered, class T, class Z>
__attribute__((noinline)) void backward_in_double(const dropout_add_norm_backward_slice<T, Z>& s,
                                                  int64_t r) {
  dropout_add_norm_backward_slice<T, Z> row = s;
  const int64_t start = r * s.by.n;
  row.dy = s.dy + start;
  row.z = s.z + start;
  row.dx = s.dx + start;
  if (s.dz != nullptr) row.dz = s.dz + start;
  if (s.x != nullptr) row.x = s.x + start;
  if (s.dresidual != nullptr) row.dresidual = s.dresidual + start;
  if (s.mean != nullptr) row.mean = s.mean + r;
  row.rstd = s.rstd + r;
  if (s.drowscale != nullptr) row.drowscale = s.drowscale + r;
  if (s.by.rowscale != nullptr) row.by.rowscale = s.by.rowscale + r;
  row.by.first = index_of_row(s.by, r);
  row.by.rows = 1;
  (Centered ? reference::dropout_add_norm.layer : reference::dropout_add_norm.rms).backward(row);
}

// From the gradient of row r's norm to those of what z is the sum of.
template <class T, class Z>
VELO_INLINE void spread_row(const dropout_add_norm_backward_slice<T, Z>& s, int64_t r,
                            const float* from) {
  const int64_t start = r * s.by.n;
  const v::vec row = v::set(s.by.rowscale == nullptr ? 1 : s.by.rowscale[r]);
  v::vec sum = v::zero();
  for_each_vector(
      s.by, r, [&](int64_t i, v::vec m, int n) __attribute__((always_inline)) {
        v::vec d = lanes(from + i, n);
        if (s.dz != nullptr) {
          v::look_ahead(s.dz + start + i);
          d = d + lanes(s.dz + start + i, n);
        }
        const v::vec column =
            s.by.layerscale == nullptr ? v::set(1) : lanes(s.by.layerscale + i, n);
        const v::vec kept = d * m;
        if (s.x != nullptr) {
          const v::vec term = kept * lanes(s.x + start + i, n);
          if (s.dlayerscale != nullptr)
            put_lanes(s.dlayerscale + i, v::fma(term, row, lanes(s.dlayerscale + i, n)), n);
          sum = v::fma(term, n == v::width ? column : v::keep_first(n, column, v::zero()), sum);
        }
        if (s.dresidual != nullptr) put_lanes(s.dresidual + start + i, d, n);
        put_lanes(s.dx + start + i, kept * row * column, n);
      });
  if (s.drowscale != nullptr) s.drowscale[r] = v::sum(sum) + (s.accumulate ? s.drowscale[r] : 0);
}

template <bool Centered, bool Gain, class T, class Z>
VELO_INLINE void add_backward_slice(const dropout_add_norm_backward_slice<T, Z>& s) {
  const int64_t n = s.by.n;
  for (int64_t r = 0; r < s.by.rows;) {
    if (__builtin_expect(!fits(s.rstd[r]), false)) {
      backward_in_double<Centered>(s, r++);
      continue;
    }
    const int64_t count = r + 1 < s.by.rows && fits(s.rstd[r + 1]) ? 2 : 1;
    const norm_gradient_rows<T, Z, float> rows = {
        s.dy + r * n, s.z + r * n,
        s.by.gamma,   s.mean == nullptr ? nullptr : s.mean + r,
        s.rstd + r,   s.by.scratch,
        s.dgamma,     s.dbeta,
        count,        n,
        false};
    backward_slice<Centered, false, Gain>(rows, [](int64_t) {});
    for (int64_t k = 0; k < count; ++k) spread_row(s, r + k, s.by.scratch + k * n);
    r += count;
  }
}

template <bool Centered, class T, class Z>
void add_backward(const dropout_add_norm_backward_slice<T, Z>& s) {
  s.dgamma != nullptr ? add_backward_slice<Centered, true>(s)
                      : add_backward_slice<Centered, false>(s);
}

using simd::bf16;
using simd::f16;

template <bool Centered>
constexpr dropout_add_norm_pair both = {
    {add_forward<Centered, float, float>, add_forward<Centered, bf16, bf16>,
     add_forward<Centered, bf16, float>, add_forward<Centered, f16, f16>,
     add_forward<Centered, f16, float>},
    {add_backward<Centered, float, float>, add_backward<Centered, bf16, bf16>,
     add_backward<Centered, bf16, float>, add_backward<Centered, f16, f16>,
     add_backward<Centered, f16, float>}};

constexpr dropout_add_norm_kernels kernels = {both<false>, both<true>, columns};
