// Permutation of tokens by expert and back, with gradients: against plain loops in double, every
// kernel, dropped rows, padded mode, threads, finite differences, refusals.
#include <numeric>

#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// The rows of choices by a stable sort.
std::vector<std::int32_t> sorted_rows(const std::vector<std::int64_t>& experts) {
  std::vector<std::size_t> order(experts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return experts[a] < experts[b]; });
  std::vector<std::int32_t> rows(experts.size());
  for (std::size_t p = 0; p < order.size(); ++p) rows[order[p]] = static_cast<std::int32_t>(p);
  return rows;
}

struct sizes {
  std::int64_t tokens, k, experts, n, kept;  // kept: num_out_tokens
};

// Everything of one routing: both directions, both gradients.
template <class T, class I>
void check(session& s, const sizes& z) {
  INFO("tokens " << z.tokens << " k " << z.k << " n " << z.n << " kept " << z.kept << " bytes "
                 << sizeof(T));
  const std::int64_t slots = z.tokens * z.k;
  const std::int64_t rows = z.kept > 0 ? std::min(z.kept, slots) : slots + z.kept;
  const auto width = static_cast<std::size_t>(z.n), kept = static_cast<std::size_t>(rows);
  array<I> indices({z.tokens, z.k});
  std::vector<std::int64_t> experts(indices.size());
  for (std::size_t f = 0; f < experts.size(); ++f) {
    experts[f] =
        static_cast<std::int64_t>((f * 7919 + f / 5) % static_cast<std::size_t>(z.experts));
    indices[f] = static_cast<I>(experts[f]);
  }
  const std::vector<std::int32_t> want = sorted_rows(experts);
  array<T> tokens({z.tokens, z.n}), permuted({rows, z.n}), y({z.tokens, z.n}),
      dtokens({z.tokens, z.n});
  array<T> dpermuted({rows, z.n});
  array<std::int32_t> sorted({slots});
  array<std::int64_t> counts({z.experts});
  tokens.fill(1);
  velo_moe_token_permute_args p = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
  p.tokens = tokens.tensor(), p.indices = indices.tensor(), p.permuted = permuted.tensor();
  p.sorted_indices = sorted.tensor(), p.counts = counts.tensor();
  p.num_out_tokens = z.kept, p.num_experts = z.experts;
  VELO_RUN(velo_moe_token_permute(s.stream(), &p));
  std::vector<std::int64_t> truth_counts(static_cast<std::size_t>(z.experts));
  for (std::size_t f = 0; f < want.size(); ++f) {
    REQUIRE(sorted[f] == want[f]);
    const auto row = static_cast<std::size_t>(want[f]);
    if (row >= kept) continue;
    ++truth_counts[static_cast<std::size_t>(experts[f])];
    const std::size_t t = f / static_cast<std::size_t>(z.k);
    REQUIRE(std::memcmp(permuted.data() + row * width, tokens.data() + t * width,
                        width * sizeof(T)) == 0);
  }
  for (std::size_t e = 0; e < truth_counts.size(); ++e) REQUIRE(counts[e] == truth_counts[e]);
  CHECK((permuted.intact() && sorted.intact() && counts.intact()));

  array<float> probs({z.tokens, z.k}), dprobs({z.tokens, z.k});
  array<T> dy({z.tokens, z.n});
  permuted.fill(2), probs.fill(3), dy.fill(4);
  velo_moe_token_unpermute_args u = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
  u.permuted = permuted.tensor(), u.sorted_indices = sorted.tensor(), u.probs = probs.tensor();
  u.tokens = y.tensor();
  VELO_RUN(velo_moe_token_unpermute(s.stream(), &u));
  velo_moe_token_unpermute_backward_args b = VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.permuted = permuted.tensor(), b.sorted_indices = sorted.tensor();
  b.probs = probs.tensor(), b.dpermuted = dpermuted.tensor(), b.dprobs = dprobs.tensor();
  b.num_out_tokens = z.kept;
  VELO_RUN(velo_moe_token_unpermute_backward(s.stream(), &b));
  velo_moe_token_permute_backward_args q = VELO_MOE_TOKEN_PERMUTE_BACKWARD_ARGS_INIT;
  q.dpermuted = permuted.tensor(), q.sorted_indices = sorted.tensor(), q.dtokens = dtokens.tensor();
  q.tokens = z.tokens;
  VELO_RUN(velo_moe_token_permute_backward(s.stream(), &q));

  std::vector<double> sums(y.size()), plain(y.size()), scaled(dpermuted.size()), dots(probs.size());
  for (std::size_t f = 0; f < want.size(); ++f) {
    const auto row = static_cast<std::size_t>(want[f]);
    const std::size_t t = f / static_cast<std::size_t>(z.k);
    if (row >= kept) continue;
    for (std::size_t i = 0; i < width; ++i) {
      const double x = permuted.at(row * width + i), g = dy.at(t * width + i);
      sums[t * width + i] += probs.at(f) * x;
      plain[t * width + i] += x;
      scaled[row * width + i] = probs.at(f) * g;
      dots[f] += x * g;
    }
  }
  const double absolute = 1e-6 * static_cast<double>(z.k);
  require_close(y, sums, rounding<T>(), absolute);
  require_close(dtokens, plain, rounding<T>(), absolute);
  require_close(dpermuted, scaled, rounding<T>(), 1e-7);
  require_close(dprobs, dots, 1e-6, 1e-6 * std::sqrt(static_cast<double>(z.n + 1)));
}

// Padded mode with the tokens of each expert drawn, some token twice.
template <class T>
void check_padded(session& s, std::int64_t tokens, std::int64_t experts, std::int64_t capacity,
                  std::int64_t n) {
  array<T> x({tokens, n}), permuted({experts * capacity, n}), y({tokens, n}), dy({tokens, n});
  array<T> dx({tokens, n}), dpermuted({experts * capacity, n}), probs({tokens, experts});
  array<T> dprobs({tokens, experts});
  array<std::int64_t> indices({experts, capacity});
  array<std::int32_t> sorted({experts, capacity});
  x.fill(1), probs.fill(2), dy.fill(3);
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<std::int64_t>(i * 31 % static_cast<std::size_t>(tokens));
  velo_moe_token_permute_args p = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
  p.tokens = x.tensor(), p.indices = indices.tensor(), p.permuted = permuted.tensor();
  p.sorted_indices = sorted.tensor(), p.padded_mode = 1;
  VELO_RUN(velo_moe_token_permute(s.stream(), &p));
  const std::int64_t restore[] = {tokens, n};
  const velo_ints shape{restore, 2};
  velo_moe_token_unpermute_args u = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
  u.permuted = permuted.tensor(), u.sorted_indices = sorted.tensor(), u.probs = probs.tensor();
  u.tokens = y.tensor(), u.restore_shape = &shape, u.padded_mode = 1;
  VELO_RUN(velo_moe_token_unpermute(s.stream(), &u));
  velo_moe_token_unpermute_backward_args b = VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.permuted = permuted.tensor(), b.sorted_indices = sorted.tensor();
  b.probs = probs.tensor(), b.dpermuted = dpermuted.tensor(), b.dprobs = dprobs.tensor();
  b.padded_mode = 1;
  VELO_RUN(velo_moe_token_unpermute_backward(s.stream(), &b));
  velo_moe_token_permute_backward_args q = VELO_MOE_TOKEN_PERMUTE_BACKWARD_ARGS_INIT;
  q.dpermuted = permuted.tensor(), q.sorted_indices = indices.tensor(), q.dtokens = dx.tensor();
  q.tokens = tokens, q.padded_mode = 1;
  VELO_RUN(velo_moe_token_permute_backward(s.stream(), &q));

  const auto width = static_cast<std::size_t>(n), places = static_cast<std::size_t>(experts);
  std::vector<double> sums(y.size()), plain(y.size()), scaled(dpermuted.size()), dots(probs.size());
  for (std::size_t r = 0; r < indices.size(); ++r) {
    const auto t = static_cast<std::size_t>(indices[r]);
    REQUIRE(sorted[r] == indices[r]);
    REQUIRE(std::memcmp(permuted.data() + r * width, x.data() + t * width, width * sizeof(T)) == 0);
    const std::size_t place = t * places + r / static_cast<std::size_t>(capacity);
    for (std::size_t i = 0; i < width; ++i) {
      const double value = permuted.at(r * width + i), g = dy.at(t * width + i);
      sums[t * width + i] += probs.at(place) * value;
      plain[t * width + i] += value;
      scaled[r * width + i] = probs.at(place) * g;
      dots[place] += value * g;
    }
  }
  require_close(y, sums, rounding<T>(), 1e-5);
  require_close(dx, plain, rounding<T>(), 1e-5);
  require_close(dpermuted, scaled, rounding<T>(), 1e-7);
  require_close(dprobs, dots, rounding<T>(), 1e-4);
}

template <class T>
void check_all(session& s) {
  check<T, std::int32_t>(s, {50, 2, 8, 33, 0});
  check<T, std::int64_t>(s, {50, 4, 128, 64, -7});
  check<T, std::int64_t>(s, {50, 1, 4, 15, 20});
  check<T, std::int32_t>(s, {0, 2, 8, 8, 0});
  check<T, std::int32_t>(s, {5, 2, 8, 0, 0});
  check<T, std::int32_t>(s, {3, 8, 8, 5000, 0});
  check<T, std::int64_t>(s, {4, 3, 5, 7, -12});
  check_padded<T>(s, 20, 4, 6, 48);
  check_padded<T>(s, 3, 2, 8, 17);
}

}  // namespace

TEST_CASE("tokens are permuted by expert and back, with gradients, for every kernel and dtype") {
  for (const char* op : {"moe_token_permute", "moe_token_permute_backward", "moe_token_unpermute",
                         "moe_token_unpermute_backward"}) {
    for_each_kernel(op, [](session& s) {
      check_all<float>(s);
      check_all<bf16>(s);
      check_all<f16>(s);
    });
  }
}

TEST_CASE("large permutations are written around the cache with the same result") {
  session s(2);
  check<float, std::int32_t>(s, {2200, 2, 16, 2048, 0});
  check<bf16, std::int32_t>(s, {4400, 2, 16, 2048, -100});
}

TEST_CASE("permutation and its reverse give the tokens, bit for bit, at every thread count") {
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<bf16> tokens({1024, 192}), permuted({1024, 192}), back({1024, 192});
    array<std::int32_t> indices({1024}), sorted({1024});
    tokens.fill(1);
    for (std::size_t f = 0; f < 1024; ++f) indices[f] = static_cast<std::int32_t>(f * 37 % 128);
    velo_moe_token_permute_args p = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
    p.tokens = tokens.tensor(), p.indices = indices.tensor(), p.permuted = permuted.tensor();
    p.sorted_indices = sorted.tensor();
    VELO_RUN(velo_moe_token_permute(s.stream(), &p));
    velo_moe_token_unpermute_args u = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
    u.permuted = permuted.tensor(), u.sorted_indices = sorted.tensor(), u.tokens = back.tensor();
    VELO_RUN(velo_moe_token_unpermute(s.stream(), &u));
    CHECK(back.bytes() == tokens.bytes());
  }
}

TEST_CASE("the gradients of unpermute and permute are their slopes") {
  session s;
  array<float> permuted({5, 4}), probs({3, 2}), y({3, 4}), dy({3, 4}), dpermuted({5, 4}),
      dprobs({3, 2});
  array<std::int32_t> sorted({6});
  permuted.fill(1), probs.fill(2), dy.fill(3);
  const std::int32_t order[] = {2, 0, 1, 4, 5, 3};
  std::copy(order, order + 6, sorted.data());
  velo_moe_token_unpermute_args u = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
  u.permuted = permuted.tensor(), u.sorted_indices = sorted.tensor(), u.probs = probs.tensor();
  u.tokens = y.tensor();
  velo_moe_token_unpermute_backward_args b = VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.permuted = permuted.tensor(), b.sorted_indices = sorted.tensor();
  b.probs = probs.tensor(), b.dpermuted = dpermuted.tensor(), b.dprobs = dprobs.tensor();
  b.num_out_tokens = 5;
  VELO_RUN(velo_moe_token_unpermute_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_moe_token_unpermute(s.stream(), &u));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  };
  check_slope(permuted, dpermuted, objective);
  check_slope(probs, dprobs, objective);
}

TEST_CASE("permutations refuse what does not fit, by name, and write nothing") {
  session s;
  array<float> tokens({3, 4}), permuted({6, 4}), probs({3, 2}), y({3, 4}), three({3});
  array<std::int32_t> indices({3, 2}), sorted({6}), few({2, 2});
  array<std::int64_t> counts({4});
  permuted.fill(1);
  const std::int32_t ids[] = {0, 3, 1, 2, 2, 0};
  std::copy(ids, ids + 6, indices.data());
  velo_moe_token_permute_args valid = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
  valid.tokens = tokens.tensor(), valid.indices = indices.tensor();
  valid.permuted = permuted.tensor(), valid.num_experts = 4, valid.counts = counts.tensor();
  VELO_RUN(velo_moe_token_permute(s.stream(), &valid));
  using args = velo_moe_token_permute_args;
  check_refusals<args>(
      s, velo_moe_token_permute, valid, permuted,
      {{[](args& a) { a.num_experts = 3, a.counts = nullptr; }, VELO_ERR_ARGUMENT, "args.indices"},
       {[](args& a) { a.num_experts = 0; }, VELO_ERR_ARGUMENT, "args.num_experts"},
       {[&](args& a) { a.indices = few.tensor(); }, VELO_ERR_SHAPE, "args.indices.shape"},
       {[&](args& a) { a.tokens = three.tensor(); }, VELO_ERR_RANK, "args.tokens.ndim"},
       {[](args& a) { a.num_out_tokens = 5; }, VELO_ERR_SHAPE, "args.permuted.shape"},
       {[](args& a) { a.padded_mode = 1; }, VELO_ERR_ARGUMENT, "args.num_experts"},
       {[](args& a) { a.padded_mode = 1, a.num_experts = 0, a.counts = nullptr; },
        VELO_ERR_ARGUMENT, "args.indices"}});

  velo_moe_token_unpermute_args u = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
  const std::int32_t twice[] = {2, 0, 1, 4, 4, 3};
  std::copy(twice, twice + 6, sorted.data());
  u.permuted = permuted.tensor(), u.sorted_indices = sorted.tensor(), u.probs = probs.tensor();
  u.tokens = y.tensor();
  CHECK_REFUSED(velo_moe_token_unpermute(s.stream(), &u), VELO_ERR_ARGUMENT, "args.sorted_indices");
  sorted[4] = 6;
  CHECK_REFUSED(velo_moe_token_unpermute(s.stream(), &u), VELO_ERR_ARGUMENT, "args.sorted_indices");
  u.padded_mode = 1;
  CHECK_REFUSED(velo_moe_token_unpermute(s.stream(), &u), VELO_ERR_NULL, "args.restore_shape");
}
