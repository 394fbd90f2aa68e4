// The walk of attention_amx.hpp: a strip of 32 queries meets a block of 256 keys in three steps,
// scores on tiles, softmax on vectors, product with the values on tiles.
//
// Registers: tiles 0-3 sums of 32 x 32, 4-5 left side, 6-7 right side. Tile and vector work do not
// overlap (a tile store waits for the products before it, and mixing both was slower), so what
// counts is how few tile stores there are: one a score, one an output and block of keys.
#include "ops/attention/attention_amx.hpp"

#include "core/simd/avx512_bf16.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops::amx {
namespace {

namespace v = simd::avx512_bf16;
using simd::bf16;
#include "ops/attention/attention.inl"

constexpr int chunk = 128;                // keys between scores and softmax: 16 KiB
constexpr int64_t scores_ld = chunk * 4;  // bytes
constexpr int64_t weights_ld = tile_key_block * 2;

// A strip of queries against a block of keys.
struct unit {
  int row;      // first of the strip
  int64_t key;  // first of the block
  int keys;     // that the strip's last row sees

  int panels() const { return (keys + tile_panel - 1) / tile_panel; }
};

// Kept out of line: tile instructions do not tell the compiler what memory they touch, calls do.
__attribute__((noinline)) void softmax_strip(const softmax_rows& rows) {
  softmax<bf16>(rows);
}

class walk {
 public:
  explicit walk(const tile_query_block& x) : x_(x) {}

  void run() const {
    const int64_t end = visible(x_.rows - 1);
    for (int64_t key = 0; key < end; key += tile_key_block) {
      for (int row = 0; row < x_.rows; row += tile_strip) meet(row, key);
    }
  }

 private:
  int64_t visible(int row) const {
    const int64_t keys = x_.visible + static_cast<int64_t>(row) * x_.step;
    return keys < x_.skv ? keys : x_.skv;
  }

  void meet(int row, int64_t key) const {
    const int last = row + tile_strip < x_.rows ? row + tile_strip : x_.rows;
    const unit u{row, key, clamped(visible(last - 1) - key, tile_key_block)};
    if (u.keys == 0) return;
    for (int first = 0; first < u.keys; first += chunk) {
      const int panels = u.panels() - first / tile_panel;
      const int now = panels < chunk / tile_panel ? panels : chunk / tile_panel;
      for (int p = 0; p < now; ++p) score_panel(u, first / tile_panel + p, p);
      softmax_of(u, first, now * tile_panel);
    }
    for (int p = 0; p < x_.dv / tile_panel; ++p) output_panel(u, p);
  }

  void softmax_of(const unit& u, int first, int width) const {
    softmax_rows s{};
    s.scores = x_.scores;
    s.ld = chunk;
    s.probabilities = static_cast<char*>(x_.weights) + first * 2;
    s.p_ld = tile_key_block;
    s.width = width;
    s.valid = clamped(u.keys - first, width);
    s.visible = x_.visible + static_cast<int64_t>(u.row) * x_.step - u.key - first;
    s.step = x_.step;
    s.factor = x_.factor;
    s.max = x_.max + u.row;
    s.reference = x_.reference + u.row;
    s.sum = x_.sum + u.row * 16;
    s.out = x_.out + u.row * x_.dv;
    s.out_ld = x_.dv;
    s.out_columns = u.key == 0 ? 0 : x_.dv;
    s.earlier = first;
    softmax_strip(s);
  }

  void score_panel(const unit& u, int panel, int place) const {
    const int64_t q_ld = x_.d * 2;
    const char* a = static_cast<const char*>(x_.q) + u.row * q_ld;
    const char* b = static_cast<const char*>(x_.keys) + (u.key / tile_panel + panel) * x_.d * 64;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int k = 0; k < x_.d; k += 32, a += 64, b += 2048) {
      multiply(a, q_ld, b);
    }
    store(x_.scores + place * tile_panel, scores_ld);
  }

  void output_panel(const unit& u, int panel) const {
    const int64_t out_ld = x_.dv * 4;
    const auto* a = static_cast<const char*>(x_.weights);
    const char* b = static_cast<const char*>(x_.values) + u.key * x_.dv * 2 +
                    panel * static_cast<int64_t>(tile_key_block * 64);
    float* c = x_.out + u.row * x_.dv + panel * tile_panel;
    if (u.key == 0) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, c, out_ld);
      _tile_loadd(1, c + 16, out_ld);
      _tile_loadd(2, c + 16 * x_.dv, out_ld);
      _tile_loadd(3, c + 16 * x_.dv + 16, out_ld);
    }
    for (int k = u.panels(); k > 0; --k, a += 64, b += 2048) {
      multiply(a, weights_ld, b);
    }
    store(c, out_ld);
  }

  // 32 rows of a times 32 columns of b, 32 deep, into tiles 0 to 3.
  static void multiply(const char* a, int64_t lda, const char* b) {
    _tile_loadd(6, b, 128);
    _tile_loadd(4, a, lda);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 64, 128);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * lda, lda);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  static void store(float* c, int64_t ld) {
    auto* lower = reinterpret_cast<char*>(c) + 16 * ld;
    _tile_stored(0, c, ld);
    _tile_stored(1, c + 16, ld);
    _tile_stored(2, lower, ld);
    _tile_stored(3, lower + 64, ld);
  }

  const tile_query_block& x_;
};

}  // namespace

void attention_query_block(const tile_query_block& x) {
  walk(x).run();
}

}  // namespace velo::ops::amx
