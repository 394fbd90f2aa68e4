// Philox4x32-10 against the known answers of Random123, and a dropout decision against its
// definition. That the vector forms give the same words is tested on the operator dropout.
#include "core/simd/philox.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace velo::simd;

namespace {

struct known_answer {
  uint64_t lower, upper, key;
  uint32_t words[4];
};

constexpr known_answer answers[] = {
    {0, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
    {~uint64_t{0},
     ~uint64_t{0},
     ~uint64_t{0},
     {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
    {0x85a308d3243f6a88u,
     0x0370734413198a2eu,
     0x299f31d0a4093822u,
     {0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}},
};

}  // namespace

TEST_CASE("Philox4x32-10 gives the known answers of Random123") {
  for (const known_answer& a : answers) {
    const philox_words got = philox(a.lower, a.upper, philox_schedule(a.key));
    for (int i = 0; i < 4; ++i) CHECK(got.of[i] == a.words[i]);
  }
}

TEST_CASE("a dropout decision is word index % 4 of counter (index / 4, offset) under key seed") {
  const uint64_t seed = 0x299f31d0a4093822u, offset = 0x0370734413198a2eu;
  const dropout_rule rule = dropout_of(0.5, seed, offset);
  const uint64_t block = 0x25a308d3243f6a88u;
  const philox_words words = philox(block, offset, philox_schedule(seed));
  for (uint64_t i = 0; i < 4; ++i)
    CHECK(dropout_multiplier(rule, 4 * block + i) == (words.of[i] >= 0x80000000u ? 2.0f : 0.0f));
}

TEST_CASE("the threshold is p in units of 2^-32, rounded, and p near 1 drops everything") {
  CHECK(dropout_of(0, 0, 0).threshold == 0);
  CHECK(dropout_of(0, 0, 0).kept == 1);
  CHECK(dropout_of(0x1p-33, 0, 0).threshold == 1);
  CHECK(dropout_of(0x1.8p-34, 0, 0).threshold == 0);
  CHECK(dropout_of(0.1, 0, 0).threshold == 429496730);
  CHECK(dropout_of(0.1, 0, 0).kept == static_cast<float>(1 / 0.9));
  CHECK(dropout_of(1 - 0x1p-32, 0, 0).threshold == 0xffffffffu);
  CHECK(dropout_of(1 - 0x1p-32, 0, 0).kept == 0x1p32f);
  for (const double p : {1 - 0x1p-33, 1.0})
    for (uint64_t i = 0; i < 100; ++i) CHECK(dropout_multiplier(dropout_of(p, 1, 2), i) == 0);
}
