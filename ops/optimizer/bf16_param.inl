// bf16_param's integer arithmetic in blocks of a fixed size, which the compiler makes vectors of.

constexpr int64_t block = 64;

VELO_INLINE bool is_tie(uint32_t bits) {
  return (bits & 0x1ffff) == 0x8000;
}

// The sign of a moment and how it is stored.
template <class Moment>
struct sign_of {
  using word = uint16_t;
  static constexpr uint32_t bit = 0x8000;
};
template <>
struct sign_of<float> {
  using word = uint32_t;
  static constexpr uint32_t bit = 0x80000000u;
};

template <class Moment, bool Even>
VELO_INLINE void split_block(const bf16_split_slice<Moment>& s, int64_t at, int64_t n) {
  using word = typename sign_of<Moment>::word;
  constexpr uint32_t sign = sign_of<Moment>::bit;
  uint32_t bits[block] = {};
  uint16_t upper[block], lower[block];
  word v[block] = {};
  __builtin_memcpy(bits, s.master + at, static_cast<size_t>(n) * sizeof *bits);
  if (Even) {
    __builtin_memcpy(v, s.v + at, static_cast<size_t>(n) * sizeof *v);
    for (int64_t i = 0; i < block; ++i)
      v[i] = static_cast<word>((v[i] & ~sign) | (is_tie(bits[i]) ? 0u : sign));
    __builtin_memcpy(s.v + at, v, static_cast<size_t>(n) * sizeof *v);
    for (int64_t i = 0; i < block; ++i) bits[i] -= is_tie(bits[i]) ? 1u : 0u;
  }
  for (int64_t i = 0; i < block; ++i) {
    upper[i] = static_cast<uint16_t>((bits[i] + 0x8000u) >> 16);
    lower[i] = static_cast<uint16_t>(bits[i] + 0x8000u);
  }
  __builtin_memcpy(s.param + at, upper, static_cast<size_t>(n) * sizeof *upper);
  __builtin_memcpy(s.residual + 2 * at, lower, static_cast<size_t>(n) * sizeof *lower);
}

template <class Moment, bool Even>
VELO_INLINE void merge_block(const bf16_merge_slice<Moment>& s, int64_t at, int64_t n) {
  using word = typename sign_of<Moment>::word;
  constexpr uint32_t sign = sign_of<Moment>::bit;
  uint16_t upper[block] = {}, lower[block] = {};
  uint32_t bits[block];
  word v[block] = {};
  __builtin_memcpy(upper, s.param + at, static_cast<size_t>(n) * sizeof *upper);
  __builtin_memcpy(lower, s.residual + 2 * at, static_cast<size_t>(n) * sizeof *lower);
  for (int64_t i = 0; i < block; ++i)
    bits[i] = (static_cast<uint32_t>(upper[i]) << 16 | lower[i]) - 0x8000u;
  if (Even) {
    __builtin_memcpy(v, s.v + at, static_cast<size_t>(n) * sizeof *v);
    for (int64_t i = 0; i < block; ++i) {
      bits[i] += (v[i] & sign) != 0 ? 0u : 1u;
      v[i] = static_cast<word>(v[i] & ~sign);
    }
    __builtin_memcpy(s.v + at, v, static_cast<size_t>(n) * sizeof *v);
  }
  __builtin_memcpy(s.master + at, bits, static_cast<size_t>(n) * sizeof *bits);
}

// Whole blocks have a constant size, so that what is copied stays in registers.
template <bool Even, class Moment>
VELO_INLINE void split_all(const bf16_split_slice<Moment>& s) {
  int64_t at = 0;
  for (; at + block <= s.n; at += block) split_block<Moment, Even>(s, at, block);
  if (at < s.n) split_block<Moment, Even>(s, at, s.n - at);
}
template <class Moment>
void split(const bf16_split_slice<Moment>& s) {
  s.v == nullptr ? split_all<false>(s) : split_all<true>(s);
}

template <bool Even, class Moment>
VELO_INLINE void merge_all(const bf16_merge_slice<Moment>& s) {
  int64_t at = 0;
  for (; at + block <= s.n; at += block) merge_block<Moment, Even>(s, at, block);
  if (at < s.n) merge_block<Moment, Even>(s, at, s.n - at);
}
template <class Moment>
void merge(const bf16_merge_slice<Moment>& s) {
  s.v == nullptr ? merge_all<false>(s) : merge_all<true>(s);
}

constexpr bf16_param_kernels kernels = {{split<float>, split<simd::bf16>, split<simd::f16>},
                                        {merge<float>, merge<simd::bf16>, merge<simd::f16>}};
