// embedding over the vector type `v` of the including namespace.
#include "ops/operator/row_copy.inl"

template <bool Add, bool Bypass, class T>
VELO_INLINE void add_row(const embedding_row<T>& s) {
  int64_t i = 0;
  for (; i + 2 * v::width <= s.n; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::prefetch(s.next_dy + i);
    if (sizeof(T) == sizeof(float)) v::prefetch(s.next_dy + j);
    if (s.next_table != nullptr) {
      v::prefetch(s.next_table + i);
      v::prefetch(s.next_table + j);
    }
    v::vec a = v::load(s.dy + i), b = v::load(s.dy + j);
    if (Add) {
      a = v::load(s.dtable + i) + a;
      b = v::load(s.dtable + j) + b;
    }
    v::put2<Bypass>(s.dtable + i, a, b);
  }
  for (; i < s.n; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(s.n, i);
    const v::vec a = v::load(s.dy + i, m);
    v::store(s.dtable + i, Add ? v::load(s.dtable + i, m) + a : a, m);
  }
  if (Bypass) v::fence();
}

template <class T>
void add_any(const embedding_row<T>& s) {
  if (s.add) {
    add_row<true, false>(s);
  } else {
    s.bypass ? add_row<false, true>(s) : add_row<false, false>(s);
  }
}

constexpr embedding_kernels kernels = {copy_row,
                                       {add_any<float>, add_any<simd::bf16>, add_any<simd::f16>}};
