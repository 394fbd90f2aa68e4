// capacity_gate and its gradient: published values, the definition in double for every kernel, the
// index form equal to the matrices, draws that no cut of the tokens changes, finite differences,
// refusals.
#include <algorithm>
#include <optional>

#include "core/simd/philox.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// Everything a call of the gate writes.
struct gated {
  array<float> weights, combine, aux, z;
  array<std::int32_t> indices, positions, slots;
  array<std::uint8_t> dispatch;
  array<std::int64_t> counts;
  std::int64_t capacity;

  gated(std::int64_t tokens, std::int64_t experts, std::int64_t k, std::int64_t places)
      : weights({tokens, k}),
        combine({tokens, experts, places}),
        aux({}),
        z({}),
        indices({tokens, k}),
        positions({tokens, k}),
        slots({experts, places}),
        dispatch({tokens, experts, places}),
        counts({experts}),
        capacity(places) {}
  velo_capacity_gate_args args(const velo_tensor* logits, std::int64_t k) {
    velo_capacity_gate_args a = VELO_CAPACITY_GATE_ARGS_INIT;
    a.logits = logits, a.k = k;
    a.weights = weights.tensor(), a.indices = indices.tensor(), a.positions = positions.tensor();
    a.slot_tokens = slots.tensor(), a.combine = combine.tensor(), a.dispatch = dispatch.tensor();
    a.counts = counts.tensor(), a.aux_loss = aux.tensor(), a.z_loss = z.tensor();
    return a;
  }
  bool intact() const {
    return weights.intact() && combine.intact() && indices.intact() && positions.intact() &&
           slots.intact() && dispatch.intact() && counts.intact();
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

// The tokens whose j-th choice was dropped.
std::vector<int> dropped(const gated& r, std::size_t k, std::size_t j) {
  std::vector<int> tokens;
  for (std::size_t f = j; f < r.indices.size(); f += k)
    if (r.indices.data()[f] < 0) tokens.push_back(static_cast<int>(f / k));
  return tokens;
}

struct gate_case {
  std::int64_t tokens, experts, k, capacity;
  bool noisy = false, drawn = false;
  std::int64_t seed = 0, offset = 0, first_token = 0;
};

std::uint32_t word(const gate_case& c, std::size_t token, std::size_t draw) {
  const std::uint64_t i = (static_cast<std::uint64_t>(c.first_token) + token) *
                              static_cast<std::uint64_t>(c.experts + 1) +
                          draw;
  const auto keys = velo::simd::philox_schedule(static_cast<std::uint64_t>(c.seed));
  return velo::simd::philox(i / 4, static_cast<std::uint64_t>(c.offset), keys).of[i % 4];
}

double gumbel(std::uint32_t drawn) {
  return -std::log(-std::log((static_cast<double>(drawn) + 0.5) / 4294967296.0));
}

// The gate by its definition, with matrices of tokens and experts, as DeepSpeed computes it.
struct gate_truth {
  std::size_t tokens, experts, k;
  std::vector<double> scores, weights;            // [T, E], [T, k]
  std::vector<std::size_t> chosen;                // [T, k]
  std::vector<std::optional<std::size_t>> place;  // [T, k]: none: dropped
  std::vector<std::int64_t> counts;
  double aux = 0, z = 0;

  template <class T>
  gate_truth(const array<T>& logits, const gate_case& c)
      : tokens(static_cast<std::size_t>(c.tokens)),
        experts(static_cast<std::size_t>(c.experts)),
        k(static_cast<std::size_t>(c.k)),
        scores(tokens * experts),
        weights(tokens * k),
        chosen(tokens * k),
        place(tokens * k),
        counts(experts) {
    for (std::size_t t = 0; t < tokens; ++t) choose(logits, c, t);
    for (std::size_t f = 0; f < tokens * k; ++f) ++counts[chosen[f]];
    for (std::size_t e = 0; e < experts; ++e) place_at(c, e);
    weigh();
    lose(logits);
  }

 private:
  template <class T>
  void choose(const array<T>& logits, const gate_case& c, std::size_t t) {
    double largest = -INFINITY, sum = 0;
    for (std::size_t e = 0; e < experts; ++e)
      largest = std::max(largest, logits.at(t * experts + e));
    for (std::size_t e = 0; e < experts; ++e) sum += std::exp(logits.at(t * experts + e) - largest);
    for (std::size_t e = 0; e < experts; ++e)
      scores[t * experts + e] = std::exp(logits.at(t * experts + e) - largest) / sum;
    for (std::size_t j = 0; j < k; ++j) {
      std::size_t best = experts;
      double most = -INFINITY;
      for (std::size_t e = 0; e < experts; ++e) {
        double x = logits.at(t * experts + e);
        if (c.noisy && j + 1 == k) x += gumbel(word(c, t, e));
        if (j > 0 && chosen[t * k] == e) continue;
        if (best == experts || x > most) best = e, most = x;
      }
      chosen[t * k + j] = best;
    }
  }

  // First choices of the expert, then second ones; of drawn tokens those of the largest draws.
  void place_at(const gate_case& c, std::size_t e) {
    std::vector<std::size_t> in_order;
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t t = 0; t < tokens; ++t)
        if (chosen[t * k + j] == e) in_order.push_back(t * k + j);
    if (c.drawn) {
      std::stable_sort(in_order.begin(), in_order.end(), [&](std::size_t a, std::size_t b) {
        return word(c, a, experts) > word(c, b, experts);
      });
    }
    in_order.resize(std::min(in_order.size(), static_cast<std::size_t>(c.capacity)));
    if (c.drawn) std::sort(in_order.begin(), in_order.end());
    for (std::size_t i = 0; i < in_order.size(); ++i) place[in_order[i]] = i;
  }

  void weigh() {
    for (std::size_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (std::size_t j = 0; j < k; ++j) {
        const std::size_t f = t * k + j;
        weights[f] = place[f] ? scores[t * experts + chosen[f]] : 0;
        sum += weights[f];
      }
      for (std::size_t j = 0; k == 2 && j < k; ++j)
        weights[t * k + j] /= std::max(sum, std::ldexp(1.0, -23));
    }
  }

  template <class T>
  void lose(const array<T>& logits) {
    const double n = static_cast<double>(std::max<std::size_t>(tokens, 1));
    for (std::size_t e = 0; e < experts; ++e) {
      double share = 0, first = 0;
      for (std::size_t t = 0; t < tokens; ++t) {
        share += scores[t * experts + e] / n;
        first += chosen[t * k] == e ? 1 / n : 0;
      }
      aux += static_cast<double>(experts) * share * first;
    }
    for (std::size_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (std::size_t e = 0; e < experts; ++e) sum += std::exp(logits.at(t * experts + e));
      z += std::log(sum) * std::log(sum) / n;
    }
  }
};

// The three forms of the result say the same.
void check_forms(const gated& r, std::size_t experts, std::size_t k) {
  const auto capacity = static_cast<std::size_t>(r.capacity);
  std::vector<float> combine(r.combine.size());
  std::vector<std::uint8_t> dispatch(r.dispatch.size());
  std::vector<std::int32_t> slots(r.slots.size(), -1);
  for (std::size_t f = 0; f < r.indices.size(); ++f) {
    const std::int32_t choice = r.indices.data()[f], position = r.positions.data()[f];
    if (choice < 0) {
      REQUIRE((position == -1 && r.weights.at(f) == 0));
      continue;
    }
    const auto slot =
        static_cast<std::size_t>(choice) * capacity + static_cast<std::size_t>(position);
    combine[f / k * experts * capacity + slot] = r.weights.data()[f];
    dispatch[f / k * experts * capacity + slot] = 1;
    slots[slot] = static_cast<std::int32_t>(f / k);
  }
  CHECK(std::equal(combine.begin(), combine.end(), r.combine.data()));
  CHECK(std::equal(dispatch.begin(), dispatch.end(), r.dispatch.data()));
  CHECK(std::equal(slots.begin(), slots.end(), r.slots.data()));
}

template <class T>
void check(session& s, const gate_case& c) {
  INFO("tokens " << c.tokens << " experts " << c.experts << " k " << c.k << " capacity "
                 << c.capacity << " bytes " << sizeof(T) << " noisy " << c.noisy << " drawn "
                 << c.drawn);
  array<T> logits({c.tokens, c.experts});
  logits.fill(1, 4);
  gated r(c.tokens, c.experts, c.k, c.capacity);
  velo_capacity_gate_args a = r.args(logits.tensor(), c.k);
  a.capacity = c.capacity, a.random_selection = c.drawn;
  a.noise = c.noisy ? VELO_GATE_NOISE_RSAMPLE : VELO_GATE_NOISE_NONE;
  a.seed = c.seed, a.offset = c.offset, a.first_token = c.first_token;
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  const gate_truth truth(logits, c);
  for (std::size_t f = 0; f < truth.chosen.size(); ++f) {
    const auto expert = static_cast<std::int32_t>(truth.chosen[f]);
    REQUIRE(r.indices[f] == (truth.place[f] ? expert : -1 - expert));
    REQUIRE(r.positions[f] == (truth.place[f] ? static_cast<std::int32_t>(*truth.place[f]) : -1));
  }
  require_close(r.weights, truth.weights, 3e-6, 1e-9);
  for (std::size_t e = 0; e < truth.experts; ++e) CHECK(r.counts[e] == truth.counts[e]);
  CHECK(r.aux.at(0) == Approx(truth.aux).epsilon(3e-6));
  CHECK(r.z.at(0) == Approx(truth.z).epsilon(3e-6));
  check_forms(r, truth.experts, truth.k);
  CHECK(r.intact());
}

template <class T>
void check_all(session& s) {
  for (const std::int64_t k : {1, 2}) {
    check<T>(s, {100, 8, k, 13});
    check<T>(s, {70, 17, k, 70});
    check<T>(s, {3000, 5, k, 300});
    check<T>(s, {40, 200, k, 1});
    check<T>(s, {0, 8, k, 4});
    check<T>(s, {100, 8, k, 13, true, false, 7, 3});
    check<T>(s, {90, 19, k, 9, true, false, -1, 0, 12345});
  }
  check<T>(s, {5, 1, 1, 3});
  check<T>(s, {100, 8, 1, 9, false, true, 7, 3});
  check<T>(s, {2000, 3, 1, 400, true, true, 11, -5, 999});
}

// The objective whose gradient is checked: by weights or by the matrix, and both losses.
void check_gradient(std::int64_t k, std::int64_t capacity, bool by_matrix) {
  INFO("k " << k << " capacity " << capacity << " by matrix " << by_matrix);
  session s;
  array<float> logits({9, 6}), dlogits({9, 6}), dweights({9, k}), daux({}), dz({});
  array<float> dcombine({9, 6, capacity});
  logits.fill(11, 0.1), dweights.fill(12), dcombine.fill(13);
  for (std::size_t i = 0; i < logits.size(); ++i)  // no small step changes a choice
    logits[i] += 0.5f * static_cast<float>((i % 6 * 5 + i / 6) % 6);
  daux[0] = 0.7f, dz[0] = 0.3f;
  gated r(9, 6, k, capacity);
  velo_capacity_gate_args a = r.args(logits.tensor(), k);
  a.capacity = capacity;
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  velo_capacity_gate_backward_args b = VELO_CAPACITY_GATE_BACKWARD_ARGS_INIT;
  b.logits = logits.tensor(), b.indices = r.indices.tensor(), b.dlogits = dlogits.tensor();
  b.daux_loss = daux.tensor(), b.dz_loss = dz.tensor();
  if (by_matrix) {
    b.dcombine = dcombine.tensor(), b.positions = r.positions.tensor();
  } else {
    b.dweights = dweights.tensor();
  }
  VELO_RUN(velo_capacity_gate_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_capacity_gate(s.stream(), &a));
    double sum = 0.7 * r.aux.at(0) + 0.3 * r.z.at(0);
    for (std::size_t i = 0; !by_matrix && i < r.weights.size(); ++i)
      sum += r.weights.at(i) * dweights.at(i);
    for (std::size_t i = 0; by_matrix && i < r.combine.size(); ++i)
      sum += r.combine.at(i) * dcombine.at(i);
    return sum;
  };
  check_slope(logits, dlogits, objective);
}

// Whether experts have `wanted` places by the rule.
bool has_places(session& s, const gate_case& c, double factor, std::int64_t wanted) {
  array<float> logits({c.tokens, c.experts}), weights({c.tokens, c.k});
  logits.fill(1);
  array<std::int32_t> indices({c.tokens, c.k}), positions({c.tokens, c.k});
  array<std::int32_t> slots({c.experts, wanted}), more({c.experts, wanted + 1});
  velo_capacity_gate_args a = VELO_CAPACITY_GATE_ARGS_INIT;
  a.logits = logits.tensor(), a.k = c.k, a.capacity_factor = factor;
  a.weights = weights.tensor(), a.indices = indices.tensor(), a.positions = positions.tensor();
  a.slot_tokens = more.tensor();
  if (velo_capacity_gate(s.stream(), &a) != VELO_ERR_SHAPE) return false;
  a.slot_tokens = slots.tensor();
  return velo_capacity_gate(s.stream(), &a) == VELO_OK;
}

}  // namespace

TEST_CASE("capacity_gate agrees with its definition for every kernel, rule and dtype") {
  for_each_kernel("capacity_gate", [](session& s) {
    check_all<float>(s);
    check_all<bf16>(s);
    check_all<f16>(s);
  });
}

TEST_CASE("capacity_gate gives DeepSpeed's choices, drops, weights and losses") {
  session s;
  array<float> logits({16, 4});
  fill_gate(logits);
  gated one(16, 4, 1, 4), two(16, 4, 2, 8);
  velo_capacity_gate_args a = one.args(logits.tensor(), 1);
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  const std::int64_t counts[] = {3, 8, 3, 2};
  for (std::size_t e = 0; e < 4; ++e) CHECK(one.counts[e] == counts[e]);
  CHECK(one.aux.at(0) == Approx(1.157359918).epsilon(1e-6));
  CHECK(dropped(one, 1, 0) == std::vector<int>{7, 8, 11, 14});
  a = two.args(logits.tensor(), 2);
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  CHECK(dropped(two, 2, 0).empty());
  CHECK(dropped(two, 2, 1) == std::vector<int>{9, 13});
  CHECK(two.aux.at(0) == Approx(1.157359918).epsilon(1e-6));
  CHECK(two.z.at(0) == Approx(5.993355846).epsilon(1e-6));
  CHECK(two.weights.at(0) == Approx(0.756674090).epsilon(1e-6));
  CHECK((two.weights.at(18) == 1 && two.weights.at(19) == 0));
}

TEST_CASE("capacity_gate has the places that DeepSpeed and MindSpeed compute") {
  session s;
  CHECK(has_places(s, {1024, 8, 1, 0}, 1.25, 160));
  CHECK(has_places(s, {1024, 8, 2, 0}, 1, 256));
  CHECK(has_places(s, {2, 8, 1, 0}, 1, 2));
  CHECK(has_places(s, {64, 64, 1, 0}, 1, 4));
  CHECK(has_places(s, {40, 4, 1, 0}, 1.1, 11));  // 12 where the product is in double
  CHECK(has_places(s, {40, 4, 2, 0}, 100, 40));
}

TEST_CASE("ranks that have some tokens draw what one rank with all would") {
  session s;
  array<float> all({60, 7});
  all.fill(3, 2);
  gated whole(60, 7, 2, 60);
  velo_capacity_gate_args a = whole.args(all.tensor(), 2);
  a.capacity = 60, a.noise = VELO_GATE_NOISE_RSAMPLE, a.seed = 5;
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  for (const std::int64_t first : {0, 13, 37}) {
    const std::int64_t tokens = first == 0 ? 13 : first == 13 ? 24 : 23;
    array<float> part({tokens, 7});
    std::copy_n(all.data() + first * 7, tokens * 7, part.data());
    gated r(tokens, 7, 2, 60);
    velo_capacity_gate_args b = r.args(part.tensor(), 2);
    b.capacity = 60, b.noise = VELO_GATE_NOISE_RSAMPLE, b.seed = 5, b.first_token = first;
    VELO_RUN(velo_capacity_gate(s.stream(), &b));
    CHECK(std::equal(r.indices.data(), r.indices.data() + r.indices.size(),
                     whole.indices.data() + first * 2));
  }
}

TEST_CASE("equal logits go to the lower expert, and NaN comes last") {
  session s;
  array<float> logits({3, 4});
  const float values[] = {1, 2, 2, 2, NAN, NAN, NAN, NAN, NAN, 3, -INFINITY, 1};
  std::copy(values, values + 12, logits.data());
  gated r(3, 4, 2, 3);
  velo_capacity_gate_args a = r.args(logits.tensor(), 2);
  a.capacity = 3;
  const int wanted[] = {1, 2, 0, 1, 1, 3};
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  for (std::size_t f = 0; f < 6; ++f) CHECK(r.indices[f] == wanted[f]);
  a.noise = VELO_GATE_NOISE_RSAMPLE;
  VELO_RUN(velo_capacity_gate(s.stream(), &a));
  for (std::size_t f = 0; f < 6; f += 2) CHECK(r.indices[f] != r.indices[f + 1]);
}

TEST_CASE("capacity_gate_backward is the slope of capacity_gate") {
  for (const bool by_matrix : {false, true}) {
    for (const std::int64_t k : {1, 2}) {
      check_gradient(k, 9, by_matrix);
      check_gradient(k, 2, by_matrix);
      check_gradient(k, 1, by_matrix);
    }
  }
}

TEST_CASE("capacity_gate gives the same bits for any number of threads") {
  std::vector<unsigned char> weights, dlogits_bits;
  float losses[2] = {};
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<bf16> logits({3000, 16}), dlogits({3000, 16});
    array<float> dweights({3000, 2}), daux({}), dz({});
    logits.fill(1, 3), dweights.fill(2), daux[0] = 1, dz[0] = 1;
    gated r(3000, 16, 2, 375);
    velo_capacity_gate_args a = r.args(logits.tensor(), 2);
    a.noise = VELO_GATE_NOISE_RSAMPLE;
    VELO_RUN(velo_capacity_gate(s.stream(), &a));
    velo_capacity_gate_backward_args b = VELO_CAPACITY_GATE_BACKWARD_ARGS_INIT;
    b.logits = logits.tensor(), b.indices = r.indices.tensor(), b.dweights = dweights.tensor();
    b.daux_loss = daux.tensor(), b.dz_loss = dz.tensor(), b.dlogits = dlogits.tensor();
    VELO_RUN(velo_capacity_gate_backward(s.stream(), &b));
    if (weights.empty()) {
      weights = r.weights.bytes(), dlogits_bits = dlogits.bytes();
      losses[0] = r.aux[0], losses[1] = r.z[0];
    }
    CHECK(r.weights.bytes() == weights);
    CHECK(dlogits.bytes() == dlogits_bits);
    CHECK((r.aux[0] == losses[0] && r.z[0] == losses[1]));
  }
}

TEST_CASE("capacity_gate refuses what does not fit, by name, and writes nothing") {
  session s;
  array<float> logits({4, 8}), one({8});
  logits.fill(1);
  gated r(4, 8, 2, 4);
  r.weights.fill(3);
  const velo_capacity_gate_args valid = r.args(logits.tensor(), 2);
  using args = velo_capacity_gate_args;
  check_refusals<args>(
      s, velo_capacity_gate, valid, r.weights,
      {{[](args& a) { a.k = 0; }, VELO_ERR_ARGUMENT, "args.k"},
       {[](args& a) { a.k = 3; }, VELO_ERR_ARGUMENT, "args.k"},
       {[](args& a) { a.capacity = -1; }, VELO_ERR_ARGUMENT, "args.capacity"},
       {[](args& a) { a.capacity_factor = 0; }, VELO_ERR_ARGUMENT, "args.capacity_factor"},
       {[](args& a) { a.capacity_factor = -1; }, VELO_ERR_ARGUMENT, "args.capacity_factor"},
       {[](args& a) { a.capacity_factor = NAN; }, VELO_ERR_ARGUMENT, "args.capacity_factor"},
       {[](args& a) { a.min_capacity = 0; }, VELO_ERR_ARGUMENT, "args.min_capacity"},
       {[](args& a) { a.noise = 2; }, VELO_ERR_ARGUMENT, "args.noise"},
       {[](args& a) { a.random_selection = 1; }, VELO_ERR_ARGUMENT, "args.random_selection"},
       {[](args& a) { a.first_token = -1; }, VELO_ERR_ARGUMENT, "args.first_token"},
       {[](args& a) { a.capacity = 3; }, VELO_ERR_SHAPE, "args.slot_tokens.shape"},
       {[&](args& a) { a.logits = one.tensor(); }, VELO_ERR_RANK, "args.logits.ndim"}});
  array<float> single({4, 1}), dlogits({4, 8}), dcombine({4, 8, 4});
  velo_capacity_gate_args few = valid;
  few.logits = single.tensor();
  CHECK_REFUSED(velo_capacity_gate(s.stream(), &few), VELO_ERR_ARGUMENT, "args.k");
  array<std::int32_t> indices({4, 2}), positions({4, 2}), three({4, 3});
  velo_capacity_gate_backward_args b = VELO_CAPACITY_GATE_BACKWARD_ARGS_INIT;
  b.logits = logits.tensor(), b.indices = indices.tensor(), b.dlogits = dlogits.tensor();
  std::fill_n(indices.data(), 8, 1), std::fill_n(positions.data(), 8, 1);
  indices[5] = 8;
  CHECK_REFUSED(velo_capacity_gate_backward(s.stream(), &b), VELO_ERR_ARGUMENT, "args.indices");
  indices[5] = 7;
  b.dcombine = dcombine.tensor();
  CHECK_REFUSED(velo_capacity_gate_backward(s.stream(), &b), VELO_ERR_NULL, "args.positions");
  b.positions = positions.tensor();
  positions[5] = 4;
  CHECK_REFUSED(velo_capacity_gate_backward(s.stream(), &b), VELO_ERR_ARGUMENT, "args.positions");
  b.indices = three.tensor();
  CHECK_REFUSED(velo_capacity_gate_backward(s.stream(), &b), VELO_ERR_SHAPE, "args.indices.shape");
}
