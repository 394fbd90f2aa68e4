// Check mode where terms cancel throughout an output, so that its largest magnitude does not show
// that of the terms: right kernels agree, and the terms' magnitude is what it should be.
#include "ops/call/call.hpp"
#include "ops/replay/call_copy.hpp"
#include "ops/replay/divergence.hpp"
#include "ops/replay/term_magnitudes.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo;
using namespace velo::testing;
using velo::simd::bf16;

namespace {

constexpr const char* check_all = R"({"check.mode": "all"})";

// How many calls of an operator got the verdict that they agree; the first that does not is
// reported.
std::int64_t agreed(const session& s, const char* op) {
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  REQUIRE(velo_op_get_counts(s.context(), op, &counts) == VELO_OK);
  CHECK(counts.calls_not_judged == 0);
  return counts.calls_checked;
}

// Makes every second number the negative of the one before.
template <class T>
void alternate(array<T>& x) {
  for (std::size_t i = 1; i < x.size(); i += 2)
    simd::assign(x[i], -value_of(x[i - 1]) * (1 + 1e-7 * static_cast<double>(i)));
}

template <class T>
void check_update(session& s) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    array<float> param({1}), m({1}), v({1});
    array<T> grad({1});
    param.fill(seed), m.fill(seed + 100), v.fill(seed + 200), grad.fill(seed + 300);
    v[0] = std::abs(v[0]);
    velo_apply_fused_adamw_args args = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
    args.grad = grad.tensor(), args.param = param.tensor();
    args.m = m.tensor(), args.v = v.tensor();
    args.beta1 = 0.5, args.beta2 = 0.5, args.step = 3;
    // Both the parameter and its first moment become nearly 0.
    m[0] = static_cast<float>(-grad.at(0) * (1 + 3e-7));
    const double moment = 0.5 * m.at(0) + 0.5 * grad.at(0);
    const double second = 0.5 * v.at(0) + 0.5 * grad.at(0) * grad.at(0);
    const double update = moment / 0.875 / (std::sqrt(second) / std::sqrt(0.875) + 1e-8);
    args.lr = 0.75 * param.at(0) / (update == 0 ? 1 : update);
    args.weight_decay = 0.25 / args.lr;
    const float before[] = {param[0], m[0], v[0]};
    VELO_RUN(velo_apply_fused_adamw(s.stream(), &args));
    param[0] = before[0], m[0] = before[1], v[0] = before[2];
    const velo_tensors grads{args.grad, 1}, params{args.param, 1}, ms{args.m, 1}, vs{args.v, 1};
    velo_multi_tensor_adamw_args list = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;
    list.grad = &grads, list.param = &params, list.m = &ms, list.v = &vs;
    list.beta1 = args.beta1, list.beta2 = args.beta2, list.step = args.step;
    list.lr = args.lr, list.weight_decay = args.weight_decay;
    VELO_RUN(velo_multi_tensor_adamw(s.stream(), &list));
  }
}

}  // namespace

TEST_CASE("an update that cancels a parameter of one element agrees") {
  session s(1, check_all);
  check_update<float>(s);
  check_update<bf16>(s);
  CHECK(agreed(s, "apply_fused_adamw") == 120);
  CHECK(agreed(s, "multi_tensor_adamw") == 120);
}

TEST_CASE("losses that cancel by the signs of their class weights agree") {
  session s(1, check_all);
  constexpr std::int64_t tokens = 16, classes = 33;
  array<float> logits({tokens, classes}), weights({classes}), loss({}), lse({tokens});
  array<std::int64_t> targets({tokens});
  weights.fill(1);
  alternate(weights);
  for (const std::int64_t reduction : {VELO_REDUCTION_SUM, VELO_REDUCTION_MEAN}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      logits.fill(seed, 8);
      for (std::size_t t = 0; t < tokens; ++t) {
        targets[t] = static_cast<std::int64_t>(t);
        // Pairs of equal losses, of rows whose classes are in different orders.
        const auto row = t * classes;
        for (std::size_t c = 0; c < classes && t % 2 == 1; ++c)
          logits[row + (c + 1) % classes] = logits[row - classes + c];
      }
      velo_cross_entropy_args args = VELO_CROSS_ENTROPY_ARGS_INIT;
      args.logits = logits.tensor(), args.targets = targets.tensor();
      args.class_weights = weights.tensor(), args.reduction = reduction;
      args.loss = loss.tensor(), args.lse = lse.tensor();
      VELO_RUN(velo_cross_entropy(s.stream(), &args));
    }
  }
  CHECK(agreed(s, "cross_entropy") == 80);
}

TEST_CASE("losses far below their logits agree") {
  session s(1, check_all);
  constexpr std::int64_t classes = 33;
  array<float> logits({1, classes}), loss({}), lse({1});
  array<std::int64_t> targets({1});
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    logits.fill(seed, 30);
    targets[0] = static_cast<std::int64_t>(seed % classes);
    logits[seed % classes] = 36;
    velo_cross_entropy_args args = VELO_CROSS_ENTROPY_ARGS_INIT;
    args.logits = logits.tensor(), args.targets = targets.tensor();
    args.loss = loss.tensor(), args.lse = lse.tensor();
    VELO_RUN(velo_cross_entropy(s.stream(), &args));
  }
  CHECK(agreed(s, "cross_entropy") == 40);
}

TEST_CASE("sums of many small losses, and means by small weights, agree") {
  session s(1, check_all);
  constexpr std::int64_t tokens = 64, classes = 33;
  array<float> logits({tokens, classes}), weights({classes}), loss({}), lse({tokens});
  array<std::int64_t> targets({tokens});
  for (std::size_t v = 0; v < classes; ++v) weights[v] = 0.01f;
  for (int draw = 0; draw < 40; ++draw) {
    for (std::size_t t = 0; t < tokens; ++t) {  // all tokens alike, whose errors add up
      for (std::size_t v = 0; v < classes; ++v)
        logits[t * classes + v] =
            20 + 0.01f * static_cast<float>(draw) + 0.1f * static_cast<float>(v % 3);
      targets[t] = draw % classes;
      logits[t * classes + static_cast<std::size_t>(draw % classes)] = 36;
    }
    velo_cross_entropy_args args = VELO_CROSS_ENTROPY_ARGS_INIT;
    args.logits = logits.tensor(), args.targets = targets.tensor();
    args.loss = loss.tensor(), args.lse = lse.tensor(), args.reduction = VELO_REDUCTION_SUM;
    VELO_RUN(velo_cross_entropy(s.stream(), &args));
    args.reduction = VELO_REDUCTION_MEAN, args.class_weights = weights.tensor();
    VELO_RUN(velo_cross_entropy(s.stream(), &args));
  }
  CHECK(agreed(s, "cross_entropy") == 80);
}

TEST_CASE("the gradient of a router's only choice, which is 0, agrees") {
  session s(1, check_all);
  constexpr std::int64_t tokens = 30, experts = 7;
  array<float> logits({tokens, experts}), dweights({tokens, 1}), dlogits({tokens, experts});
  array<std::int32_t> indices({tokens, 1});
  logits.fill(1, 4), dweights.fill(2);
  for (std::size_t t = 0; t < tokens; ++t) indices[t] = static_cast<std::int32_t>(t % experts);
  velo_topk_router_backward_args args = VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT;
  args.logits = logits.tensor(), args.indices = indices.tensor();
  args.dweights = dweights.tensor(), args.dlogits = dlogits.tensor(), args.scale = 2.5;
  VELO_RUN(velo_topk_router_backward(s.stream(), &args));
  CHECK(agreed(s, "topk_router_backward") == 1);
}

TEST_CASE("gradients of one element whose terms cancel agree") {
  session s(1, check_all);
  constexpr std::int64_t size = 300;
  for (const bool turned : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      // dc of one column for db and dbias, of one row for da.
      array<float> dc({turned ? 1 : size, turned ? size : 1}), a({turned ? 1 : size, 1});
      array<float> b({1, turned ? size : 1}), da({turned ? 1 : size, 1});
      array<float> db({1, turned ? size : 1}), dbias({turned ? size : 1});
      dc.fill(seed), alternate(dc), a.fill(seed + 100), b.fill(seed + 200);
      for (std::size_t i = 1; i < size; i += 2) turned ? b[i] = b[i - 1] : a[i] = a[i - 1];
      velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
      args.dc = dc.tensor(), args.a = a.tensor(), args.b = b.tensor();
      args.da = da.tensor(), args.db = db.tensor(), args.dbias = dbias.tensor();
      VELO_RUN(velo_matmul_backward(s.stream(), &args));
    }
  }
  CHECK(agreed(s, "matmul_backward") == 60);
}

// Numbers of int8 times their scale exceed the magnitudes for which the bound holds without the
// share of the scores.
TEST_CASE("attention over an int8 cache of large scores agrees") {
  session s(1, check_all);
  constexpr std::int64_t heads = 32, d = 64, half = d / 2;
  array<float> query({1, 1, heads, d}), out({1, 1, heads, d});
  array<std::int8_t> key({1, 2, heads, d}), value({1, 2, heads, d});
  array<float> key_scale({1, 2, heads}), value_scale({1, 2, heads});
  query.fill(1, 4);
  for (std::size_t i = 0; i < heads; ++i) {
    key_scale[i] = key_scale[heads + i] = 3.9f;
    value_scale[i] = value_scale[heads + i] = 0.01f;
    for (std::size_t j = 0; j < half; ++j) {  // the second key: the first in another order
      const std::size_t at = i * d + j, next = heads * d + at;
      query[at + half] = query[at];
      key[at] = static_cast<std::int8_t>(j * 37 + i * 11);
      key[at + half] = static_cast<std::int8_t>(j * 53 + i * 7 + 3);
      key[next] = key[at + half], key[next + half] = key[at];
      value[at] = value[at + half] = 100, value[next] = value[next + half] = -100;
    }
  }
  velo_cached_attention_args args = VELO_CACHED_ATTENTION_ARGS_INIT;
  args.query = query.tensor(), args.key = key.tensor(), args.value = value.tensor();
  args.key_scale = key_scale.tensor(), args.value_scale = value_scale.tensor();
  args.attention_out = out.tensor();
  VELO_RUN(velo_cached_attention(s.stream(), &args));
  CHECK(agreed(s, "cached_attention") == 1);
}

TEST_CASE("the magnitude of cancelling terms is measured, and what exceeds it still diverges") {
  session plain(1, R"({"level": 0})");
  constexpr std::size_t rows = 400;
  array<float> dc({rows, 1}), dbias({1});
  dc.fill(7), alternate(dc);
  double squares = 0;
  for (std::size_t i = 0; i < rows; ++i) squares += dc.at(i) * dc.at(i);
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.dbias = dbias.tensor();
  ops::op_id op{};
  REQUIRE(ops::find_op("matmul_backward", op));
  const ops::op_spec& spec = ops::spec_of(op);
  core::arena memory(core::resolve<core::stream>(plain.stream(), "stream").owner().memory());
  const ops::call_copy before(spec, &args, memory), reference(spec, &args, memory);
  const auto run = [&](const void* of) { VELO_RUN(ops::call(op, plain.stream(), of)); };
  run(reference.args());
  ops::term_magnitudes terms(spec, before.args(), reference.args());
  for (int draw = 0; draw < ops::term_magnitudes::draws; ++draw) {
    const ops::call_copy changed(spec, before.args(), memory, ops::call_copy::holding::all);
    terms.change(changed.args(), draw);
    run(changed.args());
    terms.add(changed.args());
  }
  const double size = *terms.all(0);
  CHECK(size > 0.4 * std::sqrt(squares));
  CHECK(size < 2 * std::sqrt(squares));

  const auto diverges = [&](double error) {
    run(&args);
    dbias[0] = static_cast<float>(dbias.at(0) + error);
    return bool(ops::first_divergence(spec, &args, reference.args(), &size));
  };
  CHECK_FALSE(diverges(3e-6 * size));
  CHECK(diverges(6e-6 * size));
}
