// Random decisions for dropout: the counter-based generator Philox4x32-10 (Salmon et al. 2011,
// Random123), for plain code and over any vector type. The one place that defines them.
//
// The decision of an element is a pure function of (seed, offset, index), so that a gradient, a
// recomputation or another rank makes it again without a stored mask:
//
//   word(index)       = output index % 4 of Philox4x32-10 with
//                       counter = (low, high half of index / 4, low, high half of offset)
//                       key     = (low, high half of seed)
//   threshold         = floor(p * 2^32 + 1/2)
//   multiplier(index) = float32(1 / (1 - p)) where word(index) >= threshold, else 0
//
// All integers are unsigned of 64 bits, whose halves have 32; a negative argument counts modulo
// 2^64. With p = 0 every multiplier is 1. Where the threshold would be 2^32, which p = 1 gives, all
// are 0. Each decision has 32 bits of its own. Cost: 2.2 instructions an element with AVX-512, 4.5
// with AVX2. Files compiled for one instruction set include this header, so it uses nothing of the
// standard library.
#pragma once

#include <stdint.h>

namespace velo::simd {

inline constexpr int philox_rounds = 10;
inline constexpr uint32_t philox_multiplier[2] = {0xd2511f53u, 0xcd9e8d57u};
inline constexpr uint32_t philox_weyl[2] = {0x9e3779b9u, 0xbb67ae85u};  // added to the key a round

struct philox_words {
  uint32_t of[4];
};

// The keys of all rounds.
struct philox_keys {
  uint32_t of[philox_rounds][2];
};

__attribute__((always_inline)) static inline philox_keys philox_schedule(uint64_t key) {
  philox_keys keys{};
  for (uint32_t r = 0; r < philox_rounds; ++r) {
    keys.of[r][0] = static_cast<uint32_t>(key) + r * philox_weyl[0];
    keys.of[r][1] = static_cast<uint32_t>(key >> 32) + r * philox_weyl[1];
  }
  return keys;
}

// One block of four words; the counter by its lower and upper 64 bits.
__attribute__((always_inline)) static inline philox_words philox(uint64_t lower, uint64_t upper,
                                                                 const philox_keys& keys) {
  uint32_t c[4] = {static_cast<uint32_t>(lower), static_cast<uint32_t>(lower >> 32),
                   static_cast<uint32_t>(upper), static_cast<uint32_t>(upper >> 32)};
  for (const auto& key : keys.of) {
    const uint64_t p = uint64_t{philox_multiplier[0]} * c[0];
    const uint64_t q = uint64_t{philox_multiplier[1]} * c[2];
    c[0] = static_cast<uint32_t>(q >> 32) ^ c[1] ^ key[0];
    c[1] = static_cast<uint32_t>(q);
    c[2] = static_cast<uint32_t>(p >> 32) ^ c[3] ^ key[1];
    c[3] = static_cast<uint32_t>(p);
  }
  return {{c[0], c[1], c[2], c[3]}};
}

// How a call drops elements. Made once a call, read by all its threads.
struct dropout_rule {
  philox_keys keys;
  uint64_t offset;
  uint32_t threshold;
  float kept;  // the multiplier of kept elements
};

// p in [0, 1].
__attribute__((always_inline)) static inline dropout_rule dropout_of(double p, uint64_t seed,
                                                                     uint64_t offset) {
  const double scaled = p * 0x1p32;
  auto threshold = static_cast<uint64_t>(scaled);  // exact below 2^53, and so is the rest
  if (scaled - static_cast<double>(threshold) >= 0.5) ++threshold;
  if (threshold >> 32 != 0) return {philox_schedule(seed), offset, 0xffffffffu, 0.0f};
  return {philox_schedule(seed), offset, static_cast<uint32_t>(threshold),
          static_cast<float>(1 / (1 - p))};
}

__attribute__((always_inline)) static inline float dropout_multiplier(const dropout_rule& rule,
                                                                      uint64_t index) {
  const uint32_t word = philox(index / 4, rule.offset, rule.keys).of[index % 4];
  return word >= rule.threshold ? rule.kept : 0.0f;
}

// The multipliers of consecutive elements that begin at any index, `step` at a time. Longs is the
// `longs` of a vector header (v::longs): eight or four counters, in the lower halves of whose lanes
// the words lie, since a product of 32 bits fills a lane. A run that begins between two blocks
// keeps the last two vectors of words, so that it costs one block more than its length.
template <class Longs>
class dropout_run {
 public:
  using vec = typename Longs::vec;
  static constexpr int step = 2 * Longs::words;

  __attribute__((always_inline)) dropout_run(const dropout_rule& rule, uint64_t index)
      : rule_(rule), block_(index / 4), shift_(static_cast<int>(index % 4)) {
    if (shift_ != 0) words(last_);
  }

  // The next `step` multipliers.
  __attribute__((always_inline)) void next(vec (&to)[2]) {
    bits now[2];
    words(now);
    if (shift_ == 0) {
      to[0] = Longs::if_at_least(now[0], rule_.threshold, rule_.kept);
      to[1] = Longs::if_at_least(now[1], rule_.threshold, rule_.kept);
      return;
    }
    to[0] = multipliers(last_[0], last_[1]);
    to[1] = multipliers(last_[1], now[0]);
    last_[0] = now[0], last_[1] = now[1];
  }

  // A single vector of multipliers, half as many as the block that is computed for it.
  __attribute__((always_inline)) static vec at(const dropout_rule& rule, uint64_t index) {
    dropout_run run(rule, index & ~uint64_t{3});
    bits now[2];
    run.words(now);
    run.shift_ = static_cast<int>(index % 4);
    return run.multipliers(now[0], now[1]);
  }

 private:
  using bits = typename Longs::bits;

  __attribute__((always_inline)) vec multipliers(bits a, bits b) const {
    return Longs::if_at_least(Longs::slide(a, b, shift_), rule_.threshold, rule_.kept);
  }

  __attribute__((always_inline)) void words(bits (&to)[2]) {
    Longs c0 = Longs::counters(block_), c1 = c0.high();
    Longs c2 = Longs::set(rule_.offset), c3 = c2.high();
    block_ += step / 4;
#pragma GCC unroll 10
    for (int r = 0; r < philox_rounds; ++r) {
      const Longs p = Longs::multiply(c0, philox_multiplier[0]);
      const Longs q = Longs::multiply(c2, philox_multiplier[1]);
      c0 = Longs::mix(q.high(), c1, rule_.keys.of[r][0]);
      c1 = q;
      c2 = Longs::mix(p.high(), c3, rule_.keys.of[r][1]);
      c3 = p;
    }
    Longs::interleave(c0, c1, c2, c3, to);
  }

  const dropout_rule& rule_;
  uint64_t block_;
  int shift_;
  bits last_[2] = {};
};

}  // namespace velo::simd
