// The kernel of source_panel.hpp over the vectors of one instruction set; included behind
// micro_kernel.inl. A Source has load(p, ld): a vector of words from row p and, in pairs, the row
// behind it.

struct f32_source {
  using operand = float_operand;
  using element = uint32_t;
  static constexpr int rows = 1;  // of the source in a step
  static v::words load(const element* p, int64_t) { return v::words::load(p, v::words::width); }
};

template <class T>
struct wide_source {
  using operand = float_operand;
  using element = T;
  static constexpr int rows = 1;
  static v::words load(const T* p, int64_t) { return v::words::widen(p, v::words::width); }
};

struct pair_source {
  using operand = v::dot_operand;
  using element = uint16_t;
  static constexpr int rows = 2;
  static v::words load(const element* p, int64_t ld) {
    return v::words::pair(p, p + ld, v::words::width);
  }
};

// Columns from `column` on; the first block of columns prefetches.
template <class Source, int Rows, int Vectors>
VELO_INLINE void multiply_source_block(const source_panel& x, int column) {
  using operand = typename Source::operand;
  register_block<Rows, Vectors> sums;
  float* kept = x.sums + column;
  take_sums<Rows, Vectors>(sums, kept, x.ld_sums, x.first);
  const uint32_t* a = x.a;
  const auto* b = static_cast<const typename Source::element*>(x.b) + column;
  uint32_t* packed = x.packed + column;
  const char* fetch = static_cast<const char*>(x.fetch.first);
  const int fetches = column == 0 ? x.fetch.steps : 0;
  const int64_t row_step = x.ldb * Source::rows, width = x.width;
  const int64_t fetch_step = x.fetch.step, beside = x.fetch.beside;
  for (int step = 0; step < x.words; ++step) {
    operand row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      uint32_t* to = packed + j * v::width;
#pragma GCC unroll 4
      for (int i = 0; i < v::width; i += v::words::width) {  // once, where both are as wide
        const v::words loaded = Source::load(b + j * v::width + i, x.ldb);
        loaded.store(to + i);
        __builtin_memcpy(reinterpret_cast<char*>(&row[j]) + i * 4, &loaded, sizeof loaded);
      }
    }
    if (step < fetches) {
      __builtin_prefetch(fetch, 0, 2);
      __builtin_prefetch(fetch + beside, 0, 2);
      __builtin_prefetch(fetch + 2 * beside, 0, 2);
      fetch += fetch_step;
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const operand from_a = operand::broadcast(a + i);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j)
        sums[i][j] = operand::multiply_add(sums[i][j], row[j], from_a);
    }
    a += micro_rows;
    b += row_step;
    packed += width;
  }
  leave_sums<Rows, Vectors>(sums, kept, x.ld_sums);
}

template <class Source, int Rows>
VELO_INLINE void multiply_source_rows(const source_panel& x) {
  int column = 0;
  for (; x.width - column >= most_vectors * v::width; column += most_vectors * v::width)
    multiply_source_block<Source, Rows, most_vectors>(x, column);
  for (; column < x.width; column += v::width) multiply_source_block<Source, Rows, 1>(x, column);
}

// The first rows read the source, the others, where registers hold fewer than eight, what it left.
template <class Source>
void multiply_source(const source_panel& x) {
  if (x.rows == 1) return multiply_source_rows<Source, 1>(x);
  if (x.rows == 2) return multiply_source_rows<Source, 2>(x);
  if (x.rows <= 4) return multiply_source_rows<Source, 4>(x);
  if (most_rows > 6 && x.rows <= 6) return multiply_source_rows<Source, 6>(x);
  multiply_source_rows<Source, most_rows>(x);
  if (most_rows >= micro_rows) return;
  micro_args others{};
  others.a = x.a + most_rows;
  others.a_row = 1;
  others.a_step = micro_rows;
  others.b = x.packed;
  others.b_step = others.width = x.width;
  others.words = x.words;
  others.in_cache = true;
  others.first = x.first;
  others.ld_sums = x.ld_sums;
  others.sums = x.sums + most_rows * x.ld_sums;
  others.output.rows = x.rows - most_rows;
  multiply_in_cache<typename Source::operand>(others);
}

template <class Source>
constexpr source_kernels::kernel source_kernel_of() {
  if constexpr (__is_same(typename Source::operand, void)) {
    return nullptr;
  } else {
    return multiply_source<Source>;
  }
}

constexpr source_kernels sources{
    multiply_source<f32_source>, multiply_source<wide_source<simd::bf16>>,
    multiply_source<wide_source<simd::f16>>, source_kernel_of<pair_source>()};
