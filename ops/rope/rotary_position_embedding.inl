// rotary_position_embedding over the vector type `v` of the including namespace.
//
// Half mode works on two vectors of a row at once (a feature and its partner half a row away);
// interleaved mode swaps neighbors within a vector and folds the sign of rotate into the sine.

// -1 in even lanes, +1 in odd ones.
VELO_INLINE v::vec even_minus() {
  alignas(64) static const float signs[16] = {-1, 1, -1, 1, -1, 1, -1, 1,
                                              -1, 1, -1, 1, -1, 1, -1, 1};
  return v::load(signs);
}

template <bool Inverse>
VELO_INLINE v::vec first_of_pair(v::vec a, v::vec b, v::vec c1, v::vec s1, v::vec s2) {
  return Inverse ? v::fma(a, c1, b * s2) : v::fma(a, c1, v::zero() - b * s1);
}
template <bool Inverse>
VELO_INLINE v::vec second_of_pair(v::vec a, v::vec b, v::vec c2, v::vec s1, v::vec s2) {
  return Inverse ? v::fma(b, c2, v::zero() - a * s1) : v::fma(b, c2, a * s2);
}

template <bool Bypass, bool Inverse, class T>
VELO_INLINE void turn_half(const T* x, T* y, const float* cos, const float* sin, int64_t rotated) {
  const int64_t h = rotated / 2;
  int64_t i = 0;
  for (; i + 2 * v::width <= h; i += 2 * v::width) {
    v::look_ahead(x + i);
    v::look_ahead(x + h + i);
    v::vec first[2], second[2];
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const int64_t j = i + k * v::width;
      const v::vec a = v::load(x + j), b = v::load(x + h + j);
      const v::vec s1 = v::load(sin + j), s2 = v::load(sin + h + j);
      first[k] = first_of_pair<Inverse>(a, b, v::load(cos + j), s1, s2);
      second[k] = second_of_pair<Inverse>(a, b, v::load(cos + h + j), s1, s2);
    }
    v::put2<Bypass>(y + i, first[0], first[1]);
    v::put2<Bypass>(y + h + i, second[0], second[1]);
  }
  for (; i < h; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(h, i);
    const v::vec a = v::load(x + i, m), b = v::load(x + h + i, m);
    const v::vec s1 = v::load(sin + i, m), s2 = v::load(sin + h + i, m);
    const v::vec first = first_of_pair<Inverse>(a, b, v::load(cos + i, m), s1, s2);
    const v::vec second = second_of_pair<Inverse>(a, b, v::load(cos + h + i, m), s1, s2);
    v::store(y + i, first, m);
    v::store(y + h + i, second, m);
  }
}

// rotate(x) * sin = swap(x) * (sin * even_minus);  rotate^T(x * sin) = swap(x * sin * even_minus).
template <bool Inverse>
VELO_INLINE v::vec turned_pairs(v::vec x, v::vec cos, v::vec sin) {
  const v::vec signed_sin = sin * even_minus();
  return Inverse ? v::fma(x, cos, v::swap_pairs(x * signed_sin))
                 : v::fma(x, cos, v::swap_pairs(x) * signed_sin);
}

template <bool Bypass, bool Inverse, class T>
VELO_INLINE void turn_interleaved(const T* x, T* y, const float* cos, const float* sin,
                                  int64_t rotated) {
  int64_t i = 0;
  for (; i + 2 * v::width <= rotated; i += 2 * v::width) {
    const int64_t j = i + v::width;
    v::look_ahead(x + i);
    v::put2<Bypass>(y + i,
                    turned_pairs<Inverse>(v::load(x + i), v::load(cos + i), v::load(sin + i)),
                    turned_pairs<Inverse>(v::load(x + j), v::load(cos + j), v::load(sin + j)));
  }
  for (; i < rotated; i += v::width) {  // tail
    const int m = simd::lanes_left<v::width>(rotated, i);
    v::store(y + i,
             turned_pairs<Inverse>(v::load(x + i, m), v::load(cos + i, m), v::load(sin + i, m)), m);
  }
}

template <bool Bypass, bool Inverse, class T>
VELO_INLINE void turn_rows(const rotary_slice<T>& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.x_stride;
    T* y = s.y + r * s.y_stride;
    const float* cos = s.cos + r * s.table_stride;
    const float* sin = s.sin + r * s.table_stride;
    if (s.interleaved) {
      turn_interleaved<Bypass, Inverse>(x, y, cos, sin, s.rotated);
    } else {
      turn_half<Bypass, Inverse>(x, y, cos, sin, s.rotated);
    }
    for (int64_t i = s.rotated; i < s.width && x != y; ++i) y[i] = x[i];
  }
  if (Bypass) v::fence();
}

template <class T>
VELO_INLINE void turn(const rotary_slice<T>& s) {
  if (s.inverse) {
    s.bypass ? turn_rows<true, true>(s) : turn_rows<false, true>(s);
  } else {
    s.bypass ? turn_rows<true, false>(s) : turn_rows<false, false>(s);
  }
}

VELO_INLINE void add_to(float* sum, v::vec value, int m) {
  v::store(sum, v::load(sum, m) + value, m);
}

template <class T>
VELO_INLINE void table(const rotary_table_row<T>& s) {
  const int64_t pairs = s.interleaved ? 0 : s.rotated / 2;
  for (int64_t i = 0; i < pairs; i += v::width) {
    const int m = simd::lanes_left<v::width>(pairs, i);
    const int64_t j = pairs + i;
    const v::vec a = v::load(s.x + i, m), b = v::load(s.x + j, m);
    const v::vec g = v::load(s.dy + i, m), h = v::load(s.dy + j, m);
    add_to(s.dcos + i, g * a, m);
    add_to(s.dcos + j, h * b, m);
    add_to(s.dsin + i, v::zero() - g * b, m);
    add_to(s.dsin + j, h * a, m);
  }
  for (int64_t i = 0; i < s.rotated && s.interleaved; i += v::width) {
    const int m = simd::lanes_left<v::width>(s.rotated, i);
    const v::vec x = v::load(s.x + i, m), g = v::load(s.dy + i, m);
    add_to(s.dcos + i, g * x, m);
    add_to(s.dsin + i, g * v::swap_pairs(x) * even_minus(), m);
  }
}

constexpr rotary_position_embedding_kernels kernels = {
    {turn<float>, turn<simd::bf16>, turn<simd::f16>},
    {table<float>, table<simd::bf16>, table<simd::f16>}};
