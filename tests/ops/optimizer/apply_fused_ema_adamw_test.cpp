// apply_fused_ema_adamw against the update in double: every kernel, both modes, with and without
// bias correction, several steps; MindSpeed's case; refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;

namespace {

struct state {
  array<float> grad, param, m, v, s;
  velo_apply_fused_ema_adamw_args a = VELO_APPLY_FUSED_EMA_ADAMW_ARGS_INIT;

  explicit state(std::int64_t n) : grad({n}), param({n}), m({n}), v({n}), s({n}) {
    grad.fill(5), param.fill(1), m.fill(2, 0.1), v.fill(3, 0.01), s.fill(4);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::abs(v[i]);
    a.grad = grad.tensor(), a.param = param.tensor(), a.m = m.tensor(), a.v = v.tensor();
    a.ema = s.tensor();
  }
};

struct element {
  double p, m, v, s;
};

element updated(const velo_apply_fused_ema_adamw_args& a, double grad, element e) {
  const double step = static_cast<double>(a.step);
  const double g = a.mode == 0 ? grad + a.weight_decay * e.p : grad;
  e.m = a.beta1 * e.m + (1 - a.beta1) * g;
  e.v = a.beta2 * e.v + (1 - a.beta2) * g * g;
  const double m = a.bias_correction != 0 ? e.m / (1 - std::pow(a.beta1, step)) : e.m;
  const double v = a.bias_correction != 0 ? e.v / (1 - std::pow(a.beta2, step)) : e.v;
  const double decay = a.mode == 1 ? a.weight_decay * e.p : 0;
  e.p -= a.lr * (m / (std::sqrt(v) + a.epsilon) + decay);
  e.s = a.ema_decay * e.s + (1 - a.ema_decay) * e.p;
  return e;
}

void check(session& session, std::int64_t n, std::int64_t mode, std::int64_t corrects) {
  INFO("n " << n << ", mode " << mode << ", bias_correction " << corrects);
  state t(n);
  t.a.mode = mode, t.a.bias_correction = corrects, t.a.weight_decay = 0.1, t.a.lr = 0.01;
  t.a.ema_decay = 0.9;
  for (t.a.step = 1; t.a.step <= 3; ++t.a.step) {
    const std::size_t count = t.param.size();
    std::vector<double> p(count), m(count), v(count), s(count);
    for (std::size_t i = 0; i < count; ++i) {
      const element e =
          updated(t.a, t.grad.at(i), {t.param.at(i), t.m.at(i), t.v.at(i), t.s.at(i)});
      p[i] = e.p, m[i] = e.m, v[i] = e.v, s[i] = e.s;
    }
    VELO_RUN(velo_apply_fused_ema_adamw(session.stream(), &t.a));
    require_close(t.param, p, 1e-6, 1e-6);
    require_close(t.m, m, 1e-6, 1e-7);
    require_close(t.v, v, 1e-6, 1e-9);
    require_close(t.s, s, 1e-6, 1e-6);
  }
}

}  // namespace

TEST_CASE("apply_fused_ema_adamw agrees with its formula for every kernel, mode and size") {
  for_each_kernel("apply_fused_ema_adamw", [](session& s) {
    for (const std::int64_t mode : {0, 1})
      for (const std::int64_t corrects : {0, 1})
        for (const std::int64_t n : {0, 1, 15, 33, 40000}) check(s, n, mode, corrects);
  });
}

TEST_CASE("apply_fused_ema_adamw gives MindSpeed's case within its criteria") {
  session s;
  state t(100);
  t.a.step = 10, t.a.beta1 = t.a.beta2 = 0.9999;
  const element want = updated(t.a, 0.5, {0.5, 0.9, 0.9, 0.9});
  for (std::size_t i = 0; i < 100; ++i) {
    t.grad[i] = t.param[i] = 0.5f;
    t.m[i] = t.v[i] = t.s[i] = 0.9f;
  }
  VELO_RUN(velo_apply_fused_ema_adamw(s.stream(), &t.a));
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(std::abs(t.param.at(i) - want.p) <= 0x1p-14);
    CHECK(std::abs(t.m.at(i) - want.m) <= 0x1p-14);
    CHECK(std::abs(t.v.at(i) - want.v) <= 0x1p-14);
    CHECK(std::abs(t.s.at(i) - want.s) <= 0x1p-14);
  }
}

TEST_CASE("apply_fused_ema_adamw refuses what does not fit, by name") {
  session s;
  state t(4);
  array<float> longer({5});
  array<bf16> half({4});
  array<std::int64_t> step({});
  step[0] = 0;
  using args = velo_apply_fused_ema_adamw_args;
  check_refusals(
      s, velo_apply_fused_ema_adamw, t.a, t.param,
      {{[&](args& a) { a.grad = nullptr; }, VELO_ERR_NULL, "args.grad"},
       {[&](args& a) { a.grad = longer.tensor(); }, VELO_ERR_SHAPE, "args.grad.shape"},
       {[&](args& a) { a.m = half.tensor(); }, VELO_ERR_DTYPE, "args.m.dtype"},
       {[&](args& a) { a.ema = longer.tensor(); }, VELO_ERR_SHAPE, "args.ema.shape"},
       {[&](args& a) { a.mode = 2; }, VELO_ERR_ARGUMENT, "args.mode"},
       {[&](args& a) { a.step = 0; }, VELO_ERR_ARGUMENT, "args.step"},
       {[&](args& a) { a.beta2 = 1; }, VELO_ERR_ARGUMENT, "args.beta2"},
       {[&](args& a) { a.ema_decay = 1.5; }, VELO_ERR_ARGUMENT, "args.ema_decay"},
       {[&](args& a) { a.step_tensor = step.tensor(); }, VELO_ERR_ARGUMENT, "args.step_tensor"}});
}
