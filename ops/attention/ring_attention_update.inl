// ring_attention_update over the vector type `v` of the including namespace: the statistics of a
// vector of tokens at once, for all heads of a block, then their rows in the order of memory.

#include "core/simd/math.inl"

constexpr int W = v::width;
constexpr int most_heads = 64;  // of a block

// The shares of both parts in a vector of tokens.
struct ring_shares {
  alignas(64) float prev[W], cur[W];
};

// e^(x - m), 1 where they are equal: infinities have no difference.
VELO_INLINE v::vec weight(v::vec x, v::vec m) {
  return v::if_equal(x, m, v::set(1.0f), exp<float>(x - m));
}

// The statistics of `n` tokens from `at` on.
VELO_INLINE v::vec load_tokens(const ring_statistics& x, const float* from, int64_t at, int n) {
  if (x.token == 1) return v::load(from + at, n);
  alignas(64) float tokens[W] = {};
  for (int i = 0; i < n; ++i) tokens[i] = from[at + i * x.token];
  return v::load(tokens);
}

VELO_INLINE void store_tokens(const ring_statistics& x, float* to, int64_t at, v::vec value,
                              int n) {
  if (x.token == 1) return v::store(to + at, value, n);
  alignas(64) float tokens[W];
  v::store(tokens, value);
  for (int i = 0; i < n; ++i) {
    for (int copy = 0; copy < x.copies; ++copy) to[at + i * x.token + copy] = tokens[i];
  }
}

VELO_INLINE void merge_statistics(const ring_statistics& x, int64_t at, int n, ring_shares& to) {
  const v::vec prev_max = load_tokens(x, x.prev_max, at, n),
               cur_max = load_tokens(x, x.cur_max, at, n);
  const v::vec max = v::if_nan(prev_max, prev_max, v::max(prev_max, cur_max));
  const v::vec prev = load_tokens(x, x.prev_sum, at, n) * weight(prev_max, max);
  const v::vec cur = load_tokens(x, x.cur_sum, at, n) * weight(cur_max, max);
  const v::vec sum = prev + cur, none = v::zero();
  v::store(to.prev, v::if_equal(sum, none, none, prev / sum));
  v::store(to.cur, v::if_equal(sum, none, none, cur / sum));
  store_tokens(x, x.max, at, max, n);
  store_tokens(x, x.sum, at, sum, n);
}

template <bool Bypass, class T>
VELO_INLINE void merge_row(const T* prev, const T* cur, T* out, int64_t d, float a, float b) {
  const v::vec by = v::set(a), with = v::set(b);
  int64_t j = 0;
  for (; j + 2 * W <= d; j += 2 * W) {
    v::look_ahead(prev + j);
    v::look_ahead(cur + j);
    const v::vec2 p = v::load_any_order(prev + j), c = v::load_any_order(cur + j);
    v::put_same_order<Bypass>(out + j, {v::fma(p.a, by, c.a * with), v::fma(p.b, by, c.b * with)});
  }
  for (; j < d; j += W) {  // tail
    const int m = simd::lanes_left<W>(d, j);
    v::store(out + j, v::fma(v::load(prev + j, m), by, v::load(cur + j, m) * with), m);
  }
}

template <bool Bypass, class T>
VELO_INLINE void merge_block(const ring_slice<T>& s, int64_t token, int tokens, int64_t head,
                             int heads) {
  ring_shares shares[most_heads];
  for (int h = 0; h < heads; ++h) {
    const int64_t at = token * s.statistics.token + (head + h) * s.statistics.head;
    merge_statistics(s.statistics, at, tokens, shares[h]);
  }
  for (int i = 0; i < tokens; ++i) {
    for (int h = 0; h < heads; ++h) {
      const int64_t at = (token + i) * s.token + (head + h) * s.d;
      merge_row<Bypass>(s.prev + at, s.cur + at, s.out + at, s.d, shares[h].prev[i],
                        shares[h].cur[i]);
    }
  }
}

template <bool Bypass, class T>
VELO_INLINE void merge_blocks(const ring_slice<T>& s) {
  for (int64_t token = 0; token < s.tokens; token += W) {
    const int tokens = simd::lanes_left<W>(s.tokens, token);
    for (int64_t head = 0; head < s.heads; head += most_heads)
      merge_block<Bypass>(s, token, tokens, head, simd::lanes_left<most_heads>(s.heads, head));
  }
  if (Bypass) v::fence();
}

template <class T>
void merge_any(const ring_slice<T>& s) {
  s.bypass ? merge_blocks<true>(s) : merge_blocks<false>(s);
}

constexpr ring_attention_update_kernels kernels = {
    {merge_any<float>, merge_any<simd::bf16>, merge_any<simd::f16>}};
