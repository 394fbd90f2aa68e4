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

// The gradient of the largest score. The mean of the gradients is taken relative to it: where one
// score is almost 1, what the others leave of their difference would be lost in rounding.
template <class T>
VELO_INLINE float gradient_of_largest(const router_gradient_row<T>& s) {
  v::vec best = v::set(-1.0f), at = v::zero();
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec score = v::load(s.scores + i, m);  // of missing lanes 0, with gradient 0
    at = v::if_greater(score, best, v::load(s.dscores + i, m), at);
    best = v::max(best, score);
  }
  float scores[v::width], d[v::width];
  v::store(scores, best);
  v::store(d, at);
  int most = 0;
  for (int i = 1; i < v::width; ++i) most = scores[i] > scores[most] ? i : most;
  return d[most];
}

template <class T>
VELO_INLINE void gradient_of_softmax(const router_gradient_row<T>& s) {
  const v::vec pivot = v::set(gradient_of_largest(s)), dlse = v::set(s.dlse);
  v::vec dot = v::zero();
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    dot = v::fma(v::load(s.scores + i, m), v::load(s.dscores + i, m) - pivot, dot);
  }
  const v::vec mean = v::set(v::sum(dot));
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec d = v::load(s.dscores + i, m) - pivot - mean;
    v::store(s.dlogits + i, v::load(s.scores + i, m) * (d + dlse), m);
  }
}

template <class T>
VELO_INLINE void gradient_of_sigmoid(const router_gradient_row<T>& s) {
  const v::vec one = v::set(1.0f), lse = v::set(s.lse), dlse = v::set(s.dlse);
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec score = v::load(s.scores + i, m);
    v::vec x = v::load(s.dscores + i, m) * score * (one - score);
    if (s.dlse != 0) x = v::fma(dlse, exp<float>(v::load(s.logits + i, m) - lse), x);
    v::store(s.dlogits + i, x, m);
  }
}

template <class T>
void gradient(const router_gradient_row<T>& s) {
  s.sigmoid ? gradient_of_sigmoid(s) : gradient_of_softmax(s);
}

constexpr topk_router_kernels kernels = {
    {scores<float>, scores<simd::bf16>, scores<simd::f16>},
    {gradient<float>, gradient<simd::bf16>, gradient<simd::f16>}};
