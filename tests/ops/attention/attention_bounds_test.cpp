// What fusion_attention's spec says of every row: how far it may be from the exact one, for inputs
// of any finite magnitude, and that it does not depend on how many rows there are.
#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// The largest |scale| * sum of |query||key|, which scores are rounded relative to.
template <class T>
double largest_score(const setup& p, const tensors<T>& t) {
  double most = 0;
  for (std::int64_t i = 0; i < p.sq; ++i)
    for (std::int64_t j = 0; j < p.skv; ++j) {
      const std::size_t q = p.at(true, 1, p.d, 0, 0, i), k = p.at(false, 1, p.d, 0, 0, j);
      double sum = 0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(p.d); ++c)
        sum += std::abs(t.q.at(q + c) * t.k.at(k + c));
      most = std::max(most, sum * std::abs(p.scale));
    }
  return most;
}

template <class T>
void check_magnitude(session& s, double of_scores, double of_values, std::uint64_t seed) {
  INFO("factors " << of_scores << " and " << of_values << " bytes " << sizeof(T));
  const setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 9, 300, 16, 20);
  tensors<T> t(p);
  t.q.fill(seed, of_scores), t.k.fill(seed + 1), t.v.fill(seed + 2, of_values);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const double score = largest_score(p, t);
  if (score > 3e38) return;
  const double bound = (is_coarse<T> ? 0x1p-7 : 2e-6) + 1e-6 * score;
  double values = 0;
  for (std::size_t i = 0; i < t.v.size(); ++i) values = std::max(values, std::abs(t.v.at(i)));
  require_close(t.out, truth_of(p, t).out, rounding<T>(), bound * values);
}

template <class T>
void check_magnitudes(session& s, double least, double most) {
  std::uint64_t seed = 1;
  for (double factor = least; factor <= most; factor *= 0x1p12)
    for (const double values : {least, 1.0, most}) check_magnitude<T>(s, factor, values, seed += 3);
}

// Rows [first, first + count) of a causal problem, over the keys up to the last of them.
template <class T>
void check_rows(session& s, const setup& whole, tensors<T>& all, std::int64_t first,
                std::int64_t count) {
  setup p = whole;
  p.sq = count, p.skv = whole.skv - whole.sq + first + count;
  tensors<T> part(p);
  std::copy_n(all.q.data() + first * p.d, part.q.size(), part.q.data());
  std::copy_n(all.k.data(), part.k.size(), part.k.data());
  std::copy_n(all.v.data(), part.v.size(), part.v.data());
  VELO_RUN(velo_fusion_attention(s.stream(), &part.forward));
  const std::vector<unsigned char> got = part.out.bytes(), want = all.out.bytes();
  const auto begin = want.begin() + first * p.dv * static_cast<std::int64_t>(sizeof(T));
  CHECK(std::equal(got.begin(), got.end(), begin));
}

template <class T>
void check_prefill(session& s) {
  setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 40, 620, 24, 40);
  p.mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL;
  tensors<T> all(p);
  VELO_RUN(velo_fusion_attention(s.stream(), &all.forward));
  for (const std::int64_t step : {1, 33})
    for (std::int64_t i = 0; i < p.sq; i += step)
      check_rows(s, p, all, i, std::min(step, p.sq - i));
}

template <class T>
bool takes(session& s) {
  const setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 1, 1, 1, 1, 1, 1);
  tensors<T> t(p);
  return velo_fusion_attention(s.stream(), &t.forward) == VELO_OK;
}

}  // namespace

TEST_CASE("fusion_attention holds its bound for inputs of any finite magnitude") {
  for_each_kernel("fusion_attention", [](session& s) {
    if (takes<float>(s)) check_magnitudes<float>(s, 0x1p-60, 0x1p100);
    if (takes<f16>(s)) check_magnitudes<f16>(s, 0x1p-10, 0x1p15);
    check_magnitudes<bf16>(s, 0x1p-60, 0x1p100);
  });
}

TEST_CASE("fusion_attention gives a row the same bits whole, in chunks and token by token") {
  for_each_kernel("fusion_attention", [](session& s) {
    if (takes<float>(s)) check_prefill<float>(s);
    if (takes<f16>(s)) check_prefill<f16>(s);
    check_prefill<bf16>(s);
  });
}
