// topk_router and its gradient: published and computed values, ties, groups, capacity, every kernel
// the same choice, finite differences, refusals.
#include <algorithm>

#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// Everything a call of the router writes.
struct routed {
  array<float> weights, aux, z;
  array<std::int32_t> indices;
  array<std::int64_t> counts;

  routed(std::int64_t tokens, std::int64_t experts, std::int64_t k)
      : weights({tokens, k}), aux({}), z({}), indices({tokens, k}), counts({experts}) {}
  velo_topk_router_args args(const velo_tensor* logits, std::int64_t k) {
    velo_topk_router_args a = VELO_TOPK_ROUTER_ARGS_INIT;
    a.logits = logits, a.k = k;
    a.weights = weights.tensor(), a.indices = indices.tensor(), a.counts = counts.tensor();
    a.aux_loss = aux.tensor(), a.z_loss = z.tensor();
    return a;
  }
};

// The logits of reference/parallel.md, section 5.
void fill_gate(array<float>& logits) {
  for (std::size_t s = 0; s < 16; ++s) {
    for (std::size_t e = 0; e < 4; ++e) {
      const double t = static_cast<double>(s), x = static_cast<double>(e);
      logits[s * 4 + e] =
          static_cast<float>(2 * std::sin(1.7 * t + 2.3 * x + 0.5 * t * x) + (e == 1 ? 0.8 : 0));
    }
  }
}

// The tokens whose choice of expert 1 was kept.
std::vector<int> kept_by_one(const routed& r) {
  std::vector<int> tokens;
  for (std::size_t f = 0; f < r.indices.size(); ++f)
    if (r.indices.data()[f] == 1) tokens.push_back(static_cast<int>(f / 2));
  return tokens;
}

// One token by the definition, in double, on the logits of a type.
struct token_truth {
  std::vector<double> scores, compared;
  double lse = 0;

  template <class T>
  token_truth(const array<T>& logits, std::size_t t, std::size_t n, bool sigmoid,
              const array<float>* bias)
      : scores(n), compared(n) {
    double largest = -INFINITY, sum = 0;
    for (std::size_t e = 0; e < n; ++e) largest = std::max(largest, logits.at(t * n + e));
    for (std::size_t e = 0; e < n; ++e) sum += std::exp(logits.at(t * n + e) - largest);
    lse = largest + std::log(sum);
    for (std::size_t e = 0; e < n; ++e) {
      const double x = logits.at(t * n + e);
      scores[e] = sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - lse);
      compared[e] = scores[e] + (bias == nullptr ? 0 : bias->at(e));
    }
  }
};

struct router_case {
  std::int64_t tokens, experts, k, groups, kept;
  bool sigmoid, normalize, sums_two, bias;
  bool near = false;  // pairs of experts whose logits and scores differ by an ulp
};

template <class T>
void check(session& s, const router_case& c) {
  INFO("tokens " << c.tokens << " experts " << c.experts << " k " << c.k << " groups " << c.groups
                 << " bytes " << sizeof(T) << " sigmoid " << c.sigmoid);
  array<T> logits({c.tokens, c.experts});
  array<float> bias({c.experts});
  logits.fill(1, 4), bias.fill(2, 0.2);
  for (std::size_t i = 0; c.near && i + 1 < logits.size(); i += 2) {
    velo::simd::assign(
        logits[i], std::nextafter(static_cast<float>(logits.at(i + 1)), i % 4 == 0 ? 9.0f : -9.0f));
    bias[i % static_cast<std::size_t>(c.experts)] =
        bias[(i + 1) % static_cast<std::size_t>(c.experts)];
  }
  routed r(c.tokens, c.experts, c.k);
  velo_topk_router_args a = r.args(logits.tensor(), c.k);
  a.num_groups = c.groups, a.kept_groups = c.kept, a.scale = 2.5, a.normalize = c.normalize;
  a.score_function = c.sigmoid ? VELO_ROUTER_SCORE_SIGMOID : VELO_ROUTER_SCORE_SOFTMAX;
  a.group_score = c.sums_two ? VELO_GROUP_SCORE_TOP2_SUM : VELO_GROUP_SCORE_MAXIMUM;
  if (c.bias) a.expert_bias = bias.tensor();
  VELO_RUN(velo_topk_router(s.stream(), &a));
  const auto n = static_cast<std::size_t>(c.experts), k = static_cast<std::size_t>(c.k);
  const std::size_t size = n / static_cast<std::size_t>(c.groups);
  std::vector<double> shares(n), weights;
  std::vector<std::int64_t> counts(n);
  double z = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(c.tokens); ++t) {
    const token_truth truth(logits, t, n, c.sigmoid, c.bias ? &bias : nullptr);
    std::vector<std::size_t> groups, experts;
    std::vector<double> best;
    for (std::size_t g = 0; g < n / size; ++g) {
      std::vector<double> sorted(
          truth.compared.begin() + static_cast<std::ptrdiff_t>(g * size),
          truth.compared.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      std::sort(sorted.rbegin(), sorted.rend());
      best.push_back(sorted[0] + (c.sums_two && size > 1 ? sorted[1] : 0));
      groups.push_back(g);
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [&](std::size_t x, std::size_t y) { return best[x] > best[y]; });
    if (c.kept != 0) groups.resize(static_cast<std::size_t>(c.kept));
    std::sort(groups.begin(), groups.end());
    for (const std::size_t g : groups)
      for (std::size_t e = g * size; e < (g + 1) * size; ++e) experts.push_back(e);
    std::stable_sort(experts.begin(), experts.end(), [&](std::size_t x, std::size_t y) {
      return truth.compared[x] > truth.compared[y];
    });
    double sum = 0, all = 0;
    for (std::size_t j = 0; j < k; ++j) sum += truth.scores[experts[j]];
    for (const double score : truth.scores) all += score;
    for (std::size_t j = 0; j < k; ++j) {
      REQUIRE(r.indices[t * k + j] == static_cast<std::int32_t>(experts[j]));
      weights.push_back(2.5 * truth.scores[experts[j]] / (c.normalize ? sum : 1));
      ++counts[experts[j]];
    }
    for (std::size_t e = 0; e < n; ++e) shares[e] += truth.scores[e] / all;
    z += truth.lse * truth.lse;
  }
  require_close(r.weights, weights, 3e-6, 1e-9);
  const double tokens = static_cast<double>(std::max<std::int64_t>(c.tokens, 1));
  double aux = 0;
  for (std::size_t e = 0; e < n; ++e) {
    CHECK(r.counts[e] == counts[e]);
    aux += static_cast<double>(n) * static_cast<double>(counts[e]) /
           (tokens * static_cast<double>(k)) * shares[e] / tokens;
  }
  CHECK(r.aux.at(0) == Approx(aux).epsilon(3e-6));
  CHECK(r.z.at(0) == Approx(z / tokens).epsilon(3e-6));
  CHECK((r.weights.intact() && r.indices.intact() && r.counts.intact()));
}

template <class T>
void check_all(session& s) {
  check<T>(s, {100, 8, 2, 1, 0, false, true, false, false});
  check<T>(s, {33, 64, 6, 8, 3, false, false, false, false});
  check<T>(s, {70, 256, 8, 8, 4, true, true, true, true});
  check<T>(s, {40, 17, 3, 1, 0, true, true, false, false});
  check<T>(s, {40, 20, 5, 4, 2, false, true, true, true});
  check<T>(s, {3000, 16, 1, 1, 0, true, false, false, true});
  check<T>(s, {0, 8, 2, 1, 0, false, true, false, false});
  check<T>(s, {40, 96, 7, 1, 0, true, true, false, true, true});
  check<T>(s, {40, 96, 7, 1, 0, false, true, false, true, true});
  check<T>(s, {40, 96, 7, 24, 9, true, true, true, false, true});
  check<T>(s, {20, 200, 70, 1, 0, false, true, false, false});
}

// The objective whose gradient is checked: sum(weights dweights) + 0.7 aux + 0.3 z.
void check_gradient(std::int64_t score, bool normalize, std::int64_t capacity) {
  INFO("score " << score << " normalize " << normalize << " capacity " << capacity);
  session s;
  array<float> logits({6, 8}), dlogits({6, 8}), dweights({6, 3}), daux({}), dz({});
  logits.fill(11, 2), dweights.fill(12);
  daux[0] = 0.7f, dz[0] = 0.3f;
  routed r(6, 8, 3);
  velo_topk_router_args a = r.args(logits.tensor(), 3);
  a.score_function = score, a.normalize = normalize, a.scale = 1.5, a.capacity = capacity;
  a.drop_policy = VELO_DROP_POLICY_POSITION;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  velo_topk_router_backward_args b = VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT;
  b.logits = logits.tensor(), b.indices = r.indices.tensor(), b.counts = r.counts.tensor();
  b.dweights = dweights.tensor(), b.daux_loss = daux.tensor(), b.dz_loss = dz.tensor();
  b.dlogits = dlogits.tensor(), b.score_function = score, b.normalize = normalize, b.scale = 1.5;
  VELO_RUN(velo_topk_router_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_topk_router(s.stream(), &a));
    double sum = 0.7 * r.aux.at(0) + 0.3 * r.z.at(0);
    for (std::size_t i = 0; i < r.weights.size(); ++i) sum += r.weights.at(i) * dweights.at(i);
    return sum;
  };
  check_slope(logits, dlogits, objective);
}

}  // namespace

TEST_CASE("topk_router agrees with its definition for every kernel, rule and dtype") {
  for_each_kernel("topk_router", [](session& s) {
    check_all<float>(s);
    check_all<bf16>(s);
    check_all<f16>(s);
  });
}

TEST_CASE("topk_router gives the published counts, weights and losses") {
  session s;
  array<float> logits({16, 4});
  fill_gate(logits);
  routed r(16, 4, 2);
  velo_topk_router_args a = r.args(logits.tensor(), 2);
  VELO_RUN(velo_topk_router(s.stream(), &a));
  const std::int64_t counts[] = {7, 10, 7, 8};
  for (std::size_t e = 0; e < 4; ++e) CHECK(r.counts[e] == counts[e]);
  CHECK(r.aux.at(0) == Approx(1.0406161278).epsilon(1e-6));
  CHECK(r.z.at(0) == Approx(5.993355846).epsilon(1e-6));
  CHECK((r.indices[0] == 1 && r.indices[1] == 3));
  CHECK(r.weights.at(0) == Approx(0.756674090).epsilon(1e-6));
  CHECK(r.weights.at(1) == Approx(0.243325910).epsilon(1e-6));
  a.normalize = 0;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  CHECK(r.weights.at(0) == Approx(0.696109277).epsilon(1e-6));
  CHECK(r.weights.at(1) == Approx(0.223849905).epsilon(1e-6));
}

TEST_CASE("topk_router gives DeepSeek-V3's choice of groups and weights") {
  session s;
  array<float> logits({2, 16}), bias({16});
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t e = 0; e < 16; ++e) {
      const double x = static_cast<double>(t), y = static_cast<double>(e);
      logits[t * 16 + e] = static_cast<float>(2 * std::sin(0.9 * x + 1.9 * y + 0.3 * x * y));
    }
  }
  for (std::size_t e = 0; e < 16; ++e)
    bias[e] = 0.05f * static_cast<float>(static_cast<int>(7 * e % 11) - 5);
  routed r(2, 16, 4);
  velo_topk_router_args a = r.args(logits.tensor(), 4);
  a.expert_bias = bias.tensor(), a.score_function = VELO_ROUTER_SCORE_SIGMOID, a.scale = 2.5;
  a.num_groups = 4, a.kept_groups = 2, a.group_score = VELO_GROUP_SCORE_TOP2_SUM;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  const int wanted[2][4] = {{4, 7, 14, 15}, {3, 12, 14, 15}};
  const double weights[] = {0.744154477, 0.674714990, 0.749070932, 0.332059601};
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int32_t* first = r.indices.data() + t * 4;
      const std::int32_t* found = std::find(first, first + 4, wanted[t][i]);
      REQUIRE(found != first + 4);
      if (t == 0)
        CHECK(r.weights.at(static_cast<std::size_t>(found - first)) ==
              Approx(weights[i]).epsilon(2e-6));
    }
  }
}

TEST_CASE("an expert beyond its capacity drops by probability or by position") {
  session s;
  array<float> logits({16, 4});
  fill_gate(logits);
  routed r(16, 4, 2);
  velo_topk_router_args a = r.args(logits.tensor(), 2);
  a.capacity = 6, a.normalize = 0;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  CHECK(kept_by_one(r) == std::vector<int>{0, 2, 3, 5, 11, 14});
  CHECK(r.counts[1] == 10);
  a.drop_policy = VELO_DROP_POLICY_POSITION;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  CHECK(kept_by_one(r) == std::vector<int>{0, 2, 3, 5, 7, 8});
  for (std::size_t f = 0; f < r.indices.size(); ++f)
    CHECK((r.indices[f] < 0) == (r.weights.at(f) == 0));
}

TEST_CASE("ties go to the lower expert, and NaN comes last") {
  session s;
  array<float> logits({2, 6});
  const float values[] = {1, 2, 2, 2, 1, 2, NAN, 3, NAN, 1, -INFINITY, 0};
  std::copy(values, values + 12, logits.data());
  routed r(2, 6, 3);
  velo_topk_router_args a = r.args(logits.tensor(), 3);
  VELO_RUN(velo_topk_router(s.stream(), &a));
  const int wanted[] = {1, 2, 3, 1, 3, 5};
  for (std::size_t f = 0; f < 6; ++f) CHECK(r.indices[f] == wanted[f]);
  a.num_groups = 3, a.kept_groups = 2;
  VELO_RUN(velo_topk_router(s.stream(), &a));
  for (std::size_t f = 0; f < 3; ++f) CHECK(r.indices[f] == wanted[f]);
}

TEST_CASE("topk_router_backward is the slope of topk_router") {
  for (const std::int64_t score : {VELO_ROUTER_SCORE_SOFTMAX, VELO_ROUTER_SCORE_SIGMOID}) {
    for (const bool normalize : {false, true}) {
      check_gradient(score, normalize, 0);
      check_gradient(score, normalize, 1);
    }
  }
}

TEST_CASE("topk_router gives the same bits for any number of threads") {
  std::vector<unsigned char> weights, dlogits_bits;
  float losses[2] = {};
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<bf16> logits({3000, 64}), dlogits({3000, 64});
    array<float> dweights({3000, 6}), daux({}), dz({});
    logits.fill(1, 3), dweights.fill(2), daux[0] = 1, dz[0] = 1;
    routed r(3000, 64, 6);
    velo_topk_router_args a = r.args(logits.tensor(), 6);
    VELO_RUN(velo_topk_router(s.stream(), &a));
    velo_topk_router_backward_args b = VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT;
    b.logits = logits.tensor(), b.indices = r.indices.tensor(), b.counts = r.counts.tensor();
    b.dweights = dweights.tensor(), b.daux_loss = daux.tensor(), b.dz_loss = dz.tensor();
    b.dlogits = dlogits.tensor();
    VELO_RUN(velo_topk_router_backward(s.stream(), &b));
    if (weights.empty()) {
      weights = r.weights.bytes(), dlogits_bits = dlogits.bytes();
      losses[0] = r.aux[0], losses[1] = r.z[0];
    }
    CHECK(r.weights.bytes() == weights);
    CHECK(dlogits.bytes() == dlogits_bits);
    CHECK((r.aux[0] == losses[0] && r.z[0] == losses[1]));
  }
}

TEST_CASE("topk_router refuses what does not fit, by name, and writes nothing") {
  session s;
  array<float> logits({4, 8}), bias({7}), one({8});
  logits.fill(1);
  routed r(4, 8, 2);
  r.weights.fill(3);
  const velo_topk_router_args valid = r.args(logits.tensor(), 2);
  using args = velo_topk_router_args;
  check_refusals<args>(
      s, velo_topk_router, valid, r.weights,
      {{[](args& a) { a.k = 0; }, VELO_ERR_ARGUMENT, "args.k"},
       {[](args& a) { a.k = 9; }, VELO_ERR_ARGUMENT, "args.k"},
       {[](args& a) { a.num_groups = 3; }, VELO_ERR_ARGUMENT, "args.num_groups"},
       {[](args& a) { a.num_groups = 4, a.kept_groups = 5; }, VELO_ERR_ARGUMENT,
        "args.kept_groups"},
       {[](args& a) { a.num_groups = 8, a.kept_groups = 1; }, VELO_ERR_ARGUMENT, "args.k"},
       {[](args& a) { a.score_function = 2; }, VELO_ERR_ARGUMENT, "args.score_function"},
       {[](args& a) { a.capacity = -1; }, VELO_ERR_ARGUMENT, "args.capacity"},
       {[&](args& a) { a.expert_bias = bias.tensor(); }, VELO_ERR_SHAPE, "args.expert_bias.shape"},
       {[&](args& a) { a.logits = one.tensor(); }, VELO_ERR_RANK, "args.logits.ndim"}});
  array<float> dlogits({4, 8}), daux({});
  array<std::int32_t> indices({4, 2});
  indices[5] = 8;
  velo_topk_router_backward_args b = VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT;
  b.logits = logits.tensor(), b.indices = indices.tensor(), b.dlogits = dlogits.tensor();
  CHECK_REFUSED(velo_topk_router_backward(s.stream(), &b), VELO_ERR_ARGUMENT, "args.indices");
  b.daux_loss = daux.tensor();
  CHECK_REFUSED(velo_topk_router_backward(s.stream(), &b), VELO_ERR_NULL, "args.counts");
}
