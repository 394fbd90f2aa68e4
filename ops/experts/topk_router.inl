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

template <class T>
void values(const router_values<T>& s) {
  const v::vec lowest = v::set(-__builtin_inff());
  for (int64_t i = 0; i < s.n; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::vec x = s.scores == nullptr ? v::load(s.logits + i, m) : v::load(s.scores + i, m);
    if (s.scores != nullptr && s.bias != nullptr) x = x + v::load(s.bias + i, m);
    v::store(s.values + i, v::if_nan(x, lowest, x), m);
  }
}

// The first place of -Inf among values of which none is larger; -1 where all are NaN.
__attribute__((noinline)) int32_t place_of_lowest(const float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!__builtin_isnan(values[i])) return static_cast<int32_t>(i);
  return -1;
}

// Each lane of four vectors keeps its largest value and the first place of it. Places below 2^24
// are floats. NaN is never greater, and max gives its second operand for it.
void largest(const router_largest& s) {
  constexpr int chains = 4;  // hide the latency of compare and blend
  alignas(64) float lanes[v::width];
  for (int i = 0; i < v::width; ++i) lanes[i] = static_cast<float>(i);
  const v::vec first = v::load(lanes), step = v::set(static_cast<float>(v::width));
  const v::vec lowest = v::set(-__builtin_inff()), beyond = v::set(0x1p24f);
  for (int64_t j = 0; j < s.count; ++j) {
    v::vec best[chains] = {lowest, lowest, lowest, lowest};
    v::vec place[chains] = {beyond, beyond, beyond, beyond};
    v::vec now = first;
    int64_t i = 0;
    for (; i + chains * v::width <= s.n; i += chains * v::width) {
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c, now = now + step) {
        const v::vec x = v::load(s.values + i + c * v::width);
        place[c] = v::if_greater(x, best[c], now, place[c]);
        best[c] = v::max(x, best[c]);
      }
    }
    for (; i < s.n; i += v::width, now = now + step) {  // tail
      const v::vec x = logits_at(s.values, s.n, i, -__builtin_inff());
      place[0] = v::if_greater(x, best[0], now, place[0]);
      best[0] = v::max(x, best[0]);
    }
    const float found = v::largest(v::max(v::max(best[0], best[1]), v::max(best[2], best[3])));
    v::vec places = beyond;
#pragma GCC unroll 4
    for (int c = 0; c < chains; ++c)
      places = v::min(places, v::if_equal(best[c], v::set(found), place[c], beyond));
    auto at = static_cast<int32_t>(-v::largest(v::zero() - places));
    if (at == 1 << 24) at = place_of_lowest(s.values, s.n);
    s.found[j] = found;
    s.places[j] = at;
    if (at >= 0) s.values[at] = __builtin_nanf("");
  }
}

// A lane's second value stays behind where its largest is raised.
void group_scores(const router_groups& s) {
  const v::vec one = v::set(1.0f), lowest = v::set(-__builtin_inff());
  for (int64_t g = 0; g < s.groups; ++g) {
    const float* x = s.values + g * s.size;
    v::vec best = lowest, second = lowest;
    for (int64_t i = 0; i < s.size; i += v::width) {
      const v::vec next = logits_at(x, s.size, i, -__builtin_inff());
      second = v::max(second, v::min(best, next));
      best = v::max(best, next);
    }
    const float found = v::largest(best);
    s.scores[g] = found;
    if (!s.sums_two || s.size < 2) continue;
    const v::vec same = v::set(found);
    const bool twice = v::sum(v::if_equal(best, same, one, v::zero())) > 1;
    s.scores[g] += twice ? found : v::largest(v::if_equal(best, same, second, best));
  }
}

constexpr topk_router_kernels kernels = {
    {scores<float>, scores<simd::bf16>, scores<simd::f16>},
    {gradient<float>, gradient<simd::bf16>, gradient<simd::f16>},
    {values<float>, values<simd::bf16>, values<simd::f16>},
    largest,
    group_scores};
