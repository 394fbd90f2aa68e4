// bf16_param_split and bf16_param_merge: known bits, both roundings, round trips of any bits, ties
// in the moment's sign, refusals.
#include "core/simd/scalar.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

void set_bits(array<float>& to, std::size_t i, std::uint32_t bits) {
  std::memcpy(&to[i], &bits, sizeof bits);
}

// Numbers of every exponent and sign, halves among them.
void fill_bits(array<float>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto upper = static_cast<std::uint32_t>(i * 40503u) & 0xffffu;
    const std::uint32_t lower[] = {0x8000, 0, 0x7fff, 0x8001, 0xffff, 0x1234};
    set_bits(to, i, upper << 16 | lower[i % 6]);
  }
}

template <class Moment>
void check_round_trip(session& s, std::int64_t n, std::int64_t rounding) {
  INFO("n " << n << ", rounding " << rounding << ", bytes " << sizeof(Moment));
  array<float> master({n}), back({n});
  array<bf16> param({n});
  array<std::uint8_t> residual({n, 2});
  array<Moment> v({n});
  fill_bits(master), v.fill(3);
  for (std::size_t i = 0; i < v.size(); ++i)
    velo::simd::assign(v[i], i % 3 == 0 ? 0 : std::abs(v.at(i)));
  const auto before = v.bytes();
  velo_bf16_param_split_args split = VELO_BF16_PARAM_SPLIT_ARGS_INIT;
  split.master = master.tensor(), split.param = param.tensor();
  split.residual = residual.tensor(), split.v = v.tensor(), split.rounding = rounding;
  VELO_RUN(velo_bf16_param_split(s.stream(), &split));
  for (std::size_t i = 0; i < master.size(); ++i) {
    const std::uint32_t bits = bits_of(master[i]);
    const bool tie = (bits & 0x1ffff) == 0x8000 && rounding == VELO_BF16_ROUNDING_HALF_EVEN;
    const std::uint32_t rounded = bits + 0x8000 - (tie ? 1 : 0);
    REQUIRE(param[i].bits == rounded >> 16);
    REQUIRE(residual[2 * i] + 256 * residual[2 * i + 1] == static_cast<int>(rounded & 0xffff));
    if (rounding == VELO_BF16_ROUNDING_HALF_EVEN) REQUIRE(std::signbit(v.at(i)) == !tie);
    if (rounding == VELO_BF16_ROUNDING_HALF_EVEN && std::isfinite(master.at(i)))
      REQUIRE(param[i].bits == velo::simd::to_bf16(master[i]).bits);
  }
  velo_bf16_param_merge_args merge = VELO_BF16_PARAM_MERGE_ARGS_INIT;
  merge.param = param.tensor(), merge.residual = residual.tensor(), merge.master = back.tensor();
  merge.v = v.tensor(), merge.rounding = rounding;
  VELO_RUN(velo_bf16_param_merge(s.stream(), &merge));
  CHECK(back.bytes() == master.bytes());
  CHECK(v.bytes() == before);
}

}  // namespace

TEST_CASE("bf16_param_split and merge are exact on any bits, for every kernel and rounding") {
  for (const char* op : {"bf16_param_split", "bf16_param_merge"}) {
    for_each_kernel(op, [](session& s) {
      for (const std::int64_t rounding :
           {VELO_BF16_ROUNDING_HALF_UP, VELO_BF16_ROUNDING_HALF_EVEN}) {
        for (const std::int64_t n : {0, 1, 63, 64, 200, 1500}) {
          check_round_trip<float>(s, n, rounding);
          check_round_trip<bf16>(s, n, rounding);
        }
        check_round_trip<f16>(s, 200, rounding);
      }
    });
  }
}

TEST_CASE("bf16_param_split rounds halves as MindSpeed does") {
  session s;
  const std::uint32_t bits[] = {0x3f808000, 0x3f818000, 0xbf808000};
  for (const bool even : {false, true}) {
    array<float> master({3}), v({3});
    array<bf16> param({3});
    array<std::uint8_t> residual({3, 2});
    for (std::size_t i = 0; i < 3; ++i) set_bits(master, i, bits[i]), v[i] = 0;
    velo_bf16_param_split_args a = VELO_BF16_PARAM_SPLIT_ARGS_INIT;
    a.master = master.tensor(), a.param = param.tensor(), a.residual = residual.tensor();
    a.v = v.tensor();
    a.rounding = even ? VELO_BF16_ROUNDING_HALF_EVEN : VELO_BF16_ROUNDING_HALF_UP;
    VELO_RUN(velo_bf16_param_split(s.stream(), &a));
    CHECK(param[0].bits == (even ? 0x3f80 : 0x3f81));
    CHECK(param[1].bits == 0x3f82);
    CHECK(param[2].bits == (even ? 0xbf80 : 0xbf81));
    CHECK(residual[0] == (even ? 0xff : 0));
    CHECK(std::signbit(v.at(1)) == even);  // a zero keeps its sign, too
    CHECK_FALSE(std::signbit(v.at(0)));
  }
}

TEST_CASE("bf16_param_split and merge refuse what does not fit, by name") {
  session s;
  array<float> master({4}), v({3});
  array<bf16> param({4});
  array<std::uint8_t> residual({4, 2}), flat({8});
  param.fill(1);
  using args = velo_bf16_param_split_args;
  args split = VELO_BF16_PARAM_SPLIT_ARGS_INIT;
  split.master = master.tensor(), split.param = param.tensor();
  split.residual = residual.tensor();
  check_refusals(
      s, velo_bf16_param_split, split, param,
      {{[&](args& a) { a.v = v.tensor(); }, VELO_ERR_SHAPE, "args.v.shape"},
       {[](args& a) { a.rounding = VELO_BF16_ROUNDING_HALF_EVEN; }, VELO_ERR_NULL, "args.v"},
       {[&](args& a) { a.residual = flat.tensor(); }, VELO_ERR_RANK, "args.residual.shape"},
       {[](args& a) { a.rounding = 2; }, VELO_ERR_ARGUMENT, "args.rounding"}});
  velo_bf16_param_merge_args merge = VELO_BF16_PARAM_MERGE_ARGS_INIT;
  merge.param = param.tensor(), merge.residual = flat.tensor(), merge.master = master.tensor();
  CHECK_REFUSED(velo_bf16_param_merge(s.stream(), &merge), VELO_ERR_RANK, "args.residual.shape");
}
