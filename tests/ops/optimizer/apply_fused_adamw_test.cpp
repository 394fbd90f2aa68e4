// apply_fused_adamw against the update in double: every kernel, dtype mix, option, several steps,
// step and rate from tensors, refusals.
#include <functional>

#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct options {
  bool master = false, amsgrad = false, maximize = false, scaled = false;
  double weight_decay = 0;
  std::int64_t steps = 3;
};

template <class Grad, class Param, class Moment>
velo_apply_fused_adamw_args args_of(array<Grad>& grad, array<Param>& param, array<Moment>& m,
                                    array<Moment>& v) {
  velo_apply_fused_adamw_args a = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
  a.grad = grad.tensor(), a.param = param.tensor(), a.m = m.tensor(), a.v = v.tensor();
  return a;
}

template <class Param, class Grad, class Moment>
void check(session& s, std::int64_t n, options o) {
  INFO("n " << n << ", bytes " << sizeof(Param) << sizeof(Grad) << sizeof(Moment) << ", master "
            << o.master << ", amsgrad " << o.amsgrad);
  array<Param> param({n});
  array<Grad> grad({n});
  array<Moment> m({n}), v({n}), v_max({n});
  array<float> master({n}), scale({});
  param.fill(1), m.fill(2, 0.1), v.fill(3, 0.01), v_max.fill(4, 0.02), master.fill(5);
  for (std::size_t i = 0; i < v.size(); ++i) {
    velo::simd::assign(v[i], std::abs(v.at(i)));
    velo::simd::assign(v_max[i], std::abs(v_max.at(i)));
  }
  scale[0] = 0.25f;
  velo_apply_fused_adamw_args a = args_of(grad, param, m, v);
  a.master = o.master ? master.tensor() : nullptr, a.scale = o.scaled ? scale.tensor() : nullptr;
  a.v_max = o.amsgrad ? v_max.tensor() : nullptr, a.amsgrad = o.amsgrad, a.maximize = o.maximize;
  a.weight_decay = o.weight_decay, a.lr = 0.01, a.beta1 = 0.9, a.beta2 = 0.99;
  for (a.step = 1; a.step <= o.steps; ++a.step) {
    grad.fill(static_cast<std::uint64_t>(10 + a.step));
    std::vector<double> want_p(param.size()), want_m(want_p), want_v(want_p);
    for (std::size_t i = 0; i < want_p.size(); ++i) {
      const double g = grad.at(i) * (o.scaled ? 0.25 : 1) * (o.maximize ? -1 : 1);
      want_m[i] = 0.9 * m.at(i) + 0.1 * g;
      want_v[i] = 0.99 * v.at(i) + 0.01 * g * g;
      const double h = o.amsgrad ? std::max(v_max.at(i), want_v[i]) : want_v[i];
      const double t = static_cast<double>(a.step);
      const double p = (o.master ? master.at(i) : param.at(i)) * (1 - 0.01 * o.weight_decay);
      const double denominator = std::sqrt(h) / std::sqrt(1 - std::pow(0.99, t)) + 1e-8;
      want_p[i] = p - 0.01 / (1 - std::pow(0.9, t)) * want_m[i] / denominator;
    }
    VELO_RUN(velo_apply_fused_adamw(s.stream(), &a));
    require_close(m, want_m, rounding<Moment>(), 1e-7);
    require_close(v, want_v, rounding<Moment>(), 1e-9);
    if (o.master) require_close(master, want_p, 1e-6, 1e-6);
    require_close(param, want_p, rounding<Param>(), 1e-6);
  }
}

// v_max has an element type of its own: the same steps with it in float32 and in T, from values
// that both hold.
template <class Param, class Largest>
void check_largest(session& s) {
  array<Param> grad({35}), param({35}), other({35}), m({35}), v({35}), n({35}), w({35});
  array<float> wide({35});
  array<Largest> v_max({35});
  grad.fill(1), param.fill(2), other.fill(2);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    velo::simd::assign(v_max[i], i % 2 == 0 ? 2.0 : 0.0);
    wide[i] = static_cast<float>(v_max.at(i));
    for (Param* p : {&m[i], &v[i], &n[i], &w[i]}) velo::simd::assign(*p, 0.0);
  }
  velo_apply_fused_adamw_args a = args_of(grad, param, m, v), b = args_of(grad, other, n, w);
  a.amsgrad = b.amsgrad = 1, a.v_max = v_max.tensor(), b.v_max = wide.tensor();
  VELO_RUN(velo_apply_fused_adamw(s.stream(), &a));
  VELO_RUN(velo_apply_fused_adamw(s.stream(), &b));
  CHECK((param.bytes() == other.bytes()));
  for (std::size_t i = 0; i < wide.size(); ++i)
    CHECK(v_max.at(i) == Approx(wide.at(i)).epsilon(rounding<Largest>()).margin(1e-7));
}
template <class Param>
void check_every_largest(session& s) {
  check_largest<Param, float>(s), check_largest<Param, bf16>(s), check_largest<Param, f16>(s);
}

// Every element type of gradients and moments.
template <class Param, class Grad>
void check_moments(session& s) {
  for (const bool amsgrad : {false, true}) {
    check<Param, Grad, float>(s, 35, {amsgrad, false, false, amsgrad, 0.1, 2});
    check<Param, Grad, bf16>(s, 35, {amsgrad, false, false, amsgrad, 0.1, 2});
    check<Param, Grad, f16>(s, 35, {amsgrad, false, false, amsgrad, 0.1, 2});
  }
}
template <class Param>
void check_grads(session& s) {
  check_moments<Param, float>(s), check_moments<Param, bf16>(s), check_moments<Param, f16>(s);
}

}  // namespace

TEST_CASE("apply_fused_adamw follows the formula for every kernel, dtype mix and option") {
  for_each_kernel("apply_fused_adamw", [](session& s) {
    for (const std::int64_t n : {0, 1, 15, 16, 35, 1000, 40000}) {
      check<float, float, float>(s, n, {});
      check<bf16, bf16, float>(s, n, {true, false, false, true, 0.1, 3});
    }
    check<float, bf16, float>(s, 100, {false, true, false, false, 0.1, 3});
    check<float, float, bf16>(s, 100, {false, false, true, true, 0, 2});
    check<float, bf16, bf16>(s, 100, {});
    check<bf16, float, float>(s, 100, {true, true, true, true, 0.1, 3});
    check<bf16, float, bf16>(s, 100, {true, false, false, false, 0, 2});
    check<bf16, bf16, bf16>(s, 100, {false, true, false, false, 0, 1});
    check<f16, f16, float>(s, 1000, {true, false, false, true, 0.1, 3});
    check_grads<float>(s), check_grads<bf16>(s), check_grads<f16>(s);
  });
}

TEST_CASE("apply_fused_adamw takes the step that a second moment in float32 leaves it") {
  for_each_kernel("apply_fused_adamw", [](session& s) {
    array<float> p({3}), g({3}), m({3}), v({3});
    for (std::size_t i = 0; i < 3; ++i) p[i] = 1, m[i] = v[i] = 0;
    g[0] = 3e38f, g[1] = 5e20f, g[2] = 1e-25f;
    velo_apply_fused_adamw_args a = args_of(g, p, m, v);
    a.lr = 0.125, a.epsilon = 0;
    VELO_RUN(velo_apply_fused_adamw(s.stream(), &a));
    CHECK(v.at(0) == HUGE_VAL);
    CHECK(p.at(0) == 1);
    CHECK(v.at(1) == Approx(2.5e38));  // g^2 alone is infinite
    CHECK(p.at(1) == Approx(0.875));
    CHECK(v.at(2) == 0);
    CHECK(p.at(2) == -HUGE_VAL);
  });
}

TEST_CASE("apply_fused_adamw's largest moments have any element type for every kernel") {
  for_each_kernel("apply_fused_adamw", [](session& s) {
    check_every_largest<float>(s), check_every_largest<bf16>(s), check_every_largest<f16>(s);
  });
}

TEST_CASE("apply_fused_adamw refuses what does not fit, by name, and changes nothing") {
  session s;
  array<float> p({8}), g({8}), m({8}), v({8}), other({9});
  array<bf16> half({8});
  p.fill(1);
  using args = velo_apply_fused_adamw_args;
  check_refusals(s, velo_apply_fused_adamw, args_of(g, p, m, v), p,
                 {{[&](args& a) { a.grad = other.tensor(); }, VELO_ERR_SHAPE, "args.grad.shape"},
                  {[&](args& a) { a.v = half.tensor(); }, VELO_ERR_DTYPE, "args.v.dtype"},
                  {[&](args& a) { a.amsgrad = 1; }, VELO_ERR_NULL, "args.v_max"},
                  {[&](args& a) { a.step = 0; }, VELO_ERR_ARGUMENT, "args.step"},
                  {[&](args& a) { a.beta1 = 1; }, VELO_ERR_ARGUMENT, "args.beta1"},
                  {[&](args& a) { a.beta2 = -0.1; }, VELO_ERR_ARGUMENT, "args.beta2"},
                  {[&](args& a) { a.maximize = 2; }, VELO_ERR_ARGUMENT, "args.maximize"},
                  {[&](args& a) { a.scale = other.tensor(); }, VELO_ERR_RANK, "args.scale.ndim"},
                  {[&](args& a) { a.m = a.v; }, VELO_ERR_OVERLAP, "args.m"}});
}

namespace {

// One update of 100 numbers from the same start, with args that `change` has changed.
std::vector<std::vector<unsigned char>> updated(
    velo_stream stream, const std::function<void(velo_apply_fused_adamw_args&)>& change) {
  array<float> p({100}), g({100}), m({100}), v({100});
  p.fill(1), g.fill(2), m.fill(3), v.fill(4);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::abs(v[i]);
  velo_apply_fused_adamw_args a = args_of(g, p, m, v);
  a.weight_decay = 0.5;
  change(a);
  VELO_RUN(velo_apply_fused_adamw(stream, &a));
  VELO_RUN(velo_stream_synchronize(stream));
  return {p.bytes(), m.bytes(), v.bytes()};
}

}  // namespace

TEST_CASE("apply_fused_adamw takes step and lr from tensors, which win over the attributes") {
  for_each_kernel("apply_fused_adamw", [](session& s) {
    array<std::int64_t> wide({});
    array<std::int32_t> narrow({});
    array<float> lr({});
    wide[0] = narrow[0] = 7, lr[0] = 0.01f;
    const auto want =
        updated(s.stream(), [&](auto& a) { a.step = 7, a.lr = static_cast<double>(lr[0]); });
    CHECK(want != updated(s.stream(), [](auto&) {}));
    CHECK(want == updated(s.stream(), [&](auto& a) {
            a.step_tensor = wide.tensor(), a.lr_tensor = lr.tensor(), a.step = 2, a.lr = 1;
          }));
    CHECK(want == updated(s.stream(), [&](auto& a) {
            a.step_tensor = narrow.tensor(), a.lr = static_cast<double>(lr[0]);
          }));
    CHECK(want == updated(s.stream(), [&](auto& a) { a.lr_tensor = lr.tensor(), a.step = 7; }));
  });
}

TEST_CASE("apply_fused_adamw on a queue reads step and lr when it runs") {
  session s;
  const velo_stream queue = s.new_stream();
  array<float> lr({}), half({});
  lr[0] = half[0] = 0.5f;
  const auto want = updated(s.stream(), [](auto& a) { a.lr = 1; });
  CHECK(want == updated(queue, [&](auto& a) {
          velo_add_args sum = VELO_ADD_ARGS_INIT;
          sum.a = sum.y = lr.tensor(), sum.b = half.tensor();
          VELO_RUN(velo_add(queue, &sum));  // 1, by the time that the update runs
          a.lr_tensor = lr.tensor();
        }));
}

TEST_CASE("apply_fused_adamw refuses a step below 1 in a tensor, and changes nothing") {
  session s;
  array<float> p({8}), g({8}), m({8}), v({8}), row({1});
  array<std::int64_t> step({});
  array<bf16> half({});
  p.fill(1);
  using args = velo_apply_fused_adamw_args;
  const args valid = args_of(g, p, m, v);
  for (const std::int64_t wrong : {INT64_MIN, INT64_C(-1), INT64_C(0), (INT64_C(1) << 52) + 1}) {
    step[0] = wrong;
    check_refusals(
        s, velo_apply_fused_adamw, valid, p,
        {{[&](args& a) { a.step_tensor = step.tensor(); }, VELO_ERR_ARGUMENT, "args.step_tensor"}});
  }
  check_refusals(
      s, velo_apply_fused_adamw, valid, p,
      {{[&](args& a) { a.step_tensor = row.tensor(); }, VELO_ERR_DTYPE, "args.step_tensor.dtype"},
       {[&](args& a) { a.lr_tensor = row.tensor(); }, VELO_ERR_RANK, "args.lr_tensor.ndim"},
       {[&](args& a) { a.lr_tensor = half.tensor(); }, VELO_ERR_DTYPE, "args.lr_tensor.dtype"}});
}
