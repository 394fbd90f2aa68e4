// accumulate over the vector type `v` of the including namespace. Its stores go through the cache,
// which has read y.

template <class From, class To>
void add(const accumulate_slice<From, To>& s) {
  const v::vec alpha = v::set(s.alpha);
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    v::look_ahead(s.x + i);
    v::look_ahead(s.y + i);
    const int64_t j = i + v::width;
    v::put2<false>(s.y + i, v::fma(alpha, v::load(s.x + i), v::load(s.y + i)),
                   v::fma(alpha, v::load(s.x + j), v::load(s.y + j)));
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    v::store(s.y + i, v::fma(alpha, v::load(s.x + i, m), v::load(s.y + i, m)), m);
  }
}

template <class From>
constexpr accumulate_from<From> adds = {add<From, float>, add<From, simd::bf16>,
                                        add<From, simd::f16>};

constexpr accumulate_kernels kernels = {adds<float>, adds<simd::bf16>, adds<simd::f16>};
