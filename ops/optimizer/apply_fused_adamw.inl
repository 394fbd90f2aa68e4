// apply_fused_adamw over the vector type `v` of the including namespace.
//
// One vector a step: seven streams keep the memory busy, and the square root and division (about 20
// cycles) hide behind them. Stores are ordinary ones: in place, the lines are already in cache.

template <class Param, class Grad, class Moment>
VELO_INLINE void update_lanes(const adamw_slice<Param, Grad, Moment>& s, int64_t i, int n) {
  const v::vec g = v::load(s.grad + i, n) * v::set(s.by.scale);
  const v::vec m =
      v::fma(v::set(s.by.beta1), v::load(s.m + i, n), v::set(s.by.one_minus_beta1) * g);
  const v::vec second =
      v::fma(v::set(s.by.beta2), v::load(s.v + i, n), (v::set(s.by.one_minus_beta2) * g) * g);
  v::store(s.m + i, m, n);
  v::store(s.v + i, second, n);
  v::vec h = second;
  if (s.v_max != nullptr) {
    const v::vec largest = v::load(s.v_max + i, n);
    h = v::if_nan(largest, largest, v::max(largest, second));  // max gives a NaN of second alone
    v::store(s.v_max + i, h, n);
  }
  const v::vec p = s.master == nullptr ? v::load(s.param + i, n) : v::load(s.master + i, n);
  const v::vec step = m / v::fma(v::sqrt(h), v::set(s.by.root), v::set(s.by.epsilon));
  const v::vec next = v::fma(v::set(-s.by.rate), step, v::set(s.by.decay) * p);
  if (s.master != nullptr) v::store(s.master + i, next, n);
  v::store(s.param + i, next, n);
}

template <class Param, class Grad, class Moment>
void update(const void* slice) {
  const auto& s = *static_cast<const adamw_slice<Param, Grad, Moment>*>(slice);
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width) update_lanes(s, i, v::width);
  if (i < s.n) update_lanes(s, i, static_cast<int>(s.n - i));
}

struct updates {
  template <class Param, class Grad, class Moment>
  static constexpr auto function = update<Param, Grad, Moment>;
};

constexpr apply_fused_adamw_kernels kernels = {
    decltype(apply_fused_adamw_kernels::update)::made<updates>()};
