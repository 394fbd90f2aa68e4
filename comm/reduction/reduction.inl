// Reductions over the vector type `v` of the including namespace, and over the compiler's vectors
// for float64 and integers, which `v` lacks. A tail goes through the same vectors.

// Loads and stores of elements; `vec` is the type in which they are combined.
template <class T>
struct floats {  // float, bf16, f16
  using type = T;
  using vec = v::vec;
  static constexpr bool is_float = true;
  static constexpr int width = v::width;
  VELO_INLINE vec load(const T* p) { return v::load(p); }
  VELO_INLINE vec load(const T* p, int n) { return v::load(p, n); }
  VELO_INLINE void store(T* p, vec a, int n) { v::store(p, a, n); }
  template <bool Bypass>
  VELO_INLINE void put(T* p, vec a) {
    v::put<Bypass>(p, a);
  }
  VELO_INLINE vec scaled(vec a, double by) { return a * v::set(static_cast<float>(by)); }
  VELO_INLINE vec add(vec a, vec b) { return a + b; }
  VELO_INLINE vec divided(vec a, int by) { return a / v::set(static_cast<float>(by)); }
  // NaN if either is NaN; the first of two zeros.
  VELO_INLINE vec least(vec a, vec b) { return v::if_nan(b, b, v::min(b, a)); }
  VELO_INLINE vec largest(vec a, vec b) { return v::if_nan(b, b, v::max(b, a)); }
};

template <class T>
struct plain {  // double and integers; sums of integers wrap, and use unsigned words
  using type = T;
  static constexpr bool is_float = static_cast<T>(0.5) != 0;
  static constexpr int bytes = v::width * 4;
  static constexpr int width = bytes / static_cast<int>(sizeof(T));
  typedef T vec __attribute__((vector_size(bytes)));
  typedef T anywhere __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
  VELO_INLINE vec load(const T* p) { return *reinterpret_cast<const anywhere*>(p); }
  VELO_INLINE vec load(const T* p, int n) {
    T copy[width] = {};
    for (int i = 0; i < n; ++i) copy[i] = p[i];
    return load(copy);
  }
  VELO_INLINE void store(T* p, vec a, int n) {
    for (int i = 0; i < n; ++i) p[i] = a[i];
  }
  template <bool Bypass>
  VELO_INLINE void put(T* p, vec a) {
    if (Bypass) {
      v::stream(reinterpret_cast<float*>(p), {reinterpret_cast<decltype(v::vec::v)>(a)});
    } else {
      *reinterpret_cast<anywhere*>(p) = a;
    }
  }
  VELO_INLINE vec scaled(vec a, double by) { return a * static_cast<T>(by); }
  VELO_INLINE vec add(vec a, vec b) { return a + b; }
  VELO_INLINE vec divided(vec a, int by) { return a / static_cast<T>(by); }
  VELO_INLINE vec least(vec a, vec b) { return (b < a) | (b != b) ? b : a; }
  VELO_INLINE vec largest(vec a, vec b) { return (b > a) | (b != b) ? b : a; }
};

enum { sums, averages, minima, maxima };

template <class In, int What>
VELO_INLINE typename In::vec joined(typename In::vec a, typename In::vec b) {
  if (What == minima) return In::least(a, b);
  if (What == maxima) return In::largest(a, b);
  return In::add(a, b);
}

// Scales: the scale is not 1. Products and quotients of subnormal numbers cost 100 cycles and more
// on some processors; sums cost nothing extra.
template <class In, class Out, int What, bool Bypass, bool Scales>
VELO_INLINE void reduce_vectors(const reduction_slice& s) {
  using T = typename In::type;
  using U = typename Out::type;
  constexpr int w = In::width;
  const auto of = [&](int rank) { return static_cast<const T*>(s.in[rank]); };
  U* out = static_cast<U*>(s.out);
  const auto taken = [&](typename In::vec a) { return Scales ? In::scaled(a, s.scale) : a; };
  const int shares = s.shares != 0 ? s.shares : s.ranks;
  const auto end = [&](typename In::vec a) {
    return What == averages ? In::divided(a, shares) : a;
  };
  const auto some = [&](int64_t i, int n) {
    typename In::vec a = taken(In::load(of(0) + i, n));
    for (int r = 1; r < s.ranks; ++r) a = joined<In, What>(a, taken(In::load(of(r) + i, n)));
    Out::store(out + i, end(a), n);
  };
  int64_t i = 0;
  if (Bypass) {  // up to the first whole line
    const auto off = reinterpret_cast<uintptr_t>(out) % 64;
    i = off == 0 ? 0 : static_cast<int64_t>((64 - off) / sizeof(U));
    i = i < s.n ? i : s.n;
    for (int64_t k = 0; k < i; k += w) some(k, static_cast<int>(i - k < w ? i - k : w));
  }
  for (; i + 2 * w <= s.n; i += 2 * w) {
    typename In::vec a = taken(In::load(of(0) + i)), b = taken(In::load(of(0) + i + w));
    for (int r = 1; r < s.ranks; ++r) {
      a = joined<In, What>(a, taken(In::load(of(r) + i)));
      b = joined<In, What>(b, taken(In::load(of(r) + i + w)));
    }
    Out::template put<Bypass>(out + i, end(a));
    Out::template put<Bypass>(out + i + w, end(b));
  }
  for (; i < s.n; i += w) some(i, static_cast<int>(s.n - i < w ? s.n - i : w));
  if (Bypass) v::fence();
}

template <class In, class Out, int What, bool Scales>
VELO_INLINE void reduce_scaled(const reduction_slice& s) {
  s.bypass ? reduce_vectors<In, Out, What, true, Scales>(s)
           : reduce_vectors<In, Out, What, false, Scales>(s);
}

template <class In, class Out, int What>
void reduce(const reduction_slice& s) {
  constexpr bool may_scale = (What == sums || What == averages) && In::is_float;
  const bool scales = may_scale && s.scale != 1;
  scales ? reduce_scaled<In, Out, What, may_scale>(s) : reduce_scaled<In, Out, What, false>(s);
}

// The average of integers is the exact sum, divided and rounded towards zero.
template <class T>
void average_integers(const reduction_slice& s) {
  T* out = static_cast<T*>(s.out);
  for (int64_t i = 0; i < s.n; ++i) {
    __extension__ using wide = __int128;
    wide sum = 0;
    for (int r = 0; r < s.ranks; ++r) sum += static_cast<const T*>(s.in[r])[i];
    out[i] = static_cast<T>(sum / s.ranks);
  }
}

template <class In, bool Weighs>
VELO_INLINE void weighted_vectors(const weighted_slice& s) {
  const auto some = [&](int64_t i, auto... n) {  // n: elements of a partial vector
    const auto of = [&](int k) {
      const auto a = In::load(static_cast<const typename In::type*>(s.in[k]) + i, n...);
      return Weighs ? a * v::set(s.weights[k]) : a;
    };
    typename In::vec a = of(0);
    for (int k = 1; k < s.count; ++k) a = a + of(k);
    v::store(s.out + i, a, n...);
  };
  int64_t i = 0;
  for (; i + In::width <= s.n; i += In::width) some(i);
  if (i < s.n) some(i, static_cast<int>(s.n - i));
}

template <class In>
void weighted_sum(const weighted_slice& s) {
  bool weighs = false;
  for (int k = 0; k < s.count; ++k) weighs |= s.weights[k] != 1;
  weighs ? weighted_vectors<In, true>(s) : weighted_vectors<In, false>(s);
}

// Copies whole lines around the cache, and the ends through it.
void copy_lines(const copy_slice& s) {
  const char* from = static_cast<const char*>(s.from);
  char* to = static_cast<char*>(s.to);
  int64_t n = s.bytes;
  const auto off = reinterpret_cast<uintptr_t>(to) % 64;
  int64_t head = off == 0 ? 0 : static_cast<int64_t>(64 - off);
  head = head < n ? head : n;
  __builtin_memcpy(to, from, static_cast<uint64_t>(head));
  from += head;
  to += head;
  n -= head;
  constexpr int bytes = v::width * 4;
  using lane = plain<unsigned char>;
  int64_t i = 0;
  for (; i + 4 * bytes <= n; i += 4 * bytes) {
    const auto* p = reinterpret_cast<const unsigned char*>(from + i);
    auto* q = reinterpret_cast<unsigned char*>(to + i);
    v::prefetch(p + 2048);
    const auto a = lane::load(p), b = lane::load(p + bytes), c = lane::load(p + 2 * bytes),
               d = lane::load(p + 3 * bytes);
    lane::put<true>(q, a);
    lane::put<true>(q + bytes, b);
    lane::put<true>(q + 2 * bytes, c);
    lane::put<true>(q + 3 * bytes, d);
  }
  __builtin_memcpy(to + i, from + i, static_cast<uint64_t>(n - i));
  v::fence();
}

using f32 = floats<float>;
using f16 = floats<simd::f16>;
using bf16 = floats<simd::bf16>;
using f64 = plain<double>;

template <class In, int What>
inline constexpr reduce_fn alike = reduce<In, In, What>;

constexpr reduction_kernels kernels = {
    {{alike<f32, sums>, alike<f64, sums>, alike<f16, sums>, alike<bf16, sums>,
      alike<plain<uint8_t>, sums>, alike<plain<uint32_t>, sums>, alike<plain<uint64_t>, sums>,
      alike<plain<uint8_t>, sums>},
     {alike<f32, averages>, alike<f64, averages>, alike<f16, averages>, alike<bf16, averages>,
      average_integers<int8_t>, average_integers<int32_t>, average_integers<int64_t>,
      average_integers<uint8_t>},
     {alike<f32, minima>, alike<f64, minima>, alike<f16, minima>, alike<bf16, minima>,
      alike<plain<int8_t>, minima>, alike<plain<int32_t>, minima>, alike<plain<int64_t>, minima>,
      alike<plain<uint8_t>, minima>},
     {alike<f32, maxima>, alike<f64, maxima>, alike<f16, maxima>, alike<bf16, maxima>,
      alike<plain<int8_t>, maxima>, alike<plain<int32_t>, maxima>, alike<plain<int64_t>, maxima>,
      alike<plain<uint8_t>, maxima>}},
    {{reduce<f16, f32, sums>, reduce<bf16, f32, sums>},
     {reduce<f16, f32, averages>, reduce<bf16, f32, averages>},
     {reduce<f16, f32, minima>, reduce<bf16, f32, minima>},
     {reduce<f16, f32, maxima>, reduce<bf16, f32, maxima>}},
    {{reduce<f32, f16, sums>, reduce<f32, bf16, sums>},
     {reduce<f32, f16, averages>, reduce<f32, bf16, averages>}},
    {weighted_sum<f32>, weighted_sum<f16>, weighted_sum<bf16>},
    copy_lines};
