// sinkhorn and its gradient: published values, the definition in double, finite differences, the
// same bits for any number of threads, refusals.
#include <algorithm>

#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct balance_rule {
  std::size_t tokens, experts;
  double tolerance = 1e-4;
  std::int64_t rounds = 1000;
};

// The loop of the paper, on matrices in double.
std::vector<double> balanced(const std::vector<double>& logits, const balance_rule& rule) {
  const std::size_t tokens = rule.tokens, experts = rule.experts;
  std::vector<double> rows(tokens), columns(experts, 1.0), y(tokens * experts);
  double change = 1e9;
  for (std::int64_t round = 0; round < rule.rounds && change > rule.tolerance; ++round) {
    std::vector<double> sums(experts);
    for (std::size_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (std::size_t e = 0; e < experts; ++e)
        sum += std::exp(logits[t * experts + e]) * columns[e];
      rows[t] = 1 / static_cast<double>(tokens) / (sum + 1e-8);
      for (std::size_t e = 0; e < experts; ++e)
        sums[e] += std::exp(logits[t * experts + e]) * rows[t];
    }
    change = 0;
    for (std::size_t e = 0; e < experts; ++e) {
      const double next = 1 / static_cast<double>(experts) / (sums[e] + 1e-8);
      change += std::abs(next - columns[e]) / static_cast<double>(experts);
      columns[e] = next;
    }
  }
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = std::exp(logits[i]) * rows[i / experts] * columns[i % experts];
  return y;
}

template <class T>
std::vector<double> values_of(const array<T>& x) {
  std::vector<double> values(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) values[i] = x.at(i);
  return values;
}

template <class T>
void check(session& s, const balance_rule& rule) {
  INFO("tokens " << rule.tokens << " experts " << rule.experts << " bytes " << sizeof(T));
  const auto tokens = static_cast<std::int64_t>(rule.tokens);
  const auto experts = static_cast<std::int64_t>(rule.experts);
  array<T> logits({tokens, experts}), dlogits({tokens, experts});
  array<float> y({tokens, experts}), dy({tokens, experts});
  logits.fill(1, 3), dy.fill(2);
  velo_sinkhorn_args a = VELO_SINKHORN_ARGS_INIT;
  a.logits = logits.tensor(), a.y = y.tensor();
  a.tolerance = rule.tolerance, a.max_rounds = rule.rounds;
  VELO_RUN(velo_sinkhorn(s.stream(), &a));
  std::vector<double> x = values_of(logits);
  require_close(y, balanced(x, rule), 1e-6, 1e-12);
  velo_sinkhorn_backward_args b = VELO_SINKHORN_BACKWARD_ARGS_INIT;
  b.logits = logits.tensor(), b.dy = dy.tensor(), b.dlogits = dlogits.tensor();
  b.tolerance = rule.tolerance, b.max_rounds = rule.rounds;
  VELO_RUN(velo_sinkhorn_backward(s.stream(), &b));
  const auto objective = [&] {
    const std::vector<double> out = balanced(x, rule);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dy.at(i);
    return sum;
  };
  double largest = 1e-3;
  for (std::size_t i = 0; i < dlogits.size(); ++i)
    largest = std::max(largest, std::abs(dlogits.at(i)));
  for (std::size_t i = 0; i < x.size(); i += 7) {
    const double at = x[i], h = 1e-4;
    x[i] = at + h;
    const double above = objective();
    x[i] = at - h;
    const double below = objective();
    x[i] = at;
    const double margin = sizeof(T) == 4 ? 1e-6 : 8e-3;
    CHECK(std::abs(dlogits.at(i) - (above - below) / (2 * h)) <= margin * largest);
  }
  CHECK((y.intact() && dlogits.intact()));
}

}  // namespace

TEST_CASE("sinkhorn and its gradient agree with the loop in double") {
  session s;
  for (const balance_rule& rule :
       {balance_rule{16, 4, 0, 12}, {40, 7, 0, 5}, {33, 65, 0, 1}, {50, 3, 1e-4}, {1, 8, 0, 3}}) {
    check<float>(s, rule);
    check<bf16>(s, rule);
    check<f16>(s, rule);
  }
}

TEST_CASE("sinkhorn gives the published choices and sums of columns") {
  session s;
  array<float> logits({16, 4}), y({16, 4});
  for (std::size_t t = 0; t < 16; ++t)
    for (std::size_t e = 0; e < 4; ++e)
      logits[t * 4 + e] = static_cast<float>(2 * std::sin(1.7 * static_cast<double>(t) +
                                                          2.3 * static_cast<double>(e) +
                                                          0.5 * static_cast<double>(t * e)) +
                                             (e == 1 ? 0.8 : 0));
  velo_sinkhorn_args a = VELO_SINKHORN_ARGS_INIT;
  a.logits = logits.tensor(), a.y = y.tensor();
  VELO_RUN(velo_sinkhorn(s.stream(), &a));
  const int best[] = {1, 0, 3, 1, 3, 0, 2, 0, 2, 0, 3, 1, 0, 2, 1, 2};
  for (std::size_t t = 0; t < 16; ++t)
    CHECK(std::max_element(y.data() + t * 4, y.data() + t * 4 + 4) - (y.data() + t * 4) == best[t]);
  for (std::size_t e = 0; e < 4; ++e) {
    double sum = 0;
    for (std::size_t t = 0; t < 16; ++t) sum += y.at(t * 4 + e);
    CHECK(sum == Approx(0.25).epsilon(2e-7));
  }
  array<float> nine({16, 4}), ten({16, 4});
  a.max_rounds = 9, a.y = nine.tensor();  // 9 rounds suffice
  VELO_RUN(velo_sinkhorn(s.stream(), &a));
  CHECK(nine.bytes() == y.bytes());
  a.max_rounds = 10, a.tolerance = 0, a.y = ten.tensor();
  VELO_RUN(velo_sinkhorn(s.stream(), &a));
  CHECK(ten.bytes() != y.bytes());
}

TEST_CASE("the memory of sinkhorn does not grow with its rounds, as that of its gradient does") {
  constexpr std::int64_t experts = 4096;
  std::uint64_t peaks[2][2] = {};
  for (const bool backward : {false, true})
    for (const bool many : {false, true}) {
      session s;
      array<float> logits({3, experts}), y({3, experts}), dy({3, experts}), dlogits({3, experts});
      logits.fill(1, 3), dy.fill(2);
      velo_sinkhorn_args a = VELO_SINKHORN_ARGS_INIT;
      a.logits = logits.tensor(), a.y = y.tensor();
      velo_sinkhorn_backward_args b = VELO_SINKHORN_BACKWARD_ARGS_INIT;
      b.logits = logits.tensor(), b.dy = dy.tensor(), b.dlogits = dlogits.tensor();
      a.tolerance = b.tolerance = 0, a.max_rounds = b.max_rounds = many ? 200 : 2;
      VELO_RUN(backward ? velo_sinkhorn_backward(s.stream(), &b) : velo_sinkhorn(s.stream(), &a));
      velo_context_stats now = VELO_CONTEXT_STATS_INIT;
      REQUIRE(velo_context_get_stats(s.context(), &now) == VELO_OK);
      peaks[backward][many] = now.bytes_peak;
    }
  CHECK(peaks[0][1] == peaks[0][0]);
  CHECK(peaks[1][1] > peaks[1][0] + 50 * experts * sizeof(double));
}

TEST_CASE("sinkhorn gives the same bits for any number of threads") {
  std::vector<unsigned char> bits, gradient;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<bf16> logits({3000, 16}), dlogits({3000, 16});
    array<float> y({3000, 16}), dy({3000, 16});
    logits.fill(1, 3), dy.fill(2);
    velo_sinkhorn_args a = VELO_SINKHORN_ARGS_INIT;
    a.logits = logits.tensor(), a.y = y.tensor();
    VELO_RUN(velo_sinkhorn(s.stream(), &a));
    velo_sinkhorn_backward_args b = VELO_SINKHORN_BACKWARD_ARGS_INIT;
    b.logits = logits.tensor(), b.dy = dy.tensor(), b.dlogits = dlogits.tensor();
    VELO_RUN(velo_sinkhorn_backward(s.stream(), &b));
    if (bits.empty()) bits = y.bytes(), gradient = dlogits.bytes();
    CHECK(y.bytes() == bits);
    CHECK(dlogits.bytes() == gradient);
  }
}

TEST_CASE("sinkhorn ends where numbers are not finite") {
  session s;
  array<float> logits({8, 4}), y({8, 4});
  logits.fill(1);
  logits[5] = NAN, logits[9] = 1000;
  velo_sinkhorn_args a = VELO_SINKHORN_ARGS_INIT;
  a.logits = logits.tensor(), a.y = y.tensor();
  VELO_RUN(velo_sinkhorn(s.stream(), &a));
  CHECK(std::isnan(y.at(0)));
}

TEST_CASE("sinkhorn refuses what does not fit, by name, and writes nothing") {
  session s;
  array<float> logits({4, 8}), y({4, 8}), one({8});
  logits.fill(1), y.fill(2);
  velo_sinkhorn_args valid = VELO_SINKHORN_ARGS_INIT;
  valid.logits = logits.tensor(), valid.y = y.tensor();
  using args = velo_sinkhorn_args;
  check_refusals<args>(
      s, velo_sinkhorn, valid, y,
      {{[](args& a) { a.tolerance = -1; }, VELO_ERR_ARGUMENT, "args.tolerance"},
       {[](args& a) { a.tolerance = NAN; }, VELO_ERR_ARGUMENT, "args.tolerance"},
       {[](args& a) { a.max_rounds = 0; }, VELO_ERR_ARGUMENT, "args.max_rounds"},
       {[&](args& a) { a.logits = one.tensor(); }, VELO_ERR_RANK, "args.logits.ndim"}});
}
