// The engine's kernels on tile registers: products of bf16 spend their time in a loop of four tile
// products and four tile loads a step. gemm_kernels.inl includes it where there are tiles.
//
// Measured on Granite Rapids: a tile load takes 16 cycles when its lines are in the first cache, as
// long as a product, so the 2 x 2 form has them exactly overlap. Two things keep the lines there: A
// is loaded with the hint not to keep it (a strip is used once per panel; 0.70 against 0.53 of the
// peak at a depth of 512), and the next panel of B is fetched along with the steps of this one.

// Tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B: all of 16 rows of 64 bytes.
struct alignas(64) configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void load_configuration() {
  const configuration c;
  // The intrinsic declares only the first bytes as read.
  __asm__ volatile("" : : "r"(&c) : "memory");
  _tile_loadconfig(&c);
}

void release_configuration() {
  _tile_release();
}

struct square_args {
  const char *a, *b;
  int64_t a_row, a_step;
  int steps;
  float* sums;
  int64_t ld_sums;
  bool first;
  const char* ahead;  // lines to prefetch, `lines` a step
  int lines;
};

inline __attribute__((always_inline)) void fetch(const char*& line, int lines) {
  for (int i = 0; i < lines; ++i, line += 64) _mm_prefetch(line, _MM_HINT_T1);
}

void square_2x2(const square_args& s) {
  constexpr int64_t b_row = tile_side * 4, b_step = 16 * b_row;
  const int64_t row = s.ld_sums * 4;
  float* lower = s.sums + 16 * s.ld_sums;
  if (s.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, s.sums, row);
    _tile_loadd(1, s.sums + 16, row);
    _tile_loadd(2, lower, row);
    _tile_loadd(3, lower + 16, row);
  }
  const char *a = s.a, *b = s.b, *ahead = s.ahead;
  const int64_t below = 16 * s.a_row;
  _tile_stream_loadd(4, a, s.a_row);
  _tile_loadd(6, b, b_row);
  for (int step = 1; step < s.steps;
       ++step) {  // the next step's first tiles load under this step's products
    _tile_loadd(7, b + 64, b_row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stream_loadd(5, a + below, s.a_row);
    _tile_dpbf16ps(1, 4, 7);
    a += s.a_step;
    b += b_step;
    fetch(ahead, s.lines);
    _tile_stream_loadd(4, a, s.a_row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(6, b, b_row);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_loadd(7, b + 64, b_row);
  _tile_dpbf16ps(0, 4, 6);
  _tile_stream_loadd(5, a + below, s.a_row);
  _tile_dpbf16ps(1, 4, 7);
  fetch(ahead, s.lines);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
  _tile_stored(0, s.sums, row);
  _tile_stored(1, s.sums + 16, row);
  _tile_stored(2, lower, row);
  _tile_stored(3, lower + 16, row);
}

// An edge: at most 16 rows, or a narrow panel. Two sums do not hide the product's latency, but such
// products wait for memory anyway.
template <bool Two_rows, bool Two_columns>
void square_edge(const square_args& s) {
  constexpr int64_t b_row = Two_columns ? 128 : 64, b_step = 16 * b_row;
  const int64_t row = s.ld_sums * 4;
  float* lower = s.sums + 16 * s.ld_sums;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  if (!s.first) {
    _tile_loadd(0, s.sums, row);
    if (Two_columns) _tile_loadd(1, s.sums + 16, row);
    if (Two_rows) _tile_loadd(2, lower, row);
  }
  const char *a = s.a, *b = s.b, *ahead = s.ahead;
  for (int step = 0; step < s.steps; ++step) {
    _tile_stream_loadd(4, a, s.a_row);
    _tile_loadd(6, b, b_row);
    _tile_dpbf16ps(0, 4, 6);
    if (Two_columns) {
      _tile_loadd(7, b + 64, b_row);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (Two_rows) {
      _tile_stream_loadd(5, a + 16 * s.a_row, s.a_row);
      _tile_dpbf16ps(2, 5, 6);
    }
    a += s.a_step;
    b += b_step;
    fetch(ahead, s.lines);
  }
  _tile_stored(0, s.sums, row);
  if (Two_columns) _tile_stored(1, s.sums + 16, row);
  if (Two_rows) _tile_stored(2, lower, row);
}

// Finishes the first `rows` of a square of sums.
template <class T>
void finish_rows(const float* sums, int rows, const output_block& to) {
  T* c = static_cast<T*>(to.c);
  for (int i = 0; i < rows; ++i, sums += tile_side, c += to.ldc) {
    if (to.addends != nullptr || to.nontemporal || to.residual != nullptr) {
      finish_row<T>(to, i, 0, sums, tile_side / v::width);
    } else {
      finish_vector(to, c, 0, v::load(sums));
      finish_vector(to, c, v::width, v::load(sums + v::width));
    }
  }
}

VELO_INLINE const uint16_t* residual_row(const output_block& to, int i) {
  return static_cast<const uint16_t*>(to.residual) +
         (to.residual_rows != nullptr ? to.residual_rows[i] : i * to.ld_residual);
}

// Prefetches the residual of rows [first, first + rows), which finish_square adds.
VELO_INLINE void fetch_residual(const output_block& to, int first, int rows) {
  for (int i = first; i < first + rows; ++i) __builtin_prefetch(residual_row(to, i));
}

// Finishes rows of bf16 of a square's whole width, with the instruction that rounds 32 at a time.
void finish_square(const float* sums, int rows, const output_block& to) {
  const auto widen = [](const uint16_t* p) __attribute__((always_inline)) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  };
  const __m512 zero = _mm512_setzero_ps();
  const __m512 bias0 = to.bias == nullptr ? zero : _mm512_loadu_ps(to.bias);
  const __m512 bias1 = to.bias == nullptr ? zero : _mm512_loadu_ps(to.bias + 16);
  uint16_t* c = static_cast<uint16_t*>(to.c);
  for (int i = 0; i < rows; ++i, sums += tile_side, c += to.ldc) {
    __m512 x0 = _mm512_load_ps(sums), x1 = _mm512_load_ps(sums + 16);
    if (to.residual != nullptr) {
      const uint16_t* residual = residual_row(to, i);
      x0 = _mm512_add_ps(x0, widen(residual));
      x1 = _mm512_add_ps(x1, widen(residual + 16));
    }
    if (to.bias != nullptr) {
      x0 = _mm512_add_ps(x0, bias0);
      x1 = _mm512_add_ps(x1, bias1);
    }
    if (to.accumulate) {
      x0 = _mm512_add_ps(x0, widen(c));
      x1 = _mm512_add_ps(x1, widen(c + 16));
    }
    _mm512_storeu_si512(c, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x1, x0)));
  }
}

void multiply_tile_panel(const tile_panel& p) {
  const int strips = (p.rows + tile_side - 1) / tile_side;
  // The next panel's lines, spread over the steps of this one.
  const int lines = p.next_b == nullptr ? 0 : (p.width + strips - 1) / strips;
  square_args s{p.a, p.b, p.a_row, p.a_step, p.steps, p.sums, p.ld_sums, p.first, p.next_b, lines};
  output_block to = p.output;
  const bool rows_of_bf16 = to.residual == nullptr || (!to.one_column && !to.residual_in_f32);
  const bool plain =
      to.columns == tile_side && !to.nontemporal && to.addends == nullptr && rows_of_bf16;
  const auto finish = to.type == element_type::f32 ? finish_rows<float>
                      : plain                      ? finish_square
                                                   : finish_rows<simd::bf16>;
  const auto sums_of = [&p](int strip) {
    return p.sums + (p.square == 0 ? strip % 2 * tile_side * tile_side : strip * p.square);
  };
  const auto rows_of = [&p](int strip) {
    const int left = p.rows - strip * tile_side;
    return left < tile_side ? left : tile_side;
  };
  const bool fetches = p.last && plain && to.residual != nullptr && to.type == element_type::bf16;
  // A strip is finished after the next one's product. By then the stores of its sums have reached
  // the cache.
  for (int strip = 0; strip <= strips; ++strip) {
    if (strip < strips) {
      s.sums = sums_of(strip);
      if (fetches) fetch_residual(to, strip == 0 ? 0 : tile_side, rows_of(strip));
      const bool few = rows_of(strip) <= 16;
      if (p.width < tile_side) {
        few ? square_edge<false, false>(s) : square_edge<true, false>(s);
      } else {
        few ? square_edge<false, true>(s) : square_2x2(s);
      }
      s.a += p.a_strip;
      if (lines > 0) s.ahead += int64_t{p.steps} * lines * 64;
    }
    if (!p.last || strip == 0) continue;
    finish(sums_of(strip - 1), rows_of(strip - 1), to);
    to.skip_rows(tile_side);
  }
}

constexpr tile_kernels tiles{multiply_tile_panel, load_configuration, release_configuration};
