// apply_fused_adamw over the vector type `v` of the including namespace.
//
// One vector a step: seven streams keep the memory busy, and the square root and division (about 20
// cycles) hide behind them. Stores are ordinary ones: in place, the lines are already in cache.

// max(p, second) in place, p of type T; a NaN of either stays, while max gives one of second alone.
template <class T>
VELO_INLINE v::vec raise(void* v_max, int64_t i, v::vec second, int n) {
  T* p = static_cast<T*>(v_max) + i;
  const v::vec largest = v::load(p, n);
  const v::vec h = v::if_nan(largest, largest, v::max(largest, second));
  v::store(p, h, n);
  return h;
}

template <class Param, class Grad, class Moment>
VELO_INLINE void update_lanes(const adamw_slice& s, int64_t i, int n) {
  Param* param = static_cast<Param*>(s.param) + i;
  Moment *first = static_cast<Moment*>(s.m) + i, *squares = static_cast<Moment*>(s.v) + i;
  const v::vec p = s.master == nullptr ? v::load(param, n) : v::load(s.master + i, n);
  v::vec g = v::load(static_cast<const Grad*>(s.grad) + i, n) * v::set(s.by.scale);
  if (s.by.l2 != 0) g = v::fma(v::set(s.by.l2), p, g);
  const v::vec m = v::fma(v::set(s.by.beta1), v::load(first, n), v::set(s.by.one_minus_beta1) * g);
  const v::vec second =
      v::fma(v::set(s.by.beta2), v::load(squares, n), (v::set(s.by.one_minus_beta2) * g) * g);
  v::store(first, m, n);
  v::store(squares, second, n);
  v::vec h = second;
  if (s.v_max != nullptr) {
    h = s.v_max_type == adamw_element::f32    ? raise<float>(s.v_max, i, second, n)
        : s.v_max_type == adamw_element::bf16 ? raise<simd::bf16>(s.v_max, i, second, n)
                                              : raise<simd::f16>(s.v_max, i, second, n);
  }
  const v::vec step = m / v::fma(v::sqrt(h), v::set(s.by.root), v::set(s.by.epsilon));
  const v::vec next = v::fma(v::set(-s.by.rate), step, v::set(s.by.decay) * p);
  if (s.master != nullptr) v::store(s.master + i, next, n);
  v::store(param, next, n);
  if (s.ema != nullptr) {
    const v::vec fresh = v::set(s.by.one_minus_average) * next;
    v::store(s.ema + i, v::fma(v::set(s.by.average), v::load(s.ema + i, n), fresh), n);
  }
}

template <class Param, class Grad, class Moment>
void update(const adamw_slice& s) {
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) update_lanes<Param, Grad, Moment>(s, i, v::width);
  if (i < s.n) update_lanes<Param, Grad, Moment>(s, i, static_cast<int>(s.n - i));
}

struct updates {
  template <class Param, class Grad, class Moment>
  static constexpr auto function = update<Param, Grad, Moment>;
};

constexpr apply_fused_adamw_kernels kernels = {
    decltype(apply_fused_adamw_kernels::update)::of_types<updates>()};
