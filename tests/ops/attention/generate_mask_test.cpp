// generate_mask against the definitions of its windows and constants, for every kernel, in the
// cache and beyond it; that attention takes its constants; alibi_slopes against known slopes and
// their recursion; refusals.
#include <numeric>

#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t open_side = 2147483647;

velo_generate_mask_args mask_args(const velo_tensor* positions, const velo_tensor* mask) {
  velo_generate_mask_args a = VELO_GENERATE_MASK_ARGS_INIT;
  a.positions = positions, a.mask = mask;
  return a;
}

void check_window(session& s, std::int64_t rows, std::int64_t keys, std::int64_t pre,
                  std::int64_t next) {
  INFO("rows " << rows << " keys " << keys << " pre " << pre << " next " << next);
  array<std::int64_t> positions({rows});
  array<std::uint8_t> mask({rows, keys});
  for (std::int64_t i = 0; i < rows; ++i) positions[static_cast<std::size_t>(i)] = i * 7 % rows;
  velo_generate_mask_args a = mask_args(positions.tensor(), mask.tensor());
  a.keys = keys, a.pre_tokens = pre, a.next_tokens = next;
  VELO_RUN(velo_generate_mask(s.stream(), &a));
  std::size_t wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t p = positions[static_cast<std::size_t>(i)];
      const bool hidden = (pre != open_side && j < p - pre) || (next != open_side && j > p + next);
      wrong += mask[static_cast<std::size_t>(i * keys + j)] != hidden;
    }
  CHECK(wrong == 0);
  CHECK(mask.intact());
}

// The constant of a mode, whole.
void make_constant(session& s, std::int64_t mode, array<std::uint8_t>& mask, std::int64_t rows) {
  array<std::int32_t> positions({rows});
  std::iota(positions.data(), positions.data() + rows, 0);
  velo_generate_mask_args a = mask_args(positions.tensor(), mask.tensor());
  a.sparse_mode = mode;
  VELO_RUN(velo_generate_mask(s.stream(), &a));
}

float slope(std::int64_t heads, std::int64_t h) {
  array<std::int64_t> index({1});
  array<float> out({1});
  session s;
  index[0] = h;
  velo_alibi_slopes_args a = VELO_ALIBI_SLOPES_ARGS_INIT;
  a.heads = index.tensor(), a.slopes = out.tensor(), a.head_num = heads;
  VELO_RUN(velo_alibi_slopes(s.stream(), &a));
  return out[0];
}

// MindSpeed's: the powers of a start for a power of two, else those and every second of twice as
// many.
std::vector<double> slopes_of(std::int64_t heads) {
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> out;
  const double start = std::exp2(-std::exp2(-(std::log2(power) - 3)));
  for (std::int64_t i = 0; i < power; ++i) out.push_back(start * std::pow(start, i));
  if (power == heads) return out;
  const std::vector<double> twice = slopes_of(2 * power);
  for (std::size_t i = 0; i < static_cast<std::size_t>(heads - power); ++i)
    out.push_back(twice[2 * i]);
  return out;
}

}  // namespace

TEST_CASE("generate_mask hides what a window does not show") {
  for_each_kernel("generate_mask", [](session& s) {
    for (const std::int64_t keys : {0, 1, 63, 200})
      for (const std::int64_t pre :
           {open_side, std::int64_t{0}, std::int64_t{70}, -std::int64_t{3}})
        for (const std::int64_t next : {open_side, std::int64_t{0}, std::int64_t{5}})
          check_window(s, 90, keys, pre, next);
  });
}

TEST_CASE("generate_mask writes masks beyond the caches") {
  for_each_kernel("generate_mask", [](session& s) { check_window(s, 5000, 9001, 777, 0); });
}

TEST_CASE("generate_mask makes the constants of the sparse modes") {
  for_each_kernel("generate_mask", [](session& s) {
    array<std::uint8_t> square({2048, 2048}), tall({3072, 2048});
    make_constant(s, VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED, tall, 3072);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 3072; ++i)
      for (std::size_t j = 0; j < 2048; ++j)
        wrong += tall[i * 2048 + j] != (i < 2048 ? j > i : j >= 1024);
    CHECK(wrong == 0);
    for (const std::int64_t mode :
         {VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL, VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL,
          VELO_ATTENTION_SPARSE_MODE_BAND}) {
      make_constant(s, mode, square, 2048);
      CHECK(std::equal(square.data(), square.data() + square.size(), tall.data()));
    }
  });
}

TEST_CASE("fusion_attention takes the masks that generate_mask makes") {
  session s;
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 2, 20, 20, 8, 8);
  array<std::uint8_t> mask({20, 20}), constant({2048, 2048});
  array<std::int32_t> positions({20});
  std::iota(positions.data(), positions.data() + 20, 0);
  velo_generate_mask_args a = mask_args(positions.tensor(), mask.tensor());
  a.keys = 20;
  VELO_RUN(velo_generate_mask(s.stream(), &a));
  make_constant(s, VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL, constant, 2048);
  tensors<float> t(p);
  t.forward.sparse_mode = VELO_ATTENTION_SPARSE_MODE_ALL_MASK;
  t.forward.atten_mask = mask.tensor();
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const std::vector<unsigned char> want = t.out.bytes();
  t.forward.sparse_mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  t.forward.atten_mask = constant.tensor();
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  CHECK((t.out.bytes() == want));
}

TEST_CASE("generate_mask refuses what does not fit, by name") {
  session s;
  array<std::int64_t> positions({3});
  array<float> real({3});
  array<std::uint8_t> mask({3, 2048}), narrow({3, 5});
  positions[0] = 0, positions[1] = 2047, positions[2] = 2048;
  using args = velo_generate_mask_args;
  const args valid = mask_args(positions.tensor(), mask.tensor());
  const auto mode = [](std::int64_t m) { return [m](args& a) { a.sparse_mode = m; }; };
  check_refusals(
      s, velo_generate_mask, valid, mask,
      {{[](args& a) { a.positions = nullptr; }, VELO_ERR_NULL, "args.positions"},
       {[&](args& a) { a.positions = real.tensor(); }, VELO_ERR_DTYPE, "args.positions.dtype"},
       {[&](args& a) { a.mask = narrow.tensor(); }, VELO_ERR_SHAPE, "args.mask.shape"},
       {[](args& a) { a.keys = -1; }, VELO_ERR_ARGUMENT, "args.keys"},
       {mode(VELO_ATTENTION_SPARSE_MODE_ALL_MASK), VELO_ERR_ARGUMENT, "args.sparse_mode"},
       {mode(VELO_ATTENTION_SPARSE_MODE_PREFIX), VELO_ERR_ARGUMENT, "args.sparse_mode"},
       {mode(VELO_ATTENTION_SPARSE_MODE_BAND), VELO_ERR_ARGUMENT, "args.positions",
        "indices in [0, 2048)", "2048 in element 2"},
       {[](args& a) { a.sparse_mode = VELO_ATTENTION_SPARSE_MODE_BAND, a.keys = 3000; },
        VELO_ERR_ARGUMENT, "args.keys", "at most 2048 in modes with a constant", "3000"}});
}

TEST_CASE("alibi_slopes are a geometric row, and every second of twice as many") {
  for (const std::int64_t heads : {1, 2, 6, 8, 12, 32, 71}) {
    const std::vector<double> want = slopes_of(heads);
    for (std::int64_t h = 0; h < heads; ++h)
      CHECK(slope(heads, h) == Approx(want[static_cast<std::size_t>(h)]).epsilon(1e-7));
  }
}

TEST_CASE("alibi_slopes refuses heads that are none") {
  session s;
  array<std::int32_t> heads({2});
  array<float> slopes({2});
  heads[0] = 7, heads[1] = 8;
  using args = velo_alibi_slopes_args;
  args valid = VELO_ALIBI_SLOPES_ARGS_INIT;
  valid.heads = heads.tensor(), valid.slopes = slopes.tensor();
  check_refusals(
      s, velo_alibi_slopes, valid, slopes,
      {{[](args& a) { a.heads = nullptr; }, VELO_ERR_NULL, "args.heads"},
       {[](args& a) { a.head_num = 0; }, VELO_ERR_ARGUMENT, "args.head_num"},
       {[](args&) {}, VELO_ERR_ARGUMENT, "args.heads", "indices in [0, 8)", "8 in element 1"}});
}
