// Scores of a router and their gradient over the vector type `v` of the including namespace.
//
// Rows of experts are short and stay in L1, so each pass reads them again.
#include "core/simd/math.inl"

// The logits from `i` on; missing lanes of a tail are `fill`.
template <class T>
VELO_INLINE v::vec logits_at(const T* x, int64_t n, int64_t i, float fill) {
  const int m = simd::lanes_left<v::width>(n, i);
  if (m == v::width) return v::load(x + i);
  float lanes[v::width];
  v::store(lanes, v::load(x + i, m));
  for (int j = m; j < v::width; ++j) lanes[j] = fill;
  return v::load(lanes);
}

template <class T>
void scores(const router_row<T>& s) {
  constexpr float lowest = -__builtin_inff();
  v::vec most = v::set(lowest), sum = v::zero();
  for (int64_t i = 0; i < s.n; i += v::width)
    most = v::max(most, logits_at(s.logits, s.n, i, lowest));
  *s.largest = v::largest(most);
  const v::vec shift = v::set(*s.largest);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec x = logits_at(s.logits, s.n, i, lowest);
    const v::vec power = exp<float>(x - shift);
    sum = sum + power;
    const v::vec one = v::set(1.0f);
    v::store(s.scores + i, s.sigmoid ? one / (one + exp<float, -1>(x)) : power, m);
  }
  *s.sum = v::sum(sum);
  if (s.sigmoid) return;
  const v::vec share = v::set(1.0f / *s.sum);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.scores + i, v::load(s.scores + i, m) * share, m);
  }
}

template <class T>
void gradient(const router_gradient_row<T>& s) {
  v::vec dot = v::zero();
  for (int64_t i = 0; !s.sigmoid && i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    dot = v::fma(v::load(s.scores + i, m), v::load(s.dscores + i, m), dot);
  }
  const v::vec mean = v::set(s.sigmoid ? 0.0f : v::sum(dot));
  const v::vec one = v::set(1.0f), lse = v::set(s.lse), dlse = v::set(s.dlse);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec score = v::load(s.scores + i, m), d = v::load(s.dscores + i, m);
    if (s.sigmoid) {
      v::vec x = d * score * (one - score);
      if (s.dlse != 0) x = v::fma(dlse, exp<float>(v::load(s.logits + i, m) - lse), x);
      v::store(s.dlogits + i, x, m);
    } else {
      v::store(s.dlogits + i, score * (d - mean + dlse), m);
    }
  }
}

constexpr topk_router_kernels kernels = {
    {scores<float>, scores<simd::bf16>, scores<simd::f16>},
    {gradient<float>, gradient<simd::bf16>, gradient<simd::f16>}};
