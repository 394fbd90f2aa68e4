// The windows of fusion_attention: which keys each row sees under every sparse_mode, against a
// dense mask in double, forward and gradient; the ranges alone against the conditions; refusals.
#include "ops/attention/engine/attention_window.hpp"

#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::ops::attention_window;
using velo::ops::unlimited;
using velo::ops::visible_keys;
using velo::simd::bf16;

namespace {

struct band {
  std::int64_t pre, next;
};
constexpr std::int64_t open = 2147483647;
constexpr band bands[] = {{open, 0}, {7, 3}, {0, 0}, {40, -5}, {-9, 60}, {-3, -8}, {open, open}};

template <class T>
void check_modes(session& s, setup p, const std::vector<std::int64_t>& modes) {
  for (const std::int64_t mode : modes) {
    p.mode = mode;
    const bool banded = mode == VELO_ATTENTION_SPARSE_MODE_FULL ||
                        mode == VELO_ATTENTION_SPARSE_MODE_BAND ||
                        mode >= VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND;
    for (const band& b : bands) {
      p.pre = b.pre, p.next = b.next;
      check<T>(s, p);
      if (!banded) break;  // the others ignore pre_tokens and next_tokens
    }
  }
}

const std::vector<std::int64_t> dense_modes = {VELO_ATTENTION_SPARSE_MODE_FULL,
                                               VELO_ATTENTION_SPARSE_MODE_ALL_MASK,
                                               VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL,
                                               VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL,
                                               VELO_ATTENTION_SPARSE_MODE_BAND,
                                               VELO_ATTENTION_SPARSE_MODE_PREFIX,
                                               VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED};
const std::vector<std::int64_t> list_modes = {VELO_ATTENTION_SPARSE_MODE_FULL,
                                              VELO_ATTENTION_SPARSE_MODE_ALL_MASK,
                                              VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL,
                                              VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL,
                                              VELO_ATTENTION_SPARSE_MODE_BAND,
                                              VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED,
                                              VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND,
                                              VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL};

setup with_prefix(setup p) {
  for (std::int64_t b = 0; b < p.sequences(); ++b) {
    const std::int64_t skv = p.kv_length(b), least = std::max<std::int64_t>(skv - p.q_length(b), 0);
    p.prefix.push_back(b % 2 == 0 ? (least + skv + 1) / 2 : skv);
  }
  return p;
}

}  // namespace

TEST_CASE("visible_keys gives each row the keys of its condition, and counts them") {
  for (const std::int64_t rows : {0, 1, 5, 12}) {
    for (const std::int64_t keys : {0, 1, 7, 12, 20}) {
      for (const bool bottom_right : {false, true}) {
        for (const std::int64_t pre :
             {unlimited, std::int64_t{0}, std::int64_t{3}, std::int64_t{-4}})
          for (const std::int64_t next :
               {unlimited, std::int64_t{0}, std::int64_t{2}, std::int64_t{-3}})
            for (const std::int64_t prefix : {0, 4}) {
              if (prefix > 0 && pre != unlimited) continue;  // no mode has both
              const visible_keys seen({pre, next, bottom_right}, rows, keys, prefix);
              const std::int64_t shift = bottom_right ? keys - rows : 0;
              double pairs = 0;
              bool same = true;
              for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t j = 0; j < keys; ++j) {
                  const bool sees = (j - i - shift >= -pre && j - i - shift <= next) || j < prefix;
                  pairs += sees ? 1 : 0;
                  same = same && sees == (seen.first(i) <= j && j < seen.last(i)) &&
                         sees == (seen.first_row(j) <= i && i < seen.last_row(j));
                }
              }
              INFO(rows << " rows " << keys << " keys pre " << pre << " next " << next);
              CHECK(same);
              CHECK(seen.pairs() == pairs);
            }
      }
    }
  }
}

TEST_CASE("fusion_attention sees what each sparse_mode leaves, for every kernel and layout") {
  for_each_kernel("fusion_attention", [](session& s) {
    take_same_kernel(s);
    const auto all = [&](const setup& plain, const std::vector<std::int64_t>& modes) {
      const setup p = with_prefix(plain);
      if (serves_all(s)) check_modes<float>(s, p, modes);
      check_modes<bf16>(s, p, modes);
    };
    all(make(VELO_ATTENTION_LAYOUT_BSND, 2, 2, 1, 33, 70, 16, 16), dense_modes);
    all(make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 1, 70, 33, 16, 24), dense_modes);
    all(make(VELO_ATTENTION_LAYOUT_SBH, 1, 1, 1, 45, 45, 16, 16), dense_modes);
    all(make(VELO_ATTENTION_LAYOUT_BSH, 1, 1, 1, 5, 1, 16, 16), dense_modes);
    all(make_tnd({0, 40, 40, 73, 73}, {10, 50, 75, 150, 160}, 2, 1, 16), list_modes);
  });
}

TEST_CASE("fusion_attention skips blocks that a band hides on either side") {
  session s(3);
  for (const band& b : {band{100, 0}, band{0, 100}, band{-300, 500}, band{700, -600}}) {
    setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 4, 2, 700, 2100, 16, 16);
    p.mode = VELO_ATTENTION_SPARSE_MODE_BAND;
    p.pre = b.pre, p.next = b.next;
    check<float>(s, p);
    check<bf16>(s, p);
  }
}

TEST_CASE("fusion_attention refuses a mode that does not fit its layout, and wrong prefixes") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BSND, 2, 4, 2, 6, 8, 16, 16);
  tensors<float> t(p);
  const ints good = {2, 8}, one = {4}, low = {1, 4}, high = {4, 9};
  const auto list = [](const ints& x) {
    return velo_ints{x.data(), static_cast<std::int64_t>(x.size())};
  };
  const velo_ints fits = list(good), short_one = list(one), too_low = list(low),
                  too_high = list(high);
  using args = velo_fusion_attention_args;
  args prefix = t.forward;
  prefix.sparse_mode = VELO_ATTENTION_SPARSE_MODE_PREFIX;
  prefix.prefix = &fits;
  check_refusals(s, velo_fusion_attention, prefix, t.out,
                 {{[&](args& a) { a.prefix = nullptr; }, VELO_ERR_NULL, "args.prefix"},
                  {[&](args& a) { a.prefix = &short_one; }, VELO_ERR_ARGUMENT, "args.prefix"},
                  {[&](args& a) { a.prefix = &too_low; }, VELO_ERR_ARGUMENT, "args.prefix"},
                  {[&](args& a) { a.prefix = &too_high; }, VELO_ERR_ARGUMENT, "args.prefix"},
                  {[&](args& a) { a.sparse_mode = 7; }, VELO_ERR_ARGUMENT, "args.sparse_mode"},
                  {[&](args& a) { a.sparse_mode = 8; }, VELO_ERR_ARGUMENT, "args.sparse_mode"},
                  {[&](args& a) { a.sparse_mode = 9; }, VELO_ERR_ARGUMENT, "args.sparse_mode"},
                  {[&](args& a) { a.pre_tokens = std::int64_t{1} << 31; }, VELO_ERR_ARGUMENT,
                   "args.pre_tokens"}});
  const setup sequences = make_tnd({6, 14}, {8, 16}, 4, 2, 16);
  tensors<float> flat(sequences);
  flat.forward.prefix = &fits;
  check_refusals(s, velo_fusion_attention, flat.forward, flat.out,
                 {{[&](args& a) { a.sparse_mode = VELO_ATTENTION_SPARSE_MODE_PREFIX; },
                   VELO_ERR_ARGUMENT, "args.sparse_mode"}});
}
